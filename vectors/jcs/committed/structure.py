"""Structure, whitespace, depth and size, and documents that are canonical already (P13 to P16)."""

from __future__ import annotations

from collections.abc import Iterator

from holdfast.vectors.jcs.committed.page import Page
from holdfast.vectors.record import Vector
from holdfast.vectors.taxonomy import Category, Profile

_RFC8259 = "RFC 8259 section 2"
_UNSAFE = {Profile.SAFE_INT: "UNSAFE_INTEGER"}
# Deeper than the recursion that Python allows by itself, and far below what any stack holds.
_DEEP_ARRAYS = 2000
_DEEP_OBJECTS = 1200
# The nesting that every implementation of the contract accepts (its parameter depth_floor).
_FLOOR = 64


def records() -> Iterator[Vector]:
    """The records of P13 to P16, in order."""
    yield from _structure()
    yield from _whitespace()
    yield from _size()
    yield from _idempotence()


def _structure() -> Iterator[Vector]:
    page = Page(Category.STRUCTURE, "JCS-LIT-01", "RFC 8785 section 3.2.2.1")
    inner, arrays = "JCS-ORD-05", "JCS-ORD-06"
    sorting = "RFC 8785 section 3.2.3"
    yield page.accepted(
        "nested",
        '{"b":[{"z":1,"y":2}],"a":{}}',
        '{"a":{},"b":[{"y":2,"z":1}]}',
        "objects are ordered at every depth",
        clause=inner,
        source=sorting,
    )
    yield page.accepted("empties", '[[],{},"",null,[{}]]', '[[],{},"",null,[{}]]', "empty things stay")
    yield page.accepted("array-order", "[3,1,2]", "[3,1,2]", "an array is not sorted", clause=arrays, source=sorting)
    yield page.accepted(
        "array-of-text", '["b","a","b"]', '["b","a","b"]', "not sorted, and no set", clause=arrays, source=sorting
    )
    yield page.accepted(
        "array-of-objects",
        '[{"b":1},{"a":1}]',
        '[{"b":1},{"a":1}]',
        "objects in an array keep their places",
        clause=arrays,
        source=sorting,
    )
    yield page.accepted("literals", "[true,false,null]", "[true,false,null]", "lower case")
    yield page.accepted("null-member", '{"b":null,"a":1}', '{"a":1,"b":null}', "a member with null is kept")
    yield page.accepted("false-member", '{"a":false,"b":0,"c":""}', '{"a":false,"b":0,"c":""}', "nothing is dropped")
    yield page.accepted("null-elements", "[null,null]", "[null,null]", "nulls in an array are kept")
    yield page.accepted("empty-object", "{}", "{}", "what trailing data stands beside")
    yield page.accepted("empty-array", "[]", "[]", "what an encoding stands beside")
    yield page.accepted("pair-of-numbers", "[1,2]", "[1,2]", "what a missing comma stands beside")
    yield page.accepted("one-member", '{"a":1}', '{"a":1}', "what an unquoted name stands beside")
    yield page.accepted("null", "[null]", "[null]", "what NaN stands beside")
    yield page.accepted("true", "[true]", "[true]", "what True stands beside")
    yield page.accepted("types-of-one", '[1,"1",true]', '[1,"1",true]', "a number, a text and a literal stay different")
    yield page.accepted(
        "three-levels",
        '{"c":{"b":{"z":0,"a":0}},"a":[[{"y":1,"x":2}]]}',
        '{"a":[[{"x":2,"y":1}]],"c":{"b":{"a":0,"z":0}}}',
        "objects in objects and in arrays of arrays",
        clause=inner,
        source=sorting,
    )


def _whitespace() -> Iterator[Vector]:
    page = Page(Category.WHITESPACE, "JCS-WS-01", "RFC 8785 section 3.2.1")
    top = "JCS-TOP-01"
    yield page.accepted("all-kinds", '\t\r\n { "a" : 1 } \n', '{"a":1}', "the four kinds, everywhere")
    yield page.accepted("in-array", "[ 1 ,\t2\r\n, 3 ]", "[1,2,3]", "around elements")
    yield page.accepted("in-empties", "[ [ ] , { } ]", "[[],{}]", "inside empty things")
    yield page.accepted("line-end", '{"a":1}\n', '{"a":1}', "a line feed at the end is not kept")
    yield page.accepted(
        "pretty", '{\n  "b": [\n    1\n  ],\n  "a": 2\n}', '{"a":2,"b":[1]}', "as a printer lays it out"
    )
    yield page.accepted("in-strings", '[" a\\tb "]', '[" a\\tb "]', "blanks in a string are no whitespace")
    yield page.accepted("blank-in-array", "[ 1]", "[1]", "what a form feed stands beside", clause="JCS-GRAM-05")
    yield page.accepted("number", " 1e2 ", "100", "a number alone", clause=top, source=_RFC8259)
    yield page.accepted("string", '"x"', '"x"', "a string alone", clause=top, source=_RFC8259)
    yield page.accepted("literal", "null", "null", "a literal alone", clause=top, source=_RFC8259)
    yield page.accepted("true-alone", "true", "true", "a literal alone", clause=top, source=_RFC8259)
    yield page.accepted("zero-alone", "-0", "0", "one character out", clause=top, source=_RFC8259)
    yield page.accepted("empty-string", '""', '""', "an empty string alone", clause=top, source=_RFC8259)
    yield page.accepted("letter-array", '["a"] ', '["a"]', "what UTF-16 stands beside", clause="JCS-UTF8-03")


