"""Tests of the reference implementation of m5-log."""
