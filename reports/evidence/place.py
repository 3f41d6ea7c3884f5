"""Where the evidence of one run comes to stand: written under a partial name in a locked folder, renamed when whole.

A run that does not come to its end leaves nothing under its name: what was there before is set aside at the
beginning, and `NAME.partial` is no evidence.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import os
from pathlib import Path
from typing import Self

import zstandard

from holdfast.reports.earlier import (
    COMPRESSED,
    PARTIAL,
    PREVIOUS,
    EarlierError,
    is_evidence,
    is_remnant,
    other_form,
    set_aside,
    withdraw,
)

_ADVICE = "name another file with --evidence"
# What fsync says to a folder of a file system that has no such thing.
_NO_FSYNC = frozenset({errno.EINVAL, errno.ENOTSUP})
# What leads to a stream of this process, be it a file or not.
_STREAMS = ("/proc/", "/dev/fd/", "/dev/stdin", "/dev/stdout", "/dev/stderr")
# Bodies that were already written are found 8 MiB back, which `zstd -d` reads without an option.
_COMPRESSION = zstandard.ZstdCompressionParameters.from_level(1, window_log=23, enable_ldm=True, write_checksum=True)


class EvidenceError(Exception):
    """Evidence cannot be written or read at all: the text says what was expected, what came and what to do."""


class EvidenceFile:
    """The file of one run. A context manager: leaving it without `complete` leaves at most a partial file."""

    def __init__(self, path: Path) -> None:
        """Lock the folder of `path`, made where it is missing, set an older run aside, and open the partial file.

        A link at `path` is followed. Raises EvidenceError when the place cannot hold evidence, when something stands
        there that is not holdfast's own (it is left alone), and when another run writes in the folder. What is
        written to a name that ends in `.zst` is compressed.
        """
        self.path = path
        compressed = path.suffix == COMPRESSED
        self._frame = zstandard.ZstdCompressor(compression_params=_COMPRESSION).compressobj() if compressed else None
        self._whole = hashlib.sha256()
        self._size = 0
        self._completed = False
        self._fd: int | None = None
        self._folder: int | None = None
        try:
            self._real = Path(_real(path))
            self._other = Path(other_form(self._real))
            self._partial = Path(f"{self._real}{PARTIAL}")
            self._real.parent.mkdir(parents=True, exist_ok=True)
            self._folder = _locked(self._real.parent)
            set_aside(self._real)
            self._fd = self._opened()
            self._identity = _identity(os.fstat(self._fd))
        except EarlierError as error:
            self.close()
            raise EvidenceError(str(error)) from error
        except OSError as error:
            self.close()
            raise EvidenceError(
                f"{path}: expected a file that evidence can be written to, got: {error.strerror}; {_ADVICE}"
            ) from error
        except EvidenceError:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_complete(self) -> bool:
        """Whether the file has its name."""
        return self._completed

    @property
    def is_open(self) -> bool:
        """Whether more can be written."""
        return self._fd is not None and not self._completed

    def write(self, data: bytes) -> None:
        """Append, so that a reader finds it even if nothing follows. Raises OSError."""
        if self._frame is not None:
            data = self._frame.compress(data) + self._frame.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        self._append(data)

    def _append(self, data: bytes) -> None:
        assert self._fd is not None
        rest = memoryview(data)
        while rest:
            written = os.write(self._fd, rest)
            self._whole.update(rest[:written])
            self._size += written
            rest = rest[written:]

    def complete(self) -> None:
        """Force everything to the disk and give the file its name. Raises OSError, EvidenceError."""
        assert self._fd is not None
        assert self._folder is not None
        if self._frame is not None:
            self._append(self._frame.flush())
        os.fsync(self._fd)
        # Another file in the place of this one is not renamed to evidence.
        if _identity(os.lstat(self._partial)) != self._identity:
            raise self._lost("another file stands in the place of the one that was being written")
        try:
            withdraw(self._real)
        except EarlierError as error:
            raise EvidenceError(str(error)) from error
        _must_be_free(self.path, self._real)
        os.rename(self._partial, self._real)
        try:
            os.fsync(self._folder)
        except OSError as error:
            if error.errno not in _NO_FSYNC:
                os.rename(self._real, self._partial)
                raise
        self._completed = True

    def confirm(self) -> None:
        """Read the file back under its name: the very file that was written, whole and unchanged.

        Raises EvidenceError, and takes other evidence away that stands there.
        """
        try:
            self._compare()
        except EvidenceError:
            for place in (self._real, self._other):
                with contextlib.suppress(EarlierError):
                    withdraw(place)
            raise

    def _compare(self) -> None:
        whole = hashlib.sha256()
        if is_evidence(self._other):
            raise self._lost(f"other evidence stands beside it, {self._other.name}")
        try:
            # A pipe would wait for its writer.
            with open(os.open(self.path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                found = os.fstat(file.fileno())
                if _identity(found) != self._identity:
                    raise self._lost("another file stands there")
                if found.st_size != self._size:
                    raise self._lost(f"it has {found.st_size} bytes instead of {self._size}")
                while piece := file.read(1 << 20):
                    whole.update(piece)
        except OSError as error:
            raise self._lost(error.strerror or str(error)) from error
        if whole.digest() != self._whole.digest():
            raise self._lost("its bytes are not those that were written")

    @property
    def digest(self) -> str:
        """Of the bytes written so far."""
        return "sha256:" + self._whole.hexdigest()

    def close(self) -> None:
        """Let go of the folder. A partial file stays as far as it was written; an empty one goes."""
        descriptor, self._fd = self._fd, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                if not self._completed and not self._size and _identity(os.lstat(self._partial)) == self._identity:
                    self._partial.unlink()
            with contextlib.suppress(OSError):
                os.close(descriptor)
        # The lock goes with the last descriptor of the folder.
        folder, self._folder = self._folder, None
        if folder is not None:
            with contextlib.suppress(OSError):
                os.close(folder)

    def _opened(self) -> int:
        _must_be_free(self.path, self._real)
        if os.path.lexists(self._partial):
            # The lock is ours, so the process that wrote it is dead.
            if self._partial.is_symlink() or not (is_evidence(self._partial) or is_remnant(self._partial)):
                raise EvidenceError(
                    f"{self._partial}: expected the rest of a run that was cut off, or nothing, found something that "
                    f"is no evidence; it is left alone: {_ADVICE}"
                )
            self._partial.unlink()
        return os.open(self._partial, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)

    def _lost(self, came: str) -> EvidenceError:
        return EvidenceError(
            f"{self.path}: expected the evidence that this run wrote, got: {came}. Something else changed the file; "
            "nothing is proven: find out what, or name a file that only this run may write, and run again"
        )


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino


def _real(path: Path) -> str:
    """The path that evidence is written to. Raises EvidenceError for one that cannot hold any, OSError."""
    real = os.path.realpath(path)
    given = os.path.abspath(path)
    if any(name.endswith((PREVIOUS, PARTIAL)) for name in (given, real)):
        raise EvidenceError(
            f"{path}: expected a name of its own for the evidence, got one that ends in {PREVIOUS} or {PARTIAL}, "
            f"which stand for what is no evidence; {_ADVICE}"
        )
    if given.startswith(_STREAMS):
        raise EvidenceError(f"{path}: expected a file that keeps evidence, got a stream; {_ADVICE}")
    if os.path.islink(real):
        raise EvidenceError(f"{path}: expected a file for the evidence, got links that lead to each other; {_ADVICE}")
    return real


def _must_be_free(path: Path, real: Path) -> None:
    """Raises EvidenceError if something stands there that no run may replace."""
    if not os.path.lexists(real) or is_remnant(real):
        return
    if real.is_dir():
        raise EvidenceError(f"{path}: expected a file name for the evidence, got a folder; name a file in it")
    if not real.is_file():
        raise EvidenceError(f"{path}: expected a file that keeps evidence, got a device or a pipe; {_ADVICE}")
    if is_evidence(real):
        # Set aside where it stands, because it cannot be renamed: there is no room for a new one either.
        raise EvidenceError(f"{path}: an older run stands there and cannot be renamed; {_ADVICE}")
    raise EvidenceError(
        f"{path}: expected an earlier run or nothing, found a file that is no evidence; it is left alone: {_ADVICE}"
    )


# What a file system says that has no locks.
_NO_LOCKS = frozenset({errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF, errno.ENOSYS})


def _locked(folder: Path) -> int:
    """A descriptor of the folder that holds its lock. Raises EvidenceError if another run does, OSError."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = _holder(os.fstat(descriptor).st_ino)
        os.close(descriptor)
        raise EvidenceError(
            f"{folder}: expected a folder that no other run writes to, got one that {holder} writes to; "
            "wait for its end, or name a file in another folder with --evidence"
        ) from error
    except OSError as error:
        os.close(descriptor)
        if error.errno not in _NO_LOCKS:
            raise
        raise EvidenceError(
            f"{folder}: expected a folder that can be locked, so that two runs do not mix, got: {error.strerror}; "
            "name a file on a local disk with --evidence"
        ) from error
    return descriptor


def _holder(inode: int) -> str:
    """Which process holds the lock of a folder, as far as the system shows it."""
    # "1: FLOCK  ADVISORY  WRITE 4711 fe:00:131074 0 EOF": the number, and the device and inode.
    with contextlib.suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/locks").read_text(encoding="ascii").splitlines():
            words = line.split()
            if words[1] == "FLOCK" and int(words[5].rpartition(":")[2]) == inode and int(words[4]) > 0:
                return f"process {words[4]}"
    return "another process"
