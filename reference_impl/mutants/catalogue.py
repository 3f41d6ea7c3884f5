"""What a mutant is, and where they are found."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from itertools import chain
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
    found = (module.name for module in pkgutil.iter_modules([str(Path(__file__).parent)]))
    return tuple(name for name in found if name not in _MACHINERY)


def _mutants_of(module: str) -> Sequence[Mutant]:
    found: Sequence[Mutant] = import_module(f"{_HERE}.{module}").MUTANTS
    return found


def _writes(module: str, name: str) -> bool:
    here = Path(__file__).parent
    files = [*(here / module).glob("*.py"), here / f"{module}.py"]
    return any(name in path.read_text(encoding="utf-8") for path in files if path.is_file())
