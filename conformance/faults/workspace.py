"""The folders of a sweep: work directories for each run, and the states of the disk that broke a promise."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from holdfast.conformance.faults.copying import copy
from holdfast.conformance.faults.oracle import Kind, Verdict
from holdfast.conformance.faults.report import Finding, Tally


class Workspace:
    """Numbered folders under one of its own, which is gone after `close`. Every run begins on a copy of `base`."""

    def __init__(self, base: Path | None, parent: Path | None, keep: Path | None) -> None:
        """`keep` is where broken states go, if anywhere."""
        self.base, self.keep = base, keep
        # Short where the parent folder says whose it is: the path of a socket has little more than a hundred bytes.
        self.home = Path(tempfile.mkdtemp(prefix="holdfast-crash-" if parent is None else "", dir=parent))
        # A store may run under an account of its own, as PostgreSQL does for root: it has to come through.
        self.home.chmod(0o711)
        self._count = 0

    def close(self) -> None:
        """Remove all folders. Idempotent."""
        shutil.rmtree(self.home, ignore_errors=True)

    def place(self) -> tuple[Path, Path]:
        """An empty work directory, and where its recording goes."""
        self._count += 1
        folder = self.home / f"work-{self._count}"
        folder.mkdir()
        return folder, self.home / f"recording-{self._count}"

    def begun(self) -> tuple[Path, Path]:
        """A work directory for a run, and where its recording goes."""
        folder, out = self.place()
        if self.base is not None:
            copy(self.base, folder)
        return folder, out

    @contextmanager
    def begun_folder(self) -> Iterator[Path]:
        """A work directory for a run, for as long as it is needed."""
        folder, _ = self.begun()
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def folder(self, like: Path | None = None) -> Iterator[Path]:
        """An empty work directory, or a copy of this one, for as long as it is needed."""
        folder, _ = self.place()
        try:
            if like is not None:
                copy(like, folder)
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def kept(
        self, tally: Tally, verdict: Verdict, fill: Callable[[Path], object], recording: Path | None = None
    ) -> tuple[Path | None, str]:
        """The tar file of what `fill` puts into a folder, if it is the first of its class in this layer.

        And what is to be said beside the finding where it could not be kept: that takes nothing from the finding.
        """
        if self.keep is None or any(one.verdict.kind is verdict.kind for one in tally.findings):
            return None, ""
        place = self.keep / f"{tally.layer.name.lower().replace('_', '-')}-{verdict.kind.value}"
        try:
            self.keep.mkdir(parents=True, exist_ok=True)
            if recording is not None:
                shutil.copyfile(recording, place.with_suffix(".jsonl"))
            with self.folder() as folder:
                fill(folder)
                return Path(shutil.make_archive(str(place), "tar", folder)), ""
        except OSError as error:
            return None, f" The state could not be kept: {error}."

    def note(self, tally: Tally, number: int, verdict: Verdict, story: str, fill: Callable[[Path], object]) -> None:
        """Take down what one way of depriving it came to; `fill` makes the state that it began on."""
        if verdict.kind is not Kind.CLEAN:
            kept, lost = self.kept(tally, verdict, fill)
            tally.findings.append(Finding(number, verdict, story + lost, kept, "variant"))
