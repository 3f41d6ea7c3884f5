r"""Documents that are refused for their numbers, strings or structure (N4 to N7): no dialect of JSON passes."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.vectors.jcs.committed.page import Page
from holdfast.vectors.record import Vector
from holdfast.vectors.taxonomy import Category


def records() -> Iterator[Vector]:
    """The records of N4 to N7, in order."""
    yield from _range()
    yield from _numbers()
    yield from _strings()
    yield from _structure()


def _range() -> Iterator[Vector]:
    page = Page(Category.NUMBER_RANGE, "JCS-NUM-01", "RFC 8785 section 3.2.2.3")
    rows = (
        ("overflow", "[1e400]", "P4-one", "far too large"),
        ("overflow-negative", "[-1.8e308]", "P2-largest-negative", "too small"),
        ("just-over", "[1.7976931348623159e308]", "P3-near-largest", "the first 17 digits that round to infinity"),
        ("exponent-309", "[1e309]", "P1-exponent-308", "one power of ten too large"),
        ("huge-exponent", "[1e99999999999]", "P1-exponent-308", "an exponent beyond 32 bits"),
        ("nested", '{"a":[1e999]}', "P13-number-inside", "deep inside"),
    )
    for name, document, twin, note in rows:
        yield page.refused(name, document, "NUMBER_OUT_OF_RANGE", note, twin=twin)
    for name, document in (
        ("nan", "[NaN]"),
        ("infinity", "[Infinity]"),
        ("minus-infinity", "[-Infinity]"),
        ("minus-nan", "[-NaN]"),
        ("inf", "[inf]"),
    ):
        yield page.refused(
            name, document, "SYNTAX", "a word for what JSON cannot say", twin="P13-null", clause="JCS-GRAM-04"
        )


def _numbers() -> Iterator[Vector]:
    page = Page(Category.NUMBER_GRAMMAR, "JCS-GRAM-02", "RFC 8259 section 6")
    rows = (
        ("leading-zero", "[01]", "P4-one", "a zero before a digit"),
        ("leading-zeros", "[00]", "P4-zero", "two zeros"),
        ("minus-leading-zero", "[-01]", "P4-minus-one", "a sign and a zero before a digit"),
        ("plus", "[+1]", "P4-one", "a plus sign"),
        ("bare-point", "[.5]", "P4-half", "no digit before the point"),
        ("trailing-point", "[1.]", "P4-one", "no digit behind the point"),
        ("point-exponent", "[1.e1]", "P4-exponent-one", "no digit between point and exponent"),
        ("empty-exponent", "[1e]", "P4-one", "an exponent without digits"),
        ("empty-signed-exponent", "[1e+]", "P4-one", "an exponent of a sign only"),
        ("fraction-exponent", "[1e1.0]", "P4-exponent-one", "an exponent with a fraction"),
        ("minus", "[-]", "P4-minus-one", "a sign without digits"),
        ("minus-minus", "[--1]", "P4-minus-one", "two signs"),
        ("minus-space", "[- 1]", "P4-minus-one", "a blank behind the sign"),
        ("hexadecimal", "[0x1]", "P4-one", "hexadecimal digits"),
        ("hex-float", "[0x1p-2]", "P4-quarter", "a hexadecimal float, which ParseFloat reads"),
        ("hex-float-separator", "[0x_1p4]", "P4-one", "with a separator, which ParseFloat reads too"),
        ("separator", "[1_0]", "P4-ten", "a separator between digits"),
        ("octal", "[0o7]", "P4-zero", "octal digits"),
        ("binary", "[0b1]", "P4-one", "binary digits"),
        ("arabic-digit", "[\u0661]", "P4-one", "a digit of another script"),
        ("full-width-digit", "[\uff11]", "P4-one", "a full-width digit"),
        ("inner-arabic-digit", "[1\u0661]", "P4-one", "a digit of another script behind one of ASCII"),
        ("suffix", "[1f]", "P4-one", "a suffix of a type"),
        ("big-suffix", "[1n]", "P4-one", "a suffix of a big integer"),
        ("comma", "[1,5e]", "P4-fifteen-apart", "an exponent cut off in the second element"),
        ("two-points", "[1.2.3]", "P4-one-point-two", "two points"),
        ("minus-point", "[-.5]", "P4-minus-half", "a sign and no digit before the point"),
    )
    for name, document, twin, note in rows:
        yield page.refused(name, document, "SYNTAX", note, twin=twin)


def _strings() -> Iterator[Vector]:
    page = Page(Category.STRING_GRAMMAR, "JCS-GRAM-03", "RFC 8259 section 7")
    rows = (
        ("raw-control", '["\x01"]', "P7-letter", "a raw control character"),
        ("raw-tab", '["\t"]', "P7-space", "a raw tab"),
        ("raw-line-feed", '["\n"]', "P7-space", "a raw line feed"),
        ("raw-nul", '["\x00"]', "P7-letter", "a raw NUL"),
        ("raw-last", '["\x1f"]', "P7-space", "a raw U+001F"),
        ("unknown-escape", r'["\a"]', "P7-letter", "an escape that C has"),
        ("vertical-escape", r'["\v"]', "P7-letter", "an escape that JavaScript has"),
        ("hex-escape", r'["\x41"]', "P7-backslash-x", "an escape by two digits"),
        ("quote-escape", r"""["\'"]""", "P7-apostrophe", "a single quote needs no backslash"),
        ("zero-escape", r'["\0"]', "P7-digit", "an octal escape"),
        ("upper-u", r'["\U0061"]', "P7-letter-spelt", "an escape with an upper-case U"),
        ("short-unicode", r'["\u00A"]', "P7-line-feed", "three hexadecimal digits"),
        ("signed-unicode", r'["\u+041"]', "P7-letter-a", "a sign among the digits"),
        ("blank-unicode", r'["\u 041"]', "P7-letter-a", "a blank among the digits"),
        ("separator-unicode", r'["\u0_41"]', "P7-letter-a", "a separator among the digits"),
        ("letter-unicode", r'["\u004g"]', "P7-letter-a", "a digit that is none"),
        ("braced-unicode", r'["\u{41}"]', "P7-letter-a", "braces, as JavaScript allows"),
        ("single-quotes", "['a']", "P7-letter", "single quotes"),
        ("single-quoted-name", "{'a':1}", "P13-one-member", "single quotes around a name"),
        ("no-end", '["a]', "P7-letter", "no closing quotation mark"),
        ("escaped-end", r'["a\"]', "P7-letter", "the closing quotation mark is escaped"),
        ("line-continuation", '["a\\\nb"]', "P7-two-letters", "a backslash before a line end"),
        ("raw-control-name", '{"\x01":1}', "P13-one-member", "a raw control character in a name"),
        ("unknown-escape-name", r'{"\a":1}', "P13-one-member", "an unknown escape in a name"),
    )
    for name, document, twin, note in rows:
        yield page.refused(name, document, "SYNTAX", note, twin=twin)


def _structure() -> Iterator[Vector]:
    page = Page(Category.STRUCTURE_GRAMMAR, "JCS-GRAM-01", "RFC 8259 section 2")
    words, space = "JCS-GRAM-04", "JCS-GRAM-05"
    rows = (
        ("trailing-comma", "[1,]", "P4-one", "a comma behind the last element", None),
        ("trailing-comma-object", '{"a":1,}', "P13-one-member", "a comma behind the last member", None),
        ("leading-comma", "[,1]", "P4-one", "a comma before the first element", None),
        ("comma-only", "[,]", "P13-empty-array", "a comma alone", None),
        ("double-comma", "[1,,2]", "P13-pair-of-numbers", "two commas", None),
        ("no-comma", "[1 2]", "P13-pair-of-numbers", "no comma between elements", None),
        ("no-comma-members", '{"a":1 "b":1}', "P11-same-value", "no comma between members", None),
        ("colon-in-array", "[1:2]", "P13-pair-of-numbers", "a colon for a comma", None),
        ("equals", '{"a"=1}', "P13-one-member", "an equals sign for a colon", None),
        ("double-colon", '{"a"::1}', "P13-one-member", "two colons", None),
        ("no-value", '{"a":}', "P13-one-member", "a name without a value", None),
        ("no-colon", '{"a"}', "P13-one-member", "a name alone", None),
        ("two-values", "{} {}", "P13-empty-object", "a second value", None),
        ("two-scalars", "1 1", "P14-one-alone", "a second scalar", None),
        ("trailing-nul", b"{}\x00", "P13-empty-object", "NUL behind the value", None),
        ("trailing-text", "{}x", "P13-empty-object", "a letter behind the value", None),
        ("trailing-bracket", "{}]", "P13-empty-object", "a bracket too many", None),
        ("trailing-comma-top", "{},", "P13-empty-object", "a comma behind the value", None),
        ("comment", "[1/*x*/]", "P4-one", "a comment", None),
        ("line-comment", "[1]//x", "P4-one", "a comment behind the value", None),
        ("line-comment-inside", "[1//x\n]", "P14-line-inside", "a comment up to the line's end", None),
        ("hash-comment", "[1]#x", "P4-one", "a comment of another kind", None),
        ("unquoted-name", "{a:1}", "P13-one-member", "a name without quotation marks", None),
        ("number-name", "{1:1}", "P13-member-one", "a number for a name", None),
        ("literal-name", "{null:1}", "P13-member-null", "a literal for a name", None),
        ("nothing", "", "P14-zero-short", "no bytes at all", None),
        ("blanks", " ", "P14-zero-short", "whitespace alone", None),
        ("open-array", "[1", "P4-one", "an array without its end", None),
        ("open-object", '{"a":1', "P13-one-member", "an object without its end", None),
        ("open-deep", "[[]", "P13-array-in-array", "the outer array without its end", None),
        ("wrong-end", "[1}", "P4-one", "an array closed as an object", None),
        ("wrong-end-object", '{"a":1]', "P13-one-member", "an object closed as an array", None),
        ("end-only", "]", "P13-empty-array", "an end without a beginning", None),
        ("upper-true", "[True]", "P13-true", "Python's spelling", words),
        ("upper-null", "[NULL]", "P13-null", "upper case", words),
        ("none", "[None]", "P13-null", "Python's word", words),
        ("undefined", "[undefined]", "P13-null", "JavaScript's word", words),
        ("cut-true", "[tru]", "P13-true", "a literal cut off", words),
        ("long-true", "[truee]", "P13-true", "a literal with a letter too many", words),
        ("bare-word", "[a]", "P7-letter", "a word without quotation marks", words),
        ("form-feed", "[\x0c1]", "P14-blank-in-array", "a form feed is no whitespace", space),
        ("vertical-tab", "[\x0b1]", "P14-blank-in-array", "a vertical tab is no whitespace", space),
        ("nul-inside", b"[\x001]", "P14-blank-in-array", "NUL is no whitespace", space),
        ("no-break-space", "[\u00a01]", "P14-blank-in-array", "U+00A0 is no whitespace", space),
        ("line-separator", "[\u20281]", "P14-blank-in-array", "U+2028 is no whitespace", space),
        ("next-line", "[\u00851]", "P14-blank-in-array", "U+0085 is no whitespace", space),
        ("ideographic-space", "[\u30001]", "P14-blank-in-array", "U+3000 is no whitespace", space),
    )
    for name, document, twin, note, clause in rows:
        yield page.refused(name, document, "SYNTAX", note, twin=twin, clause=clause)
