"""The recorder of a run: turns results into evidence lines, in the one process that may append."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from msgspec import to_builtins

from holdfast.conformance.adapter.worker import Greeting
from holdfast.conformance.cases.record import CaseResult, Side
from holdfast.conformance.durability.proving import not_tested, probed
from holdfast.conformance.durability.verdicts import ABILITY, ABLE
from holdfast.conformance.run.kit import environment, installed_kit, pin_of
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.run.settings import Caller, RunSettings
from holdfast.reports.evidence import (
    AdapterIdentity,
    Attempt,
    EvidenceWriter,
    Header,
    Implementation,
    Log,
    Restart,
    Selection,
    VerdictLine,
)
from holdfast.specs import Contract


def header_of(
    settings: RunSettings,
    contracts: Sequence[Contract],
    greeting: Greeting | None,
    *,
    caller: Caller,
    started: datetime,
    expression: str | None,
    faults: bool,
    plan: Sequence[str] | None = None,
) -> Header:
    """The header of a run; `greeting` is None if the adapter did not reach its hello. `started` is aware.

    `faults` says whether any are to strike; then the header says which can be tried here. The plan is that of
    the contracts unless one is given.
    """
    whole = (case.id for contract in contracts for case in plan_of(contract)) if plan is None else plan
    said = None if greeting is None else greeting.implementation
    return Header(
        kit=installed_kit(*(contract.name for contract in contracts)),
        contracts=tuple(map(pin_of, contracts)),
        adapter=AdapterIdentity(
            command=settings.adapter,
            commit=caller.commit,
            implementation=None if said is None else Implementation(said["name"], said["version"], said["language"]),
            claims=() if greeting is None else greeting.claims,
        ),
        environment={
            **environment(),
            **({} if settings.pace is None else {"pace": str(settings.pace)}),
            **(_abilities(contracts) if faults else {}),
        },
        config=dict(settings.config),
        seed=settings.seed,
        thorough=settings.thorough,
        seed_origin=caller.seed_origin,
        nonce=caller.nonce,
        deadlines={**asdict(settings.deadlines), "faults": settings.fault_seconds, "slow": settings.factor},
        started=started,
        plan=tuple(whole),
        selection=Selection(tuple(contract.name for contract in contracts), expression),
    )


def _abilities(contracts: Sequence[Contract]) -> Mapping[str, str]:
    """Which faults of the contracts can be tried here, and why the others cannot."""
    if not any(contract.faults for contract in contracts):
        return {}
    untested = not_tested()
    abilities = {ABILITY: f"NOT TESTED: {untested}" if untested else f"{ABLE}; the self-test passed"}
    return abilities | dict(line.split(": ", 1) for line in probed().lines())


class Recorder(EvidenceWriter):
    """Writes the results of one run as they come."""

    _restarts = 0

    def result(self, result: CaseResult, *, excused: str | None) -> None:
        """Append everything of one case. Raises EvidenceError."""
        if result.first is not None:
            first = result.first.judgement
            assert first.silence is not None
            self.write(Attempt(result.case, first.silence.value, first.detail, round(result.first.seconds, 4)))
        for side, records in ((Side.MAIN, result.main), (Side.TWIN, result.twin)):
            for record in records:
                self.write(record.line(result.case, side))
        both = (result,) if result.first is None else (result.first, result)
        for worker, text in (log for each in both for log in each.logs):
            self.write(Log(worker, text))
        for worker, cause in (restart for each in both for restart in each.restarts):
            self._restarts += 1
            self.write(Restart(worker, cause, self._restarts))
        self.write(verdict_line(result, excused=excused))


def verdict_line(result: CaseResult, *, excused: str | None = None) -> VerdictLine:
    """The verdict of a result as a line of evidence."""
    judged: dict[str, Any] = to_builtins(result.judgement)
    seconds = round(result.seconds, 4)
    return VerdictLine(case=result.case, clauses=result.clauses, excused=excused, seconds=seconds, **judged)
