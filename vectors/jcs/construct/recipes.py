"""The documents of a category: the weights of all randomised choices in a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Any

from holdfast.vectors.jcs.construct.names import Family
from holdfast.vectors.jcs.construct.segments import Segment
from holdfast.vectors.taxonomy import Category


class CoreKind(IntEnum):
    """What the innermost part of a document is, inside its wrappers."""

    SCALAR = 0  # one child and nothing around it
    ARRAY = 1
    OBJECT = 2
    TEXT = 3  # one string, put together from its children


class Guise(IntFlag):
    """How a document is disguised."""

    PLAIN = 0
    SPACED = 1
    SPELLED = 2
    SHUFFLED = 4


_ALL = Guise.SPACED | Guise.SPELLED | Guise.SHUFFLED
# By members of one of the enumerations.
Weights = Mapping[Any, int]

_MIXED: Weights = {
    Segment.THRESHOLD: 1, Segment.SHORTEST: 2, Segment.STRATA: 3, Segment.TIES: 1, Segment.SPELLED: 2,
    Segment.INTEGERS: 3, Segment.HUMAN: 3, Segment.TEXT: 6, Segment.ESCAPED: 2, Segment.RAW: 2,
    Segment.UNNORMALISED: 1, Segment.LITERALS: 4,
}  # fmt: skip
_FEW: Weights = {1: 3, 2: 4, 3: 3, 4: 3, 5: 2, 6: 2, 8: 2, 12: 1}
# A defect may stand alone, among few members, or among enough members that a reader takes another code path.
_HOSTS: Weights = {1: 30, 2: 40, 3: 30, 4: 30, 5: 20, 6: 20, 8: 20, 12: 12, 24: 6, 48: 3, 96: 2, 200: 1}
_HOST_DEPTHS: Weights = {0: 40, 1: 16, 2: 6, 3: 5, 8: 2, 24: 1, 48: 1}
_FAMILIES: Weights = {Family.PLAIN: 4, Family.TEXT: 3, Family.UTF16: 1, Family.PREFIX: 1, Family.TRAPS: 1}


def _with_containers(weights: Weights, small: int, large: int) -> Weights:
    return {**weights, Segment.SMALL: small, Segment.LARGE: large}


_TREE = _with_containers(_MIXED, 8, 10)


@dataclass(frozen=True, slots=True)
class Recipe:
    """Weights of the randomised choices. `planted` is put among `company` once in each document.

    `share` is the weight of the category itself. With `largest` > 0 a size of at most this number of bytes is chosen,
    evenly over its logarithm, and the document is cut there.
    """

    share: int
    planted: Weights
    company: Weights
    kinds: Weights = field(default_factory=lambda: {CoreKind.ARRAY: 5, CoreKind.OBJECT: 3})
    counts: Weights = field(default_factory=lambda: _FEW)
    families: Weights = field(default_factory=lambda: _FAMILIES)
    depths: Weights = field(default_factory=lambda: {0: 8, 1: 3, 2: 1, 3: 1})
    guises: Weights = field(
        default_factory=lambda: {_ALL: 6, Guise.SPELLED: 3, Guise.SPACED: 1, Guise.SHUFFLED: 1, Guise.PLAIN: 1}
    )
    largest: int = 0


def _beside(company: Segment) -> Weights:
    return {company: 12, Segment.LITERALS: 1, Segment.TEXT: 2, Segment.SMALL: 2, Segment.LARGE: 2}


def _numbers(share: int, planted: Weights, company: Segment) -> Recipe:
    kinds = {CoreKind.ARRAY: 6, CoreKind.OBJECT: 2, CoreKind.SCALAR: 1}
    return Recipe(share, planted, _beside(company), kinds)


def _strings(share: int, planted: Weights, company: Segment, families: Weights) -> Recipe:
    kinds = {CoreKind.ARRAY: 4, CoreKind.OBJECT: 4, CoreKind.SCALAR: 1}
    return Recipe(share, planted, _beside(company), kinds, families=families)


def _order(family: Family) -> Recipe:
    counts = {2: 4, 3: 4, 4: 3, 5: 2, 8: 2, 12: 1}
    guises = {_ALL: 5, Guise.SHUFFLED: 3, Guise.SHUFFLED | Guise.SPELLED: 2, Guise.PLAIN: 1}
    company = {Segment.INTEGERS: 6, Segment.LITERALS: 2, Segment.TEXT: 3, Segment.SMALL: 2, Segment.LARGE: 2}
    return Recipe(6, company, company, {CoreKind.OBJECT: 1}, counts, {family: 1}, guises=guises)


def _negative(share: int, company: Weights = _TREE, families: Weights = _FAMILIES) -> Recipe:
    kinds = {CoreKind.ARRAY: 4, CoreKind.OBJECT: 4, CoreKind.SCALAR: 1}
    return Recipe(share, company, company, kinds, _HOSTS, families, _HOST_DEPTHS)


# Shares are out of their sum. Long documents are rare, so that a row has a few hundred bytes in the mean.
RECIPES: dict[Category, Recipe] = {
    Category.NUMBER_NOTATION: _numbers(6, {Segment.THRESHOLD: 7, Segment.UNSAFE: 1}, Segment.THRESHOLD),
    Category.NUMBER_SHORTEST: _numbers(6, {Segment.SHORTEST: 2, Segment.STRATA: 1}, Segment.SHORTEST),
    Category.NUMBER_TIES: _numbers(5, {Segment.TIES: 1, Segment.PRECISE: 1}, Segment.TIES),
    Category.NUMBER_SPELLING: _numbers(5, {Segment.SPELLED: 5, Segment.UNDERFLOW: 1}, Segment.SPELLED),
    Category.NUMBER_INTEGERS: _numbers(5, {Segment.INTEGERS: 2, Segment.UNSAFE: 3}, Segment.INTEGERS),
    Category.NUMBER_HUMAN: _numbers(8, {Segment.HUMAN: 1, Segment.STRATA: 1}, Segment.HUMAN),
    Category.STRING_ESCAPED: _strings(
        5, {Segment.ESCAPED: 1}, Segment.ESCAPED, {Family.TEXT: 3, Family.PLAIN: 1}
    ),
    Category.STRING_RAW: _strings(
        6, {Segment.RAW: 4, Segment.NONCHARACTER: 1}, Segment.RAW,
        {Family.TEXT: 4, Family.PLAIN: 1, Family.NONCHARACTER: 1},
    ),
    Category.STRING_UNNORMALISED: _strings(
        5, {Segment.UNNORMALISED: 1}, Segment.UNNORMALISED, {Family.UNNORMALISED: 3, Family.PLAIN: 1}
    ),
    Category.ORDER_UTF16: _order(Family.UTF16),
    Category.ORDER_PREFIX: _order(Family.PREFIX),
    Category.ORDER_TRAPS: _order(Family.TRAPS),
    Category.STRUCTURE: Recipe(
        6, _with_containers(_MIXED, 40, 20), _with_containers(_MIXED, 20, 10), depths={0: 3, 1: 3, 2: 3, 4: 2, 8: 1}
    ),
    Category.WHITESPACE: Recipe(
        5, _TREE, _TREE, {CoreKind.SCALAR: 3, CoreKind.ARRAY: 1, CoreKind.OBJECT: 1}, {1: 2, 2: 2, 3: 1},
        depths={0: 6, 1: 1}, guises={Guise.SPACED: 3, Guise.SPACED | Guise.SPELLED: 1},
    ),
    Category.SIZE: Recipe(
        2, _TREE, _with_containers(_MIXED, 30, 20),
        {CoreKind.ARRAY: 5, CoreKind.OBJECT: 2, CoreKind.TEXT: 2}, families={Family.PLAIN: 1, Family.TEXT: 1},
        # With what stands in them, at most the 64 levels that every implementation accepts; the ladder has more.
        depths={0: 10, 1: 2, 8: 1, 16: 1, 32: 1, 56: 1}, largest=2**16,
    ),
    Category.IDEMPOTENCE: Recipe(
        6, {**_TREE, Segment.UNSAFE: 3, Segment.NONCHARACTER: 2}, _TREE, guises={Guise.PLAIN: 1}
    ),
    Category.DUPLICATE_NAMES: Recipe(
        3, _TREE, _TREE, {CoreKind.OBJECT: 1}, {2: 6, 3: 6, 4: 4, 6: 2, 9: 2, 16: 1, 40: 1, 96: 1},
        {Family.PLAIN: 3, Family.TEXT: 2, Family.UTF16: 1, Family.PREFIX: 1, Family.TRAPS: 2}, _HOST_DEPTHS,
    ),
    Category.LONE_SURROGATES: _negative(3),
    Category.INVALID_UTF8: _negative(3),
    Category.NUMBER_RANGE: _negative(3),
    Category.NUMBER_GRAMMAR: _negative(3),
    Category.STRING_GRAMMAR: _negative(3),
    Category.STRUCTURE_GRAMMAR: _negative(5),
    # In other encodings every byte must have one reading as UTF-8, so these documents are ASCII.
    Category.ENCODING: Recipe(
        1, {Segment.ASCII: 1}, {Segment.ASCII: 2, Segment.HUMAN: 1, Segment.INTEGERS: 1, Segment.LITERALS: 1},
        families={Family.PLAIN: 1}, depths={0: 1},
    ),
    Category.NOT_CANONICAL: Recipe(6, {Segment.SPELLED: 1}, _TREE),
}  # fmt: skip

# Containers that documents are made of; they are written like documents.
CONTAINERS: dict[Segment, Recipe] = {
    Segment.SMALL: Recipe(1280, _MIXED, _MIXED, {CoreKind.ARRAY: 1, CoreKind.OBJECT: 1}, {1: 2, 2: 3, 3: 3, 4: 2, 6: 1},
                          depths={0: 1}),
    Segment.LARGE: Recipe(768, {Segment.SMALL: 1}, {**_MIXED, Segment.SMALL: 14}, {CoreKind.ARRAY: 2,
                          CoreKind.OBJECT: 3}, {3: 2, 5: 3, 8: 2, 12: 1}, depths={0: 1}),
}  # fmt: skip
