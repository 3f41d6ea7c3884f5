"""`runner.toml`: what a folder of SDK runners consists of, and where such folders are."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, TypeAlias

from msgspec import Meta, convert
from msgspec.structs import asdict

from holdfast.specs.typed import Form

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

# A program and its arguments.
Words: TypeAlias = Annotated[tuple[str, ...], Meta(min_length=1)]


class BuildError(Exception):
    """A runner cannot be built or run; the text has the step and the end of its output, or what is missing."""


class ManifestError(BuildError):
    """A `runner.toml` is not what it should be; the text has its path, what was expected and what came."""


class DamagedError(ManifestError):
    """One of the kit's own is not: the installation is damaged."""


class Need(Form, frozen=True):
    """A program that building takes, and how one gets it."""

    program: str
    get: str


class Entry(Form, frozen=True):
    """One runner: a name of its own, what it judges, and its command."""

    name: str
    library: str
    version: str
    command: Words


class _Folder(Form, frozen=True):
    """The file."""

    language: str
    runners: Annotated[tuple[Entry, ...], Meta(min_length=1)]
    needs: tuple[Need, ...] = ()
    steps: tuple[Words, ...] = ()


class Manifest(_Folder, frozen=True, kw_only=True):
    """The runners of one folder, which are built together.

    Steps run one after the other in a copy of the folder. In steps and commands, `{out}` stands for that copy,
    `{scratch}` for a folder that is thrown away after the build, `{python}` for the interpreter that runs the kit.
    """

    folder: Path


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
        found = convert(tomllib.loads(file.read_text(encoding="utf-8")), _Folder)
    except (OSError, ValueError) as error:
        raise ManifestError(f"{file}: {error}") from error
    return Manifest(folder=file.parent, **asdict(found))


def resolved(words: Sequence[str], *, out: Path, scratch: Path | None = None) -> list[str]:
    """A step or command with its placeholders filled in."""
    places = {"{out}": str(out), "{scratch}": str(scratch or out), "{python}": sys.executable}
    filled = list(words)
    for place, value in places.items():
        filled = [word.replace(place, value) for word in filled]
    return filled
