"""Replay-surface fitness: proves that a live table can hold consumed keys, or refuses it (section 6 of the source)."""
