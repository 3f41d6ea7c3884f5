"""Rungs of defects: every kind of defect there is, last in a large host, so that no draw decides which ones come up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import cache, partial

from holdfast.vectors.jcs.clauses import OF_CATEGORY
from holdfast.vectors.jcs.construct.defects import ROUNDS, Defect, DefectPlace, Host, defects
from holdfast.vectors.jcs.construct.dice import Dice
from holdfast.vectors.jcs.ladder.members import DEFECTS
from holdfast.vectors.jcs.ladder.pieces import Defective, Made, Step, Tools, hosted
from holdfast.vectors.taxonomy import Category

# Children of the host: objects take a slow reader three times as long as arrays.
_ELEMENTS = 1025
_MEMBERS = 257
# Bytes of the string that ends with the defect.
_TEXT = 16384
_OF_STRINGS = (Category.LONE_SURROGATES, Category.INVALID_UTF8, Category.STRING_GRAMMAR)
# What a defect is, regardless of the rest of the document; several may differ in their text alone.
Key = tuple[Category, DefectPlace, str, Host]


def steps() -> Iterator[Step]:
    """The rungs of defects."""
    numbers: Counter[str] = Counter()
    for key, count in _keys().items():
        category, place, _, needed = key
        for variant in range(count):
            for host in _hosts(category, needed):
                name = f"every-{host}-{category.value}-{place.name.lower()}"
                make = partial(_last, host, key, variant, count)
                yield Step(f"{name}-{numbers[name]}", category, OF_CATEGORY[category], make)
                numbers[name] += 1


def _hosts(category: Category, needed: Host) -> tuple[str, ...]:
    if needed is Host.OBJECT:
        return ("members",)
    return ("elements", "members", "string") if category in _OF_STRINGS else ("elements", "members")


@cache
def _keys() -> Mapping[Key, int]:
    """Every kind of defect in a value or a name of a document, and how many texts it has; the same for every seed."""
    found = Counter(
        (each.category, each.place, each.note, each.host)
        for each in defects(Dice(0))
        if each.place in (DefectPlace.VALUE, DefectPlace.NAME)
        and each.host in (Host.ANY, Host.OBJECT)
        and each.category in DEFECTS
    )
    return {key: count // _rounds(key[0]) for key, count in found.items()}


def _rounds(category: Category) -> int:
    # Defects of the structure have no surroundings to vary.
    return 1 if category is Category.STRUCTURE_GRAMMAR else ROUNDS


def _last(host: str, key: Key, variant: int, count: int, tools: Tools) -> Made:
    found = [each for each in tools.stock.defects if (each.category, each.place, each.note, each.host) == key]
    defect = found[variant + tools.turn % _rounds(key[0]) * count]
    members = host == "members"
    if host == "string":
        return _in_a_string(defect)
    size = _MEMBERS if members else _ELEMENTS
    return hosted(tools.dice, defect, size, size - 1, members=members)


def _in_a_string(defect: Defect) -> Defective:
    """The value with the defect, made long at its beginning, if it is a string; else behind a long string."""
    filler = b"x" * _TEXT
    bad, good = (
        b'["' + filler + text[1:] + b"]" if text[:1] == b'"' else b'["' + filler + b'",' + text + b"]"
        for text in (defect.bad, defect.good)
    )
    return Defective(bad, good, defect.reason, f"{defect.note}, behind {_TEXT} letters")
