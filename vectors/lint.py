"""`holdfast vectors lint`: whether the committed files are what is written, and what is wrong with their records.

Each check returns problems as text, and none of them stops at the first. Nothing here knows how to canonicalise.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.specs.errors import SpecError
from holdfast.vectors import committed
from holdfast.vectors.committed import FOLDER, Source


def lint() -> list[str]:
    """Every problem of the committed vectors; empty when there is none."""
    problems: list[str] = []
    for folder, source in committed.sources().items():
        try:
            made = {name: content for name, content in committed.files().items() if name.startswith(f"{folder}/")}
            problems += _files(folder, source, made)
            problems += source.problems()
        except SpecError as error:
            problems.append(str(error))
    return problems


def _files(folder: str, source: Source, made: Mapping[str, bytes]) -> Iterable[str]:
    """Files that are not what the program writes, files that it does not write, records that do not load."""
    for name, content in made.items():
        path = FOLDER / name
        if not path.is_file():
            yield f"vectors/{name}: missing; run `python -m holdfast.vectors.committed`"
            continue
        found = path.read_bytes()
        if found != content:
            where = _where(found, content)
            yield f"vectors/{name}: is not what `python -m holdfast.vectors.committed` writes, from {where}"
        try:
            source.read(found, place=f"vectors/{name}")
        except SpecError as error:
            yield str(error)
    for entry in sorted((FOLDER / folder / "data").iterdir()):
        name = f"{folder}/data/{entry.name}"
        if name not in made and entry.name not in source.OTHERS:
            yield f"vectors/{name}: nothing writes this file; remove it, or write it"


def _where(found: bytes, content: bytes) -> str:
    lines = zip(found.split(b"\n"), content.split(b"\n"), strict=False)
    for number, (left, right) in enumerate(lines, start=1):
        if left != right:
            return f"line {number} on"
    return f"byte {min(len(found), len(content))} on"
