"""Inspecting an implementation's own files and its own database, without its adapter.

`store` is for drivers. `files` reads in a workdir and follows no link. `database` holds all the work with SQLite, in a
process of its own that `helper` starts, waits for and ends.
"""
