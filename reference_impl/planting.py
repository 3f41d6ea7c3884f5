"""Planted bugs: the change that each makes to its reference, and how to find a bug by its name.

What a bug is and which clauses it must break stands in `specs/<contract>/mutants.yaml`, and there most bugs are patches
of the source (`altered`). A bug that needs a class has it in `reference_impl/<contract>/mutants/*.py`, whose mapping
BUGS leads from names to changes. The references have no switches for bugs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from holdfast.reference_impl import altered

# From the contract's factory to the mutated one.
Change = Callable[[Any], Any]

_HERE = Path(__file__).parent
_Factory = TypeVar("_Factory")


@dataclass(frozen=True, slots=True)
class Bug:
    """One planted bug. `apply` turns the factory of its contract into the mutated one."""

    name: str
    contract: str
    apply: Change


def part(**parts: type[Any]) -> Change:
    """Replace one part of the factory by a subclass that overrides one method."""
    return lambda factory: replace(factory, **parts)


def value(change: Callable[[Any], Any]) -> Change:
    """Change one loaded value."""
    return lambda factory: replace(factory, loaded=change)


def planted(reference: _Factory, mutant: str | None) -> _Factory:
    """The factory, with a planted bug if one is named. Raises KeyError for an unknown mutant."""
    if mutant is None:
        return reference
    changed: _Factory = find(mutant).apply(reference)
    return changed


def find(name: str) -> Bug:
    """The bug of that name. Raises KeyError with the known names.

    Alterations and patches are made at import (`altered.install`), so nothing is left to change.
    """
    if altered.is_altered(name):
        return Bug(name, altered.read(name).contract, lambda factory: factory)
    if patches := altered.patched(name):
        return Bug(name, patches[0].alteration.contract, lambda factory: factory)
    # An adapter with a bug is started for every session, so only the module that writes the name is imported.
    for path in _modules():
        if f'"{name}"' in path.read_text(encoding="utf-8"):
            for bug in _bugs_of(path):
                if bug.name == name:
                    return bug
    from holdfast.specs.mutants import declared_names

    raise KeyError(f"no mutant is called {name!r}; known: {', '.join(declared_names())}")


def all_bugs() -> Sequence[Bug]:
    """Every bug of every reference."""
    return tuple(bug for path in _modules() for bug in _bugs_of(path))


def bugs_of(contract: str) -> Sequence[Bug]:
    """Every bug of one reference. What the others need is not imported."""
    return tuple(bug for path in _modules(contract.replace("-", "_")) for bug in _bugs_of(path))


def _modules(package: str = "*") -> Sequence[Path]:
    return sorted(path for path in _HERE.glob(f"{package}/mutants/*.py") if path.stem != "__init__")


def _bugs_of(path: Path) -> Iterator[Bug]:
    folder = path.parent.parent.name
    module = import_module(f"holdfast.reference_impl.{folder}.mutants.{path.stem}")
    changes: Mapping[str, Change] = getattr(module, "BUGS", {})
    for name, change in changes.items():
        yield Bug(name, folder.replace("_", "-"), change)
