"""A case in a report of Allure, through the hooks of allure-pytest: in a session of a user's own, or after a run."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import allure
import allure_commons
import pytest
from allure_commons.types import LabelType

from holdfast.conformance.cases.record import Judgement
from holdfast.conformance.cli.verify.options import Options
from holdfast.conformance.cli.verify.transcript import again, twin_text
from holdfast.conformance.cli.verify.verification import own_pytest
from holdfast.conformance.run.findings import finding_of
from holdfast.conformance.run.plan import PlannedCase, plan_of
from holdfast.conformance.run.plugin import NotProven
from holdfast.conformance.run.results import transcript
from holdfast.reports.evidence import Exchange, Run
from holdfast.reports.plain import cut, plain
from holdfast.reports.results import Outcome, Result, Results
from holdfast.specs import Contract
from holdfast.specs.strictjson import canonical
from holdfast.specs.typed import written

# By this label a result file is known as holdfast's own (`holdfast.reports.earlier`).
FRAMEWORK = "holdfast"
# Steps of a case that are shown, and characters of each part; the evidence has all.
_STEPS, _SHOWN = 100, 2000


def show(result: Result, contract: Contract | None) -> None:
    """Say of the test that runs now which case it is, and what came of it. The run as a whole is of no contract."""
    dynamic = allure.dynamic
    dynamic.title(plain(result.title))
    case = None if contract is None else contract.case(result.case)
    twin = "" if case is None or case.twin is None else f"\n\nThe twin, which must be accepted: {twin_text(case)}"
    # It is read as Markdown.
    dynamic.description((result.about or result.text).replace("\n", "\n\n") + twin)
    dynamic.parent_suite(result.contract)
    dynamic.epic(result.contract)
    dynamic.label("contract", result.contract)
    for clause in result.clauses[:1]:
        dynamic.suite(clause)
    dynamic.feature(*result.clauses)
    dynamic.label("clause", *result.clauses)
    dynamic.label("verdict", result.verdict)
    dynamic.severity(result.severity)
    if result.cause:
        dynamic.story(result.cause)
    if result.excused is not None:
        dynamic.issue(result.excused, result.excused)
        dynamic.tag("excused")


def show_exchanges(
    planned: PlannedCase,
    contract: Contract,
    judged: Judgement,
    sides: Mapping[str, Sequence[Exchange]],
    options: Options,
) -> None:
    """Add a step for each exchange, the transcript, and the command that repeats the case."""
    for side, lines in sides.items():
        with allure.step(f"{side} side"):
            is_judged = judged.side is not None and judged.side.value == side
            why = finding_of(judged, lines, planned, contract).detail
            _show_steps(lines, judged.n if is_judged else None, why)
    command, gaps = again(planned, options)
    for name, text in (
        ("transcript", transcript(sides, judged, contract)),
        ("again", "\n".join([command, *(f"fill in  {gap}" for gap in gaps)])),
    ):
        allure.attach(text, name, allure.attachment_type.TEXT)


def _show_steps(lines: Sequence[Exchange], n: int | None, why: str) -> None:
    """A step for each exchange, the judged one failed; of many those that lead to it."""
    place = next((index for index, line in enumerate(lines) if line.n == n), len(lines) - 1)
    for line in lines[max(0, place + 1 - _STEPS) :][:_STEPS]:
        step = allure.step(plain(f"{line.action} (exchange {line.n}, worker {line.worker})"))
        event = None if line.event is None else written(line.event)
        parts: Mapping[str, Any] = {"request": line.request, "answer": line.answer, "event": event}
        step.params = {name: cut(canonical(part).decode(), _SHOWN) for name, part in parts.items() if part}
        with contextlib.suppress(pytest.fail.Exception), step:
            if line.n == n:
                pytest.fail(why)


@allure_commons.hookimpl(tryfirst=True)
def report_result(result: Any) -> None:
    """Before a file is written: a case stands under its contract and its clause, not under the file of a test."""
    named = {label.name: label.value for label in result.labels}
    if "verdict" in named:
        result.titlePath = [named[each] for each in (LabelType.PARENT_SUITE, LabelType.SUITE) if each in named]


allure_commons.plugin_manager.register(sys.modules[__name__])

# A run that is over


def write_allure(results: Results, run: Run, contracts: Sequence[Contract], options: Options) -> None:
    """Write the results into the folder of `--alluredir`. Raises OSError, KeyboardInterrupt."""
    assert options.alluredir is not None
    folder = os.path.abspath(options.alluredir)
    os.makedirs(folder, exist_ok=True)
    replay = _Replay(results, run, contracts, options)
    allure_commons.plugin_manager.register(replay)
    try:
        own_pytest(Path(folder), ["-p", "allure_pytest.plugin", "--alluredir", folder], replay)
    finally:
        allure_commons.plugin_manager.unregister(replay)
    if replay.failed is not None:
        raise replay.failed


class _Replay:
    """A plug-in of a session of pytest in which each result of a run is a test."""

    failed: BaseException | None = None
    _shown: Result

    def __init__(self, results: Results, run: Run, contracts: Sequence[Contract], options: Options) -> None:
        self._results = results
        self._options = options
        self._contracts = {contract.name: contract for contract in contracts}
        self._plan = {planned.id: planned for contract in contracts for planned in plan_of(contract)}
        self._judged = {line.case: Judgement.of(line) for line in run.verdicts}
        self._sides = run.sides()

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self, session: pytest.Session) -> bool:
        """The tests, in the place of those that pytest would look for."""
        for result in (*self._results.cases, self._results.whole()):
            item: _Test = _Test.from_parent(
                session, name=result.case, nodeid=f"{FRAMEWORK}/{result.contract}::{result.case}"
            )
            item.result, item.replay = result, self
            session.items.append(item)
        session.testscollected = len(session.items)
        return True

    def pytest_internalerror(self, excinfo: pytest.ExceptionInfo[BaseException]) -> bool:
        """Note what ended the session; pytest need not print it."""
        self.failed = excinfo.value
        return True

    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note it."""
        self.failed = self.failed or excinfo.value

    def show(self, result: Result) -> None:
        """Show one of them."""
        self._shown, contract = result, self._contracts.get(result.contract)
        try:
            show(result, contract)
            if contract is not None and result.case in self._judged:
                planned, sides = self._plan[result.case], self._sides.get(result.case, {})
                show_exchanges(planned, contract, self._judged[result.case], sides, self._options)
        except Exception as error:
            # Not an error of the case.
            self.failed = error
            pytest.exit(str(error))

    @allure_commons.hookimpl(tryfirst=True)
    def report_result(self, result: Any) -> None:
        """What only the evidence knows, before the file is written: when the case ran, and whether it may fail."""
        shown = self._shown
        begun = shown.started or self._results.started
        result.start, result.stop = (
            int(at.timestamp() * 1000) for at in (begun, begun + timedelta(seconds=shown.seconds))
        )
        if result.statusDetails is not None:
            result.statusDetails.trace, result.statusDetails.known = shown.text, shown.excused is not None
        for label in result.labels:
            if label.name == LabelType.FRAMEWORK:
                label.value = FRAMEWORK


class _Test(pytest.Item):
    """A result as a test."""

    result: Result
    replay: _Replay

    def runtest(self) -> None:
        """End as the case ended. An expected failure is a failure all the same; Allure marks it as known."""
        result = self.result
        self.replay.show(result)
        said = f"{result.verdict}: {result.message.removeprefix(f'{result.verdict}: ')}"
        if result.outcome is Outcome.FAILED or result.excused is not None:
            pytest.fail(said, pytrace=False)
        if result.outcome is Outcome.ERROR:
            raise NotProven(said)
        if result.outcome is Outcome.SKIPPED:
            pytest.skip(said)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:  # noqa: ARG002
        """What the report has is what came of the case."""
        return self.result.verdict
