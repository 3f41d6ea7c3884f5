"""`tree` is laid over a copy of the kit and tested there."""

collect_ignore = ["tree"]
