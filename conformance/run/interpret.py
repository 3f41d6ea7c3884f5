"""What a case means: one generator that asks for actions, takes their records, and ends in a judgement.

The live run drives the generator with a real adapter, the gate drives it with the records of the evidence. There is no
second interpretation of a case, so the gate can judge each case again. The kind of a step says what the step means, in
`steps/`; nothing here knows a kind by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from holdfast.conformance.cases.reading import CaseInterpreter, Interpretation
from holdfast.conformance.cases.record import Judgement, NonConformance, Side, gravest_of
from holdfast.conformance.cases.session import Records
from holdfast.conformance.cases.values import CaseError, UnusableError, names_in
from holdfast.conformance.steps import kind_of, kinds
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Case, Contract, Method
from holdfast.specs.model import Group, Observer

CONFORMS = Judgement(Verdict.CONFORMS)
_TWIN_END = "the twin's step was never reached"


def interpret(
    contract: Contract, case: Case, side: Side, *, seed: str, not_claimed: Mapping[str, str] | None = None
) -> Interpretation:
    """The interpretation of one side of `case`: a generator of actions that returns the side's judgement.

    `seed` fixes every random suffix; `not_claimed` are the capabilities that the adapter lacks, by its hello. A
    judgement that names no record is on the last record.
    """
    try:
        workers = worker_count(contract, case)
        reading = CaseInterpreter(contract, case, side, workers=workers, seed=seed, not_claimed=not_claimed or {})
    except CaseError as error:
        return _meaningless(error).placed(side, None)
    given: Records | None = None
    steps = _judged(reading)
    try:
        while True:
            action = next(steps) if given is None else steps.send(given)
            given = yield action
            reading.state.last = given[-1].n if given else reading.state.last
    except StopIteration as stop:
        return gravest_of((*reading.state.mild, stop.value)).placed(side, reading.state.last)


def _judged(reading: CaseInterpreter) -> Interpretation:
    try:
        return (yield from _steps(reading))
    except NonConformance as finding:
        return _demoted(finding.judgement, reading.state.phase)
    except UnusableError as error:
        return _unusable(str(error))
    except CaseError as error:
        return _unusable(str(error)) if reading.state.mild else _meaningless(error)


def _unusable(why: str) -> Judgement:
    return Judgement(Verdict.NOT_REACHED, detail=f"the case cannot go on with what the adapter answered: {why}")


def _meaningless(error: CaseError) -> Judgement:
    return Judgement(Verdict.KIT_FAULT, detail=f"the case has no meaning: {error}")


def _demoted(judgement: Judgement, phase: str) -> Judgement:
    """A failure before the point of a case proves nothing about its clause."""
    setting_up = phase in {"open", "given"}
    if setting_up and not (judgement.verdict.is_incomplete or judgement.verdict is Verdict.KIT_FAULT):
        detail = f"the preparation did not go as expected: {judgement.detail}"
        return replace(judgement, verdict=Verdict.NOT_REACHED, detail=detail)
    return judgement


def _steps(reading: CaseInterpreter) -> Interpretation:
    for worker in range(reading.workers):
        yield from reading.session.open(worker, "existing" if worker else "fresh", f"open worker {worker}")
    for phase in ("given", "when", "then"):
        reading.state.phase = phase
        for index, written in enumerate(getattr(reading.case, phase)):
            step = reading.changed(written)
            if doubtful := names_in(dict(step)) & reading.state.doubtful:
                return _unusable(f"{', '.join(sorted(doubtful))} came with a wrong answer")
            kind = kind_of(step)
            yield from kind.read(reading, step, f"{phase}.{index} {kind.name} {step[kind.name]}")
            if reading.state.ended is not None or reading.is_twin_end(written):
                return (yield from _closed(reading))
    if reading.side is Side.TWIN:
        return Judgement(Verdict.KIT_FAULT, detail=_TWIN_END)
    return (yield from _closed(reading))


def _closed(reading: CaseInterpreter) -> Interpretation:
    for worker in reversed(range(reading.workers)):
        yield from reading.session.close(worker, f"close worker {worker}")
    return CONFORMS if reading.state.ended is None else replace(CONFORMS, detail=reading.state.ended)


def _called(contract: Contract, case: Case) -> Iterator[Method]:
    """The operations that the steps of a case call."""
    kinds_of_calls = [name for name, kind in kinds().items() if kind.facts.get("method") == Group.OPERATION.value]
    for step in (*case.given, *case.when, *case.then):
        yield from (contract.methods[step[name]] for name in kinds_of_calls if name in step)


def worker_count(contract: Contract, case: Case) -> int:
    """The number of workers of a case: its own, and one to observe through if it observes around any step."""
    observes = case.twin is not None or any(
        kind_of(step).observes_around(step) for step in (*case.given, *case.when, *case.then)
    )
    # Where the harness inspects the store itself, there may be no observation to ask for.
    found = [contract.inertness_of(method) for method in _called(contract, case)]
    asks = any(inertness is not None and bool(inertness.observe or inertness.audit) for inertness in found)
    return case.workers + 1 if observes and asks and case.observer is Observer.APART else case.workers
