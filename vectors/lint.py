"""`holdfast vectors lint`: what is wrong with the committed vectors. Their files are the source; nothing writes them.

Each contract that has vectors has them in `vectors/<contract>/data`, and beside it a module `committed` that reads and
checks them. Each check returns problems as text, and none of them stops at the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, cast

from holdfast import vectors
from holdfast.specs.errors import SpecError

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
    names = [f"{vectors.__name__}.{found.name}.committed" for found in iter_modules(vectors.__path__) if found.ispkg]
    having = [name for name in sorted(names) if find_spec(name) is not None]
    return {name.split(".")[-2]: cast("Committed", import_module(name)) for name in having}


def lint(root: Path = FOLDER) -> list[str]:
    """Every problem of the files `<contract>/data` in `root`; empty when there is none."""
    problems: list[str] = []
    for folder, module in modules().items():
        data = root / folder / "data"
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
