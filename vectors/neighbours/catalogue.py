"""The catalogue of near misses, and the near misses of one good value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any, get_args

import msgspec

from holdfast.specs.entry import Entry, Text
from holdfast.specs.errors import SpecError
from holdfast.specs.leaves import LeafKind
from holdfast.specs.yamlfile import read_yaml
from holdfast.vectors.neighbours.ways import changed, coded, filled, replaced, reshaped, shifted, typed

DATA = "catalogue.yaml"
_LAST_NUMBER = "[0-9]+(?!.*[0-9])"


class Miss(Entry, frozen=True):
    """One near miss: one of `as`, `find` with `put`, `at`, `json`, `add`, `times` and `code` says how it is made."""

    name: Text
    source: Text
    base: Text | None = None
    template: str | None = msgspec.field(name="as", default=None)
    find: Text | None = None
    put: str = ""
    at: int | None = None
    json: Any = msgspec.UNSET
    add: float | None = None
    times: float | None = None
    code: Text | None = None
    character: Text | None = msgspec.field(name="with", default=None)
    depth: Annotated[int, msgspec.Meta(ge=1)] = 1


class KindOfValue(Entry, frozen=True):
    """The groups of near misses of a kind. `stretch` is what makes a value longer without making it a bad one."""

    groups: Annotated[tuple[Text, ...], msgspec.Meta(min_length=1)]
    stretch: Text | None = None


class Catalogue(Entry, frozen=True):
    """The file."""

    groups: Mapping[Text, tuple[Miss, ...]]
    kinds: Mapping[LeafKind, KindOfValue]


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A near miss: `value` beside the good value `base`, which is the one asked about where `moved` is false."""

    name: str
    source: str
    base: Any
    value: Any
    moved: bool


@cache
def catalogue() -> Catalogue:
    """The catalogue as it is installed. Raises SpecError for one that is malformed."""
    resource = files("holdfast.vectors").joinpath("neighbours", DATA)
    try:
        read = msgspec.convert(read_yaml(Path(str(resource))), Catalogue)
    except msgspec.ValidationError as error:
        raise SpecError(f"vectors/neighbours/{DATA}: {error}") from error
    missing = [kind for kind in get_args(LeafKind) if kind not in read.kinds]
    unknown = sorted({group for kind in read.kinds.values() for group in kind.groups} - read.groups.keys())
    if missing or unknown:
        raise SpecError(f"vectors/neighbours/{DATA}: no kinds {missing}, no groups {unknown}")
    return read


def neighbours(kind: LeafKind, value: Any) -> dict[str, Neighbour]:
    """The near misses of a good value of this kind by name, in the order of the catalogue; each pair of values once."""
    found: dict[str, Neighbour] = {}
    pairs: set[bytes] = set()
    for name in _misses(kind):
        near = neighbour(kind, value, name)
        pair = b"" if near is None else msgspec.json.encode([near.base, near.value])
        if near is not None and pair not in pairs:
            found[name] = near
            pairs.add(pair)
    return found


def neighbour(kind: LeafKind, value: Any, name: str) -> Neighbour | None:
    """The near miss of that name; None where none can be made of this value."""
    for miss in _misses(kind).get(name, ()):
        for base, near in _made(miss, value, catalogue().kinds[kind].stretch):
            if type(base) is not type(near) or base != near:
                return Neighbour(name, miss.source, base, near, moved=base != value)
    return None


@cache
def _misses(kind: LeafKind) -> Mapping[str, tuple[Miss, ...]]:
    """The near misses of a kind by name: two groups may have one of the same name, and the first that fits is it."""
    found: dict[str, tuple[Miss, ...]] = {}
    for group in catalogue().kinds[kind].groups:
        for miss in catalogue().groups[group]:
            found[miss.name] = (*found.get(miss.name, ()), miss)
    return found


def _made(miss: Miss, value: Any, stretch: str | None) -> list[tuple[Any, Any]]:
    """The good value and its near miss; none where the near miss cannot be made of it."""
    if miss.json is not msgspec.UNSET:
        return [(value, typed(miss.json, value))]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return [(value, near) for near in shifted(value, add=miss.add, times=miss.times)]
    if isinstance(value, Mapping):
        return [(value, near) for near in ([] if miss.code is None else reshaped(miss.code, value))]
    if not isinstance(value, str) or not value:
        return []
    if miss.at is not None:
        return changed(value, miss.at, stretch)
    if miss.add is not None:
        more = int(miss.add)
        return [(value, near) for near in replaced(value, _LAST_NUMBER, lambda found: str(int(found[0]) + more))]
    base = value if miss.base is None else filled(miss.base, value)
    if miss.template is not None:
        return [(base, filled(miss.template, value))]
    if miss.find is not None:
        return [(base, near) for near in replaced(value, miss.find, miss.put)]
    if miss.code is not None:
        return [(base, near) for near in coded(miss.code, value, depth=miss.depth, character=miss.character)]
    return []
