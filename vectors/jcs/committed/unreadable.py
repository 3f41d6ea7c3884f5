r"""Documents that are refused for their names, surrogates, bytes or encoding (N1 to N3, N8).

Each document has one defect, and its twin is the record that lacks it.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.vectors.jcs.committed.page import Page
from holdfast.vectors.record import Vector
from holdfast.vectors.taxonomy import Category


def records() -> Iterator[Vector]:
    """The records of N1, N2 and N3, in order."""
    yield from _duplicates()
    yield from _surrogates()
    yield from _bytes()


def _duplicates() -> Iterator[Vector]:
    page = Page(Category.DUPLICATE_NAMES, "JCS-DUP-01", "RFC 7493 section 2.3")
    spelt, deep = "JCS-DUP-02", "JCS-DUP-03"
    rows = (
        ("plain", '{"a":1,"a":2}', "P11-duplicate-twin", "two values for one name", None),
        ("equal-values", '{"a":1,"a":1}', "P11-same-value", "equal values do not excuse it", None),
        ("escaped", r'{"a":1,"\u0061":1}', "P11-spelt-twin", "the same name, spelt as an escape", spelt),
        (
            "pair",
            r'{"😀":1,"\ud83d\ude00":2}',
            "P11-emoji-twin",
            "the same character, spelt as a surrogate pair",
            spelt,
        ),
        ("nested", '[{"x":{"k":0,"k":0}}]', "P11-deep-names", "an object inside an object inside an array", deep),
        ("empty-name", '{"":1,"":2}', "P11-empty-name-twin", "the empty name twice", None),
        ("not-neighbours", '{"a":1,"b":2,"a":3}', "P11-not-neighbours-twin", "another name between them", None),
        ("slash", r'{"/":1,"\/":2}', "P11-slash-twin", "the same name with an escaped slash", spelt),
        ("control", r'{"\n":1,"\u000a":2}', "P11-control-twin", "a short and a long escape of one control", spelt),
        ("nul", r'{"a\u0000b":1,"a\u0000b":2}', "P11-nul-twin", "a name with NUL in it", None),
        ("proto", '{"__proto__":1,"__proto__":2}', "P11-proto-twin", "a name that some objects cannot hold", None),
        ("objects", '{"a":{},"a":{}}', "P11-objects-twin", "two empty objects are not merged", None),
        (
            "looks-canonical",
            '{"a":[],"a":[]}',
            "P11-canonical-twin",
            "ordered and without blanks, so verify must look for duplicates itself",
            "JCS-VER-03",
        ),
        ("in-array", '[{},{"a":1,"a":1}]', "P11-in-array-twin", "in the second element", deep),
    )
    for name, document, twin, note, clause in rows:
        yield page.refused(name, document, "DUPLICATE_NAME", note, twin=twin, clause=clause)


def _surrogates() -> Iterator[Vector]:
    page = Page(Category.LONE_SURROGATES, "JCS-SUR-01", "RFC 8785 section 3.2.2.2")
    name_clause = "JCS-SUR-02"
    rows = (
        ("dead", r'["\uDEAD"]', "P8-not-dead", "the example of the RFC: a low half alone", None),
        ("high", r'["\ud83d"]', "P8-not-high", "a high half alone, at the end", None),
        ("high-then-letter", r'["\ud800\u0041"]', "P8-first-astral", "a high half and a letter", None),
        ("reversed", r'["\ude00\ud83d"]', "P8-pair", "both halves, in the wrong order", None),
        ("in-a-name", r'{"\udc00":1}', "P8-name-not-low", "a low half in a name", name_clause),
        ("high-in-a-name", r'{"\ud800":1}', "P8-name-not-high", "a high half in a name", name_clause),
        ("high-pair", r'["\ud83d\ud83d\ude00"]', "P8-two-and-a-pair", "a high half before a whole pair", None),
        ("pair-low", r'["\ud83d\ude00\ude00"]', "P8-pair-and-more", "a low half behind a whole pair", None),
        ("split", r'["\ud83da\ude00"]', "P8-not-split", "a letter between the halves", None),
        ("high-then-raw", r'["\ud83dx"]', "P8-not-high-raw", "a high half and a raw letter", None),
        ("high-then-newline", r'["\ud83d\n"]', "P8-not-high-newline", "a high half and another escape", None),
        ("two-highs", r'["\ud83d\ud83d"]', "P8-pair-short", "two high halves", None),
        ("first-low", r'["\udc00"]', "P8-not-first-low", "the first low half", None),
        ("last-low", r'["\udfff"]', "P8-not-last-low", "the last low half", None),
        ("last-high", r'["\udbff"]', "P8-not-last-high", "the last high half", None),
    )
    for name, document, twin, note, clause in rows:
        yield page.refused(name, document, "LONE_SURROGATE", note, twin=twin, clause=clause)


def _bytes() -> Iterator[Vector]:
    page = Page(Category.INVALID_UTF8, "JCS-UTF8-01", "RFC 3629")
    rows = (
        ("stray-ff", b'["\xff"]', "P8-letter", "a byte that UTF-8 never has"),
        ("stray-continuation", b'["\x80"]', "P8-letter", "a continuation byte that continues nothing"),
        ("latin-one", b'["\xe9"]', "P8-letter", "a letter in Latin-1"),
        ("overlong-slash", b'["\xc0\xaf"]', "P8-letter", "a slash in two bytes"),
        ("overlong-nul", b'["\xc0\x80"]', "P8-letter", "NUL in two bytes, as Java writes it"),
        ("overlong-three", b'["\xe0\x80\xaf"]', "P8-letter", "a slash in three bytes"),
        ("overlong-four", b'["\xf0\x82\x82\xac"]', "P8-letter", "a euro sign in four bytes"),
        ("encoded-surrogate", b'["\xed\xa0\x80"]', "P8-letter", "U+D800 in three bytes"),
        ("cesu", b'["\xed\xa0\xbd\xed\xb8\x80"]', "P8-letter", "a character as two encoded surrogates"),
        ("cut-off", b'["\xe2\x82"]', "P8-euro-raw", "the last byte of a euro sign is missing"),
        ("cut-off-four", b'["\xf0\x9f\x98"]', "P8-astral", "the last byte of four is missing"),
        ("beyond-unicode", b'["\xf4\x90\x80\x80"]', "P8-letter", "U+110000"),
        ("five-bytes", b'["\xf8\x88\x80\x80\x80"]', "P8-letter", "a form of five bytes"),
        ("in-a-name", b'{"\xff":1}', "P13-one-member", "in a name"),
        ("between-tokens", b"[1\xff]", "P4-one", "outside of strings"),
        ("at-the-end", b"{}\xff", "P13-empty-object", "behind the value"),
        ("at-the-end-cut-off", b"{}\xe2\x82", "P13-empty-object", "half a character behind the value"),
        ("interrupted", b'["\xe2a"]', "P8-letter", "a letter where a continuation byte must come"),
    )
    for name, document, twin, note in rows:
        yield page.refused(name, document, "INVALID_UTF8", note, twin=twin)


def encodings() -> Iterator[Vector]:
    """The records of N8, which stand behind those of the grammar."""
    page = Page(Category.ENCODING, "JCS-UTF8-02", "RFC 8259 section 8.1")
    text = '["a"]'
    rows = (
        ("utf16-le", text.encode("utf-16-le"), "SYNTAX", "UTF-16, little-endian: NUL behind the bracket"),
        ("utf16-be", text.encode("utf-16-be"), "SYNTAX", "UTF-16, big-endian: NUL before the bracket"),
        ("utf16-le-mark", b"\xff\xfe" + text.encode("utf-16-le"), "INVALID_UTF8", "UTF-16 with its mark"),
        ("utf16-be-mark", b"\xfe\xff" + text.encode("utf-16-be"), "INVALID_UTF8", "UTF-16 with its mark"),
        ("utf32-le", text.encode("utf-32-le"), "SYNTAX", "UTF-32, little-endian"),
        ("utf32-be", text.encode("utf-32-be"), "SYNTAX", "UTF-32, big-endian"),
        ("utf32-le-mark", b"\xff\xfe\x00\x00" + text.encode("utf-32-le"), "INVALID_UTF8", "UTF-32 with its mark"),
    )
    for name, document, reason, note in rows:
        yield page.refused(name, document, reason, note, twin="P8-letter")
    yield page.refused("short-utf16", b"[\x00]\x00", "SYNTAX", "the shortest array in UTF-16", twin="P13-empty-array")
    yield page.refused("short-utf16-be", b"\x00[\x00]", "SYNTAX", "the same, big-endian", twin="P13-empty-array")
    yield page.refused(
        "short-utf16-mark", b"\xff\xfe[\x00]\x00", "INVALID_UTF8", "with its mark", twin="P13-empty-array"
    )
    mark = "JCS-BOM-01"
    yield page.refused(
        "mark", b"\xef\xbb\xbf[]", "BYTE_ORDER_MARK", "the mark of UTF-8", twin="P13-empty-array", clause=mark
    )
    yield page.refused(
        "mark-scalar",
        b"\xef\xbb\xbf1",
        "BYTE_ORDER_MARK",
        "the mark before a number",
        twin="P14-one-alone",
        clause=mark,
    )
    yield page.refused(
        "mark-behind-blank",
        b" \xef\xbb\xbf[]",
        "SYNTAX",
        "U+FEFF is no whitespace",
        twin="P14-blank-before",
        clause="JCS-GRAM-05",
    )
    yield page.refused(
        "mark-at-end",
        b"[]\xef\xbb\xbf",
        "SYNTAX",
        "U+FEFF behind the value",
        twin="P13-empty-array",
        clause="JCS-GRAM-05",
    )
