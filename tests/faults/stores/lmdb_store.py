"""A store on LMDB."""

from __future__ import annotations

from pathlib import Path

import lmdb

from tests.faults.stores.serve import serve


class Lmdb:
    """Facts as keys and values of the main database."""

    def __init__(self, variant: str, folder: Path) -> None:
        self._environment = lmdb.open(
            str(folder / "facts"), map_size=1 << 20, sync=variant != "no_sync", metasync=variant != "no_meta_sync"
        )

    def put(self, facts: dict[str, str]) -> None:
        with self._environment.begin(write=True) as transaction:
            for name, value in facts.items():
                transaction.put(name.encode(), value.encode())

    def dump(self) -> dict[str, str]:
        with self._environment.begin() as transaction:
            return {bytes(name).decode(): bytes(value).decode() for name, value in transaction.cursor()}

    def close(self) -> None:
        self._environment.close()


if __name__ == "__main__":
    serve(Lmdb)
