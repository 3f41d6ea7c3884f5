"""Where a store lies, and whether its files are still those that were opened."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from holdfast.reference_impl.m5_log.settings import Settings
from holdfast.reference_impl.m5_log.terms import StoreError

_FOLDER_MODE = 0o700
_WITNESS = "witness"
# Files that RocksDB makes once and keeps.
_KEPT = ("LOCK", "IDENTITY")
_CURRENT = "CURRENT"

Identity: TypeAlias = tuple[tuple[int, int], ...]


class Location:
    """The paths of one store below its root."""

    def __init__(self, root: Path, settings: Settings) -> None:
        root = root.absolute()
        self.database = root / settings.database_path
        self.folder = self.database.parent
        self.making = self.folder / f"{self.database.name}.making"
        self.witness = self.folder / _WITNESS
        self.trust = root / settings.trust_path
        self.status = root / settings.status_path
        # As texts, because they are asked for at every operation.
        self._current = str(self.database / _CURRENT)
        self._kept = [str(path) for path in (self.database, *map(self.database.joinpath, _KEPT), self.witness)]

    def exists(self) -> bool:
        """Whether there is a database, or something in its place."""
        return os.path.lexists(self.database)

    def clear(self) -> None:
        """Remove what an earlier session left. Raises OSError."""
        if self.folder.is_symlink() or self.folder.is_file():
            self.folder.unlink()
        elif self.folder.exists():
            shutil.rmtree(self.folder)

    def prepare(self) -> None:
        """The folder of a store that is to be made, without what an interrupted making left. Raises OSError."""
        self.folder.mkdir(_FOLDER_MODE, parents=True, exist_ok=True)
        if self.making.exists():
            shutil.rmtree(self.making)

    def publish(self) -> None:
        """The made database gets its name, on the disk when this returns. Raises OSError."""
        sync_folder(self.making)
        self.making.rename(self.database)
        sync_folder(self.folder)
        sync_folder(self.folder.parent)

    def identity(self) -> Identity:
        """What stays the same as long as these are the files of one store. Raises StoreError."""
        try:
            os.stat(self._current)
            return tuple((found.st_dev, found.st_ino) for found in map(os.stat, self._kept))
        except OSError as error:
            raise StoreError(f"a file of the store is gone: {error}") from error

    def logs(self) -> Mapping[str, int]:
        """The files of the write-ahead log by name, with their inodes. Raises StoreError."""
        try:
            with os.scandir(self.database) as entries:
                return {entry.name: entry.inode() for entry in entries if entry.name.endswith(".log")}
        except OSError as error:
            raise StoreError(f"the log cannot be found: {error}") from error


def check_logs(before: Mapping[str, int], now: Mapping[str, int]) -> None:
    """Raise StoreError if a log was replaced, or the newest one is gone and no newer one is there."""
    replaced = [name for name, inode in now.items() if before.get(name, inode) != inode]
    if replaced:
        raise StoreError(f"a log was replaced while it was open: {', '.join(replaced)}")
    # RocksDB removes a log itself once a newer one has taken its place; names are numbers of one width.
    if before and (not now or max(now) < max(before)):
        raise StoreError("the log was removed while it was open")


def check_tables(tables: Callable[[], Sequence[str]]) -> None:
    """Raise StoreError if a table is gone that RocksDB still has in its list."""
    gone = {path for path in tables() if not os.path.exists(path)}
    # A compaction replaces tables at any moment. Those that it replaced are not in the next list.
    if gone and gone.intersection(tables()):
        raise StoreError(f"tables are gone: {', '.join(sorted(map(os.path.basename, gone)))}")


def sync_folder(folder: Path) -> None:
    """Names in a folder are on the disk when this returns. Raises OSError."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
