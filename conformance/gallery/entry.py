"""An entry of the gallery: `entries/NAME/entry.toml` beside a small service and its `service.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated

import msgspec

from holdfast.specs.errors import unknown

ENTRIES = Path(__file__).parent / "entries"
_FILE = "entry.toml"


class EntryError(ValueError):
    """There is no such entry, or it cannot be read."""


class Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A limit that the library's own documentation or its issue tracker states, and the cases that fail by it.

    `url` is where the quotation stands, in the version of the entry.
    """

    cases: tuple[str, ...]
    quote: str
    source: str
    url: Annotated[str, msgspec.Meta(pattern="^https://")]


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a library before it is run."""

    title: str
    language: str
    package: str
    version: str
    homepage: str
    store: str
    install: tuple[str, ...]
    safe: str
    declared: tuple[Declared, ...] = ()
    # Whom the findings were reported to, when and where; empty as long as no maintainer was informed.
    disclosure: str = ""

    def quoted(self, case: str) -> Declared | None:
        """The limit that a case fails by, if the documentation states it."""
        return next((limit for limit in self.declared if case in limit.cases), None)


def names() -> list[str]:
    """Every entry."""
    return sorted(file.parent.name for file in ENTRIES.glob(f"*/{_FILE}"))


def read(name: str) -> Entry:
    """An entry. Raises EntryError."""
    if name not in names():
        raise EntryError(unknown("entry", name, names()))
    try:
        return msgspec.convert(tomllib.loads((ENTRIES / name / _FILE).read_text(encoding="utf-8")), Entry)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise EntryError(f"{name}/{_FILE}: {error}") from error
