"""A store that writes all its facts to a new file for every put, and renames it over the old one."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from tests.faults.stores.serve import Kept, checked, serve, sync_folder, unchecked, write_file


class Plain(Kept):
    """One file: a checksum in the first line, a JSON object in the second."""

    def __init__(self, variant: str, where: str) -> None:
        folder = Path(where)
        self._variant = variant
        self._folder = folder
        self._file = folder / "facts.json"
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
            self._write(self._file, data)
            return
        new = self._folder / "facts.new"
        # Left by a crash or an error. A file of its own each time: bytes that an fsync failed for stay where they are.
        new.unlink(missing_ok=True)
        self._write(new, data)
        new.replace(self._file)
        if self._variant not in ("none", "no_folder_fsync"):
            sync_folder(self._folder)

    def _write(self, path: Path, data: bytes) -> None:
        synced = self._variant not in ("none", "no_fsync")
        write_file(path, data, whole=self._variant != "short", synced=synced)


if __name__ == "__main__":
    serve(Plain)
