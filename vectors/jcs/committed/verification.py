"""Valid documents that are not canonical (N9): canonicalise accepts them, verify must say no."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.vectors.jcs.committed.page import Page
from holdfast.vectors.record import Vector
from holdfast.vectors.taxonomy import Category


def records() -> Iterator[Vector]:
    """The records of N9."""
    page = Page(Category.NOT_CANONICAL, "JCS-VER-02", "RFC 8785 section 5")
    rows = (
        ("blank", '{ "a":1}', '{"a":1}', "a blank"),
        ("order", '{"b":1,"a":2}', '{"a":2,"b":1}', "members out of order"),
        ("fraction", "[1.0]", "[1]", "a fraction of zeros"),
        ("slash", r'["\/"]', '["/"]', "an escaped slash"),
        ("exponent", "[1E21]", "[1e+21]", "an exponent in upper case"),
        ("no-sign", "[1e21]", "[1e+21]", "an exponent without its sign"),
        ("line-end", "{}\n", "{}", "a line feed at the end"),
        ("upper-hex", r'["\u001F"]', r'["\u001f"]', "hexadecimal digits in upper case"),
        ("long-escape", r'["\u000a"]', r'["\n"]', "a long escape where there is a short one"),
        ("needless-escape", r'["\u0061"]', '["a"]', "a letter as an escape"),
        ("ascii-only", r'["\u00e9"]', '["\u00e9"]', "a letter escaped for ASCII"),
        ("minus-zero", "[-0]", "[0]", "minus zero"),
        ("long-number", "[0.10000000000000001]", "[0.1]", "more digits than needed"),
        ("utf8-order", '{"\uff20":1,"\U0001f600":2}', '{"\U0001f600":2,"\uff20":1}', "ordered by code points"),
        ("inner-order", '{"a":{"c":1,"b":2}}', '{"a":{"b":2,"c":1}}', "inner members out of order"),
        ("integer-text", '{"9":1,"10":2}', '{"10":2,"9":1}', "members in the order of numbers"),
        ("small-exponent", "[1e-07]", "[1e-7]", "an exponent of two digits"),
        ("fixed", "[0.0000001]", "[1e-7]", "a number without its exponent"),
        ("leading-blank", " 1", "1", "a blank before a scalar"),
    )
    for name, document, canonical, note in rows:
        yield page.accepted(name, document, canonical, note)
