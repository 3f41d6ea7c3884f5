"""What a crash, a power loss or a lost dependency does to an implementation, found without its help.

Worth using alone: nothing here imports the rest of the kit. `recording` is what the other parts speak about: `tracer`
makes recordings, `model` says which states of the disk they allow, `sweep` tries them, `story` and `timeline` tell a
person what was lost. `dependencies` needs no recording: it takes away what an implementation works on.
"""
