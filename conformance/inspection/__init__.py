"""Inspecting an implementation's own files and its own database, without its adapter.

`store` is what a driver uses. `files` reaches into a workdir without following a link, `database` is all that is done
with SQLite, in a process of its own that `helper` starts, waits for and ends.
"""
