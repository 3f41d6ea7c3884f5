"""`runner.toml`: what a folder of SDK runners consists of, and where such folders are."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

# The runners of the kit.
OURS = Path(__file__).parent
# More folders of runner folders, separated like PATH. What is found there cannot shadow what the kit brings.
ELSEWHERE = "HOLDFAST_SDKS"
FILE = "runner.toml"
# Stands beside the runners, to be copied; builds nothing.
TEMPLATE = "template"
# Names that `find` gives to the reference.
RESERVED = "reference"

# It names folders, too.
_NAME = re.compile(r"[a-z][a-z0-9._-]{0,63}")

_Row = TypeVar("_Row")


class BuildError(Exception):
    """A runner cannot be built or run; the text has the step and the end of its output, or what is missing."""


class ManifestError(BuildError):
    """A `runner.toml` is not what it should be; the text has its path, what was expected and what came."""


class DamagedError(ManifestError):
    """One of the kit's own is not: the installation is damaged."""


@dataclass(frozen=True, slots=True)
class Need:
    """A program that building takes, and how one gets it."""

    program: str
    get: str


@dataclass(frozen=True, slots=True)
class Entry:
    """One runner: a name of its own, what it judges, and its command."""

    name: str
    library: str
    version: str
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """The runners of one folder, which are built together.

    Steps run one after the other in a copy of the folder. In steps and commands, `{out}` stands for that copy,
    `{scratch}` for a folder that is thrown away after the build, `{python}` for the interpreter that runs the kit.
    """

    folder: Path
    language: str
    needs: tuple[Need, ...]
    steps: tuple[tuple[str, ...], ...]
    runners: tuple[Entry, ...]


def manifests() -> list[Manifest]:
    """Every folder of runners, those of the kit first. Raises ManifestError."""
    found = [manifest for folder in _homes() for manifest in _of(folder)]
    seen: dict[str, Path] = {}
    for manifest in found:
        for entry in manifest.runners:
            if not _NAME.fullmatch(entry.name):
                raise ManifestError(
                    f"{manifest.folder / FILE}: expected a name of lower-case letters, digits, dots, dashes and "
                    f"underscores, at most 64, that begins with a letter; came {entry.name!r}"
                )
            if entry.name in seen or entry.name.startswith(RESERVED):
                taken = seen.get(entry.name, "the reference")
                raise ManifestError(f"{manifest.folder / FILE}: the name {entry.name!r} is taken by {taken}")
            seen[entry.name] = manifest.folder
    return found


def _of(folder: Path) -> list[Manifest]:
    try:
        return [read(file) for file in sorted(folder.glob(f"*/{FILE}")) if _counts(file)]
    except ManifestError as error:
        if folder == OURS:
            raise DamagedError(f"{error}; holdfast is damaged: install it again") from error
        raise


def _homes() -> Iterator[Path]:
    yield OURS
    for text in os.environ.get(ELSEWHERE, "").split(os.pathsep):
        if text:
            folder = Path(text).resolve()
            if not folder.is_dir():
                raise ManifestError(f"{ELSEWHERE} lists {text!r}, which is no folder; expected folders of runners")
            yield folder


def _counts(file: Path) -> bool:
    return file.parent.name != TEMPLATE


def read(file: Path) -> Manifest:
    """One `runner.toml`. Raises ManifestError."""
    try:
        data = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ManifestError(f"{file}: {error}") from error
    runners = tuple(_row(file, Entry, row) for row in _list(file, data, "runners"))
    if not runners:
        raise ManifestError(f"{file}: no [[runners]]; expected at least one, with name, library, version and command")
    steps = tuple(_words(file, "steps", step) for step in _list(file, data, "steps"))
    needs = tuple(_row(file, Need, row) for row in _list(file, data, "needs"))
    language = data.pop("language", None)
    if not isinstance(language, str) or data:
        raise ManifestError(
            f"{file}: expected language (text), steps, [[needs]], [[runners]]; came also {sorted(data)}"
        )
    return Manifest(file.parent, language, needs, steps, runners)


def _list(file: Path, data: dict[str, object], key: str) -> list[object]:
    value = data.pop(key, [])
    if not isinstance(value, list):
        raise ManifestError(f"{file}: {key} must be a list, came {value!r}")
    return value


def _words(file: Path, key: str, value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) for word in value):
        raise ManifestError(f"{file}: {key} must be a program and its arguments as a list of texts, came {value!r}")
    return tuple(value)


def _row(file: Path, kind: type[_Row], row: object) -> _Row:
    """A table with exactly the fields of `kind`: texts, and a list of words for `command`."""
    fields = kind.__dataclass_fields__  # type: ignore[attr-defined]
    if not isinstance(row, dict) or set(row) != set(fields):
        raise ManifestError(f"{file}: expected a table with exactly {', '.join(fields)}; came {row!r}")
    texts = {key: value for key, value in row.items() if key != "command"}
    if not all(isinstance(value, str) for value in texts.values()):
        raise ManifestError(f"{file}: {', '.join(texts)} must be texts; came {row!r}")
    words = {"command": _words(file, "command", row["command"])} if "command" in row else {}
    return kind(**texts, **words)


def resolved(words: Sequence[str], *, out: Path, scratch: Path | None = None) -> list[str]:
    """A step or command with its placeholders filled in."""
    places = {"{out}": str(out), "{scratch}": str(scratch or out), "{python}": sys.executable}
    filled = list(words)
    for place, value in places.items():
        filled = [word.replace(place, value) for word in filled]
    return filled
