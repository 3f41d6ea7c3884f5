"""Numbers: the grammar of a literal, and what its digits say before rounding takes them away."""

from __future__ import annotations

import re

import rfc8785

# RFC 8259 section 6. ASCII digits only: `\d` would take the digits of every script.
LITERAL = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
# Characters that can follow a literal by mistake, so that `01` or `1.` is one wrong number and not two right tokens.
_INTEGER = re.compile(r"-?[0-9]+")


def text_of(double: float) -> str:
    """The text of a finite double (RFC 8785 section 3.2.2.3)."""
    return rfc8785.dumps(double).decode("ascii")


def significant_digits(literal: str) -> int:
    """How many digits of the coefficient are left without the zeros at its ends; 0 for every spelling of zero."""
    coefficient = literal.lower().partition("e")[0]
    return len(coefficient.lstrip("-").replace(".", "").strip("0"))


def integer_of(text: str) -> int | None:
    """The integer that a canonical text spells without point and exponent; None if it spells something else."""
    return int(text) if _INTEGER.fullmatch(text) else None
