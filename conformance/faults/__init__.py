"""What a crash, a power loss or a lost dependency does to an implementation, found without its help.

Usable alone: nothing here imports the rest of the kit. `recording` is the type that the other parts share: `tracer`
makes recordings, `model` says which states of the disk they allow, `sweep` tries them, `story` reports what was lost.
`dependencies` needs no recording: it takes away what an implementation works on.
"""
