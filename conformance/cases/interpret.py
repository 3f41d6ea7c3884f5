"""What a case means: one generator that asks for actions, takes their records, and ends in a judgement.

The live run drives it with a real adapter, the gate drives it with the records of the evidence. There is no second
reading of a case, so what was judged once can be judged again by anyone (DESIGN: "the same pure function").
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from dataclasses import replace
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.action import Action, Verb
from holdfast.conformance.cases.inertness import judge_changed, judge_inert
from holdfast.conformance.cases.looking import judge_seen, operand_of, value_of
from holdfast.conformance.cases.match import mismatch, same
from holdfast.conformance.cases.race import judge_race
from holdfast.conformance.cases.reading import Interpretation, Reading, Records
from holdfast.conformance.cases.record import Finding, Judgement, Record, Side
from holdfast.conformance.cases.seen import TELLING
from holdfast.conformance.cases.values import CaseError, Scope, names_in, shift
from holdfast.conformance.inspection.files import parts_of
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Case, Contract, Method

CONFORMS = Judgement(Verdict.CONFORMS)
_TWIN_END = "the twin's step was never reached"


class _Reader(Reading):
    """Reads one side of one case. Each step is a sub-generator."""

    def read(self) -> Interpretation:
        """The side to its end; a judgement that names no record is of the last one."""
        reading, last = self._judged(), None
        given: Records | None = None
        try:
            while True:
                action = next(reading) if given is None else reading.send(given)
                given = yield action
                last = given[-1].n if given else last
        except StopIteration as stop:
            judgement: Judgement = stop.value
            return judgement.placed(self.side, last)

    def _judged(self) -> Interpretation:
        try:
            return (yield from self._steps())
        except Finding as finding:
            return self._demoted(finding.judgement)
        except CaseError as error:
            return Judgement(Verdict.KIT_FAULT, detail=f"the case has no meaning: {error}")

    def _demoted(self, judgement: Judgement) -> Judgement:
        """What goes wrong before the point of a case proves nothing about its clause."""
        setting_up = self.state.phase in {"open", "given"}
        if setting_up and not (judgement.verdict.is_incomplete or judgement.verdict is Verdict.KIT_FAULT):
            detail = f"the preparation did not go as expected: {judgement.detail}"
            return replace(judgement, verdict=Verdict.NOT_REACHED, detail=detail)
        return judgement

    def _steps(self) -> Interpretation:
        yield from self._open()
        for phase in ("given", "when", "then"):
            self.state.phase = phase
            for index, step in enumerate(getattr(self.case, phase)):
                yield from self._step(step, f"{phase}.{index}")
                if self.state.ended is not None:
                    yield from self._close()
                    return Judgement(Verdict.CONFORMS, detail=self.state.ended)
                if self._twin_ends_at(step):
                    yield from self._close()
                    return CONFORMS
        if self.side is Side.TWIN:
            return Judgement(Verdict.KIT_FAULT, detail=_TWIN_END)
        yield from self._close()
        return CONFORMS

    # Steps

    def _step(self, step: Mapping[str, Any], place: str) -> Generator[Action, Records, None]:
        step = self._changed(step)
        handlers = {
            "call": self._call,
            "observe": self._look,
            "provoke": self._look,
            "clock": self._clock,
            "kill": self._kill,
            "reopen": self._reopen,
            "restart": self._restart,
            "start": self._start,
            "unanswered": self._unanswered,
            "finish": self._finish,
            "reached": self._stop_point,
            "release": self._stop_point,
            "race": self._race,
            "tamper": self._tamper,
            **dict.fromkeys(TELLING, self._telling),
        }
        if "check" in step:
            self._check(step)
            return
        verb = next(name for name in handlers if name in step)
        yield from handlers[verb](step, f"{place} {verb} {step[verb]}")

    def _call(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        malformed = {"outcome": "refused", "reason": "REQUEST_MALFORMED"}
        expect = step.get("expect", malformed if step.get("malformed") else ex.ACCEPTED)
        worker, place, times = step.get("worker", 0), note, step.get("repeat", 1)
        for index in range(times):
            scope = self.state.scope.bind("i", index) if "repeat" in step else self.state.scope
            note = f"{place}, {index + 1} of {times}" if "repeat" in step else place
            method, request = self._request(step, step["call"], scope)
            guard = ex.expects_refusal(expect)
            proof = self._twin_ends_at(step) and not guard
            before = (yield from self._seen(worker, note, "before")) if guard or proof else None
            records = yield Action(Verb.EXCHANGE, note, ((worker, request),), worker=worker)
            try:
                yield from self._settle(records[0], method, expect, step, scope)
            except Finding as finding:
                if "repeat" not in step:
                    raise
                said = f"call {index + 1} of {times}: {finding.judgement.detail}"
                raise Finding(replace(finding.judgement, detail=said)) from finding
            answer = records[0].answer
            if answer is None or before is None:
                continue
            if answer["outcome"] == "refused":
                after = yield from self._seen(worker, note, "after")
                self._hold(
                    judge_inert(self.contract, method, str(answer["reason"]), before, after, at=self.state.observed)
                )
            elif proof and answer.get("effect") == "new":
                after = yield from self._seen(worker, note, "after")
                self._hold(judge_changed(self.contract, before, after, at=self.state.observed))
        self._bind(step, records[0])

    def _settle(
        self, record: Record, method: Method, expect: Mapping[str, Any], step: Mapping[str, Any], scope: Scope
    ) -> Generator[Action, Records, None]:
        """Judge one answer; an expected death of the worker is taken note of."""
        self._checked(record, method)
        judgement = ex.judge_answer(record, expect, scope, step=step, kind=self.case.kind)
        if judgement is not None:
            if self._twin_ends_at(step) and judgement.verdict in {Verdict.OVER_REFUSAL, Verdict.WRONG_REASON}:
                detail = f"the twin, which must be accepted, was not: {judgement.detail}; the refusal proves nothing"
                judgement = replace(judgement, verdict=Verdict.OVER_REFUSAL, silence=None, detail=detail)
            raise Finding(judgement)
        if record.answer is None:
            yield Action(Verb.EXPECT_DEATH, f"worker {record.worker} died as expected", worker=record.worker)

    def _look(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        name = step["observe"] if "observe" in step else step["provoke"]
        worker = step.get("worker", 0)
        method, request = self._request(step, name, self.state.scope)
        records = yield Action(Verb.EXCHANGE, note, ((worker, request),), worker=worker)
        expect = {**ex.OK, **step.get("expect", {})}
        yield from self._settle(records[0], method, expect, step, self.state.scope)
        self._bind(step, records[0])

    # Time and processes

    def _clock(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        now = shift(self.state.scope.now, step["clock"])
        self.state.scope = self.state.scope.at(now)
        request = {"op": "clock", "now": now}
        records = yield Action(Verb.EXCHANGE, note, tuple((worker, request) for worker in range(self.workers)))
        for record in records:
            self._must_be_ok(record, "clock")

    def _kill(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        records = yield Action(Verb.KILL, note, worker=step["kill"])
        self._must_be_done(records[0])

    def _reopen(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        worker = step["reopen"]
        config = {**self.state.config, **self.state.scope.resolve(step.get("config", {}))}
        request = self._open_request("existing", self.state.surface, config)
        records = yield Action(Verb.EXCHANGE, note, ((worker, request),), worker=worker, starting=True)
        self._declared(records[0])
        expect = {**ex.OK, **step.get("expect", {})}
        judgement = ex.judge_answer(records[0], expect, self.state.scope, step=step, kind=self.case.kind)
        if judgement is not None:
            # An implementation that does not come up again has lost what it held, unless it only fell silent.
            lost = not judgement.verdict.is_incomplete and self.state.phase != "given"
            verdict = Verdict.LOST_DURABILITY if lost else judgement.verdict
            raise Finding(replace(judgement, verdict=verdict, detail=f"reopen: {judgement.detail}", expected="ok"))

    def _restart(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        worker = step["restart"]
        records = yield Action(Verb.EXCHANGE, f"{note}: close", ((worker, {"op": "close"}),), worker=worker)
        self._must_be_ok(records[0], "close")
        stopped = yield Action(Verb.STOP, f"{note}: stop", worker=worker)
        self._must_be_done(stopped[0])
        yield from self._reopen({**step, "reopen": worker}, f"{note}: reopen")

    # Concurrency

    def _start(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        worker = step.get("worker", 0)
        _, request = self._request(step, step["start"], self.state.scope)
        yield Action(Verb.START, note, ((worker, request),), worker=worker)
        self.state.scope = self.state.scope.bind(f"__{step['as']}", [worker, step["start"]])

    def _unanswered(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        worker, _ = self.state.scope.resolve(f"$__{step['unanswered']}")
        records = yield Action(Verb.UNANSWERED, note, worker=worker)
        if records[0].event is None or records[0].event["kind"] != "done":
            self.state.hasty.add(step["unanswered"])

    def _finish(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        worker, name = self.state.scope.resolve(f"$__{step['finish']}")
        records = yield Action(Verb.FINISH, note, worker=worker)
        expect = step.get("expect", ex.ACCEPTED)
        yield from self._settle(records[0], self.contract.methods[name], expect, step, self.state.scope)
        if step["finish"] in self.state.hasty:
            detail = f"{step['finish']} was answered before the outcome was known that its answer rests on"
            wrong = ex.wrong_value(self.case.kind, step)
            answered = ex.shown(records[0])
            raise Finding(Judgement(wrong, None, detail, "an answer after that outcome", answered, n=records[0].n))
        self._bind(step, records[0])

    def _stop_point(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        verb = Verb.REACHED if "reached" in step else Verb.RELEASE
        records = yield Action(verb, note, operand={"point": step[verb.value]})
        self._must_be_done(records[0])

    def _race(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        requests = []
        for worker in range(self.case.workers):
            method, request = self._request(step, step["race"], self.state.scope.bind("i", worker))
            requests.append((worker, request))
        records = yield Action(Verb.RACE, note, tuple(requests))
        for record in records:
            self._checked(record, method)
            silent = ex.silence_of(record)
            if silent is not None:
                raise Finding(silent)
        outcome = judge_race(records, step, self.state.scope, kind=self.case.kind)
        if isinstance(outcome, Judgement):
            raise Finding(outcome)
        scope = self.state.scope.bind("winner", dict(outcome.winner.answer or {}))
        self.state.scope = scope.bind("losers", [dict(record.answer or {}) for record in outcome.losers])
        self.state.bound_at |= {"winner": outcome.winner.n, "losers": records[-1].n}
        self._bind(step, outcome.winner)

    # Files, the store itself, and plain assertions

    def _telling(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        """What the harness sees or does itself; its record tells a value."""
        verb = next(verb for name, verb in TELLING.items() if name in step)
        operand = operand_of(verb, step, self.contract, self.state.scope)
        if verb in {Verb.PLACE, Verb.LINK}:
            self._touches(operand["path"])
        if verb is Verb.COPY:
            self._touches(operand["to"])
        records = yield Action(verb, note, operand=operand)
        value = value_of(verb, records[0], operand)
        twin = self.case.twin
        # A twin that puts in another row is there to show that the store holds that one.
        changed = self.side is Side.TWIN and twin is not None and step.get("label") == twin.step
        if step.get("unstorable") == "ends" and value["inserted"] is False and not changed:
            self.state.ended = f"{note}: a constraint of the store refuses the row: {value['error']}"
            return
        self._hold(judge_seen(verb, step, value, self.state.scope, kind=self.case.kind))
        self._bind_in({"value": value}, step, records[0])

    def _tamper(self, step: Mapping[str, Any], note: str) -> Generator[Action, Records, None]:
        path = self.state.scope.resolve(step["tamper"])
        if not isinstance(path, str):
            raise CaseError(f"tamper {path!r} is no text")
        try:
            parts_of(path)
        except ValueError as error:
            raise CaseError(f"tamper: {error}") from error
        self._touches(path)
        how = ("flip", "truncate", "delete", "journal_mode")
        operand = {"tamper": path, **{key: step[key] for key in how if key in step}}
        records = yield Action(Verb.TAMPER, note, operand=operand)
        self._must_be_done(records[0])

    def _check(self, step: Mapping[str, Any]) -> None:
        scope = self.state.scope
        value = scope.resolve(step["check"])
        if "equals" in step:
            other = scope.resolve(step["equals"])
            problem = None if same(value, other) else f"{step['check']} is {value!r}, expected {other!r}"
        elif "differs" in step:
            other = scope.resolve(step["differs"])
            problem = f"{step['check']} must differ from {other!r}" if same(value, other) else None
        else:
            problem = mismatch(scope.resolve(step["matches"]), value)
        if problem is not None:
            # The last of the answers that are compared.
            at = max(
                (self.state.bound_at[name] for name in names_in(dict(step)) & {*self.state.bound_at}), default=None
            )
            wrong = ex.wrong_value(self.case.kind, step)
            raise Finding(Judgement(wrong, None, problem, "see detail", repr(value)[:600], n=at))


def interpret(
    contract: Contract, case: Case, side: Side, *, seed: str, not_claimed: Mapping[str, str] | None = None
) -> Interpretation:
    """The interpretation of one side of `case`: a generator of actions that returns the side's judgement.

    `seed` fixes every random suffix; `not_claimed` are the capabilities that hello said the adapter lacks.
    """
    return _Reader(contract, case, side, seed, not_claimed or {}).read()
