r"""Strings: escaped characters, literal characters, and no normalisation (P7 to P9).

Documents are written as raw Python text: in them `\u` is JSON's escape, spelt out.
"""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.vectors.jcs.committed.page import Page
from holdfast.vectors.record import Vector
from holdfast.vectors.taxonomy import Category, Profile

_STRINGS = "RFC 8785 section 3.2.2.2"
_AS_IS = "RFC 8785 section 3.1"
_IJSON = "RFC 7493 section 2.1"
_NONCHARACTER = {Profile.I_JSON_STRICT: "NONCHARACTER"}


def records() -> Iterator[Vector]:
    """The records of P7 to P9, in order."""
    yield from _escaped()
    yield from _raw()
    yield from _noncharacters()
    yield from _unnormalised()


def _escaped() -> Iterator[Vector]:
    page = Page(Category.STRING_ESCAPED, "JCS-STR-02", _STRINGS)
    short = "JCS-STR-01"
    yield page.accepted(
        "long-forms", r'["\u0000\u001F\u000b"]', r'["\u0000\u001f\u000b"]', "no short form: lower-case digits"
    )
    yield page.accepted(
        "short-forms",
        r'["\u0008\u0009\u000a\u000c\u000d"]',
        r'["\b\t\n\f\r"]',
        "the five controls with a short form",
        clause=short,
    )
    yield page.accepted("backspace", r'["\u0008"]', r'["\b"]', "backspace alone", clause=short)
    yield page.accepted("form-feed", r'["\u000C"]', r'["\f"]', "form feed alone", clause=short)
    yield page.accepted("tab", r'["\u0009"]', r'["\t"]', "tab alone", clause=short)
    yield page.accepted("line-feed", r'["\u000A"]', r'["\n"]', "line feed alone", clause=short)
    yield page.accepted("carriage-return", r'["\u000D"]', r'["\r"]', "carriage return alone", clause=short)
    yield page.accepted(
        "quote-backslash-slash", r'["\"\\\/"]', r'["\"\\/"]', "a slash needs no backslash", clause=short
    )
    yield page.accepted("quote-spelt", r'["\u0041\u0022"]', r'["A\""]', "a quotation mark from \\u", clause=short)
    yield page.accepted("backslash-spelt", r'["\u005c"]', r'["\\"]', "a backslash from \\u", clause=short)
    yield page.accepted(
        "backslash-u", r'["\\u0041"]', r'["\\u0041"]', "a backslash, then text that looks like an escape"
    )
    yield page.accepted("nul", r'["a\u0000b"]', r'["a\u0000b"]', "NUL ends nothing")
    yield page.accepted("vertical-tab", r'["\u000B"]', r'["\u000b"]', "\\v is not JSON")
    yield page.accepted("escape-character", r'["\u001B"]', r'["\u001b"]', "ESC, with a lower-case digit")
    yield page.accepted("below-backspace", r'["\u0007"]', r'["\u0007"]', "BEL: \\a is not JSON")
    yield page.accepted("last-control", r'["\u001f\u0020"]', r'["\u001f "]', "U+001F is escaped, a space is not")
    yield page.accepted(
        "all-long",
        r'["\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u000e\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017'
        r'\u0018\u0019\u001a\u001c\u001d\u001e"]',
        r'["\u0001\u0002\u0003\u0004\u0005\u0006\u0007\u000e\u000f\u0010\u0011\u0012\u0013\u0014\u0015\u0016\u0017'
        r'\u0018\u0019\u001a\u001c\u001d\u001e"]',
        "the other controls without a short form",
    )
    yield page.accepted(
        "in-a-name", r'{"\u000a\u001F":1}', r'{"\n\u001f":1}', "names are escaped like values", clause=short
    )
    yield page.accepted("letter", '["a"]', '["a"]', "what a refused string stands beside", clause="JCS-STR-03")
    yield page.accepted("letter-spelt", r'["\u0061"]', '["a"]', "a letter from \\u is a letter", clause="JCS-STR-03")
    yield page.accepted("space", '[" "]', '[" "]', "a space stands in a string", clause="JCS-STR-03")


