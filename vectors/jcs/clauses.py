"""Which clause of the contract a category of documents is about, and where the clauses come from."""

from __future__ import annotations

from holdfast.specs import load_contract
from holdfast.vectors.taxonomy import Category

OF_CATEGORY = {
    Category.NUMBER_NOTATION: "JCS-NUM-02",
    Category.NUMBER_SHORTEST: "JCS-NUM-03",
    Category.NUMBER_TIES: "JCS-NUM-09",
    Category.NUMBER_SPELLING: "JCS-NUM-08",
    Category.NUMBER_INTEGERS: "JCS-NUM-06",
    Category.NUMBER_HUMAN: "JCS-NUM-03",
    Category.STRING_ESCAPED: "JCS-STR-02",
    Category.STRING_RAW: "JCS-STR-03",
    Category.STRING_UNNORMALISED: "JCS-STR-04",
    Category.ORDER_UTF16: "JCS-ORD-01",
    Category.ORDER_PREFIX: "JCS-ORD-02",
    Category.ORDER_TRAPS: "JCS-ORD-04",
    Category.STRUCTURE: "JCS-LIT-01",
    Category.WHITESPACE: "JCS-WS-01",
    Category.SIZE: "JCS-DEPTH-02",
    Category.IDEMPOTENCE: "JCS-IDEM-01",
    Category.DUPLICATE_NAMES: "JCS-DUP-01",
    Category.LONE_SURROGATES: "JCS-SUR-01",
    Category.INVALID_UTF8: "JCS-UTF8-01",
    Category.NUMBER_RANGE: "JCS-NUM-01",
    Category.NUMBER_GRAMMAR: "JCS-GRAM-02",
    Category.STRING_GRAMMAR: "JCS-GRAM-03",
    Category.STRUCTURE_GRAMMAR: "JCS-GRAM-01",
    Category.ENCODING: "JCS-UTF8-02",
    Category.NOT_CANONICAL: "JCS-IDEM-02",
}

# Clauses that leave the reason to the implementation; under every other clause a document has one.
_CHOICES = {"JCS-UTF8-02": ("INVALID_UTF8", "SYNTAX")}


def reasons_of(clause: str, due: str) -> tuple[str, ...]:
    """The reasons that the clause permits where a vector has the reason `due`."""
    return _CHOICES[clause] if due in _CHOICES.get(clause, ()) else (due,)


def section_of(clause: str) -> str:
    """The place in RFC 8785, and the RFCs under it, that a clause of `jcs` is from."""
    return load_contract("jcs").clauses[clause].section
