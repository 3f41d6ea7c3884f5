"""The vocabulary of the canonicalisation vectors: categories of documents and profiles of the contested topics.

A category groups documents that distinguish the same kinds of canonicaliser. Positive categories (P…) hold documents
that have a canonical form, negative ones (N…) documents that must be refused; N9 is about verify mode: its documents
are accepted and have a canonical form, but are not it.
"""

from __future__ import annotations

from enum import StrEnum


class Category(StrEnum):
    """What a document is about. The value is what stands in records, tables and on the command line."""

    NUMBER_NOTATION = "P1", "numbers: thresholds of the notation", "JCS-NUM-02"
    NUMBER_SHORTEST = "P2", "numbers: shortest digits", "JCS-NUM-03"
    NUMBER_TIES = "P3", "numbers: ties and halfway literals", "JCS-NUM-09"
    NUMBER_SPELLING = "P4", "numbers: spellings, signs, zeros", "JCS-NUM-08"
    NUMBER_INTEGERS = "P5", "numbers: integers around 2^53 and beyond", "JCS-NUM-06"
    NUMBER_HUMAN = "P6", "numbers: short decimals at every exponent", "JCS-NUM-03"
    STRING_ESCAPED = "P7", "strings: what must be escaped, and how", "JCS-STR-02"
    STRING_RAW = "P8", "strings: what must not be escaped", "JCS-STR-03"
    STRING_UNNORMALISED = "P9", "strings: no normalisation, no case folding", "JCS-STR-04"
    ORDER_UTF16 = "P10", "member order: UTF-16 code units", "JCS-ORD-01"
    ORDER_PREFIX = "P11", "member order: prefixes, NUL, unescaped names", "JCS-ORD-02"
    ORDER_TRAPS = "P12", "member order: traps of languages", "JCS-ORD-04"
    STRUCTURE = "P13", "structure: nesting, empty containers, arrays", "JCS-LIT-01"
    WHITESPACE = "P14", "whitespace and top-level scalars", "JCS-WS-01"
    SIZE = "P15", "depth and size", "JCS-DEPTH-02"
    IDEMPOTENCE = "P16", "documents that are canonical already", "JCS-IDEM-01"
    DUPLICATE_NAMES = "N1", "duplicate names", "JCS-DUP-01"
    LONE_SURROGATES = "N2", "lone surrogates", "JCS-SUR-01"
    INVALID_UTF8 = "N3", "bytes that are not UTF-8", "JCS-UTF8-01"
    NUMBER_RANGE = "N4", "numbers out of range", "JCS-NUM-01"
    NUMBER_GRAMMAR = "N5", "number grammar", "JCS-GRAM-02"
    STRING_GRAMMAR = "N6", "string grammar", "JCS-GRAM-03"
    STRUCTURE_GRAMMAR = "N7", "structural grammar", "JCS-GRAM-01"
    ENCODING = "N8", "encodings that are not UTF-8", "JCS-UTF8-02"
    NOT_CANONICAL = "N9", "valid, but not canonical", "JCS-IDEM-02"

    title: str  # type: ignore[assignment]
    clause: str

    def __new__(cls, value: str, title: str = "", clause: str = "") -> Category:
        """`title` describes the category, for tables; `clause` is the clause of contract `jcs` that it is about."""
        made = str.__new__(cls, value)
        made._value_, made.title, made.clause = value, title, clause
        return made

    @property
    def refused(self) -> bool:
        """Whether documents of this category have no canonical form in any profile."""
        return self.value.startswith("N") and self is not Category.NOT_CANONICAL


class Profile(StrEnum):
    """How the topics that RFC 8785 leaves open are decided. Each strict profile is `core` and its own refusals.

    A document that a profile accepts has the same canonical bytes in all of them, and every canonical text that a
    profile gives out is accepted by that profile again.
    """

    CORE = "core"
    I_JSON_STRICT = "i-json-strict"
    SAFE_INT = "safe-int"

    @property
    def bit(self) -> int:
        """This profile's bit in a set of profiles kept as an integer."""
        return 1 << list(Profile).index(self)