def _raw() -> Iterator[Vector]:
    page = Page(Category.STRING_RAW, "JCS-STR-03", _STRINGS)
    pair = "JCS-SUR-03"
    yield page.accepted("delete", r'["\u007f"]', '["\x7f"]', "DEL is no control that JSON escapes")
    yield page.accepted("c1", r'["\u0080\u0085\u009f"]', '["\x80\x85\x9f"]', "C1 controls stand as UTF-8")
    yield page.accepted("line-separators", r'["\u2028\u2029"]', '["\u2028\u2029"]', "JavaScript's line ends stand raw")
    yield page.accepted("html", "[\"<a href='x'>&/\"]", "[\"<a href='x'>&/\"]", "nothing is escaped for HTML")
    yield page.accepted("html-spelt", r'["\u003c\u003E\u0026\u0027"]', '["<>&\'"]', "escapes for HTML are undone")
    yield page.accepted("slash", r'["\/"]', '["/"]', "an escaped slash is a slash")
    yield page.accepted("script-end", r'["<\/script>"]', '["</script>"]', "no escape inside a closing tag")
    yield page.accepted("feff", r'["\ufeff"]', '["\ufeff"]', "U+FEFF in a string is a character", clause="JCS-BOM-01")
    yield page.accepted("feff-raw", '["a\ufeffb"]', '["a\ufeffb"]', "U+FEFF as bytes in a string", clause="JCS-BOM-01")
    yield page.accepted("umlaut", r'["\u00fc"]', '["\u00fc"]', "two bytes of UTF-8")
    yield page.accepted("umlaut-raw", '["\u00fc"]', '["\u00fc"]', "what a broken sequence stands beside")
    yield page.accepted("euro", '["\u20ac"]', '["\u20ac"]', "three bytes of UTF-8")
    yield page.accepted("kanji", r'["\u6F22\u5b57"]', '["\u6f22\u5b57"]', "escapes with digits of either case")
    yield page.accepted("replacement", '["\ufffd"]', '["\ufffd"]', "U+FFFD is a character like others")
    yield page.accepted("question-mark", '["?"]', '["?"]', "a question mark is a question mark")
    yield page.accepted("no-break-space", '["\u00a0"]', '["\u00a0"]', "a blank beyond ASCII")
    yield page.accepted("zero-width", '["a\u200bb"]', '["a\u200bb"]', "an invisible character is kept")
    yield page.accepted("private-use", r'["\ue000\uf8ff"]', '["\ue000\uf8ff"]', "private use is a scalar value")
    yield page.accepted("below-surrogates", r'["\ud7ff"]', '["\ud7ff"]', "the last code unit before the surrogates")
    yield page.accepted("pair", r'["\ud83d\ude00"]', '["\U0001f600"]', "a pair is one character", clause=pair)
    yield page.accepted("pair-upper", r'["\uD83D\uDE00"]', '["\U0001f600"]', "a pair in upper case", clause=pair)
    yield page.accepted("pair-next", r'["\ud83d\ude01"]', '["\U0001f601"]', "the next character", clause=pair)
    yield page.accepted("astral", '["\U0001f600"]', '["\U0001f600"]', "four bytes of UTF-8", clause=pair)
    yield page.accepted(
        "two-pairs", r'["\ud83d\ude00\ud83d\ude00"]', '["\U0001f600\U0001f600"]', "two pairs in a row", clause=pair
    )
    yield page.accepted("first-astral", r'["\ud800\udc00"]', '["\U00010000"]', "the first pair", clause=pair)
    yield page.accepted("last-planes", r'["\udbff\udffd"]', '["\U0010fffd"]', "the last pair but two", clause=pair)
    yield page.accepted("pair-in-a-name", r'{"\ud83d\ude00":1}', '{"\U0001f600":1}', "a pair in a name", clause=pair)
    yield page.accepted("plane-sixteen", '["\U0010fffd"]', '["\U0010fffd"]', "the last character but two", clause=pair)


