"""What a mutant is, and where they are found."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

_HERE = "reference_impl.mutants"
# What stands here and is no contract's.
_MACHINERY = ("catalogue", "planting")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted bug.

    `must_fail` maps clause ids to the verdict that each must get; `may_fail` maps clause ids to the reason why they
    may fail as well; `faults` maps ids of faults that are let strike to the verdict that each must get. Everything else
    must conform. `apply` turns the contract's blueprint into the mutated one.
    """

    name: str
    contract: str
    title: str
    must_fail: Mapping[str, str]
    apply: Callable[[Any], Any]
    may_fail: Mapping[str, str] = field(default_factory=dict)
    faults: Mapping[str, str] = field(default_factory=dict)
    store: str = "sqlite"


@cache
def all_mutants() -> Sequence[Mutant]:
    """Every mutant of every contract: each module or package here but the machinery has a tuple MUTANTS."""
    return tuple(_one_by_one())


def _one_by_one() -> Iterator[Mutant]:
    for module in pkgutil.iter_modules([str(Path(__file__).parent)]):
        if module.name not in _MACHINERY:
            yield from import_module(f"{_HERE}.{module.name}").MUTANTS


def find(name: str) -> Mutant:
    """The mutant of that name. Raises KeyError with the known names."""
    # What comes behind it is not loaded: a command line has little time.
    for mutant in _one_by_one():
        if mutant.name == name:
            return mutant
    raise KeyError(f"no mutant is called {name!r}; known: {', '.join(each.name for each in all_mutants())}")
