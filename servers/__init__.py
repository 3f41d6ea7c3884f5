"""Starting and ending of processes, folders and PostgreSQL servers, for the harness and for the reference.

It imports nothing else of the kit.
"""
