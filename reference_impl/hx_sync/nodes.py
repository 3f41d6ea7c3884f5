"""The devices of a session: a folder each below nodes/, with an index and a cache of blobs (source section 9)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import secrets
import shutil
import sqlite3
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from holdfast.reference_impl.hx_sync import disk
from holdfast.reference_impl.hx_sync.blobs import BlobCache
from holdfast.reference_impl.hx_sync.disk import FOLDER_MODE, MAKE, opened
from holdfast.reference_impl.hx_sync.index import NAME, Index
from holdfast.reference_impl.hx_sync.schema import STATEMENTS
from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.hx_sync.terms import Hex, Reason, RefusedError
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.sqlite import BESIDE, StoreError, UncertainError, enter_wal

FOLDER = "nodes"
# What a device is called: small letters and digits, at most sixteen.
Name: TypeAlias = str
_NAME = re.compile(r"[a-z][a-z0-9]{0,15}")
_POLL_S = 0.01


@dataclass(frozen=True, slots=True)
class Node:
    """One device."""

    name: Name
    index: Index
    cache: BlobCache


class Nodes:
    """The devices below a root. `node` and `names` never make anything."""

    def __init__(self, root: Path, settings: Settings, patience: Patience) -> None:
        self._folder = root / FOLDER
        self._settings = settings
        self._patience = patience
        self._held: dict[str, Node] = {}

    def names(self) -> Sequence[str]:
        """All devices. Raises StoreError."""
        try:
            return sorted(entry.name for entry in os.scandir(self._folder) if _NAME.fullmatch(entry.name))
        except OSError as error:
            raise StoreError(f"the folder {FOLDER}: {error.strerror}") from error

    def node(self, name: Name) -> Node:
        """A device that is there. Does not open its index. Raises RefusedError, StoreError."""
        if name not in self.names():
            raise RefusedError(Reason.NODE_UNKNOWN, f"no device is called {name}")
        if name not in self._held:
            self._held[name] = self._new(name, self._patience)
        return self._held[name]

    def at_once(self, name: Name) -> Node:
        """A device whose index does not wait for locks. The caller closes it."""
        return self._new(name, Patience(0.0))

    def _new(self, name: Name, patience: Patience) -> Node:
        folder = self._folder / name
        return Node(name, Index(folder, self._settings, patience), BlobCache(folder))

    def close(self) -> None:
        """Close every index. Never raises."""
        for node in self._held.values():
            node.index.close()

    # Making one

    def enroll(self, name: Name, node_id: Hex) -> bool:
        """Make a device, or the index that it has lost. Returns whether it made one.

        Raises RefusedError for one with another id, StoreError, and UncertainError once the index has its name.
        """
        folder = self._folder / name
        try:
            if not os.path.lexists(folder) and self._made(folder, node_id):
                return True
            disk.sync_path(self._folder)
            with self._alone(folder):
                if os.path.lexists(folder / NAME):
                    return self._is_there(name, node_id)
                self.make_index(folder, node_id)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"the index of {name} cannot be made: {error}") from error
        return True

    def _made(self, folder: Path, node_id: Hex) -> bool:
        """A device in a folder that gets its name last: half a device would hide what the others hold.

        False if another process was faster. Raises OSError, sqlite3.Error, StoreError, UncertainError.
        """
        partial = folder.with_name(f".{folder.name}.{secrets.token_hex(8)}.partial")
        partial.mkdir(FOLDER_MODE)
        try:
            self.make_index(partial, node_id)
            partial.rename(folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            return False
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        try:
            disk.sync_path(self._folder)
        except OSError as error:
            raise UncertainError(f"the device {folder.name} may not be durable: {error}") from error
        return True

    @contextlib.contextmanager
    def _alone(self, folder: Path) -> Iterator[None]:
        """Keep other processes from making an index here: a slower one would remove the log of an index in use.

        Raises OSError, StoreError.
        """
        with opened(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC) as handle:
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError as error:
                    if self._patience.left() <= 0:
                        raise StoreError(f"another process makes the index of {folder.name}") from error
                    time.sleep(_POLL_S)
            yield

    def _is_there(self, name: Name, node_id: Hex) -> bool:
        index = self.node(name).index
        with index.reading():
            pass
        if index.node_id != node_id:
            raise RefusedError(Reason.NODE_EXISTS, f"{name} is there with another node id")
        try:
            disk.sync_path(index.folder)
        except OSError as error:
            raise StoreError(f"the index of {name}: {error}") from error
        return False

    def make_index(self, folder: Path, node_id: Hex) -> None:
        """An empty index, finished before it gets its name.

        Raises OSError, sqlite3.Error, StoreError, UncertainError.
        """
        partial = folder / f"{secrets.token_hex(8)}.partial"
        try:
            with opened(partial, MAKE):
                # SQLite would make a file that others may read.
                pass
            with contextlib.closing(sqlite3.connect(partial)) as connection:
                self._fill(connection, node_id)
            for ending in BESIDE:
                # SQLite would take the log of a removed index for the log of this one.
                (folder / f"{NAME}{ending}").unlink(missing_ok=True)
            disk.sync_path(folder)
            os.link(partial, folder / NAME)
        finally:
            for left in (partial, *(partial.with_name(partial.name + ending) for ending in BESIDE)):
                with contextlib.suppress(OSError):
                    left.unlink(missing_ok=True)
        try:
            disk.sync_path(folder)
        except OSError as error:
            raise UncertainError(f"the index of {folder.name} may not be durable: {error}") from error

    def _fill(self, connection: sqlite3.Connection, node_id: Hex) -> None:
        enter_wal(connection)
        connection.execute("BEGIN")
        for statement in STATEMENTS:
            connection.execute(statement)
        connection.execute("INSERT INTO vault_config (vault_id) VALUES (?)", (self._settings.vault_id,))
        connection.execute("INSERT INTO node_config (node_id) VALUES (?)", (node_id,))
        connection.execute("COMMIT")
        # Closing would do it, and report no sync that failed.
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
