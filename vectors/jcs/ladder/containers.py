"""Rungs of depth, of width, and of defects in large hosts.

Of depth: containers in containers, with what must be ordered or refused at the bottom. Of width: members and elements
by the thousand, with what is out of order or refused first, last or alone. And every kind of defect there is, last in a
large host, so that no draw decides which ones come up.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache

from holdfast.vectors.jcs.construct.characters import units
from holdfast.vectors.jcs.construct.defects import ROUNDS, Defect, DefectPlace, Host, defects
from holdfast.vectors.jcs.construct.dice import Dice
from holdfast.vectors.jcs.construct.segments import Segment
from holdfast.vectors.jcs.ladder.pieces import (
    Defective,
    Made,
    Piece,
    Step,
    Tools,
    around,
    array_of,
    defective,
    hosted,
    names_of,
    object_of,
    plain,
    shuffled,
    step,
)
from holdfast.vectors.taxonomy import Category

# Levels. Every implementation accepts 64 (`depth_floor`); Python's stack ends near 1,000, .NET and serde at 64 and 128.
_DEPTHS = (16, 32, *around(64, 128), 256, 257, *around(512), *around(1000), 1024, 1025, 2000, 5000)
_DEFECTIVE_DEPTHS = (16, 64, 129, 513, 1001, 5000)
# What every implementation accepts or refuses for its depth (`max_depth`).
_DEEPEST = 100_000
_SHAPES = ("arrays", "objects", "first", "last", "mixed")
_BOTTOM = Piece(b'{"a":1,"b":[2,{}]}', b'{"b":[2,{}],"a":1.0}')
# The levels of `_BOTTOM` at its deepest.
_BOTTOM_LEVELS = 3
_AT_THE_BOTTOM = (
    ("duplicate", Category.DUPLICATE_NAMES, "JCS-DUP-03", b'{"a":1,"\\u0061":1}', b'{"a":1,"b":1}'),
    ("surrogate", Category.LONE_SURROGATES, "JCS-SUR-01", b'"\\ud800"', b'"\\ud7ff"'),
    ("bytes", Category.INVALID_UTF8, "JCS-UTF8-01", b'"\xe2\x82"', b'"\xe2\x82\xac"'),
    ("range", Category.NUMBER_RANGE, "JCS-NUM-01", b"1e309", b"1e308"),
    ("number", Category.NUMBER_GRAMMAR, "JCS-GRAM-02", b"01", b"1"),
    ("string", Category.STRING_GRAMMAR, "JCS-GRAM-03", b'"\x01"', b'"\\u0001"'),
    ("comma", Category.STRUCTURE_GRAMMAR, "JCS-GRAM-01", b"[1,]", b"[1]"),
)
_BRACKETS = ("one-too-few", "one-too-many", "wrong-inside", "wrong-outside")


def depths() -> Iterator[Step]:
    """The rungs of depth."""
    for levels in _DEPTHS:
        for shape in _SHAPES:
            yield step(f"depth-{shape}-{levels}", Category.SIZE, "JCS-ORD-05", _nested, levels, shape)
        yield step(f"depth-bare-{levels}", Category.SIZE, "JCS-DEPTH-01", _bare, levels)
    yield step(f"depth-bare-{_DEEPEST}", Category.SIZE, "JCS-DEPTH-01", _bare, _DEEPEST)
    for levels in _DEFECTIVE_DEPTHS:
        for shape in ("arrays", "objects"):
            here = f"depth-{shape}-{levels}"
            for name, category, clause, bad, good in _AT_THE_BOTTOM:
                yield step(f"{here}-{name}", category, clause, _at_the_bottom, levels, shape, category, bad, good, name)
            for kind in _BRACKETS:
                yield step(f"{here}-{kind}", Category.STRUCTURE_GRAMMAR, "JCS-GRAM-01", _brackets, levels, shape, kind)
            yield step(f"{here}-duplicate-outside", Category.DUPLICATE_NAMES, "JCS-DUP-01", _outermost, levels, shape)


def _wrapped(inner: Piece, levels: int, shape: str) -> Piece:
    """`inner` in `levels` containers; what stands beside it on each level is out of order in the document."""
    array, bare = (b"[", b"]"), (b'{"a":', b"}")
    beside = {
        "arrays": [(array, array)],
        "objects": [(bare, bare)],
        "first": [((b'{"b":', b',"c":0}'), (b'{"c":0,"b":', b"}")), (array, array)],
        "last": [((b'{"a":0,"b":', b"}"), (b'{"b":', b',"a":0.0}'))],
        "mixed": [(array, (b"[ ", b"\n]")), ((b'{"a":0,"b":', b"}"), (b'{ "b" :', b',"a":-0}')), (bare, bare)],
    }[shape]
    chosen = [beside[level % len(beside)] for level in range(levels)]

    def around(text: bytes, side: int) -> bytes:
        ends = [pair[side] for pair in chosen]
        return b"".join([*(end[0] for end in ends), text, *(end[1] for end in reversed(ends))])

    return Piece(around(inner.canonical, 0), around(inner.written, 1), inner.reasons)


def _nested(levels: int, shape: str, tools: Tools) -> Made:
    if shape == "mixed":
        return _wrapped(tools.lexeme(Segment.TEXT), levels, shape)
    return _wrapped(_BOTTOM, levels - _BOTTOM_LEVELS, shape)


def _bare(levels: int, _tools: Tools) -> Made:
    return _wrapped(plain(b"[]"), levels - 1, "arrays")


def _at_the_bottom(
    levels: int, shape: str, category: Category, bad: bytes, good: bytes, name: str, _tools: Tools
) -> Made:
    level = levels - good.startswith((b"{", b"["))
    opening, closing = _wrapped(plain(b"\0"), level, shape).written.split(b"\0")
    return defective(category, opening, bad, good, closing, f"{name} at level {levels}")


def _brackets(levels: int, shape: str, kind: str, _tools: Tools) -> Made:
    opening, closing = _wrapped(plain(b"0\0"), levels, shape).written.split(b"\0")
    wrong = b"}" if shape == "arrays" else b"]"
    bad = {
        "one-too-few": closing[:-1],
        "one-too-many": closing + closing[-1:],
        "wrong-inside": wrong + closing[1:],
        "wrong-outside": closing[:-1] + wrong,
    }[kind]
    return defective(Category.STRUCTURE_GRAMMAR, opening, bad, closing, b"", f"{kind.replace('-', ' ')} at {levels}")


def _outermost(levels: int, shape: str, _tools: Tools) -> Made:
    opening = b'{"a":' + _wrapped(plain(b"0"), levels - 1, shape).written + b',"'
    return defective(Category.DUPLICATE_NAMES, opening, b"a", b"b", b'":0}', f"a name twice around {levels} levels")


# Members of one object. 9 is beyond what small maps keep in order, 33 beyond insertion sort, 5,001 beyond the floor.
_MEMBERS = (9, 10, 11, *around(16, 32, 64), 100, 101, *around(128), 200, *around(256), 500, *around(512, 1000, 1024),
            2048, 2049, 4097, 5000, 5001)  # fmt: skip
# Children of the host of one defect.
_HOSTS = (1, 2, 9, 33, 129, 257, 1025, 5001)
_PLANTED_HOSTS = (1, 2, 33, 129, 5001)
_ORDERS = ("backwards", "first-two", "last-two", "last-first", "first-last", "shuffled")
# Of hosts with more children than this there are fewer rungs, because each takes a slow runner a tenth of a second.
_MANY = 1025
_ORDERS_OF_MANY = ("backwards", "last-two", "shuffled")
# More than 16 bits count.
_VERY_MANY = 65_537
# Which member takes the name of which other one.
_DUPLICATES = ("first-two", "last-two", "ends", "middle")
# The kinds of defect that a value can have, and the clause where a name has one.
_DEFECTS = {
    Category.LONE_SURROGATES: "JCS-SUR-02",
    Category.INVALID_UTF8: "JCS-UTF8-01",
    Category.NUMBER_RANGE: None,
    Category.NUMBER_GRAMMAR: None,
    Category.STRING_GRAMMAR: "JCS-GRAM-03",
    Category.STRUCTURE_GRAMMAR: "JCS-GRAM-01",
}
_AROUND = (DefectPlace.SEPARATOR, DefectPlace.COLON, DefectPlace.CLOSE, DefectPlace.LEAD, DefectPlace.TRAIL)
# What is planted among plain neighbours, and the clause that it is about.
_PLANTED = (
    (Segment.THRESHOLD, Category.NUMBER_NOTATION, "JCS-NUM-02"),
    (Segment.SHORTEST, Category.NUMBER_SHORTEST, "JCS-NUM-03"),
    (Segment.TIES, Category.NUMBER_TIES, "JCS-NUM-04"),
    (Segment.SPELLED, Category.NUMBER_SPELLING, "JCS-NUM-08"),
    (Segment.UNSAFE, Category.NUMBER_INTEGERS, "JCS-NUM-06"),
    (Segment.PRECISE, Category.NUMBER_TIES, "JCS-NUM-09"),
    (Segment.UNDERFLOW, Category.NUMBER_SPELLING, "JCS-NUM-07"),
    (Segment.ESCAPED, Category.STRING_ESCAPED, "JCS-STR-02"),
    (Segment.RAW, Category.STRING_RAW, "JCS-STR-03"),
    (Segment.UNNORMALISED, Category.STRING_UNNORMALISED, "JCS-STR-04"),
    (Segment.NONCHARACTER, Category.STRING_RAW, "JCS-STR-05"),
    (Segment.LARGE, Category.STRUCTURE, "JCS-ORD-05"),
)
_PLANTED_IN_MANY = (Segment.THRESHOLD, Segment.SPELLED, Segment.UNSAFE, Segment.ESCAPED, Segment.RAW, Segment.LARGE)


def widths() -> Iterator[Step]:
    """The rungs of width."""
    for count in _MEMBERS:
        for order in _ORDERS if count <= _MANY else _ORDERS_OF_MANY:
            yield step(f"members-{count}-{order}", Category.SIZE, "JCS-ORD-01", _ordered, count, order)
    for count in _HOSTS:
        for at in (count - 1,) if count == 1 or count > _MANY else (0, count - 1):
            where = "alone" if count == 1 else "first" if at == 0 else "last"
            for segment, category, clause in _PLANTED if count in _PLANTED_HOSTS else ():
                if count <= _MANY or segment in _PLANTED_IN_MANY:
                    for word in ("elements", "members"):
                        name = f"{word}-{count}-{segment.name.lower()}-{where}"
                        yield step(name, category, clause, _planted, count, at, segment, word)
            yield from _defects(count, at, where)
        if count > 1:
            for which in _DUPLICATES:
                for spelled, clause in (("alike", "JCS-DUP-01"), ("otherwise", "JCS-DUP-02")):
                    yield _duplicates(count, which, spelled, clause)
    most = _VERY_MANY
    yield step(f"members-{most}-last-two", Category.SIZE, "JCS-ORD-01", _ordered, most, "last-two")
    yield _duplicates(most, "ends", "otherwise", "JCS-DUP-02")
    asked = (most, most - 1, Segment.SPELLED, "elements")
    yield step(f"elements-{most}-spelled-last", Category.NUMBER_SPELLING, "JCS-NUM-08", _planted, *asked)


def _duplicates(count: int, which: str, spelled: str, clause: str) -> Step:
    name = f"members-{count}-duplicate-{which}-{spelled}"
    return step(name, Category.DUPLICATE_NAMES, clause, _duplicate, count, which, spelled)


def _defects(count: int, at: int, where: str) -> Iterator[Step]:
    for category in _DEFECTS:
        clause = category.clause
        for word in ("elements", "members"):
            name, asked = f"{word}-{count}-{category.value}", (count, at, category, word)
            yield step(f"{name}-{where}", category, clause, _hosted, *asked, (DefectPlace.VALUE,))
            if category is Category.STRUCTURE_GRAMMAR:
                yield step(f"{name}-around-{where}", category, clause, _hosted, *asked, _AROUND)
    for category, named in _DEFECTS.items():
        if named is not None:
            name = f"members-{count}-{category.value}-name-{where}"
            yield step(name, category, named, _hosted, count, at, category, "members", (DefectPlace.NAME,))


def _hosted(count: int, at: int, category: Category, word: str, places: tuple[DefectPlace, ...], tools: Tools) -> Made:
    members = word == "members"
    hosts = (Host.ANY, Host.CONTAINER, Host.OBJECT if members else Host.ARRAY)

    def fits(defect: Defect) -> bool:
        return defect.host in hosts and defect.children <= count

    return hosted(tools.dice, tools.defect(category, places, fits), count, at, members=members)


def _values(count: int) -> list[Piece]:
    return [plain(b"%d" % (place % 10)) for place in range(count)]


def _members(count: int, values: list[Piece]) -> list[tuple[Piece, Piece]]:
    return list(zip(names_of(count), values, strict=True))


def _ordered(count: int, order: str, tools: Tools) -> Made:
    places = list(range(count))
    if order == "shuffled":
        places = shuffled(tools.dice, count)
    else:
        places = {
            "backwards": places[::-1],
            "first-two": [1, 0, *places[2:]],
            "last-two": [*places[:-2], count - 1, count - 2],
            "last-first": [count - 1, *places[:-1]],
            "first-last": [*places[1:], 0],
        }[order]
    return object_of(tools.dice, _members(count, _values(count)), places)


def _planted(count: int, at: int, segment: Segment, word: str, tools: Tools) -> Made:
    values = _values(count)
    values[at] = tools.lexeme(segment)
    if word == "elements":
        return array_of(tools.dice, values)
    return object_of(tools.dice, _members(count, values), range(count))


def _duplicate(count: int, which: str, spelled: str, tools: Tools) -> Made:
    names = [name.canonical for name in names_of(count)]
    first, second = {
        "first-two": (0, 1), "last-two": (count - 2, count - 1), "ends": (0, count - 1),
        "middle": (count // 2 - 1, count // 2),
    }[which]  # fmt: skip
    again = names[first] if spelled == "alike" else _escaped(names[first])
    value = b"0" if tools.dice.one_in(2) else b"1"
    members = [name + b":" + (value if place in (first, second) else b"0") for place, name in enumerate(names)]
    before = b"".join([b"{", *(member + b"," for member in members[:second])])
    behind = b",".join([b":" + value, *members[second + 1 :]]) + b"}"
    note = f"a name twice among {count}, {which}"
    return defective(Category.DUPLICATE_NAMES, before, again, b'"~ the twin"', behind, note)


def _escaped(name: bytes) -> bytes:
    """The same name with every character as an escape; the empty name has none."""
    text = name.decode()[1:-1].replace("\\t", "\t").replace('\\"', '"')
    return b'"' + b"".join([b"\\u%04X" % unit for each in text for unit in units(ord(each))]) + b'"'


# Children of the host: objects take a slow reader three times as long as arrays.
_ELEMENTS = 1025
_MEMBERS_OF_ONE = 257
# Bytes of the string that ends with the defect.
_TEXT = 16384
_OF_STRINGS = (Category.LONE_SURROGATES, Category.INVALID_UTF8, Category.STRING_GRAMMAR)
_HOSTS_OF = {Host.ANY: ("elements", "members"), Host.CONTAINER: ("elements", "members"), Host.ARRAY: ("elements",),
             Host.OBJECT: ("members",)}  # fmt: skip
# What a defect is, regardless of the rest of the document; several may differ in their text alone.
Key = tuple[Category, DefectPlace, str, Host]


def every() -> Iterator[Step]:
    """The rungs of every defect."""
    numbers: Counter[str] = Counter()
    for key, count in _keys().items():
        category, place, _, needed = key
        hosts = _HOSTS_OF[needed]
        if place is DefectPlace.VALUE and category in _OF_STRINGS:
            hosts = (*hosts, "string")
        for variant in range(count):
            for host in hosts:
                name = f"every-{host}-{category.value}-{place.name.lower()}"
                yield step(f"{name}-{numbers[name]}", category, category.clause, _last, host, key, variant, count)
                numbers[name] += 1


@cache
def _keys() -> Mapping[Key, int]:
    """Every kind of defect in or around a container, and how many texts it has; the same for every seed."""
    found = Counter(_key(each) for each in defects(Dice(0)) if each.host in _HOSTS_OF and each.category in _DEFECTS)
    return {key: count // _rounds(key[0]) for key, count in found.items()}


def _key(defect: Defect) -> Key:
    return defect.category, defect.place, defect.note, defect.host


def _rounds(category: Category) -> int:
    # Defects of the structure have no surroundings to vary.
    return 1 if category is Category.STRUCTURE_GRAMMAR else ROUNDS


def _last(host: str, key: Key, variant: int, count: int, tools: Tools) -> Made:
    found = [each for each in tools.stock.defects if _key(each) == key]
    defect = found[variant + tools.turn % _rounds(key[0]) * count]
    if host != "string":
        size = _MEMBERS_OF_ONE if host == "members" else _ELEMENTS
        return hosted(tools.dice, defect, size, size - 1, members=host == "members")
    # The value with the defect, made long at its beginning, if it is a string; else after a long string.
    filler = b'["' + b"x" * _TEXT
    bad, good = (filler + (text[1:] if text[:1] == b'"' else b'",' + text) + b"]" for text in (defect.bad, defect.good))
    return Defective(bad, good, defect.reason, f"{defect.note}, after {_TEXT} letters")
