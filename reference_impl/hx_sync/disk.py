"""The calls by which bytes become durable, and a finished file gets its name."""

from __future__ import annotations

import os
from pathlib import Path

# What holds plain bytes, and the objects beside it, is for its owner alone.
FOLDER_MODE, FILE_MODE = 0o700, 0o600
# No link is followed, and nothing waits for a writer at its other end.
READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class Disk:
    """The calls by which bytes become durable. Each raises OSError."""

    def sync(self, handle: int) -> None:
        """Everything of this file or folder is on the disk."""
        os.fsync(handle)

    def sync_path(self, path: Path) -> None:
        """The same by a path."""
        handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.sync(handle)
        finally:
            os.close(handle)

    def write(self, handle: int, data: bytes) -> None:
        """All of it: one call may write less."""
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(handle, rest) :]

    def publish(self, partial: str, folder: int, name: str, into: int) -> None:
        """Give a finished file its name, in one step and never in place of another. Raises FileExistsError.

        A rename would replace the other file. The temporary name is removed afterwards; if it stays, it does no harm.
        """
        os.link(partial, name, src_dir_fd=folder, dst_dir_fd=into, follow_symlinks=False)

    def replace(self, partial: str, folder: int, name: str, into: int) -> None:
        """The same in place of another."""
        os.rename(partial, name, src_dir_fd=folder, dst_dir_fd=into)
