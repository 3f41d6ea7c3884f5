"""Requests, restarts and steps of the clock in any order, held against a small model of all keys."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any, ClassVar

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.any_history import HistoryModel, Now, Step, any_history
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.model import Call, Observation, Outcome
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.idempotency_key.client import Service
from holdfast.conformance.verdict import FailureMode, Verdict

_HISTORIES, _STEPS, _TRIALS = 2, 45, 6
# Few of each, so that they meet.
_KEYS, _BODIES = 2, 2
_WEIGHTS = {"submit": 30, "pass time": 6, "restart": 1}
_SPANS_S = (1.0, 61.0, 700.0, 3600.0, -3600.0)

_Name = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a key of a principal: whose body was executed, the answer, and when its life ends.

    `may_be_gone`: the clock was behind the end since. A key may be kept for longer than is published.
    """

    tag: str
    status: int
    body: str
    ends_ms: int
    may_be_gone: bool = False


@dataclass(frozen=True, slots=True)
class Keys:
    """The time of the service, every record, and the effects of each tag."""

    now_ms: int = 0
    records: tuple[tuple[_Name, Record], ...] = ()
    effects: tuple[tuple[str, int], ...] = ()

    def at(self, name: _Name) -> Record | None:
        """The record of a key of a principal."""
        return dict(self.records).get(name)

    def later(self, milliseconds: int) -> Keys:
        """The same after a step of the clock."""
        now = self.now_ms + milliseconds
        gone = {name: each.may_be_gone or now >= each.ends_ms for name, each in self.records}
        aged = tuple((name, replace(each, may_be_gone=gone[name])) for name, each in self.records)
        return replace(self, now_ms=now, records=aged)

    def executed(self, name: _Name, record: Record) -> Keys:
        """The same after an effect."""
        counted = dict(self.effects)
        counted[record.tag] = counted.get(record.tag, 0) + 1
        records = {**dict(self.records), name: record}
        return replace(self, records=tuple(sorted(records.items())), effects=tuple(sorted(counted.items())))


