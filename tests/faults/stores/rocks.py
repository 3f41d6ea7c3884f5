"""A store on RocksDB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rocksdict import Options, Rdict, WriteBatch, WriteOptions

from tests.faults.stores.serve import serve


class Rocks:
    """Facts as keys and values, in raw mode."""

    def __init__(self, variant: str, folder: Path) -> None:
        self._variant = variant
        options = Options(raw_mode=True)
        options.create_if_missing(True)
        self._db = Rdict(str(folder / "facts"), options=options)
        self._write = WriteOptions()
        self._write.sync = variant in ("sync", "no_batch")
        # A property that the package's stubs take for a method.
        self._write.disable_wal = variant == "no_wal"  # type: ignore[method-assign,assignment]

    def put(self, facts: dict[str, str]) -> None:
        """One batch; in `no_batch` each fact is written alone. `flush` needs no synced log: what it flushes is."""
        if self._variant == "no_batch":
            for name, value in facts.items():
                self._db.put(name.encode(), value.encode(), write_opt=self._write)
            return
        batch = WriteBatch(raw_mode=True)
        for name, value in facts.items():
            batch.put(name.encode(), value.encode())
        self._db.write(batch, write_opt=self._write)
        if self._variant == "flush":
            self._db.flush(wait=True)

    def dump(self) -> dict[str, str]:
        facts: dict[Any, Any] = dict(self._db.items())
        return {name.decode(): value.decode() for name, value in facts.items()}

    def close(self) -> None:
        self._db.close()


if __name__ == "__main__":
    serve(Rocks)
