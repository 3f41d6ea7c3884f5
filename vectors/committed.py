"""Committed vectors: each contract has them in its folder, beside the program that writes them.

`vectors/<contract>/committed` is a module or a package that makes the files of `vectors/<contract>/data`.
`python -m holdfast.vectors.committed` writes them; `holdfast vectors lint` says whether that is needed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from pkgutil import iter_modules
from typing import Protocol, cast

from holdfast import vectors

FOLDER = Path(next(iter(vectors.__path__)))


class Source(Protocol):
    """The module `committed` of one contract."""

    # The names of files that another program writes.
    OTHERS: Collection[str]

    def files(self) -> Mapping[str, bytes]:
        """The files that it makes, by their names in `data`."""

    def read(self, data: bytes, *, place: str) -> Sequence[object]:
        """The records of such a file; `place` is its name in errors. Raises SpecError."""

    def problems(self) -> Iterable[str]:
        """The problems of its records. Raises SpecError for data that cannot be read."""


@cache
def sources() -> Mapping[str, Source]:
    """The module of each contract that has one, by the name of its folder."""
    names = [f"{vectors.__name__}.{found.name}.committed" for found in iter_modules(vectors.__path__) if found.ispkg]
    having = [name for name in sorted(names) if find_spec(name) is not None]
    return {name.split(".")[-2]: cast("Source", import_module(name)) for name in having}


def files() -> dict[str, bytes]:
    """Every file that is made, by its path in the folder `vectors`."""
    return {
        f"{folder}/data/{name}": content
        for folder, source in sources().items()
        for name, content in source.files().items()
    }


def main() -> None:
    """Write every file."""
    for name, content in files().items():
        path = FOLDER / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        print(f"{path}: {content.count(bytes([10]))} records")


if __name__ == "__main__":
    main()
