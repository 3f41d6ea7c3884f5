"""Writing `run.jsonl`: append only, each line chained to the bytes of the one before and on its way before the next."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from types import TracebackType
from typing import Any, Self

from reports.evidence.errors import EvidenceError
from reports.evidence.identity import Artefacts
from reports.evidence.model import Exchange, Footer, Header, Log, Restart, Vectors, VerdictLine, sealed
from reports.evidence.redact import Redactor
from specs import strictjson
from specs.errors import StrictJsonError

# A canonical header begins so: "adapter" is the first of its members.
_FIRST_BYTES = b'{"adapter":'
# What fsync says to a pipe or a device, which has nothing to flush.
_NO_FSYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EROFS})


class EvidenceWriter:
    """Writes the lines of one run to `path`, redacted by `redactor`.

    A run that stands at `path` is replaced, never continued. After a failed line nothing more is written: above all
    no footer, so that what is there cannot be taken for a complete run. Used as a context manager it closes the file;
    only `finish` completes the run.
    """

    def __init__(self, path: Path, *, redactor: Redactor | None = None) -> None:
        """Open `path`, making its folders. Raises EvidenceError when it cannot be written or holds something else."""
        self.path = path
        self._redactor = redactor or Redactor()
        self._lock = Lock()
        self._previous: str | None = None
        self._lines = 0
        self._counts: Counter[str] = Counter()
        self._failed: str | None = None
        self._finished = False
        self._fd: int | None = _open(path)

    def header(self, line: Header) -> None:
        """Write the header, as the first line. Raises EvidenceError."""
        self._append(line.as_json(), first=True)

    def write(self, line: Exchange | Log | Restart | VerdictLine | Vectors | Artefacts) -> None:
        """Append one line between header and footer. Raises EvidenceError."""
        self._append(line.as_json())
        if isinstance(line, VerdictLine):
            self._counts[line.verdict] += 1

    def finish(self, *, verdict: str, exit_status: int, finished: datetime | None = None) -> Footer:
        """Write the footer, force everything to the disk and close. Raises EvidenceError.

        `finished` is an aware instant; now, if it is not given.
        """
        footer = Footer(
            verdict=verdict,
            exit=exit_status,
            counts=dict(self._counts),
            finished=finished or datetime.now(UTC),
            lines=self._lines,
        )
        self._append(footer.as_json())
        self._finished = True
        try:
            self._sync()
        finally:
            self.close()
        return footer

    def close(self) -> None:
        """Close the file. Without a `finish` before, it has no footer and is no complete evidence."""
        descriptor, self._fd = self._fd, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, data: Mapping[str, Any], *, first: bool = False) -> None:
        with self._lock:
            self._check_open(data["type"], first=first)
            try:
                line = {**self._redactor.line(data), "prev": self._previous}
                raw = strictjson.canonical(sealed(line) if data["type"] == "footer" else line)
            except StrictJsonError as error:
                self._failed = f"a line of type {data['type']} is not JSON: {error}"
                raise self._broken() from error
            try:
                self._write_all(raw + b"\n")
            except OSError as error:
                self._failed = error.strerror or str(error)
                raise self._broken() from error
            self._previous = strictjson.digest_bytes(raw)
            self._lines += 1

    def _check_open(self, kind: str, *, first: bool) -> None:
        if self._failed is not None:
            raise self._broken()
        if self._fd is None or self._finished:
            raise EvidenceError(f"{self.path}: expected no more lines after the run was closed, got a {kind}")
        if first is not (self._lines == 0):
            raise EvidenceError(
                f"{self.path}: expected exactly one header, first; got a {kind} as line {self._lines + 1}"
            )

    def _write_all(self, data: bytes) -> None:
        assert self._fd is not None
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def _sync(self) -> None:
        assert self._fd is not None
        try:
            os.fsync(self._fd)
        except OSError as error:
            if error.errno not in _NO_FSYNC:
                # The footer is in the file, but nobody may rely on it: say so instead of claiming a complete run.
                self._failed = error.strerror or str(error)
                raise self._broken() from error

    def _broken(self) -> EvidenceError:
        return EvidenceError(
            f"{self.path}: expected to append evidence, got: {self._failed}. The file ends after line {self._lines} "
            "without a footer and is no complete run; make room or name another file with --evidence, and run again"
        )


def _open(path: Path) -> int:
    """A descriptor for appending to a new file at `path`; a device or pipe is opened as it is."""
    advice = "name another file with --evidence"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        special = remove_earlier(path)
        # O_EXCL: whoever reads the old run keeps reading the old run, and two writers never share a file.
        kind = 0 if special else os.O_CREAT | os.O_EXCL
        return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | kind, 0o644)
    except OSError as error:
        raise EvidenceError(
            f"{path}: expected a file that evidence can be written to, got: {error.strerror}; {advice}"
        ) from error


def remove_earlier(path: Path) -> bool:
    """Remove an earlier run at `path`; True if there is a device or pipe to write to as it is.

    Raises EvidenceError for a folder and for a file that is no evidence, which is left alone, and OSError.
    """
    try:
        found = path.stat()
    except FileNotFoundError:
        path.unlink(missing_ok=True)
        return False
    if stat.S_ISDIR(found.st_mode):
        raise EvidenceError(f"{path}: expected a file name for the evidence, got a folder; name a file in it")
    if not stat.S_ISREG(found.st_mode):
        return True
    with path.open("rb") as existing:
        first = existing.read(len(_FIRST_BYTES))
    # Of a run that the disk had no room for, there may be less than that.
    if not _FIRST_BYTES.startswith(first):
        raise EvidenceError(
            f"{path}: expected an earlier run or nothing, found a file that is no evidence; it is left alone: "
            "name another file with --evidence"
        )
    path.unlink()
    return False
