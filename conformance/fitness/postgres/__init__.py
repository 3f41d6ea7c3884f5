"""Fitness of a surface in PostgreSQL: its catalogue, its faithful clone, and the probes on the clone."""
