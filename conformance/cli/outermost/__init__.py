"""The entry of every command: signals, streams, files of an older run, and the exit status."""
