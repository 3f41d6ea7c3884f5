"""How the inspection of a surface can fail. The texts are for people: what was expected, what came, what to do next."""

from __future__ import annotations


class FitnessError(Exception):
    """The question cannot be asked: no such server, no such table, several candidates. No judgement comes of it."""


class LostError(Exception):
    """One class of evidence cannot be had, and the text says why. What needs it is not proven; the rest is judged."""
