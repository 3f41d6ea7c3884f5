"""The entry of every command: streams, files of an older run, and the exit status."""
