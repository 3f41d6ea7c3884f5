"""Where the clauses of the contract come from."""

from __future__ import annotations

from holdfast.specs import load_contract


def section_of(clause: str) -> str:
    """The place in RFC 8785, and the RFCs under it, that a clause of `jcs` is from."""
    return load_contract("jcs").clauses[clause].section
