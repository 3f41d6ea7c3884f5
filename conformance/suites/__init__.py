"""Suites: the tests of each contract that a script of steps cannot express."""
