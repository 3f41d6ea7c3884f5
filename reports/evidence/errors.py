"""What can go wrong with an evidence file as a whole."""

from __future__ import annotations


class EvidenceError(Exception):
    """Evidence cannot be written or read at all: the text says what was expected, what came and what to do."""
