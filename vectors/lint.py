"""`holdfast vectors lint`: what is wrong with the committed vectors. Their files are the source; nothing writes them.

Each contract that has vectors has them in a folder `data`, one of holdfast in `vectors/<contract>/data`, and beside it
a module `committed` that reads and checks them. Each check returns problems as text; none of them stops at the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Protocol, cast

from holdfast import vectors
from holdfast.specs.errors import SpecError
from holdfast.specs.registry import contracts

FOLDER = Path(next(iter(vectors.__path__)))


class Committed(Protocol):
    """The module `committed` of one contract."""

    # The names of the files in `data`.
    FILES: Collection[str]

    def problems(self, files: Mapping[str, bytes]) -> Iterable[str]:
        """The problems of these files, by name. Raises SpecError for a file that cannot be read."""


@cache
def modules() -> Mapping[str, Committed]:
    """The module of each contract that has one, by the name of its folder."""
    return {folder.name: cast("Committed", import_module(f"{name}.committed")) for folder, name in _having().items()}


def _having() -> Mapping[Path, str]:
    found = (one.vectors for one in contracts().values())
    return {each.path: each.name for each in found if each.part("committed") is not None}


def lint(root: Path | None = None) -> list[str]:
    """Every problem of the files `<contract>/data`, of another `root` if one is given; empty when there is none."""
    problems: list[str] = []
    for path, (folder, module) in zip(_having(), modules().items(), strict=True):
        data = (path if root is None else root / folder) / "data"
        files = {path.name: path.read_bytes() for path in sorted(data.iterdir())} if data.is_dir() else {}
        missing = set(module.FILES) - files.keys()
        problems += [f"vectors/{folder}/data/{name}: missing; reinstall holdfast" for name in sorted(missing)]
        problems += [
            f"vectors/{folder}/data/{name}: nothing reads this file; remove it, or add it to FILES of the contract"
            for name in files.keys() - set(module.FILES)
        ]
        try:
            problems += module.problems(files) if not missing else ()
        except SpecError as error:
            problems.append(str(error))
    return problems
