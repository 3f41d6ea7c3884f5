"""Progress of `holdfast verify`: which contract, how many of its cases, and about how long still.

A terminal has a bar. A plain stream has a line every few seconds, also while one case takes long.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Collection, Sequence
from types import TracebackType

from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from holdfast.conformance.cli.console import err
from holdfast.conformance.cli.verify.styles import styled
from holdfast.conformance.run.engine import CaseResult
from holdfast.conformance.run.plan import Form, PlannedCase
from holdfast.conformance.verdict import Verdict
from holdfast.reports.plain import plain

PLAIN_EVERY_S = 5.0
# How many failing cases are named while the run goes on; the others are counted. What failed open is always named.
MAX_NAMED = 12
# How long a case of each form takes, in scripted cases, as the runs of the references have it.
_WEIGHT = {Form.SCRIPT: 1, Form.SUITE: 10, Form.FAULT: 40}
# Before so much of the work is done, an estimate would only be wrong.
_KNOWN = 0.05
_MINUTE = 60


class RunProgress:
    """A bar on a terminal, plain lines elsewhere, nothing when `quiet`. `not_asked` are cases of unclaimed roles."""

    def __init__(self, plan: Sequence[PlannedCase], *, quiet: bool, not_asked: Collection[str] = ()) -> None:
        self._plan = {case.id: case for case in plan}
        self._quiet, self._not_asked = quiet, not_asked
        self._console = err()
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._began = time.monotonic()
        self._ended = threading.Event()
        self._totals: Counter[str] = Counter()
        self._done: Counter[str] = Counter()
        self._work = self._worked = self._bad = 0
        self._contract = ""

    def __enter__(self) -> RunProgress:
        if self._console.is_terminal and not self._quiet:
            columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[text]}"))
            self._bar = Progress(*columns, TimeElapsedColumn(), console=self._console, transient=True)
            self._bar.start()
            self._task = self._bar.add_task("starting", total=None, text="")
        elif not self._quiet:
            threading.Thread(target=self._print_lines, name="holdfast-progress", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._bar is not None:
            self._bar.stop()

    def begin(self, selected: Collection[str]) -> None:
        """It is known which cases run."""
        cases = [case for case in self._plan.values() if case.id in selected]
        self._totals = Counter(case.contract for case in cases)
        self._work = sum(_WEIGHT[case.form] for case in cases)
        self._contract = cases[0].contract if cases else ""
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, total=self._work, text=self.text())

    def result(self, result: CaseResult) -> None:
        """A case has run."""
        case = self._plan[result.case]
        self._contract = case.contract
        self._done[case.contract] += 1
        self._worked += _WEIGHT[case.form]
        verdict = result.judgement.verdict
        good = {Verdict.CONFORMS, Verdict.UNSUPPORTED} if result.case in self._not_asked else {Verdict.CONFORMS}
        bad = verdict not in good
        self._bad += bad
        if self._quiet:
            return
        if bad and (verdict.is_open or self._bad <= MAX_NAMED):
            self._console.print(f"{styled(verdict)} {escape(result.case)}")
        if self._bar is not None and self._task is not None:
            title = escape(plain(case.title)[:60])
            self._bar.update(self._task, completed=self._worked, description=title, text=self.text())

    def text(self) -> str:
        """Where the run is, in one line."""
        contract = self._contract
        parts = [f"{contract}: {self._done[contract]} of {self._totals[contract]} cases"]
        if len(self._totals) > 1:
            parts.append(f"{self._done.total()} of {self._totals.total()} in all contracts")
        if self._bad:
            parts.append(f"{self._bad} not conforming")
        if self._worked > self._work * _KNOWN:
            elapsed = time.monotonic() - self._began
            parts.append(f"about {duration(elapsed * (self._work - self._worked) / self._worked)} left")
        return ", ".join(parts)

    def _print_lines(self) -> None:
        while not self._ended.wait(PLAIN_EVERY_S):
            if self._totals:
                self._console.print(self.text(), markup=False)


def duration(seconds: float) -> str:
    """A rough time for a person: seconds in steps of five below a minute, else minutes."""
    if seconds < _MINUTE:
        return f"{max(5, round(seconds / 5) * 5)} s"
    return f"{round(seconds / _MINUTE)} min"
