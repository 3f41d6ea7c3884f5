"""Plays a case in memory: an honest shelf of the toy contract answers, unless a test has another answer for a step."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from holdfast.conformance.cases.record import Judgement, Record, Side
from holdfast.conformance.cases.session import Action
from holdfast.conformance.run.interpret import interpret
from holdfast.conformance.steps.calls import FINISH, START
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Case, Contract
from holdfast.specs.loader import read_contract

TOY = read_contract(Path(__file__).resolve().parent.parent / "toycontract" / "toy")
SEED = "played"

Answer = Mapping[str, Any]
# An answer, or the failure mode in its place; a function makes one from the honest answer.
Reply = Answer | str | Callable[[Answer], Answer | str]


def toy_case(words: str, **changes: Any) -> Case:
    """The case of the toy contract whose id ends so, changed."""
    found = next(case for case in TOY.cases if case.id.endswith(words))
    return replace(found, **changes)


@dataclass
class Shelf:
    """What an honest implementation would hold and say. `flaw` is what a bad one does otherwise."""

    flaw: str | None = None
    entries: dict[str, str] = field(default_factory=dict)
    codes: list[str] = field(default_factory=list)

    def answer(self, request: Mapping[str, Any]) -> Answer:
        """The honest answer."""
        if request["op"] == "open" and request["state"] == "fresh":
            self.entries.clear()
            self.codes.clear()
        if request["op"] != "call" or request["method"] == "hold_at":
            return {"outcome": "ok"}
        if request["method"] == "state":
            rows = [{"key": key, "nonce": nonce} for key, nonce in sorted(self.entries.items())]
            return {"outcome": "ok", "value": {"entry": rows}}
        if request["method"] == "audit":
            records = [{"audit_id": str(number), "code": code} for number, code in enumerate(self.codes, 1)]
            return {"outcome": "ok", "value": {"records": records}}
        return self.put(request["args"])

    def put(self, args: Any) -> Answer:
        """Put a key, or refuse with the first reason that applies."""
        reason = None
        if not TOY.methods["put"].args.is_valid(args):
            reason = "REQUEST_MALFORMED"
        elif args["key"] in self.entries and self.flaw != "accepts duplicates":
            reason = "DUPLICATE"
        elif args["nonce"] in self.entries.values():
            reason = "DUPLICATE" if self.flaw == "confuses reasons" else "NONCE_CONSUMED"
        if reason is not None:
            self.codes.append(reason)
            return {"outcome": "refused", "reason": reason}
        self.entries[args["key"]] = args["nonce"]
        return {"outcome": "accepted", "effect": "new", "value": {"entry": dict(args)}}


@dataclass
class Player:
    """Answers the actions of one side. `replies` maps a pattern of the action's note to what comes instead."""

    replies: Mapping[str, Reply] = field(default_factory=dict)
    contract: Contract = TOY
    not_claimed: Mapping[str, str] = field(default_factory=dict)
    seed: str = SEED
    # Microseconds from the sending of one racing call to that of the next, and until the first answer.
    apart: int = 1
    takes: int = 100
    shelf: Shelf = field(default_factory=Shelf)
    records: list[Record] = field(default_factory=list)
    held: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    now: int = 0

    def play(self, case: Case, side: Side = Side.MAIN) -> Judgement:
        """Play one side to its end. Every reply must have been used."""
        reading = interpret(self.contract, case, side, seed=self.seed, not_claimed=self.not_claimed)
        given: Sequence[Record] | None = None
        try:
            while True:
                action = next(reading) if given is None else reading.send(given)
                given = self.carry_out(action)
        except StopIteration as stop:
            unused = set(self.replies) - self.used
            assert not unused, f"no step of {[r.action for r in self.records]} fits {unused}"
            judgement: Judgement = stop.value
            return judgement

    def carry_out(self, action: Action) -> Sequence[Record]:
        """The records of one action."""
        start = len(self.records)
        self.now += 1000
        if not action.requests:
            self.local(action)
        for index, (worker, request) in enumerate(action.requests):
            honest = self.shelf.answer(request) if action.act is not START else None
            if action.act is START:
                self.held[worker] = request
            reply = self.reply(f"{action.note} #{index}", honest)
            sent = self.now + index * self.apart
            self.write(action, worker, request, reply, sent, sent + self.takes)
        return self.records[start:]

    def local(self, action: Action) -> None:
        if action.act is FINISH:
            honest: Answer | None = self.shelf.answer(self.held.pop(action.worker))
            self.write(action, action.worker, None, self.reply(action.note, honest), self.now, self.now)
            return
        reply = self.reply(action.note, None)
        event = {"kind": "done" if reply is None else str(reply), "detail": "" if reply is None else "as the test says"}
        number = len(self.records)
        self.records.append(Record(number, action.note, action.worker, None, None, event, self.now, self.now))

    def reply(self, note: str, honest: Answer | None) -> Answer | str | None:
        """What comes of a step: what the test says, or what is honest."""
        for pattern, reply in self.replies.items():
            if re.search(pattern, note):
                self.used.add(pattern)
                return reply(honest or {}) if callable(reply) else reply
        return honest

    def write(
        self, action: Action, worker: int, request: Any, reply: Answer | str | None, sent: int, received: int
    ) -> None:
        answer = reply if isinstance(reply, Mapping) else None
        event = {"kind": reply, "detail": "as the test says"} if isinstance(reply, str) else None
        number = len(self.records)
        self.records.append(Record(number, action.note, worker, request, answer, event, sent, received))


def verdict_of(judgement: Judgement) -> str:
    """A verdict as text, with its failure mode: `no_verdict:hang`."""
    silence = "" if judgement.silence is None else f":{judgement.silence.value}"
    return judgement.verdict.value + silence


def played(case: Case, side: Side = Side.MAIN, **options: Any) -> str:
    """The verdict of one side."""
    return verdict_of(Player(**options).play(case, side))


def both_sides(case: Case) -> tuple[list[Record], list[Record]]:
    """The records of an honest run."""
    main, twin = Player(), Player()
    assert main.play(case).verdict is Verdict.CONFORMS
    if case.twin is not None:
        assert twin.play(case, Side.TWIN).verdict is Verdict.CONFORMS
    return main.records, twin.records
