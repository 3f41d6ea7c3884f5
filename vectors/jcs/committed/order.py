"""Order of members: UTF-16 code units, prefixes and escapes, the habits of languages (P10 to P12)."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.vectors.jcs.committed.page import Page
from holdfast.vectors.record import Vector
from holdfast.vectors.taxonomy import Category

_SORTING = "RFC 8785 section 3.2.3"


def records() -> Iterator[Vector]:
    """The records of P10 to P12, in order."""
    yield from _utf16()
    yield from _prefix()
    yield from _traps()


def _utf16() -> Iterator[Vector]:
    page = Page(Category.ORDER_UTF16, "JCS-ORD-01", _SORTING)
    yield page.accepted(
        "rfc-example",
        r"""{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One","""
        r""""\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}""",
        '{"\\r":"Carriage Return","1":"One","\x80":"Control","\u00f6":"Latin Small Letter O With Diaeresis",'
        '"\u20ac":"Euro Sign","\U0001f600":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
        "the sorting example of the RFC",
    )
    yield page.accepted(
        "weird",
        r"""{"\u20ac":"Euro Sign","\r":"Carriage Return","\u000a":"Newline","1":"One","\u0080":"Control\u007f","""
        r""""\ud83d\ude02":"Smiley","\u00f6":"Latin Small Letter O With Diaeresis","""
        r""""\ufb33":"Hebrew Letter Dalet With Dagesh","</script>":"Browser Challenge"}""",
        '{"\\n":"Newline","\\r":"Carriage Return","1":"One","</script>":"Browser Challenge","\x80":"Control\x7f",'
        '"\u00f6":"Latin Small Letter O With Diaeresis","\u20ac":"Euro Sign","\U0001f602":"Smiley",'
        '"\ufb33":"Hebrew Letter Dalet With Dagesh"}',
        "the file weird.json of the RFC's test data",
    )
    yield page.accepted(
        "full-width",
        '{"\uff20":1,"\U0001f600":2}',
        '{"\U0001f600":2,"\uff20":1}',
        "D83D comes before FF20, though U+1F600 comes behind U+FF20",
    )
    yield page.accepted(
        "boundaries",
        '{"\ue000":1,"\U00010000":2,"\ud7ff":3}',
        '{"\ud7ff":3,"\U00010000":2,"\ue000":1}',
        "the surrogates stand between U+D7FF and U+E000",
    )
    yield page.accepted(
        "behind-a-prefix",
        '{"a\ufb33":1,"a\U0001f600":2}',
        '{"a\U0001f600":2,"a\ufb33":1}',
        "the difference comes behind a common beginning",
    )
    yield page.accepted(
        "low-surrogates",
        '{"\U0001f602":1,"\U0001f600":2}',
        '{"\U0001f600":2,"\U0001f602":1}',
        "equal high surrogates: the low ones decide",
    )
    yield page.accepted(
        "planes",
        '{"\U0010fffd":1,"\U00010000":2,"\ufffd":3}',
        '{"\U00010000":2,"\U0010fffd":1,"\ufffd":3}',
        "every plane beyond the first comes before U+E000",
    )
    yield page.accepted(
        "nested",
        '[{"\uff20":1,"\U0001f600":2}]',
        '[{"\U0001f600":2,"\uff20":1}]',
        "the same inside an array",
        clause="JCS-ORD-05",
    )
    yield page.accepted(
        "byte-order", '{"\u0100":1,"\u00ff":2}', '{"\u00ff":2,"\u0100":1}', "units are compared, not their low bytes"
    )
    yield page.accepted(
        "unsigned", '{"\uffee":1,"a":2}', '{"a":2,"\uffee":1}', "units are unsigned: FFEE is large, not negative"
    )
    yield page.accepted("latin-one", '{"\u00e9":1,"~":2}', '{"~":2,"\u00e9":1}', "bytes are unsigned too")


