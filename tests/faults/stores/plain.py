"""A store that writes all its facts to a new file for every put, and renames it over the old one."""

from __future__ import annotations

import contextlib
import json
import os
import zlib
from pathlib import Path

from tests.faults.stores.serve import Kept, serve, sync_folder, write_all


class Plain(Kept):
    """One file: a checksum in the first line, a JSON object in the second."""

    def __init__(self, variant: str, where: str) -> None:
        folder = Path(where)
        self._variant = variant
        self._folder = folder
        self._file = folder / "facts.json"
        self._facts: dict[str, str] = {}
        if self._file.exists():
            check, body = self._file.read_bytes().split(b"\n", 1)
            if variant != "no_checksum" and int(check, 16) != zlib.crc32(body):
                raise ValueError("facts.json is damaged")
            self._facts = json.loads(body)

    def put(self, facts: dict[str, str]) -> None:
        changed = {**self._facts, **facts}
        body = json.dumps(changed, indent=1).encode()
        data = b"%08x\n" % zlib.crc32(body) + body
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
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        try:
            if self._variant == "short":
                os.write(fd, data)
            else:
                write_all(fd, data)
            if self._variant not in ("none", "no_fsync"):
                os.fsync(fd)
        finally:
            os.close(fd)


if __name__ == "__main__":
    serve(Plain)
