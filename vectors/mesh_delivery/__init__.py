"""Vectors of mesh-delivery: expected fingerprints."""
