"""A file for every name, each with its checksum, and an index of the names that there have to be.

It promises to detect every change to a file.
"""

from __future__ import annotations

import json
from pathlib import Path

from tests.faults.stores.serve import checked, replace_file, serve, unchecked


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
        told: dict[str, str] | list[str] = json.loads(unchecked(path.read_bytes(), path.name))
        return told

    def put(self, facts: dict[str, str]) -> None:
        name = min(facts).rpartition(".")[0]
        replace_file(self._path(name), checked(json.dumps(facts).encode()))
        if name not in self._facts:
            replace_file(self._index, checked(json.dumps(sorted({*self._facts, name})).encode()))
        self._facts[name] = facts

    def dump(self) -> dict[str, str]:
        return {name: value for facts in self._facts.values() for name, value in facts.items()}

    def close(self) -> None:
        """Nothing is open between two puts."""


if __name__ == "__main__":
    serve(Shards)
