"""Vectors of m5-log: operations, credentials and forgeries, and the state that a log has."""
