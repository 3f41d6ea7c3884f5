"""mesh-delivery: histories of a broker against the model of all its clauses."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.histories import in_some_order, run_histories
from holdfast.conformance.attacks.session import Handle
from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.mesh_delivery.generate import MESHES, draw
from holdfast.conformance.suites.mesh_delivery.model import Args, Model
from holdfast.conformance.suites.mesh_delivery.runner import HistoryRunner, playing
from holdfast.conformance.suites.mesh_delivery.sends import MESH, PLACES, args_of, made
from holdfast.servers.pace import scaled

_HISTORIES, _PERMANENT = 6, 2
_LENGTH = 60
# With this number of members each send has more than a thousand rows. Of messages and records there are as many.
_MEMBERS, _SENDS, _MANY = 1100, 2, 1100
# Shorter and longer than the windows of other tests, and a year.
_WINDOWS = (1, 91, 400)
# A trial of a shorter history takes as long as a case.
_TRIALS = 24


@clause("MESH-4.6-J4", "MESH-4.1-B2", "MESH-4.1-B3", "MESH-4.7-T7", "MESH-4.7-T8", whole=True)
def test_any_history_of_a_broker_agrees_with_the_model(bench: Bench) -> None:
    """Sends, retries and changes of them by two processes, jobs, clocks, the flag, and kills inside transactions."""
    _play(bench, _HISTORIES, 30)


@clause("MESH-4.12-F2", "MESH-4.6-J4", whole=True)
def test_any_history_in_mode_permanent_agrees_with_the_model(bench: Bench) -> None:
    """The same where no record expires."""
    _play(bench, _PERMANENT, None)


@clause("MESH-4.5-R4", "MESH-4.1-B2", whole=True)
def test_any_history_over_sockets_agrees_with_the_model(bench: Bench) -> None:
    """The same over HTTP and over a WebSocket, as far as the adapter claims them."""
    for transport in ("http", "websocket"):
        if transport not in bench.not_claimed:
            _play(bench, 1, 30, transport)


def _play(bench: Bench, count: int, days: int | None, transport: str | None = None) -> None:
    begin = partial(playing, bench, days, transport)
    run_histories(bench, count=count, draw=partial(draw, length=_LENGTH), begin=begin, trials=_TRIALS)


@clause("MESH-4.7-T6", "MESH-4.1-B2")
def test_a_send_to_hundreds_of_members_is_enqueued_for_each_of_them(bench: Bench) -> None:
    """Sends to a topic, each with more than a thousand rows of fan-out, and a retry of each, which adds none."""
    with bench.session() as session:
        members = [session.hex64(f"member {number}") for number in range(_MEMBERS)]
        session.provoke("make_mesh", {"mesh_id": MESHES[0], "members": members, "topics": ["all"], "queues": []})
        request = {"envelope_version": 1, "destination_kind": "topic", "destination_ref": "all", "body": "AA"}
        send = {"mesh_id": MESHES[0], "sender": members[0], "request": request}
        sends = [{**send, "client_message_id": f"send {number}"} for number in range(_SENDS)]
        due: list[dict[str, str]] = []
        for effect in ("new", "prior"):
            for args in sends:
                answer = session.call("accept", args)
                message = bench.must_be(answer, f"accepted {effect}", "a send to hundreds")["broker_message_id"]
                if effect == "new":
                    due += [{"broker_message_id": message, "receiver": member} for member in members[1:]]
            due.sort(key=lambda row: (row["broker_message_id"], row["receiver"]))
            rows = session.observe("broker_state")["fan_out"]
            if rows != due:
                lost = len([row for row in due if row not in rows])
                verdict = "lost_durability" if lost else "fail_open"
                bench.fail(verdict, f"{len(rows)} rows of fan-out, {lost} are not there", expected=str(len(due)))


@clause("MESH-17-4", "MESH-17-3", "MESH-4.1-E1", provocations=("make_mesh", "prune", "expire"))
def test_jobs_and_inboxes_take_in_all_of_a_thousand_messages(bench: Bench) -> None:
    """All are handed out; the sweep marks the record of each, and the nightly job leaves none that is over."""
    with bench.session(config={"dedupe_retention_days": "30"}) as session:
        made(session)
        for number in range(_MANY):
            bench.must_be(session.call("accept", args_of(str(number), "queue")), "accepted new", f"send {number}")

        def must_count(what: str, verdict: str, due: int, rows: Sequence[Any]) -> None:
            bench.same(len(rows), due, verdict, f"{what} of {_MANY} sends")

        handed = session.observe("inbox", {"mesh_id": MESH, "receiver": PLACES["queue"]})["messages"]
        must_count("messages that are handed out", "lost_durability", _MANY, handed)
        session.clock("+1d")
        session.provoke("prune", {"older_than": session.now})
        state = session.observe("broker_state")
        marked = [row for row in state["dedupe"] if not row["history_available"]]
        must_count("records that are marked", "fail_open", _MANY, marked)
        must_count("messages behind the sweep", "state_leak", 0, state["messages"])
        session.clock("+10d")
        session.provoke("expire")
        must_count("records within their time", "lost_durability", _MANY, session.observe("broker_state")["dedupe"])
        session.clock("+31d")
        session.provoke("expire")
        must_count("records behind their time", "over_refusal", 0, session.observe("broker_state")["dedupe"])


@clause("MESH-4.3-C8", provocations=("make_mesh",))
def test_a_record_lives_as_long_as_is_advertised(bench: Bench) -> None:
    """Windows of a day, of months, and of more than a year."""
    for days in _WINDOWS:
        with bench.session(config={"dedupe_retention_days": str(days)}) as session:
            made(session)
            bench.must_be(session.call("accept", args_of("one")), "accepted new", "a send")
            told = session.observe("features")["supported"]["client_message_id_dedupe"]["dedupe_retention_days"]
            bench.same(told, days, "wrong_reason", "the window that is advertised")
            row = session.observe("broker_state")["dedupe"][0]
            lives = datetime.fromisoformat(row["expires_at"]) - datetime.fromisoformat(row["first_seen_at"])
            if lives != timedelta(days=days):
                verdict = "fail_open" if lives < timedelta(days=days) else "wrong_reason"
                bench.weigh(verdict, f"a record of {days} days", expected=f"{days} days", received=str(lives))


# A send or the sweep of a broker held at each point, and anything else by a second process meanwhile.
#
# Both are answered, and what they leave has to be that of one behind the other, or of one alone.


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
        _, answer = self._session.unless_fault(lambda: self._session.finish(handle))
        return None if answer is None or answer.reason == "BROKER_UNAVAILABLE" else answer

    def _settle(self, done: Sequence[tuple[_Asked, Answer]], what: str) -> None:
        models = [*in_some_order(self._model, [partial(_after, *each) for each in done])]
        if not models:
            came = "; ".join(answer.words for _, answer in done)
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


def _off(model: Model) -> None:
    model.enforced = False


def _after(asked: _Asked, answer: Answer, before: Model) -> list[Model]:
    """The model behind a request; none if the answer is wrong then."""
    found = asked.behind(deepcopy(before), answer)
    return [] if found is None else [found]


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
