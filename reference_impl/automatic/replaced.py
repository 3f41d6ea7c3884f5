"""Which lines of a reference a planted bug replaces. A test that executes none of them runs as without the bug."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

from holdfast.reference_impl.altered import patched
from holdfast.reference_impl.planting import Bug, bugs_of
from holdfast.reference_impl.registry import package_of
from holdfast.specs.mutants import load_mutants

_ROOT = Path(__file__).parents[1]
_MUTANTS = ".mutants."
# What a class statement leaves in every class, and what changes nothing that runs.
_OF_THE_CLASS = frozenset(
    "__module__ __doc__ __qualname__ __dict__ __weakref__ __slots__ __annotations__ __static_attributes__"
    " __firstlineno__".split()
)

Lines = Mapping[str, tuple[int, ...]]


class _UnknownError(Exception):
    """It cannot be said what a bug replaces."""


def replaced_by_bugs(contract: str) -> Mapping[str, Lines]:
    """For each bug of a contract its lines by file. A bug is left out if no lines can be given for it."""
    found: dict[str, Lines] = {}
    for bug in bugs_of(contract):
        with suppress(_UnknownError):
            found[bug.name] = _lines_of(bug, import_module(f"{package_of(contract)}.factory").REFERENCE)
    for mutant in load_mutants(contract).planted:
        places = [patch.lines for patch in patched(mutant.name)]
        if places and None not in places:
            found[mutant.name] = {
                file: tuple(line for each in places if each and each[0] == file for line in each[1])
                for file, _ in filter(None, places)
            }
    return found


def _lines_of(bug: Bug, reference: Any) -> Lines:
    changed = bug.apply(reference)
    lines: dict[str, tuple[int, ...]] = {}
    for part in fields(reference):
        now = getattr(changed, part.name)
        if now is not getattr(reference, part.name):
            for file, numbers in _overridden(now):
                lines[file] = (*lines.get(file, ()), *numbers)
    return lines


def _overridden(part: Any) -> Iterator[tuple[str, range]]:
    """Where the functions stand that a class of the mutants overrides."""
    if not inspect.isclass(part):
        raise _UnknownError
    own = [each for each in part.__mro__ if _MUTANTS in each.__module__]
    above = [each for each in part.__mro__ if each not in own]
    if not own:
        raise _UnknownError
    for name in {name for each in own for name in vars(each)} - _OF_THE_CLASS:
        before = [vars(each)[name] for each in above if name in vars(each)]
        if before:
            yield _place(before[0])
        elif name.startswith("__"):
            # Python calls it without a name, so it may run where nothing ran before.
            raise _UnknownError


def _place(attribute: Any) -> tuple[str, range]:
    function = getattr(attribute, "fget", None) or getattr(attribute, "__func__", attribute)
    function = inspect.unwrap(function) if callable(function) else function
    if not inspect.isfunction(function):
        raise _UnknownError
    try:
        file = Path(function.__code__.co_filename).relative_to(_ROOT).as_posix()
        lines, first = inspect.getsourcelines(function.__code__)
    except (OSError, ValueError):
        raise _UnknownError from None
    return file, range(first, first + len(lines))