class KeyHistory(HistoryModel[Keys]):
    """The model of a service with keys; `service` asks it."""

    hurried = False
    first = Keys()
    relations: ClassVar[Mapping[str, Sequence[str]]] = {"submit": ("first", "retry")}

    def __init__(self, service: Service) -> None:
        self._service = service
        service.must_live()
        service.must_promise(service.names_effects, "no answer names the effect of its handler")
        self._keys = [service.key() for _ in range(_KEYS)]
        self._tags = [service.tag() for _ in range(_BODIES if not service.choice else 1)]
        apart = "principal" in service.profile["scope"] and "b" in service.principals
        self._principals = ["a", *(["b"] if apart else []), *(["again"] if "again" in service.principals else [])]
        life = service.profile["lifetime_s"]
        self._life_ms = round(1000 * (life or 0)) if "clock" in service.wires else 0

    def history(self, now: Now[Keys], dice: Random, number: int) -> Iterator[Step]:  # noqa: ARG002
        """Mostly requests; now and then time passes or an instance is started again."""
        wires, durable = self._service.wires, self._service.profile["durable"]
        kinds = {"submit": True, "pass time": bool(self._life_ms), "restart": "process" in wires and durable}
        able = [kind for kind, there in kinds.items() if there]
        for kind in dice.choices(able, [_WEIGHTS[each] for each in able], k=_STEPS):
            if kind == "submit":
                yield Step(self._submit(dice))
            elif kind == "pass time":
                yield Step(self._passing(now.state, dice))
            else:
                which, how = dice.choice(self._service.instances), dice.choice(("kill", "end"))
                yield Step(Call("restart", "", {"number": which}, how, named=f"{how} and start instance {which}"))

    def _submit(self, dice: Random) -> Call:
        principal, key = dice.choice(self._principals), dice.choice(self._keys)
        tag, instance = dice.choice(self._tags), dice.choice(self._service.instances)
        self._service.may_have(tag, _STEPS)
        args = self._service.request(tag, key, principal=principal, instance=instance)
        named = f"key {self._keys.index(key)} of {principal}, body {self._tags.index(tag)}, instance {instance}"
        return Call("submit", "submit", args, ("b" if principal == "b" else "a", key), named=named)

    def _passing(self, state: Keys, dice: Random) -> Call:
        # To just before and just behind the end of each key, and by spans that mean nothing to it.
        ends = [each.ends_ms - state.now_ms + off for _, each in state.records for off in (-1000, 1000)]
        steps = [step for step in ends if abs(step) < 1_000_000_000] + [round(1000 * each) for each in _SPANS_S]
        step = dice.choice(steps)
        return Call("pass time", "", {"ms": step}, named=f"the clock {step / 1000:+g} s")

    def before(self, call: Call) -> None:
        """Do what is no request."""
        if call.row == "pass time":
            self._service.session.provoke("pass_time", call.args)
        elif call.row == "restart":
            self._service.begin_again(str(call.about), call.args["number"])

    def after(self, call: Call, answer: Answer | None) -> None:
        """No answer is neither a refusal nor a replay."""
        silent = {"HANG": FailureMode.HANG, "NO_ANSWER": FailureMode.EOF}.get((answer and answer.reason) or "")
        if silent is not None:
            raise NonConformance(Judgement(Verdict.NO_VERDICT, silent, f"no answer to a request with {call}"))

    def features(self, state: Keys, what: Call | Observation) -> Iterable[str]:
        """How a request is related to what is there."""
        if isinstance(what, Call) and what.row == "submit":
            record = state.at(what.about)
            yield "first" if record is None else "retry" if record.tag == what.args["tag"] else "another payload"

    def outcomes(self, state: Keys, call: Call, seen: Any) -> Iterable[Outcome[Keys]]:
        """What the profile and the clauses allow."""
        if call.row != "submit":
            yield Outcome("done", state.later(call.args.get("ms", 0)))
            return
        record, tag = state.at(call.about), call.args["tag"]
        if record is None or record.may_be_gone:
            shown = seen or {"status": 0, "body": ""}
            new = Record(tag, shown["status"], shown["body"], state.now_ms + self._life_ms)
            yield Outcome("accepted new", state.executed(call.about, new))
        if record is None:
            return
        if record.tag != tag:
            yield from self._refused(("mismatch",), state)
        elif self._service.profile["duplicate"] == "replay":
            yield Outcome("accepted prior", state, {"status": record.status, "body": record.body})
        else:
            yield Outcome("accepted prior", state)
            yield from self._refused(("duplicate",), state)
        if record.may_be_gone:
            yield from self._refused(("malformed", "mismatch", "duplicate"), state)

    def _refused(self, reasons: Sequence[str], state: Keys) -> Iterator[Outcome[Keys]]:
        # A profile may give several reasons one status.
        codes = self._service.profile["codes"]
        alike = [name for name, status in codes.items() if status in [codes[each] for each in reasons] and status]
        yield from (Outcome(f"refused {name.upper()}", state) for name in dict.fromkeys([*reasons, *alike]))

    def observations(self, state: Keys) -> Iterable[Observation]:
        """The effects at the sink."""
        yield Observation("effects", {"tags": dict(state.effects)}, otherwise="fail_open")


@clause("IK-ONCE-2", "IK-ONCE-3", "IK-SCOPE-1", "IK-FP-1", "IK-TTL-1", "IK-TTL-2")
def test_requests_in_any_order_fit_one_history_of_the_keys(bench: Bench) -> None:
    """Few keys, principals, payloads and instances, so that they meet, with restarts and steps of the clock between."""
    if "submit" in bench.not_claimed:
        raise NonConformance(Judgement(Verdict.UNSUPPORTED, detail=bench.not_claimed["submit"]))

    class Bound(KeyHistory):
        """The model of this test."""

        def __init__(self, session: SuiteSession) -> None:
            super().__init__(Service(bench, session))

    any_history(bench, Bound, _HISTORIES, _TRIALS)
