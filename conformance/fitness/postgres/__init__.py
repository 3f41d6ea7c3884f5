"""Fitness of a surface in PostgreSQL: its catalogue, its faithful clone, and what the clone does."""
