"""A file for every name, each with its checksum, and an index of the names that there have to be.

It promises to detect every change to a file.
"""

from __future__ import annotations

import json
import os
import zlib
from pathlib import Path

from tests.faults.stores.serve import serve, sync_folder, write_all


def sealed(told: object) -> bytes:
    """The bytes of a file: a checksum in the first line, JSON in the second."""
    body = json.dumps(told).encode()
    return b"%08x\n" % zlib.crc32(body) + body


class Shards:
    """The facts of each name."""

    def __init__(self, variant: str, where: str) -> None:
        folder = Path(where)
        self._variant = variant
        self._folder = folder
        self._index = folder / "index"
        self._facts: dict[str, dict[str, str]] = {}
        # A put makes the file first: one that the index does not know is not missed, but whole.
        found = {path.stem for path in folder.glob("*.facts")}
        names = set(self._unsealed(self._index)) if self._index.exists() else set()
        if not names and len(found) > 1:
            raise FileNotFoundError("there are files of facts, and their index is gone")
        for name in sorted(names | found):
            path = self._path(name)
            if variant == "skips_missing" and not path.exists():
                continue
            if variant == "skips_empty" and not path.stat().st_size:
                continue
            try:
                facts = self._unsealed(path)
            except ValueError:
                if variant != "skips_damaged":
                    raise
                continue
            if not isinstance(facts, dict):
                raise ValueError(f"{path.name} holds no facts")
            self._facts[name] = facts

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.facts"

    def _unsealed(self, path: Path) -> dict[str, str] | list[str]:
        """What is in a file. Raises ValueError if it is damaged."""
        check, _, body = path.read_bytes().partition(b"\n")
        if int(check, 16) != zlib.crc32(body):
            raise ValueError(f"{path.name} is damaged")
        told: dict[str, str] | list[str] = json.loads(body)
        return told

    def put(self, facts: dict[str, str]) -> None:
        name = min(facts).rpartition(".")[0]
        self._replace(self._path(name), sealed(facts))
        if name not in self._facts:
            self._replace(self._index, sealed(sorted({*self._facts, name})))
        self._facts[name] = facts

    def _replace(self, path: Path, data: bytes) -> None:
        new = self._folder / "new"
        new.unlink(missing_ok=True)
        fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        new.replace(path)
        sync_folder(self._folder)

    def dump(self) -> dict[str, str]:
        return {name: value for facts in self._facts.values() for name, value in facts.items()}

    def close(self) -> None:
        """Nothing is open between two puts."""


if __name__ == "__main__":
    serve(Shards)