def _size() -> Iterator[Vector]:
    page = Page(Category.SIZE, "JCS-DEPTH-02", "RFC 8259 section 9")
    deep = "JCS-DEPTH-01"
    yield page.accepted("three-arrays", "[[[]]]", "[[[]]]", "three levels")
    yield page.accepted("three-objects", '{"a":{"a":{"a":0}}}', '{"a":{"a":{"a":0}}}', "three levels")
    yield page.accepted("eight-letters", '["aaaaaaaa"]', '["aaaaaaaa"]', "a short string", clause="JCS-STR-04")
    yield page.accepted("floor-arrays", "[" * _FLOOR + "]" * _FLOOR, "[" * _FLOOR + "]" * _FLOOR, "64 arrays")
    yield page.accepted(
        "floor-objects",
        '{"a":' * (_FLOOR - 1) + "{}" + "}" * (_FLOOR - 1),
        '{"a":' * (_FLOOR - 1) + "{}" + "}" * (_FLOOR - 1),
        "64 objects",
    )
    yield page.accepted(
        "deep-arrays",
        "[" * _DEEP_ARRAYS + "]" * _DEEP_ARRAYS,
        "[" * _DEEP_ARRAYS + "]" * _DEEP_ARRAYS,
        "2,000 arrays: a recursive reader runs out of stack; DEPTH_EXCEEDED is right as well",
        clause=deep,
    )
    yield page.accepted(
        "deep-objects",
        '{"a":' * _DEEP_OBJECTS + "0" + "}" * _DEEP_OBJECTS,
        '{"a":' * _DEEP_OBJECTS + "0" + "}" * _DEEP_OBJECTS,
        "1,200 objects; DEPTH_EXCEEDED is right as well",
        clause=deep,
    )
    yield page.accepted(
        "long-string", '["' + "a" * 2000 + '"]', '["' + "a" * 2000 + '"]', "2,000 letters", clause="JCS-STR-04"
    )
    yield page.accepted(
        "long-name",
        '{"' + "n" * 1500 + '":0}',
        '{"' + "n" * 1500 + '":0}',
        "a name of 1,500 letters",
        clause="JCS-STR-04",
    )
    backwards = [f'"{number:03}":{number % 10}' for number in reversed(range(120))]
    forwards = [f'"{number:03}":{number % 10}' for number in range(120)]
    yield page.accepted(
        "many-members",
        "{" + ",".join(backwards) + "}",
        "{" + ",".join(forwards) + "}",
        "120 members, backwards",
        clause="JCS-ORD-01",
    )
    zeros = ",".join("0" * 400)
    yield page.accepted("many-elements", f"[{zeros}]", f"[{zeros}]", "400 elements", clause="JCS-ORD-06")


def _idempotence() -> Iterator[Vector]:
    page = Page(Category.IDEMPOTENCE, "JCS-IDEM-01", "RFC 8785 section 3.1")
    verify, legal = "JCS-VER-01", "JCS-IDEM-02"
    yield _same(page, "exponent", "[1e+21]", "the sign of an exponent is kept", clause=verify)
    yield _same(page, "exponent-small", "[1e-7]", "a small exponent")
    yield _same(page, "order", '{"\U0001f600":2,"\uff20":1}', "UTF-16 order is kept", clause=verify)
    yield _same(page, "mixed", '{"a":[1e-7,"\\u000f"]}', "escapes and numbers", clause=verify)
    yield _same(page, "empty", "{}", "nothing to do", clause=verify)
    yield _same(page, "scalar", '"\\b\\"\\\\"', "a string alone")
    yield _same(page, "raw", '["\x7f\x80\u2028<\U0001f600"]', "characters that stand raw", clause=verify)
    yield _same(page, "largest", "[1.7976931348623157e+308]", "the largest double")
    yield _same(page, "smallest", "[5e-324]", "the smallest double")
    yield _same(page, "long-fraction", "[0.0000033333333333333333]", "17 digits behind six zeros")
    yield page.accepted(
        "big-integer",
        "[295147905179352830000]",
        "[295147905179352830000]",
        "an integer that is not exactly its double is canonical all the same",
        but=_UNSAFE,
        twin="P5-largest-safe",
        clause="JCS-PROF-06",
    )
    yield page.accepted(
        "below-exponent",
        "[999999999999999900000]",
        "[999999999999999900000]",
        "21 digits and no exponent",
        but=_UNSAFE,
        twin="P5-largest-safe",
    )
    yield page.accepted(
        "respaced",
        '{"b" :\t[1.0 , 10E-1],\r\n"a":"\\u0061\\/"}',
        '{"a":"a/","b":[1,1]}',
        "every legal rewrite at once",
        clause=legal,
    )
    yield page.accepted(
        "respelt",
        '{"\\u0061":0.1e1,"b":[1,1]}',
        '{"a":1,"b":[1,1]}',
        "names and numbers spelt otherwise",
        clause=legal,
    )
    yield page.accepted(
        "profiles-agree",
        '{"n":9007199254740991,"f":0.1,"s":"\\ud83d\\ude00"}',
        '{"f":0.1,"n":9007199254740991,"s":"\U0001f600"}',
        "what every profile accepts has one form in all of them",
        clause="JCS-PROF-01",
    )


def _same(page: Page, name: str, text: str, note: str, *, clause: str | None = None) -> Vector:
    return page.accepted(name, text, text, note, clause=clause)
