"""The store as a folder (source sections 4 and 6): temporary file, fsync, publish without replacing, fsync of folders.

Folders are walked by their handles and no link is followed, so no key and no link leads out of the store.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from holdfast.reference_impl.hx_sync import disk
from holdfast.reference_impl.hx_sync.disk import FOLDER_MODE, MAKE, READ, opened
from holdfast.reference_impl.hx_sync.layout import Layout, begins, parts_of
from holdfast.reference_impl.hx_sync.storage import Listing, Put, TooLargeError
from holdfast.reference_impl.sqlite import StoreError, UncertainError

_ROOT = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# The errors that mean: a file, or a folder on its path, is absent.
_ABSENT = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG)


class FolderStore:
    """Implements `storage.Store` below `root`."""

    def __init__(self, root: Path, layout: Layout, *, max_object_bytes: int) -> None:
        self._root = root
        self._layout = layout
        self._most = max_object_bytes
        # Keys at which a sync has failed: syncing the same file again would prove nothing.
        self._doubtful: set[str] = set()
        # Folders whose names this process knows to be durable.
        self._durable: set[tuple[str, ...]] = set()

    # Reading

    def check(self) -> None:
        """See `Store`."""
        with self._asked(), self._folder(tuple(self._layout.objects.split("/"))):
            pass

    def list(self, prefix: str) -> Listing:
        """See `Store`."""
        keys: list[str] = []
        strays: list[str] = []
        trimmed = prefix.rstrip("/")
        if trimmed and parts_of(trimmed) is None:
            return Listing((), ())
        with self._asked():
            self.check()
            # From the folder above, because the last part may be that of a file.
            above = trimmed.split("/")[:-1]
            for key, plain in self._walk(tuple(above)):
                # Other paths, above all those under tmp/, are ignored.
                if begins(key, prefix) and (self._layout.is_object(key) or self._odd(key)):
                    (keys if plain and self._layout.is_finished(key) else strays).append(key)
        return Listing(sorted(keys), sorted(strays))

    def _odd(self, key: str) -> bool:
        # A name that is no part of any key, under objects/.
        return key.startswith(f"{self._layout.objects}/") and parts_of(key) is None

    def _walk(self, parts: tuple[str, ...]) -> Iterator[tuple[str, bool]]:
        """Every path below a folder, and whether it is a plain file. A file that vanishes meanwhile is absent."""
        try:
            with self._folder(parts) as folder, os.scandir(folder) as found:
                entries = list(found)
        except OSError as error:
            if error.errno in _ABSENT:
                return
            raise
        for entry in entries:
            path = (*parts, _shown(entry.name))
            if not parts and entry.name != self._layout.root:
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from self._walk((*parts, entry.name))
            else:
                yield "/".join(map(_shown, path)), entry.is_file(follow_symlinks=False)

    def get(self, key: str) -> bytes | None:
        """See `Store`."""
        if not self._layout.is_object(key):
            return None
        *above, name = key.split("/")
        with self._asked():
            self.check()
            try:
                with self._folder(above) as folder:
                    return self._read(name, folder)
            except OSError as error:
                if error.errno in _ABSENT:
                    return None
                raise

    def _read(self, name: str, folder: int) -> bytes | None:
        with opened(name, READ, folder=folder) as handle:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                return None
            with os.fdopen(handle, "rb", closefd=False) as file:
                data = file.read(self._most + 1)
        if len(data) > self._most:
            raise TooLargeError(f"expected at most {self._most} bytes, got more")
        return data

    # Writing

    def make(self) -> None:
        """See `Store`."""
        with self._asked():
            for path in (self._layout.objects, self._layout.partials):
                with self._making(tuple(path.split("/"))):
                    pass

    def put_atomic(self, key: str, data: bytes) -> Put:
        """See `Store`."""
        with self._asked():
            if (found := self._compare(key, data)) is not None:
                return found
            with self._written(key, data) as (partial, folder):
                try:
                    self._finish(key, partial, folder)
                except FileExistsError:
                    found = self._compare(key, data)
                    if found is None:
                        raise StoreError(f"{key}: an object was there and is not any more") from None
                    return found
        return Put.NEW

    def _compare(self, key: str, data: bytes) -> Put | None:
        """What lies at the key already; None if nothing does."""
        *above, name = key.split("/")
        try:
            with self._folder(above) as folder:
                try:
                    found = self._read(name, folder)
                except TooLargeError:
                    return Put.OTHER
        except OSError as error:
            if error.errno == errno.ELOOP:
                return Put.OTHER
            if error.errno in _ABSENT:
                return None
            raise
        if found != data:
            return Put.OTHER
        self.settle(key, data)
        return Put.SAME

    @contextlib.contextmanager
    def _written(self, key: str, data: bytes) -> Iterator[tuple[str, int]]:
        """A finished temporary file, its name and its folder; gone at the end if it still has that name."""
        # No store is made where there is none.
        self.check()
        # Two writers of one key do not meet.
        *above, name = self._layout.partial(key, secrets.token_hex(8)).split("/")
        with self._making(tuple(above)) as folder:
            try:
                with opened(name, MAKE, folder=folder) as handle:
                    # Only whole and durable bytes get a key.
                    disk.write(handle, data)
                    disk.sync(handle)
                yield name, folder
            finally:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)

    def _finish(self, key: str, partial: str, folder: int) -> None:
        """Publish a finished file. Raises FileExistsError, OSError, and UncertainError from the publishing on."""
        *above, name = key.split("/")
        with self._making(tuple(above)) as into:
            # In one step and never in place of another: a rename would replace the other file.
            os.link(partial, name, src_dir_fd=folder, dst_dir_fd=into, follow_symlinks=False)
            try:
                disk.sync(into)
            except OSError as error:
                # No reader may take it for durable.
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=into)
                raise UncertainError(f"{key}: published, and the folder could not be synced: {error}") from error

    def replace(self, key: str, data: bytes) -> None:
        """See `Store`."""
        *above, name = key.split("/")
        with self._asked(), self._written(key, data) as (partial, folder), self._making(tuple(above)) as into:
            os.rename(partial, name, src_dir_fd=folder, dst_dir_fd=into)
            try:
                disk.sync(into)
            except OSError as error:
                self._doubtful.add(key)
                raise UncertainError(f"{key}: replaced, and the folder could not be synced: {error}") from error

    def settle(self, key: str, data: bytes) -> None:
        """See `Store`. A file whose sync has failed once is written anew, with the same bytes."""
        if key in self._doubtful:
            self.replace(key, data)
            return
        parts = tuple(key.split("/"))
        with self._asked():
            try:
                self._sync_all(parts)
            except OSError as error:
                self._doubtful.add(key)
                raise StoreError(f"{key}: {error}") from error

    def _sync_all(self, parts: tuple[str, ...]) -> None:
        """Sync a file and every folder on the way to it. Raises OSError."""
        with self._folder(parts[:-1]) as folder, opened(parts[-1], READ, folder=folder) as handle:
            disk.sync(handle)
        for length in range(len(parts) - 1, -1, -1):
            with self._folder(parts[:length]) as folder:
                disk.sync(folder)

    # Folders

    @contextlib.contextmanager
    def _asked(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"the store at {self._root.name}/{self._layout.root}: {error.strerror}") from error

    @contextlib.contextmanager
    def _folder(self, parts: Sequence[str]) -> Iterator[int]:
        """A handle of a folder that is there. Raises OSError."""
        with contextlib.ExitStack() as stack:
            handle = stack.enter_context(opened(self._root, _ROOT))
            for part in parts:
                handle = stack.enter_context(opened(part, _FOLDER, folder=handle))
            yield handle

    @contextlib.contextmanager
    def _making(self, parts: tuple[str, ...]) -> Iterator[int]:
        """A handle of a folder, made if absent. Each folder on the way is synced in its parent."""
        with contextlib.ExitStack() as stack:
            handle = stack.enter_context(opened(self._root, _ROOT))
            here: tuple[str, ...] = ()
            for part in parts:
                here = (*here, part)
                try:
                    os.mkdir(part, FOLDER_MODE, dir_fd=handle)
                    self._durable.discard(here)
                except FileExistsError:
                    pass
                # The writer that made an existing folder may have stopped before it synced it.
                if here not in self._durable:
                    disk.sync(handle)
                    self._durable.add(here)
                handle = stack.enter_context(opened(part, _FOLDER, folder=handle))
            yield handle


def _shown(name: str) -> str:
    """A name as text; bytes that are not UTF-8 are escaped."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")
