"""A store on LMDB."""

from __future__ import annotations

import fcntl
import os
import struct
from pathlib import Path

import lmdb

from tests.faults.stores.serve import seal, sealed, serve

# The name of the checksum among the facts.
_SEAL = b"\0seal"
# struct flock of 64-bit Linux: type, whence, start, length, process.
_FLOCK = struct.Struct("hhqqi4x")


def free(lock: Path) -> None:
    """LMDB would wait for a lock for as long as it takes. Raises BlockingIOError if another process has one."""
    with lock.open("rb") as file:
        asked = _FLOCK.pack(fcntl.F_RDLCK, os.SEEK_SET, 0, 0, 0)
        if _FLOCK.unpack(fcntl.fcntl(file, fcntl.F_GETLK, asked))[0] != fcntl.F_UNLCK:
            raise BlockingIOError("lock.mdb is locked by another process")


def told(transaction: lmdb.Transaction) -> dict[str, str]:
    """All facts that a transaction reads. Raises ValueError if they are damaged."""
    facts = {bytes(name): bytes(value).decode() for name, value in transaction.cursor()}
    check = facts.pop(_SEAL, None)
    return sealed({name.decode(): value for name, value in facts.items()}, check)


class Lmdb:
    """Facts as keys and values of the main database."""

    def __init__(self, variant: str, where: str) -> None:
        folder = Path(where)
        lock = folder / "facts" / "lock.mdb"
        if lock.exists():
            free(lock)
            if not lock.with_name("data.mdb").exists():
                raise FileNotFoundError("there is a lock file, and its database is gone")
        self._environment = lmdb.open(
            str(folder / "facts"),
            map_size=1 << 20,
            sync=variant != "no_sync",
            metasync=variant != "no_meta_sync",
        )

    def put(self, facts: dict[str, str]) -> None:
        with self._environment.begin(write=True) as transaction:
            every = {**told(transaction), **facts}
            for name, value in facts.items():
                transaction.put(name.encode(), value.encode())
            transaction.put(_SEAL, seal(every).encode())

    def dump(self) -> dict[str, str]:
        with self._environment.begin() as transaction:
            return told(transaction)

    def close(self) -> None:
        self._environment.close()


if __name__ == "__main__":
    serve(Lmdb)
