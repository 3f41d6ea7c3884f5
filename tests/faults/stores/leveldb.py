"""A store on LevelDB."""

from __future__ import annotations

import plyvel

from tests.faults.stores.serve import serve


class Level:
    """Facts as keys and values."""

    def __init__(self, variant: str, where: str) -> None:
        self._sync = variant == "sync"
        self._db = plyvel.DB(f"{where}/facts", create_if_missing=True)

    def put(self, facts: dict[str, str]) -> None:
        """One batch."""
        with self._db.write_batch(sync=self._sync, transaction=True) as batch:
            for name, value in facts.items():
                batch.put(name.encode(), value.encode())

    def dump(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self._db}

    def close(self) -> None:
        self._db.close()


if __name__ == "__main__":
    serve(Level)
