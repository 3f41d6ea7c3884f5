"""Bugs that a program plants, and the tests that find them.

`drawing` lists and draws the mutants, and `runs` shares the work out among workers.
"""
