"""A store on RocksDB."""

from __future__ import annotations

from pathlib import Path

from rocksdict import Options, Rdict, WriteBatch, WriteOptions

from tests.faults.stores.serve import serve


class Rocks:
    """Facts as keys and values, in raw mode."""

    def __init__(self, variant: str, where: str) -> None:
        folder = Path(where)
        self._variant = variant
        options = Options(raw_mode=True)
        path = folder / "facts"
        # Beside the tables of a database that has lost the file that says which it is, RocksDB would make another.
        options.create_if_missing(not any(path.glob("*.sst")))
        self._db = Rdict(str(path), options=options)
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
        facts: dict[str, str] = {}
        found = self._db.iter()
        found.seek_to_first()
        while found.valid():
            name, value = found.key(), found.value()
            facts[bytes(name).decode()] = bytes(value).decode()
            found.next()
        # At a damaged block it just ends, as after the last one.
        found.status()
        return facts

    def close(self) -> None:
        # If the log were lost, the data that is only in the log would be lost without an error.
        self._db.flush(wait=True)
        self._db.close()


if __name__ == "__main__":
    serve(Rocks)
