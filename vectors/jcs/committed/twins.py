"""Accepted records that exist only as twins of refusals: each has one defect less."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.vectors.jcs.committed.page import Page
from holdfast.vectors.record import Vector
from holdfast.vectors.taxonomy import Category


def records() -> Iterator[Vector]:
    """One record for each, in the order of the categories."""
    yield from _numbers()
    yield from _strings()
    yield from _names()
    yield from _structure()


def _numbers() -> Iterator[Vector]:
    text = "RFC 8785 section 3.2.2.3"
    edge = Page(Category.NUMBER_NOTATION, "JCS-NUM-01", text)
    yield edge.accepted("exponent-308", "[1e308]", "[1e+308]", "the last power of ten that is a double")
    largest = Page(Category.NUMBER_SHORTEST, "JCS-NUM-01", text)
    yield largest.accepted(
        "largest-negative", "[-1.7e308]", "[-1.7e+308]", "what an overflow to minus infinity stands beside"
    )
    spelling = Page(Category.NUMBER_SPELLING, "JCS-NUM-08", text)
    for name, literal, canonical in (
        ("exponent-one", "1e1", "10"),
        ("fifteen-apart", "1,5", "1,5"),
        ("one-point-two", "1.2", "1.2"),
        ("minus-half", "-0.5", "-0.5"),
    ):
        yield spelling.accepted(name, f"[{literal}]", f"[{canonical}]", "what a refused spelling stands beside")


def _strings() -> Iterator[Vector]:
    escaped = Page(Category.STRING_ESCAPED, "JCS-STR-03", "RFC 8785 section 3.2.2.2")
    for name, document, canonical in (
        ("backslash-x", r'["\\x41"]', r'["\\x41"]'),
        ("apostrophe", '["\'"]', '["\'"]'),
        ("digit", '["0"]', '["0"]'),
        ("letter-a", r'["\u0041"]', '["A"]'),
        ("two-letters", '["ab"]', '["ab"]'),
    ):
        yield escaped.accepted(name, document, canonical, "what a refused string stands beside")
    raw = Page(Category.STRING_RAW, "JCS-STR-03", "RFC 8785 section 3.2.2.2")
    for name, document, canonical in (
        ("letter", '["a"]', '["a"]'),
        ("euro-raw", '["\u20ac"]', '["\u20ac"]'),
    ):
        yield raw.accepted(name, document, canonical, "what broken bytes stand beside")
    for name, document, canonical in (
        ("not-dead", r'["\uDEAD"]'.replace("DEAD", "BEAD"), '["\ubead"]'),
        ("not-high", r'["\ud73d"]', '["\ud73d"]'),
        ("name-not-low", r'{"\ud700":1}', '{"\ud700":1}'),
        ("name-not-high", r'{"\ud7ff":1}', '{"\ud7ff":1}'),
        ("two-and-a-pair", r'["\ud73d\ud83d\ude00"]', '["\ud73d\U0001f600"]'),
        ("pair-and-more", r'["\ud83d\ude00\ue000"]', '["\U0001f600\ue000"]'),
        ("not-split", r'["\ud83d\ude00a"]', '["\U0001f600a"]'),
        ("not-high-raw", r'["\ud73dx"]', '["\ud73dx"]'),
        ("not-high-newline", r'["\ud73d\n"]', '["\ud73d\\n"]'),
        ("pair-short", r'["\ud83d\udc3d"]', '["\U0001f43d"]'),
        ("not-first-low", r'["\ue000"]', '["\ue000"]'),
        ("not-last-low", r'["\ue0ff"]', '["\ue0ff"]'),
        ("not-last-high", r'["\ud7ff\ubfff"]', '["\ud7ff\ubfff"]'),
    ):
        yield raw.accepted(name, document, canonical, "what a lone surrogate stands beside")


def _names() -> Iterator[Vector]:
    page = Page(Category.ORDER_PREFIX, "JCS-DUP-04", "RFC 7493 section 2.3")
    for name, document, canonical in (
        ("duplicate-twin", '{"a":1,"b":2}', '{"a":1,"b":2}'),
        ("empty-name-twin", '{"":1,"b":2}', '{"":1,"b":2}'),
        ("not-neighbours-twin", '{"a":1,"b":2,"c":3}', '{"a":1,"b":2,"c":3}'),
        ("slash-twin", r'{"/":1,"\"":2}', r'{"\"":2,"/":1}'),
        ("control-twin", r'{"\n":1,"\u000b":2}', r'{"\n":1,"\u000b":2}'),
        ("nul-twin", r'{"a\u0000b":1,"a\u0000c":2}', r'{"a\u0000b":1,"a\u0000c":2}'),
        ("proto-twin", '{"__proto__":1,"__prot__":2}', '{"__prot__":2,"__proto__":1}'),
        ("objects-twin", '{"a":{},"b":{}}', '{"a":{},"b":{}}'),
        ("canonical-twin", '{"a":[],"b":[]}', '{"a":[],"b":[]}'),
        ("in-array-twin", '[{},{"a":1,"b":1}]', '[{},{"a":1,"b":1}]'),
    ):
        yield page.accepted(name, document, canonical, "what a refused duplicate stands beside")


def _structure() -> Iterator[Vector]:
    page = Page(Category.STRUCTURE, "JCS-LIT-01", "RFC 8259 section 2")
    for name, document in (
        ("number-inside", '{"a":[1]}'),
        ("member-one", '{"1":1}'),
        ("member-null", '{"null":1}'),
        ("array-in-array", "[[]]"),
    ):
        yield page.accepted(name, document, document, "what a refused structure stands beside")
    blank = Page(Category.WHITESPACE, "JCS-WS-01", "RFC 8785 section 3.2.1")
    yield blank.accepted("one-alone", "1", "1", "what a second value stands beside", clause="JCS-TOP-01")
    yield blank.accepted("blank-before", " []", "[]", "what U+FEFF behind a blank stands beside")
    yield blank.accepted("line-inside", "[1\n]", "[1]", "what a comment up to the line's end stands beside")
    yield blank.accepted("zero-short", "0", "0", "what an empty document stands beside", clause="JCS-TOP-01")
