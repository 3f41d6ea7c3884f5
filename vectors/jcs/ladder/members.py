"""Rungs of width: members and elements by the thousand, with what is out of order or refused first, last or alone."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from holdfast.vectors.jcs.clauses import OF_CATEGORY
from holdfast.vectors.jcs.construct.characters import units
from holdfast.vectors.jcs.construct.defects import Defect, DefectPlace, Host
from holdfast.vectors.jcs.construct.reasons import Reason
from holdfast.vectors.jcs.construct.segments import Segment
from holdfast.vectors.jcs.ladder.pieces import (
    Defective,
    Made,
    Step,
    Tools,
    array_of,
    hosted,
    names_of,
    object_of,
    plain,
    shuffled,
)
from holdfast.vectors.jcs.ladder.sizes import HOSTS, MEMBERS, PLANTED_HOSTS
from holdfast.vectors.taxonomy import Category

_ORDERS = ("backwards", "first-two", "last-two", "last-first", "first-last", "shuffled")
# Of hosts with more children than this there are fewer rungs, because each takes a slow runner a tenth of a second.
_MANY = 1025
_ORDERS_OF_MANY = ("backwards", "last-two", "shuffled")
# Which member takes the name of which other one.
_DUPLICATES = ("first-two", "last-two", "ends", "middle")
# The kinds of defect that a value can have.
DEFECTS = (
    Category.LONE_SURROGATES,
    Category.INVALID_UTF8,
    Category.NUMBER_RANGE,
    Category.NUMBER_GRAMMAR,
    Category.STRING_GRAMMAR,
    Category.STRUCTURE_GRAMMAR,
)
_IN_A_NAME = {Category.LONE_SURROGATES: "JCS-SUR-02", Category.INVALID_UTF8: "JCS-UTF8-01",
              Category.STRING_GRAMMAR: "JCS-GRAM-03", Category.STRUCTURE_GRAMMAR: "JCS-GRAM-01"}  # fmt: skip
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

_DIGITS = tuple(plain(b"%d" % digit) for digit in range(10))
_PLANTED_IN_MANY = (Segment.THRESHOLD, Segment.SPELLED, Segment.UNSAFE, Segment.ESCAPED, Segment.RAW, Segment.LARGE)


def steps() -> Iterator[Step]:
    """The rungs of width."""
    for count in MEMBERS:
        for order in _ORDERS if count <= _MANY else _ORDERS_OF_MANY:
            yield Step(f"members-{count}-{order}", Category.SIZE, "JCS-ORD-01", partial(_ordered, count, order))
    for count in HOSTS:
        for at in _places(count):
            for segment, category, clause in _PLANTED if count in PLANTED_HOSTS else ():
                if count > _MANY and segment not in _PLANTED_IN_MANY:
                    continue
                for word, make in (("elements", _planted_element), ("members", _planted_member)):
                    name = f"{word}-{count}-{segment.name.lower()}-{_word(count, at)}"
                    yield Step(name, category, clause, partial(make, count, at, segment))
            yield from _defects(count, at)
        if count > 1:
            for which in _DUPLICATES:
                for spelled in ("alike", "otherwise"):
                    clause = "JCS-DUP-01" if spelled == "alike" else "JCS-DUP-02"
                    yield Step(
                        f"members-{count}-duplicate-{which}-{spelled}", Category.DUPLICATE_NAMES, clause,
                        partial(_duplicate, count, which, spelled),
                    )  # fmt: skip


def _places(count: int) -> tuple[int, ...]:
    return (count - 1,) if count == 1 or count > _MANY else (0, count - 1)


def _word(count: int, at: int) -> str:
    return "alone" if count == 1 else "first" if at == 0 else "last"


def _defects(count: int, at: int) -> Iterator[Step]:
    where = _word(count, at)
    for category in DEFECTS:
        clause = OF_CATEGORY[category]
        for word, members in (("elements", False), ("members", True)):
            value = partial(_defective, count, at, category, (DefectPlace.VALUE,), members=members)
            yield Step(f"{word}-{count}-{category.value}-{where}", category, clause, value)
            if category is Category.STRUCTURE_GRAMMAR:
                around = partial(_defective, count, at, category, _AROUND, members=members)
                yield Step(f"{word}-{count}-{category.value}-around-{where}", category, clause, around)
    for category, clause in _IN_A_NAME.items():
        name = partial(_defective, count, at, category, (DefectPlace.NAME,), members=True)
        yield Step(f"members-{count}-{category.value}-name-{where}", category, clause, name)


def _defective(
    count: int, at: int, category: Category, places: tuple[DefectPlace, ...], tools: Tools, *, members: bool
) -> Made:
    hosts = (Host.ANY, Host.CONTAINER, Host.OBJECT if members else Host.ARRAY)

    def fits(defect: Defect) -> bool:
        return defect.host in hosts and defect.children <= count

    return hosted(tools.dice, tools.defect(category, places, fits), count, at, members=members)


def _ordered(count: int, order: str, tools: Tools) -> Made:
    values = [_DIGITS[place % len(_DIGITS)] for place in range(count)]
    places = list(range(count))
    if order == "backwards":
        places.reverse()
    elif order == "first-two":
        places[:2] = [1, 0]
    elif order == "last-two":
        places[-2:] = [count - 1, count - 2]
    elif order == "last-first":
        places = [count - 1, *places[:-1]]
    elif order == "first-last":
        places = [*places[1:], 0]
    else:
        places = shuffled(tools.dice, count)
    return object_of(tools.dice, list(zip(names_of(count), values, strict=True)), places)


def _planted_element(count: int, at: int, segment: Segment, tools: Tools) -> Made:
    items = [_DIGITS[place % len(_DIGITS)] for place in range(count)]
    items[at] = tools.lexeme(segment)
    return array_of(tools.dice, items)


def _planted_member(count: int, at: int, segment: Segment, tools: Tools) -> Made:
    values = [_DIGITS[place % len(_DIGITS)] for place in range(count)]
    values[at] = tools.lexeme(segment)
    return object_of(tools.dice, list(zip(names_of(count), values, strict=True)), range(count))


def _duplicate(count: int, which: str, spelled: str, tools: Tools) -> Made:
    names = [name.canonical for name in names_of(count)]
    first, second = {
        "first-two": (0, 1), "last-two": (count - 2, count - 1), "ends": (0, count - 1),
        "middle": (count // 2 - 1, count // 2),
    }[which]  # fmt: skip
    again = names[first] if spelled == "alike" else _escaped(names[first])
    value = b"0" if tools.dice.one_in(2) else b"1"

    def written(name: bytes) -> bytes:
        told = [*names[:second], name, *names[second + 1 :]]
        values = [value if place in (first, second) else b"0" for place in range(count)]
        return b"{" + b",".join([a + b":" + b for a, b in zip(told, values, strict=True)]) + b"}"

    return Defective(
        written(again), written(b'"~ the twin"'), Reason.DUPLICATE_NAME, f"a name twice among {count}, {which}"
    )


def _escaped(name: bytes) -> bytes:
    """The same name with every character as an escape; the empty name has none."""
    text = name.decode()[1:-1].replace("\\t", "\t").replace('\\"', '"')
    return b'"' + b"".join([b"".join([b"\\u%04X" % unit for unit in units(ord(each))]) for each in text]) + b'"'
