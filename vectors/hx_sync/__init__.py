"""Vectors of hx-sync: expected keys, and committed objects of the store."""
