"""The vocabulary of the canonicalisation vectors: categories of documents and profiles of the contested topics.

A category groups documents that distinguish the same kinds of canonicaliser. Positive categories (P…) hold documents
that have a canonical form, negative ones (N…) documents that must be refused; N9 is about verify mode: its documents
are accepted and have a canonical form, but are not it.
"""

from __future__ import annotations

from enum import StrEnum


class Category(StrEnum):
    """What a document is about. The value is what stands in records, tables and on the command line."""

    NUMBER_NOTATION = "P1"
    NUMBER_SHORTEST = "P2"
    NUMBER_TIES = "P3"
    NUMBER_SPELLING = "P4"
    NUMBER_INTEGERS = "P5"
    NUMBER_HUMAN = "P6"
    STRING_ESCAPED = "P7"
    STRING_RAW = "P8"
    STRING_UNNORMALISED = "P9"
    ORDER_UTF16 = "P10"
    ORDER_PREFIX = "P11"
    ORDER_TRAPS = "P12"
    STRUCTURE = "P13"
    WHITESPACE = "P14"
    SIZE = "P15"
    IDEMPOTENCE = "P16"
    DUPLICATE_NAMES = "N1"
    LONE_SURROGATES = "N2"
    INVALID_UTF8 = "N3"
    NUMBER_RANGE = "N4"
    NUMBER_GRAMMAR = "N5"
    STRING_GRAMMAR = "N6"
    STRUCTURE_GRAMMAR = "N7"
    ENCODING = "N8"
    NOT_CANONICAL = "N9"

    @property
    def title(self) -> str:  # type: ignore[override]
        """The description of the category, for tables."""
        return _TITLES[self]

    @property
    def refused(self) -> bool:
        """Whether documents of this category have no canonical form in any profile."""
        return self.value.startswith("N") and self is not Category.NOT_CANONICAL


_TITLES = {
    Category.NUMBER_NOTATION: "numbers: thresholds of the notation",
    Category.NUMBER_SHORTEST: "numbers: shortest digits",
    Category.NUMBER_TIES: "numbers: ties and halfway literals",
    Category.NUMBER_SPELLING: "numbers: spellings, signs, zeros",
    Category.NUMBER_INTEGERS: "numbers: integers around 2^53 and beyond",
    Category.NUMBER_HUMAN: "numbers: short decimals at every exponent",
    Category.STRING_ESCAPED: "strings: what must be escaped, and how",
    Category.STRING_RAW: "strings: what must not be escaped",
    Category.STRING_UNNORMALISED: "strings: no normalisation, no case folding",
    Category.ORDER_UTF16: "member order: UTF-16 code units",
    Category.ORDER_PREFIX: "member order: prefixes, NUL, unescaped names",
    Category.ORDER_TRAPS: "member order: traps of languages",
    Category.STRUCTURE: "structure: nesting, empty containers, arrays",
    Category.WHITESPACE: "whitespace and top-level scalars",
    Category.SIZE: "depth and size",
    Category.IDEMPOTENCE: "documents that are canonical already",
    Category.DUPLICATE_NAMES: "duplicate names",
    Category.LONE_SURROGATES: "lone surrogates",
    Category.INVALID_UTF8: "bytes that are not UTF-8",
    Category.NUMBER_RANGE: "numbers out of range",
    Category.NUMBER_GRAMMAR: "number grammar",
    Category.STRING_GRAMMAR: "string grammar",
    Category.STRUCTURE_GRAMMAR: "structural grammar",
    Category.ENCODING: "encodings that are not UTF-8",
    Category.NOT_CANONICAL: "valid, but not canonical",
}


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
