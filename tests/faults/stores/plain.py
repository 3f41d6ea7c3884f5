"""A store that writes all its facts to a new file for every put, and renames it over the old one."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from tests.faults.stores.serve import Kept, checked, replace_file, serve, unchecked, write_file


class Plain(Kept):
    """One file: a checksum in the first line, a JSON object in the second."""

    def __init__(self, variant: str, where: str) -> None:
        self._variant = variant
        self._file = Path(where) / "facts.json"
        self._facts: dict[str, str] = {}
        if self._file.exists():
            body = unchecked(self._file.read_bytes(), "facts.json", believes=variant == "no_checksum")
            self._facts = json.loads(body)

    def put(self, facts: dict[str, str]) -> None:
        changed = {**self._facts, **facts}
        data = checked(json.dumps(changed, indent=1).encode())
        if self._variant == "swallow":
            with contextlib.suppress(OSError):
                self._replace(data)
        else:
            self._replace(data)
        self._facts = changed

    def _replace(self, data: bytes) -> None:
        if self._variant == "in_place":
            write_file(self._file, data)
            return
        whole, synced = self._variant != "short", self._variant not in ("none", "no_fsync")
        kept = self._variant not in ("none", "no_folder_fsync")
        replace_file(self._file, data, whole=whole, synced=synced, kept=kept)


if __name__ == "__main__":
    serve(Plain)
