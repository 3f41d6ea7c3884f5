"""Replay-surface fitness: proves that a live table can hold consumed keys, or refuses it (rs4a-replay, section 6)."""
