"""Where the database lies, and who may read it (source section 7).

Nothing here opens the database while SQLite may have it open: closing any handle of a file gives up every lock that
this process has on it (POSIX), and another process would take the log away from under our connections.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from reference_impl.calyx_replay.settings import Settings

FILE_MODE = 0o600
FOLDER_MODE = 0o700
# The write-ahead log and its index hold the same data as the database.
BESIDE = ("-wal", "-shm")
# What git is told in the runtime root: the whole runtime is ignored, not one file of it.
IGNORE_FILE, IGNORE_RULE = ".gitignore", "/runtime/\n"

Identity: TypeAlias = tuple[int | None, ...]


class LocationError(Exception):
    """There is no database of ours at the place; the text says what was expected and what came."""


class Location:
    """The files of one mailbox below its runtime root."""

    def __init__(self, root: Path, settings: Settings) -> None:
        self.root = root
        self.database = self.place(root, settings.database_path)
        self.seen_cache = self.place(root, settings.seen_cache_path)
        self.envelopes = self.place(root, settings.envelopes_path)

    def place(self, root: Path, relative: str) -> Path:
        """A path of the contract below the runtime root, whatever the current folder is."""
        return root.absolute() / relative

    def files(self) -> Iterator[Path]:
        """The database and the files that SQLite keeps beside it."""
        yield self.database
        for ending in BESIDE:
            yield self.database.with_name(self.database.name + ending)

    def identity(self) -> Identity:
        """What changes when somebody puts another file in the place, or writes into it. Raises LocationError."""
        try:
            found = os.lstat(self.database)
        except OSError as error:
            raise LocationError(f"expected a database at {self.database.name}: {error.strerror}") from error
        self.check_file(found)
        inodes = [self._inode(path) for path in list(self.files())[1:]]
        return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_mode, *inodes)

    def _inode(self, path: Path) -> int | None:
        with contextlib.suppress(OSError):
            return os.lstat(path).st_ino
        return None

    def check_file(self, found: os.stat_result) -> None:
        """A regular file of some length that its owner may write. Raises LocationError."""
        if not stat.S_ISREG(found.st_mode):
            raise LocationError(f"expected a regular file at {self.database.name}, got something else")
        # root could write it all the same: what is marked read-only is not written to.
        if not found.st_mode & stat.S_IWUSR:
            raise LocationError(f"expected a file that its owner may write, got mode {found.st_mode & 0o7777:04o}")
        # SQLite takes an empty file for a new database.
        if found.st_size == 0:
            raise LocationError("expected a database, got an empty file")

    def tighten(self) -> None:
        """Nobody but the owner reads the database or what lies beside it, whatever the umask is. Raises OSError."""
        for path in self.files():
            with contextlib.suppress(FileNotFoundError):
                if os.lstat(path).st_mode & 0o077:
                    path.chmod(FILE_MODE)

    def make_folder(self) -> None:
        """The folder of the database and those above it up to the root, for the owner alone. Raises OSError."""
        below = [folder for folder in self.database.parents if self.root.absolute() in folder.parents]
        for folder in reversed(below):
            folder.mkdir(exist_ok=True)
            folder.chmod(FOLDER_MODE)

    def make_file(self) -> None:
        """An empty file of mode 0600 for SQLite to fill; -wal and -shm take their mode from it. Raises OSError."""
        handle = os.open(self.database, os.O_CREAT | os.O_EXCL | os.O_RDWR, FILE_MODE)
        try:
            os.fchmod(handle, FILE_MODE)
        finally:
            os.close(handle)

    def make_ignored(self) -> None:
        """Git ignores the runtime; a rule file that is there already is kept. Raises OSError."""
        file = self.root / IGNORE_FILE
        lines = file.read_text(encoding="utf-8") if file.exists() else ""
        if IGNORE_RULE.strip() not in lines.split():
            file.write_text(lines + ("" if not lines or lines.endswith("\n") else "\n") + IGNORE_RULE, encoding="utf-8")
