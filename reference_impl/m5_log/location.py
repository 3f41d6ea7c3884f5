"""Where a store lies, and whether its files are still those that were opened."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Mapping, Set
from pathlib import Path
from typing import TypeAlias

from holdfast.reference_impl.m5_log.terms import Settings, StoreError

_FOLDER_MODE = 0o700
_WITNESS = "witness"
# Files that are made once and kept, and those without which there is no store.
_KEPT = frozenset({"LOCK", "IDENTITY", _WITNESS})
_NEEDED = _KEPT | {"CURRENT"}
_LOG = ".log"
# Longer than the clock of any file system stands still.
_TICK_NS = 100_000_000

# Files by name, with their inodes.
Files: TypeAlias = Mapping[str, int]


class Location:
    """The paths of one store below its root."""

    def __init__(self, root: Path, settings: Settings, *, configured: bool) -> None:
        """Without `configured` no store is there, whatever the folder holds."""
        root = root.absolute()
        self._configured = configured
        self.database = root / settings.database_path
        self.folder = self.database.parent
        self.making = self.folder / f"{self.database.name}.making"
        self.witness = self.folder / _WITNESS
        self.trust = root / settings.trust_path
        self.status = root / settings.status_path
        # What the folder held when it was read last, and by what it is known that this is so still.
        self._stamp: tuple[int, ...] = ()
        self._files: Files = {}

    def exists(self) -> bool:
        """Whether there is a database, or something in its place."""
        return os.path.lexists(self.database)

    def clear(self) -> None:
        """Remove what an earlier session left. Raises OSError."""
        if os.path.lexists(self.folder):
            shutil.rmtree(self.folder)

    def prepare(self) -> None:
        """The folder of a store that is to be made. Raises OSError."""
        self.folder.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)

    def publish(self) -> None:
        """The made database gets its name, on the disk when this returns. Raises OSError."""
        sync_folder(self.making)
        self.making.rename(self.database)
        sync_folder(self.folder)
        sync_folder(self.folder.parent)

    def files(self) -> Files:
        """The files of the database, and the witness. Raises StoreError where one is gone that there has to be."""
        if not self._configured:
            raise StoreError("no store is configured")
        try:
            place, witness = os.stat(self.database), os.stat(self.witness).st_ino
            stamp = place.st_dev, place.st_ino, place.st_mtime_ns, witness
            if stamp == self._stamp:
                return self._files
            with os.scandir(self.database) as entries:
                found = {entry.name: entry.inode() for entry in entries}
        except OSError as error:
            raise StoreError(f"expected a store, which is never made anew: {error}") from error
        found[_WITNESS] = witness
        if gone := _NEEDED - found.keys():
            raise StoreError(f"files of the store are gone: {', '.join(sorted(gone))}")
        # Every name that comes or goes sets the time of the folder, but two within one tick set the same.
        if time.time_ns() - place.st_mtime_ns > _TICK_NS:
            self._stamp, self._files = stamp, found
        return found


def check_files(before: Files, now: Files) -> None:
    """Raise StoreError if a file was replaced, or the newest log is gone and no newer one is there."""
    kept = [name for name in now if name in _KEPT or name.endswith(_LOG)]
    replaced = [name for name in kept if before.get(name, now[name]) != now[name]]
    if replaced:
        raise StoreError(f"files of the store were replaced while it was open: {', '.join(replaced)}; end this process")
    # RocksDB removes a log itself once a newer one has taken its place; names are numbers of one width.
    if _newest_log(now) < _newest_log(before):
        raise StoreError("the log was removed while it was open")


def _newest_log(files: Files) -> str:
    return max((name for name in files if name.endswith(_LOG)), default="")


def check_tables(tables: Callable[[], Set[Path]]) -> None:
    """Raise StoreError if a table is gone that RocksDB still has in its list."""
    gone = {path for path in tables() if not path.exists()}
    # A compaction replaces tables at any moment. Those that it replaced are not in the next list.
    if gone and (gone := gone & tables()):
        raise StoreError(f"tables are gone: {', '.join(sorted(path.name for path in gone))}")


def sync_folder(folder: Path) -> None:
    """Names in a folder are on the disk when this returns. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
