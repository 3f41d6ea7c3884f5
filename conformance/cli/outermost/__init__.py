"""The outermost place: signals, streams, what an older run left, and the exit status of every command."""
