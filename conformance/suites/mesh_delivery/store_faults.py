"""mesh-delivery: a send or the sweep of a broker held at each point, and anything else by a second process meanwhile.

Both are answered, and what they leave has to be that of one behind the other, or of one alone.
"""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta

from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.mesh_delivery.generate import MESHES
from holdfast.conformance.suites.mesh_delivery.model import Args, Model
from holdfast.conformance.suites.mesh_delivery.runner import HistoryRunner
from holdfast.conformance.suites.mesh_delivery.sends import MESH, PLACES, args_of, told
from holdfast.conformance.suites.session import Handle
from holdfast.conformance.verdict import FailureMode
from holdfast.servers.pace import scaled

_DAYS = 30
_ACCEPT = ("before_dedupe", "after_dedupe", "after_message", "before_commit", "after_commit")
_SWEEP = "between_prune"
# What comes beside each of them.
_BESIDE = (
    *("another send", "the same send"),
    *("prune", "expire", "check_orphans", "delete_mesh", "set_flag", "migrate"),
)
# How long the second has for itself, in seconds; a job that takes a record away has longer. It may wait for the first,
# so it is not waited for.
_ALONE, _TAKEN = 0.03, 1.0
_LATER = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A request, and what follows from its answer; None where it cannot be answered so."""

    method: str
    args: Args
    behind: Callable[[Model, Answer], Model | None]


class _Holder(HistoryRunner):
    """One broker with two processes, of which the first is held."""

    def prepare(self) -> None:
        """The meshes, with two messages in the first, and the flag on."""
        for mesh_id in MESHES:
            if mesh_id not in self._model.meshes:
                self._make(mesh_id)
        self._model.enforced = True
        self._session.provoke("set_flag", {"enabled": True})
        for name in ("old", "older"):
            self._accept(args_of(name), 0)

    def held(self, number: int) -> Iterator[tuple[str, _Asked]]:
        """What is held, at each of its points."""
        kinds = list(PLACES)
        for at, point in enumerate(_ACCEPT):
            yield point, self.accept(args_of(f"held {number} {point}", kinds[(number + at) % len(kinds)]))
        yield _SWEEP, self._pruned()

    def beside(self, what: str, point: str, held: _Asked) -> _Asked:
        """One of `_BESIDE`, which comes while something is held at a point."""
        asked: Mapping[str, Callable[[], _Asked]] = {
            "another send": lambda: self.accept(args_of(f"beside {point}")),
            "the same send": lambda: self.accept(held.args if held.method == "accept" else args_of("old")),
            "prune": self._pruned,
            "expire": lambda: self._job("expire", {}, lambda model: model.expire(self._now)),
            "check_orphans": self._orphans,
            "delete_mesh": lambda: self._job("delete_mesh", {"mesh_id": MESH}, lambda each: each.delete_mesh(MESH)),
            "set_flag": lambda: self._job("set_flag", {"enabled": False}, _off),
            "migrate": lambda: self._job("migrate", {}, lambda _: None),
        }
        return asked[what]()

    # Requests

    def accept(self, args: Args) -> _Asked:
        """A send."""

        def behind(model: Model, answer: Answer) -> Model | None:
            due = model.due(args)
            if answer.outcome != "accepted":
                return model if answer.reason in (due.reason, due.or_reason) else None
            if answer.effect != due.effect:
                return None
            value = answer.value
            if due.record is not None:
                known = due.record.message_id, due.record.history
                return model if (value["broker_message_id"], value["history_available"]) == known else None
            model.accepted(args, value["broker_message_id"], self._now)
            return model

        return _Asked("accept", args, behind)

    def _job(self, method: str, args: Args, change: Callable[[Model], None]) -> _Asked:
        def behind(model: Model, answer: Answer) -> Model | None:
            change(model)
            return model if answer.outcome == "ok" else None

        return _Asked(method, args, behind)

    def _pruned(self) -> _Asked:
        # All that there is, and all that comes meanwhile.
        moment = self._now + _LATER
        args = {"older_than": moment.isoformat().replace("+00:00", "Z")}
        return self._job("prune", args, lambda model: model.prune(moment))

    def _orphans(self) -> _Asked:
        def behind(model: Model, answer: Answer) -> Model | None:
            return model if answer.outcome == "ok" and answer.value["orphans"] == model.orphans() else None

        return _Asked("check_orphans", {}, behind)

    # Two at once

    def overlap(self, point: str, first: _Asked, second: _Asked, alone: float = _ALONE) -> tuple[bool, bool]:
        """The first is held while the second comes; some order of both explains the answers and what is there.

        Whether each of them was done, and did not say that it failed.
        """
        session = self._session
        session.hold_at(point)
        held = session.start(first.method, first.args)
        session.reached(point)
        meanwhile = session.start(second.method, second.args, 1)
        time.sleep(scaled(alone))
        session.release(point)
        both = [(first, self._finished(held)), (second, self._finished(meanwhile))]
        # What says that it failed has done nothing.
        done = [(asked, answer) for asked, answer in both if answer is not None]
        self._settle(done, f"{first.method} held at {point}, {second.method} beside it")
        return both[0][1] is not None, both[1][1] is not None

    def _finished(self, handle: Handle) -> Answer | None:
        """The answer; None where it says that it failed."""
        try:
            answer = self._session.finish(handle)
        except NonConformance as finding:
            if finding.judgement.silence is not FailureMode.FAULT:
                raise
            return None
        return None if answer.reason == "BROKER_UNAVAILABLE" else answer

    def _settle(self, done: Sequence[tuple[_Asked, Answer]], what: str) -> None:
        models = [model for order in itertools.permutations(done) if (model := _after(self._model, order)) is not None]
        if not models:
            came = "; ".join(told(answer) for _, answer in done)
            new = Counter(
                str(asked.args) for asked, answer in done if asked.method == "accept" and answer.effect == "new"
            )
            verdict = "fail_open" if new and max(new.values()) > 1 else "wrong_reason"
            self._differs(verdict, what, "the answers of some order", came)
        for left, model in enumerate(models, 1 - len(models)):
            self._model = model
            try:
                self._state()
                self._handed_out()
            except NonConformance as finding:
                if not left or finding.judgement.verdict.is_incomplete:
                    raise
            else:
                return

    def _handed_out(self) -> None:
        for mesh_id, mesh in self._model.meshes.items():
            for receiver in (*mesh.members, *mesh.queues):
                self._inbox(mesh_id, receiver)


def _off(model: Model) -> None:
    model.enforced = False


def _after(before: Model, order: Sequence[tuple[_Asked, Answer]]) -> Model | None:
    """The model behind these requests, one after the other; None if an answer is wrong then."""
    model = deepcopy(before)
    for asked, answer in order:
        found = asked.behind(model, answer)
        if found is None:
            return None
        model = found
    return model


@clause("MESH-4.6-J4", "MESH-4.6-J1", "MESH-4.7-T8", provocations=("make_mesh", "hold_at"), whole=True)
def test_what_overlaps_a_held_operation_leaves_what_some_order_leaves(bench: Bench) -> None:
    """Sends at each point of their transaction and the sweep between its changes; beside them sends and every job."""
    with bench.session(2, config={"dedupe_retention_days": str(_DAYS)}, hurried=False) as session:
        player, left = _Holder(bench, session, _DAYS), {*_BESIDE, *_ACCEPT, _SWEEP}
        for number, what in enumerate(_BESIDE):
            for point, held in player.held(number):
                player.prepare()
                done = player.overlap(point, held, player.beside(what, point, held))
                left -= {each for each, is_done in zip((point, what), done, strict=True) if is_done}
        if left:
            bench.fail("not_reached", f"{', '.join(sorted(left))}: never done while something overlapped it")


@clause("MESH-4.7-T5", provocations=("make_mesh", "hold_at", "expire"), whole=True)
def test_a_retry_whose_record_goes_beside_it_is_answered(bench: Bench) -> None:
    """The nightly job comes between conflict and select, or waits; the retry is a first send, or came before it."""
    with bench.session(2, config={"dedupe_retention_days": str(_DAYS)}, hurried=False) as session:
        player, point = _Holder(bench, session, _DAYS), "after_conflict"
        player.prepare()
        session.clock(f"+{_DAYS + 1}d")
        retry = player.accept(args_of("old"))
        done, _ = player.overlap(point, retry, player.beside("expire", point, retry), _TAKEN)
        if not done:
            bench.fail("over_refusal", "a retry whose record went beside it", expected="accepted", received="refused")