def _prefix() -> Iterator[Vector]:
    page = Page(Category.ORDER_PREFIX, "JCS-ORD-02", _SORTING)
    raw = "JCS-ORD-03"
    yield page.accepted(
        "empty-first", '{"aa":1,"a":2,"":3}', '{"":3,"a":2,"aa":1}', "the empty name, then the shorter one"
    )
    yield page.accepted("nul-behind", r'{"a\u0000":1,"a":2}', r'{"a":2,"a\u0000":1}', "NUL is a unit, not an end")
    yield page.accepted(
        "nul-inside",
        r'{"a\u0000c":1,"a\u0000b":2}',
        r'{"a\u0000b":2,"a\u0000c":1}',
        "what stands behind NUL is compared",
    )
    yield page.accepted(
        "controls",
        r'{"\r":1,"1":2,"\n":3}',
        r'{"\n":3,"\r":1,"1":2}',
        "a control is small, though its escape begins with a backslash",
        clause=raw,
    )
    yield page.accepted(
        "quote",
        r'{"\"":1,"!":2,"#":3}',
        r'{"!":2,"\"":1,"#":3}',
        "a quotation mark is U+0022, not a backslash",
        clause=raw,
    )
    yield page.accepted(
        "short-and-long-escape",
        r'{"\u000b":1,"\n":2,"\f":3}',
        r'{"\n":2,"\u000b":1,"\f":3}',
        "0A, 0B, 0C: as escapes they would be b, n, u",
        clause=raw,
    )
    yield page.accepted(
        "spelt-letter", r'{"\u0062":1,"a":2}', '{"a":2,"b":1}', "a name is compared as it reads", clause=raw
    )
    yield page.accepted("backslash", r'{"\\":1,"[":2,"]":3}', r'{"[":2,"\\":1,"]":3}', "5B, 5C, 5D", clause=raw)
    yield page.accepted("longer-not-later", '{"b":1,"aa":2}', '{"aa":2,"b":1}', "length decides last, not first")
    yield page.accepted("two-names", '{"b":1,"a":2}', '{"a":2,"b":1}', "what a refused duplicate stands beside")
    yield page.accepted("same-value", '{"a":1,"b":1}', '{"a":1,"b":1}', "equal values under two names")
    yield page.accepted("three-names", '{"c":1,"a":2,"b":3}', '{"a":2,"b":3,"c":1}', "neither order nor its reverse")
    yield page.accepted("spelt-twin", r'{"a":1,"\u0062":1}', '{"a":1,"b":1}', "another name, spelt as an escape")
    yield page.accepted(
        "emoji-twin",
        r'{"😀":1,"\ud83d\ude01":2}',
        '{"😀":1,"😁":2}',
        "two characters, one of them spelt as a pair",
        clause="JCS-DUP-04",
    )
    yield page.accepted(
        "one-name-twice",
        '{"a":{"a":1}}',
        '{"a":{"a":1}}',
        "one name in two objects is no duplicate",
        clause="JCS-DUP-04",
    )
    yield page.accepted(
        "siblings",
        '[{"k":0},{"k":0}]',
        '[{"k":0},{"k":0}]',
        "one name in two elements is no duplicate",
        clause="JCS-DUP-04",
    )
    yield page.accepted(
        "deep-names", '[{"x":{"k":0,"j":0}}]', '[{"x":{"j":0,"k":0}}]', "two names, deep inside", clause="JCS-ORD-05"
    )


def _traps() -> Iterator[Vector]:
    page = Page(Category.ORDER_TRAPS, "JCS-ORD-04", _SORTING)
    yield page.accepted(
        "integers", '{"10":1,"9":2,"1":3}', '{"1":3,"10":1,"9":2}', "text, not numbers: 10 comes before 9"
    )
    yield page.accepted(
        "integers-and-text", '{"b":1,"2":2,"!":3}', '{"!":3,"2":2,"b":1}', "an integer is not moved to the front"
    )
    yield page.accepted("index-order", '{"1":"b","0":"a"}', '{"0":"a","1":"b"}', "an object is no list")
    yield page.accepted("proto", '{"__proto__":1,"a":2}', '{"__proto__":1,"a":2}', "a name like any other")
    yield page.accepted(
        "proto-object",
        '{"a":2,"__proto__":{"x":1}}',
        '{"__proto__":{"x":1},"a":2}',
        "no prototype is set",
    )
    yield page.accepted("to-json", '{"toJSON":1,"constructor":2}', '{"constructor":2,"toJSON":1}', "nothing is called")
    yield page.accepted("umlaut", '{"\u00e4":1,"z":2,"Z":3}', '{"Z":3,"z":2,"\u00e4":1}', "no locale")
    yield page.accepted("case", '{"a":1,"B":2}', '{"B":2,"a":1}', "upper case comes first, whatever the letter")
    yield page.accepted("punctuation", '{"a_b":1,"a-b":2,"ab":3}', '{"a-b":2,"a_b":1,"ab":3}', "nothing is skipped")
    yield page.accepted("minus", '{"-1":1,"-":2,"1":3}', '{"-":2,"-1":1,"1":3}', "a sign is a character")
    yield page.accepted("leading-zero", '{"1":1,"01":2}', '{"01":2,"1":1}', "01 is no number and is not 1")
    yield page.accepted("length", '{"length":1,"0":2}', '{"0":2,"length":1}', "not an array in disguise")
    yield page.accepted("null-name", '{"null":1,"true":2,"":3}', '{"":3,"null":1,"true":2}', "words as names")
    yield page.accepted(
        "class", '{"class":1,"$ref":2,"@type":3}', '{"$ref":2,"@type":3,"class":1}', "names that libraries act on"
    )
    yield page.accepted(
        "version-numbers", '{"a10":1,"a2":2}', '{"a10":1,"a2":2}', "no natural order of numbers in names"
    )
