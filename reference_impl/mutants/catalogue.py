"""What a mutant is, and where they are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from holdfast.reference_impl.registry import contract_names, package_of


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
    """Every mutant of every contract: the package `mutants` of each reference has a tuple MUTANTS."""
    return tuple(mutant for module in _modules() for mutant in _mutants_of(module))


def find(name: str) -> Mutant:
    """The mutant of that name. Raises KeyError with the known names."""
    # An adapter with a bug is started for every session. Whoever does not write the name anywhere has not got it.
    likely = (mutant for module in _modules() if _writes(module, name) for mutant in _mutants_of(module))
    for mutant in chain(likely, chain.from_iterable(map(_mutants_of, _modules()))):
        if mutant.name == name:
            return mutant
    raise KeyError(f"no mutant is called {name!r}; known: {', '.join(each.name for each in all_mutants())}")


def _modules() -> Sequence[str]:
    return tuple(f"{package_of(name)}.mutants" for name in contract_names())


def _mutants_of(module: str) -> Sequence[Mutant]:
    found: Sequence[Mutant] = import_module(module).MUTANTS
    return found


def _writes(module: str, name: str) -> bool:
    spec = find_spec(module)
    folders = (spec.submodule_search_locations or ()) if spec is not None else ()
    files = (path for folder in folders for path in Path(folder).glob("*.py"))
    return any(name in path.read_text(encoding="utf-8") for path in files)
