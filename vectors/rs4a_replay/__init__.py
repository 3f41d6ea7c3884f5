"""Vectors of rs4a-replay: expected keys."""
