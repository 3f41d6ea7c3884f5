"""Writing evidence: append only, each line chained to the bytes of the one before and on its way before the next."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Self

from holdfast.reports.evidence.chain import sealed
from holdfast.reports.evidence.model import Footer, Header, Line, VerdictLine
from holdfast.reports.evidence.place import EvidenceError, EvidenceFile
from holdfast.reports.evidence.reader import read_evidence
from holdfast.reports.evidence.redact import Redactor
from holdfast.reports.evidence.run import Run
from holdfast.specs import strictjson
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.typed import written


class EvidenceWriter:
    """Writes the lines of one run, redacted by `redactor`, to a partial file that `finish` gives its name.

    A run that stands there is set aside, never continued. After a failed line nothing more is written: above all no
    footer, so that what is there cannot be taken for a complete run. Used as a context manager it closes the file;
    only `finish` completes the run.
    """

    def __init__(self, where: Path | EvidenceFile, *, redactor: Redactor | None = None) -> None:
        """Take the place of the evidence. Raises EvidenceError when it cannot hold any, or holds something else."""
        self._place = where if isinstance(where, EvidenceFile) else EvidenceFile(where)
        self.path = self._place.path
        self._redactor = redactor or Redactor()
        self._lock = Lock()
        self._previous: str | None = None
        self._lines = 0
        self._counts: Counter[str] = Counter()
        self._failed: str | None = None

    def header(self, line: Header) -> None:
        """Write the header, as the first line. Raises EvidenceError."""
        self._append(line)

    def write(self, line: Line) -> None:
        """Append one line between header and footer. Raises EvidenceError."""
        self._append(line)
        if isinstance(line, VerdictLine):
            self._counts[line.verdict] += 1

    def finish(self, *, verdict: str, exit_status: int, finished: datetime | None = None) -> Footer:
        """Write the footer, force everything to the disk and give the file its name. Raises EvidenceError.

        `finished` is an aware instant; now, if it is not given.
        """
        footer = Footer(
            verdict=verdict,
            exit=exit_status,
            counts=dict(self._counts),
            finished=finished or datetime.now(UTC),
            lines=self._lines,
        )
        self._append(footer)
        try:
            self._place.complete()
        except OSError as error:
            # The footer is in the partial file, which no reader takes for a complete run.
            self._failed = error.strerror or str(error)
            raise self._broken() from error
        return footer

    @property
    def is_complete(self) -> bool:
        """Whether the run has come to its end and has its name."""
        return self._place.is_complete

    def reread(self) -> Run:
        """The finished run as it stands on the disk, of the very bytes that were written. Raises EvidenceError."""
        self.confirm()
        run = read_evidence(self.path)
        if run.digest != self._place.digest:
            # Changed in this moment.
            self.confirm()
            raise EvidenceError(f"{self.path}: the evidence changed while it was read back; run again")
        return run

    def confirm(self) -> None:
        """That the finished run stands on the disk, whole and as it was written. Raises EvidenceError."""
        self._place.confirm()

    def close(self) -> None:
        """Close the file. Without a `finish` before, it has no name of its own and is no complete evidence."""
        self._place.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _append(self, line: Line) -> None:
        with self._lock:
            kind = line.__struct_config__.tag
            self._check_open(kind, first=isinstance(line, Header))
            try:
                data = {**written(self._redactor.line(line)), "prev": self._previous}
                raw = strictjson.canonical(sealed(data) if isinstance(line, Footer) else data)
            except StrictJsonError as error:
                self._failed = f"a line of type {kind} is not JSON: {error}"
                raise self._broken() from error
            try:
                self._place.write(raw + b"\n")
            except OSError as error:
                self._failed = error.strerror or str(error)
                raise self._broken() from error
            self._previous = strictjson.digest_bytes(raw)
            self._lines += 1

    def _check_open(self, kind: object, *, first: bool) -> None:
        if self._failed is not None:
            raise self._broken()
        if not self._place.is_open:
            raise EvidenceError(f"{self.path}: expected no more lines after the run was closed, got a {kind}")
        if first is not (self._lines == 0):
            raise EvidenceError(
                f"{self.path}: expected exactly one header, first; got a {kind} as line {self._lines + 1}"
            )

    def _broken(self) -> EvidenceError:
        return EvidenceError(
            f"{self.path}: expected to append evidence, got: {self._failed}. What was written, {self._lines} lines, "
            "stands under a partial name and is no complete run; make room or name another file with --evidence, and "
            "run again"
        )
