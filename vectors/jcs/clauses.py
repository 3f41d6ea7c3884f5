"""Where the clauses of the contract come from, and the reasons that they permit."""

from __future__ import annotations

from holdfast.specs import load_contract

# Clauses that leave the reason to the implementation; under every other clause a document has one.
_CHOICES = {"JCS-UTF8-02": ("INVALID_UTF8", "SYNTAX")}


def reasons_of(clause: str, due: str) -> tuple[str, ...]:
    """The reasons that the clause permits where a vector has the reason `due`."""
    return _CHOICES[clause] if due in _CHOICES.get(clause, ()) else (due,)


def section_of(clause: str) -> str:
    """The place in RFC 8785, and the RFCs under it, that a clause of `jcs` is from."""
    return load_contract("jcs").clauses[clause].section
