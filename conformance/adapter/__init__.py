"""Adapter protocol v1: messages, the stdio transport, workers and their replacement."""
