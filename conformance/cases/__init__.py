"""Scripted cases: what their steps mean, how they run, and how they are judged."""
