"""Vectors of calyx-replay: expected keys, and committed envelopes."""