def _noncharacters() -> Iterator[Vector]:
    page = Page(Category.STRING_RAW, "JCS-STR-05", _IJSON)
    strict = "JCS-PROF-02"
    rows = (
        ("nonchar-fffe", r'["\ufffe"]', '["\ufffe"]', "U+FFFE, a byte order mark the wrong way round", None),
        ("nonchar-ffff", r'["\uffff"]', '["\uffff"]', "U+FFFF", None),
        ("nonchar-fdd0", r'["\ufdd0"]', '["\ufdd0"]', "U+FDD0, the first of the block in the middle", strict),
        ("nonchar-fdef", r'["\ufdef"]', '["\ufdef"]', "U+FDEF, the last of that block", strict),
        ("nonchar-raw", '["\ufdd1"]', '["\ufdd1"]', "as bytes, not as an escape", strict),
        ("nonchar-plane-one", r'["\ud83f\udfff"]', '["\U0001ffff"]', "U+1FFFF, from a pair", strict),
        ("nonchar-plane-two", '["\U0002fffe"]', '["\U0002fffe"]', "U+2FFFE", strict),
        ("nonchar-plane-sixteen", '["\U0010ffff"]', '["\U0010ffff"]', "U+10FFFF, the last code point", strict),
    )
    for name, document, canonical, note, clause in rows:
        yield page.accepted(
            name,
            document,
            canonical,
            note,
            but=_NONCHARACTER,
            twin=_NONCHARACTER_TWINS.get(name, "P8-beside-nonchars"),
            clause=clause,
        )
    yield page.accepted(
        "nonchar-name",
        r'{"\ufffe":1}',
        '{"\ufffe":1}',
        "in a name",
        but=_NONCHARACTER,
        twin="P8-name-beside-nonchars",
        clause=strict,
    )
    yield page.accepted("beside-nonchars", r'["\ufdcf"]', '["\ufdcf"]', "the code point before U+FDD0")
    yield page.accepted("behind-nonchars", r'["\ufdf0"]', '["\ufdf0"]', "the code point behind U+FDEF", clause=strict)
    yield page.accepted("name-beside-nonchars", r'{"\ufffd":1}', '{"\ufffd":1}', "a name that I-JSON allows")
    yield page.accepted("plane-one-allowed", r'["\ud83f\udffd"]', '["\U0001fffd"]', "the code point before U+1FFFE")


_NONCHARACTER_TWINS = {
    "nonchar-plane-one": "P8-plane-one-allowed",
    "nonchar-plane-sixteen": "P8-plane-sixteen",
    "nonchar-plane-two": "P8-astral",
}


def _unnormalised() -> Iterator[Vector]:
    page = Page(Category.STRING_UNNORMALISED, "JCS-STR-04", _AS_IS)
    names = "JCS-DUP-04"
    yield page.accepted("decomposed", r'["A\u030a"]', '["A\u030a"]', "A and a ring are not composed")
    yield page.accepted("composed", '["\u00c5"]', '["\u00c5"]', "a composed letter is not taken apart")
    yield page.accepted("angstrom", r'["\u212b"]', '["\u212b"]', "the Angstrom sign is not the letter")
    yield page.accepted(
        "both-forms",
        '{"\u00e9":1,"e\u0301":2}',
        '{"e\u0301":2,"\u00e9":1}',
        "two names that normalisation would merge",
        clause=names,
    )
    yield page.accepted("ligature", '["\ufb01"]', '["\ufb01"]', "compatibility characters stay")
    yield page.accepted("full-width", '["\uff21"]', '["\uff21"]', "a full-width letter stays")
    yield page.accepted("hangul", '["\u1112\u1161\u11ab"]', '["\u1112\u1161\u11ab"]', "jamo are not composed")
    yield page.accepted("sharp-s", '["Stra\u00dfe"]', '["Stra\u00dfe"]', "no case folding")
    yield page.accepted("two-cases", '{"b":1,"B":2}', '{"B":2,"b":1}', "names that differ in case", clause=names)
    yield page.accepted("dotless", '["\u0130\u0131"]', '["\u0130\u0131"]', "Turkish letters keep their dots")
    yield page.accepted(
        "invisible", '{"a\u200d":1,"a":2}', '{"a":2,"a\u200d":1}', "names that differ in what is not seen", clause=names
    )
    yield page.accepted("blanks", '[" a  b "]', '[" a  b "]', "nothing is trimmed")
    yield page.accepted("crlf", r'["a\r\nb"]', r'["a\r\nb"]', "line ends are not changed")
    yield page.accepted("marks-order", '["q\u0307\u0323"]', '["q\u0307\u0323"]', "combining marks keep their order")
