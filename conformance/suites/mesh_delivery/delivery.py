"""mesh-delivery: a daemon and its outbox against the model of all their clauses."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from random import Random
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.any_history import any_history
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import CheckedSession
from holdfast.conformance.attacks.model import Call
from holdfast.conformance.cases.match import of_rows
from holdfast.conformance.suites.mesh_delivery.outbox_history import (
    EveryAnswer,
    OfTwoProcesses,
    OutboxHistory,
    deliver,
    requeue,
    send,
    together,
)
from holdfast.conformance.suites.mesh_delivery.outbox_model import SEND, Outbox, OutboxModel
from holdfast.conformance.suites.mesh_delivery.sends import must_be_refused
from holdfast.conformance.suites.mesh_delivery.suite import KEY, requests_to_send
from holdfast.conformance.verdict import Verdict
from holdfast.vectors.derive import derive

_WEEK, _SHORT, _MONTH = 168, 6, 648
_HISTORIES, _SHORTER = 5, 3
_TRIALS = 24
_RIVALS, _RACES = 4, 12
_ROWS, _ASKED = 1000, 12
_OUTBOX, _AWAY = "mesh-delivery/outbox.db", "away"
_GARBAGE = b"This is no outbox. " * 512
# What is left of a file that was cut begins like this one.
_CUT = b"SQLite format 3\0" + bytes(84)


@clause(
    "MESH-4.5-O7",
    "MESH-4.1-L1",
    "MESH-4.1-L2",
    "MESH-4.1-L4",
    "MESH-4.5-O6",
    "MESH-4.8-C6",
    "MESH-4.8-R1",
    "MESH-4.8-R2",
    "MESH-4.8-R3",
    whole=True,
)
def test_any_history_of_a_daemon_agrees_with_the_model(bench: Bench) -> None:
    """Sends, rounds with any answers, requeues, clocks, restarts, and kills inside of attempts."""
    any_history(bench, OutboxHistory, _HISTORIES, _TRIALS)


@clause("MESH-4.5-O7", "MESH-4.5-O1", "MESH-4.5-O2", "MESH-4.5-O3", "MESH-4.5-O4", whole=True)
def test_every_answer_makes_of_a_row_what_the_model_says(bench: Bench) -> None:
    """Each answer of the protocol, to a first attempt and to a second."""
    any_history(bench, EveryAnswer, 2, _TRIALS)


@clause("MESH-4.9-A9", "MESH-4.7-T10", "MESH-4.8-C5", "MESH-4.8-C7", whole=True)
def test_any_history_of_a_daemon_with_a_short_max_age_agrees_with_the_model(bench: Bench) -> None:
    """The same where rows grow too old while they wait."""
    any_history(bench, OutboxHistory, _SHORTER, _TRIALS, {**OutboxHistory.config, "max_age_hours": f"{_SHORT}"})


@clause("MESH-4.1-L4", "MESH-4.5-O1", "MESH-4.5-O6", "MESH-4.8-C2", whole=True)
def test_any_history_of_two_processes_on_one_outbox_agrees_with_the_model(bench: Bench) -> None:
    """The same by two processes, with calls and rounds that overlap: what one round has delivered stays so."""
    any_history(bench, OfTwoProcesses, _HISTORIES, _TRIALS)


class _Daemon(CheckedSession[Outbox]):
    """A daemon, everything of which is compared after each call."""

    model: OutboxModel

    def do(self, *calls: Call, lost: bool = False) -> None:
        """Make calls, each of which has to be answered."""
        for call in calls:
            self.ask(call, lost=lost)
            self.compare()

    def named(self, name: str, **request: str) -> Call:
        """A send with this id."""
        return send({**SEND, "client_message_id": name, "request": {**SEND["request"], **request}})


@contextmanager
def _daemon(bench: Bench, workers: int = 1, hours: int = _WEEK) -> Iterator[_Daemon]:
    config = {**OutboxModel.config, "max_age_hours": f"{hours}"}
    with bench.session(workers, config, hurried=False) as session:
        play = _Daemon(bench, session, OutboxModel(session))
        play.do(deliver(()))
        yield play


@clause("MESH-4.1-L4", "MESH-4.5-O4", "MESH-4.5-O6", whole=True)
def test_an_outbox_of_many_rows_is_as_one_of_few(bench: Bench) -> None:
    """Sends and requeues of any row among a thousand, and a round of what was requeued."""
    dice, rows = Random(bench.seed), list[tuple[str, str]]()  # noqa: S311 - nothing is kept secret with it
    with _daemon(bench) as play:
        for state, answer in (("dead", "conflict"), ("done", "first")):
            play.do(play.named(state, destination_ref=state), deliver((answer,)))
            rows += [(f"{state}{number:05}", state) for number in range(_ROWS // 2)]
            row, known = play.model.stored[state], play.state.rows[state]
            copies = [name for name, kind in rows if kind == state]
            made = ({**row, "id": f"copy-{name}", "client_message_id": name} for name in copies)
            play.session.insert("outbox", *made)
            filled = Outbox({**play.state.rows, **dict.fromkeys(copies, known)})
            play.states.narrow(lambda _, filled=filled: [filled])  # type: ignore[misc]
            play.model.bodies |= dict.fromkeys(copies, play.model.bodies[state])
        for number, (name, kind) in enumerate((rows[0], rows[-1], *dice.sample(rows, _ASKED))):
            play.ask(play.named(name, destination_ref=kind))
            play.ask(play.named(name, destination_ref=kind, body="AQ"))
            play.ask(requeue(name, "done"))
            play.ask(requeue(name, f"again{number}"))
        play.compare()
        play.session.clock("+5h")
        play.do(deliver(("first",) * _ASKED))


@clause("MESH-4.1-L4", "MESH-4.1-L1", "MESH-4.1-L3", "MESH-4.5-O6", whole=True)
def test_no_call_takes_an_outbox_that_is_not_in_its_place_for_an_empty_one(bench: Bench) -> None:
    """It is moved away under two processes, and nothing, or what is no outbox, is there for one call each.

    One that has it open may go on with it; any other refuses. Then it is back: what was accepted is there.
    """
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE other (name TEXT)")
        other = connection.serialize()
    with _daemon(bench, 2) as play:
        for number, put in enumerate((None, _CUT, _GARBAGE, other)):
            for worker in range(play.session.workers):
                for call in _prepared(play, f"{number}{worker}", worker):
                    with _lost(bench, play, put):
                        play.ask(call, lost=True)
                    play.compare()
                dead = sorted(name for name in play.state.rows if play.state.is_dead(name))
                with _lost(bench, play, put):
                    told = play.session.sample("failed", {}, worker)
                if told is not None and [row["client_message_id"] for row in told["rows"]] != dead:
                    bench.fail("fail_open", "outbox --failed of a lost outbox", expected=f"{dead}", received=f"{told}")
                play.compare()


def _prepared(play: _Daemon, label: str, worker: int) -> Iterator[Call]:
    """A row that is done, one that is dead, and one that is due; and each call about them."""
    done, again, dead = f"done {label}", f"due {label}", f"dead {label}"
    for name, answer in ((done, "first"), (dead, "conflict")):
        play.do(play.named(name), deliver((answer,) * (len(play.state.rows) + 1)))
    play.do(play.named(again))
    yield from (play.named(name) for name in (done, again))
    yield from (play.named(done, body="AQ"), play.named(f"new {label}"))
    yield from (requeue(name, f"{name} again") for name in (done, dead, "nowhere"))
    yield deliver(("first",) * len(play.state.rows), missed="" if worker else "fail_open")


@contextmanager
def _lost(bench: Bench, play: _Daemon, put: bytes | None) -> Iterator[None]:
    """Without the outbox, and in its place what is `put` there."""
    session = play.session
    files = [row["path"] for row in session.tree("mesh-delivery") if row["path"].startswith(_OUTBOX)]
    for path in files:
        session.move(path, f"{_AWAY}/{path}")
    if put == _CUT:
        session.copy(f"{_AWAY}/{_OUTBOX}", _OUTBOX)
        session.cut(_OUTBOX, len(_CUT))
    elif put is not None:
        session.place(_OUTBOX, put)
    yield
    for row in session.tree("mesh-delivery"):
        if row["path"].startswith(_OUTBOX):
            if put is None:
                bench.fail("fail_open", "the place of a lost outbox", expected="nothing", received=row["path"])
            session.remove(row["path"])
    for path in files:
        session.move(f"{_AWAY}/{path}", path)


@clause("MESH-4.4-P1", "MESH-4.1-L2", whole=True)
def test_every_request_that_has_a_fingerprint_is_taken_in_with_it(bench: Bench) -> None:
    """The row has the fingerprint of the request; what has none is refused."""
    with bench.session(config=OutboxModel.config) as session:
        due: dict[str, str] = {}
        for number, (request, form) in enumerate(requests_to_send(bench)):
            answer = session.call("send", {**SEND, "client_message_id": f"{number}", "request": request})
            if form is None:
                must_be_refused(bench, answer, request)
                continue
            bench.must_be(answer, "accepted new", f"{request}: has a fingerprint")
            due[f"{number}"] = derive(KEY, form)
        rows = session.inspect()["rows"]["outbox"]
        stored = {row["client_message_id"]: row["request_fingerprint"].get("blob") for row in rows}
        if stored != due:
            wrong = next(name for name in {**due, **stored} if due.get(name) != stored.get(name))
            what = f"the fingerprint of request {wrong}"
            verdict = (of_rows(sorted(due), sorted(stored)) or Verdict.WRONG_REASON).value
            bench.fail(verdict, what, expected=str(due.get(wrong)), received=str(stored.get(wrong)))


@clause("MESH-4.8-C6", "MESH-4.8-C7", "MESH-4.9-A9", "MESH-4.7-T10", "MESH-4.5-O6")
def test_a_row_outlasts_an_outage_that_is_shorter_than_its_max_age(bench: Bench) -> None:
    """A broker that is not available for a week, or a month, asked every five hours and at once again.

    In no moment are there two attempts. Once the row is dead it is listed, a year later too. Its age begins with each
    requeue.
    """
    for hours in (_WEEK, _MONTH):
        with _daemon(bench, 1, hours) as play:
            name = "waiting"
            play.do(play.named(name))
            while not play.state.is_dead(name):
                play.do(deliver(("unavailable",)), deliver(()))
                play.session.clock("+5h")
            for later in ("+10d", "+90d", "+300d"):
                play.session.clock(later)
                play.do(deliver(()))
            for new in (f"{name} again", f"{name} once more"):
                play.do(requeue(name, new))
                name = new
                for later in ("+1h", "+31d"):
                    play.session.clock(later)
                    play.do(deliver(("unavailable",)))


@clause("MESH-4.8-C2", "MESH-4.1-L4", "MESH-4.5-O6", "MESH-4.5-O1")
def test_of_processes_that_ask_at_once_one_is_the_first(bench: Bench) -> None:
    """Four processes: one send, sends with one id, requeues of one row and to one id; then all deliver."""
    with _daemon(bench, _RIVALS) as play:

        def race(*calls: Call) -> None:
            """Some order explains the answers, and not all find the outbox occupied."""
            if len(play.race(calls)) == len(calls):
                bench.fail("over_refusal", f"{len(calls)} calls at once", expected="one is done", received="none")

        for number in range(_RACES):
            race(*[play.named(f"same{number}")] * _RIVALS)
            race(*(play.named(f"other{number}", body=body) for body in ("AA", "AQ", "Ag", "Aw")))
        play.compare()
        play.session.clock("+169h")
        play.do(deliver(()))
        for number in range(_RACES):
            race(*(requeue(f"same{number}", f"new{number}-{rival}") for rival in range(_RIVALS)))
        for number in range(0, _RACES, _RIVALS):
            race(*(requeue(f"other{number + rival}", f"joint{number}") for rival in range(_RIVALS)))
        play.compare()
        # Each row that was raced for, and of those that were to have one id the first.
        waiting = _RACES + _RACES // _RIVALS
        race(*together(("first",) * _RIVALS * waiting, shared=True, count=_RIVALS))
        play.compare()
        # One that found the outbox occupied may have left its rows for a later round.
        play.session.clock("+5h")
        play.do(deliver(("first",) * waiting))
        left = Counter[Any](row["status"] for row in play.model.stored.values())
        if left["done"] != waiting:
            bench.fail("over_refusal", "rounds at once left rows", expected=f"{waiting} done", received=str(dict(left)))
