"""Bugs that a program plants, and the tests that find them.

`drawing` lists and draws the mutants, `bed` runs one test against one of them, `worker` is a process that does so again
and again, `runs` shares the work out among workers, and `score` counts.
"""
