"""Histories of a daemon: any steps in any order, by one or two processes on one outbox, held against the model.

Worker 0 is the daemon: the first that is asked to deliver. Another process takes sends in and runs what operators ask
for; it may deliver, and need not.
"""

from __future__ import annotations

import sqlite3
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import format_instant
from holdfast.conformance.suites.mesh_delivery.broker_answers import ANSWERS, SLOW, Armed, Said, answer_at
from holdfast.conformance.suites.mesh_delivery.generate import MESHES, Step
from holdfast.conformance.suites.mesh_delivery.outbox_generate import MALFORMED, WRONG
from holdfast.conformance.suites.mesh_delivery.outbox_model import (
    IN_USE,
    NEW,
    NOT_DEAD,
    PRIOR,
    Args,
    Outbox,
    Row,
    longest,
)
from holdfast.conformance.suites.mesh_delivery.outbox_observations import CONFIG, Seen
from holdfast.conformance.suites.mesh_delivery.sends import Compared

UNAVAILABLE = "OUTBOX_UNAVAILABLE"
# A send that nothing is wrong with.
SEND: Mapping[str, Any] = {
    "mesh_id": MESHES[0],
    "client_message_id": "",
    "request": {"envelope_version": 1, "destination_kind": "topic", "destination_ref": "alerts", "body": "AA"},
}
# A history has fewer rows that wait.
_MOST = 64
_OUTBOX, _AWAY = "mesh-delivery/outbox.db", "away"
_GARBAGE = b"This is no outbox. " * 512
# What is left of a file that was cut begins like this one.
_CUT = b"SQLite format 3\0" + bytes(84)
Rows = tuple[Row, ...]


class HistoryRunner(Compared):
    """One history under way. Implements `histories.HistoryRunner`."""

    def __init__(self, bench: Bench, session: SuiteSession, max_age_hours: int) -> None:
        self._bench, self._session, self._model = bench, session, Outbox(max_age_hours)
        self._workers, self._messages = session.workers, 0
        self._seen = Seen(bench, session)
        self._deliver((), 0)

    def step(self, step: Step) -> None:
        """See `histories.HistoryRunner`."""
        args, worker = dict(step.args), step.worker
        match step.what:
            case "send" | "again":
                self._call("send", args["send"], worker)
            case "deliver":
                self._deliver(args["answers"], worker)
            case "die":
                self._die(args["answers"], step.point)
            case "beside":
                self._beside(args["answers"], step.point, *args["other"])
            case "overlap":
                self._overlap(args["answers"], step.point, args["span"])
            case "race" if "deliver" in args:
                self._race_of_rounds()
            case "race":
                self._race(args["one"], args["other"])
            case "requeue":
                self._call("requeue", self._args("requeue", args["of"]), worker)
            case "refused":
                self._refused(args["why"], worker)
            case "clock" | "back":
                self._session.clock(args["to"])
            case "edge":
                self._edge(args["row"], float(args["seconds"]))
            case "restart" | "kill":
                # In the place of the daemon that ends another process may be it.
                self._end(step.what, self._workers - 1)
        self._seen.look(self._model)

    def compare(self) -> None:
        """See `histories.HistoryRunner`. What is left is delivered once the broker takes it."""
        self._session.clock("+5h")
        self._deliver(("first",) * min(len(self._model.rows), _MOST), 0)
        self._seen.look(self._model)

    def fill(self, count: int) -> list[tuple[str, Args]]:
        """Put copies of a done row and of a dead one into the store, `count` in all; the ids, and a send of each."""
        found: list[tuple[str, Args]] = []
        for state, answer in (("dead", "conflict"), ("done", "first")):
            request = {**SEND["request"], "destination_ref": state}
            args = {**SEND, "client_message_id": state, "request": request}
            self._call("send", args, 0)
            self._deliver((answer,), 0)
            self._seen.look(self._model)
            names = [f"{state}{number:05}" for number in range(count // 2)]
            row = self._seen.stored()[state]
            self._session.insert(
                "outbox", *({**row, "id": f"copy-{name}", "client_message_id": name} for name in names)
            )
            self._model.rows.update(dict.fromkeys(names, self._model.rows[state]))
            self._seen.bodies.update(dict.fromkeys(names, self._seen.bodies[state]))
            found += [(name, {**args, "client_message_id": name}) for name in names]
        self._seen.look(self._model)
        return found

    def outlast(self, name: str) -> None:
        """A row whose broker does not answer before it is too old. In no moment are there two attempts.

        Once it is dead it is listed, a year later too. Its age begins with each requeue.
        """
        self._call("send", {**SEND, "client_message_id": name}, 0)
        while not self._model.is_dead(name):
            self._deliver(("unavailable",), 0)
            self._deliver((), 0)
            self._seen.look(self._model)
            self._session.clock("+5h")
        for later in ("+10d", "+90d", "+300d"):
            self._session.clock(later)
            self._deliver((), 0)
            self._seen.look(self._model)
        for new in (f"{name} again", f"{name} once more"):
            self._call("requeue", {"client_message_id": name, "new_id": new}, 0)
            name = new
            for later in ("+1h", "+31d"):
                self._session.clock(later)
                self._deliver(("unavailable",), 0)
                self._seen.look(self._model)

    def ask(self, name: str, args: Args, number: int) -> None:
        """A send of a row again, another send with its id, and requeues of it: to an id in use, and to a free one."""
        self._call("send", args, 0)
        self._call("send", {**args, "request": {**args["request"], "body": "AQ"}}, 0)
        self._call("requeue", {"client_message_id": name, "new_id": "done"}, 0)
        self._call("requeue", {"client_message_id": name, "new_id": f"again{number}"}, 0)

    def _args(self, method: str, about: Any) -> dict[str, Any]:
        """A send, or the requeue of a row by its id, of a dead one by its place, or of any where none is dead."""
        if method == "send":
            return dict(about)
        place, new = about
        if isinstance(place, str):
            return {"client_message_id": place, "new_id": new}
        names = sorted(self._model.rows)
        names = [name for name in names if self._model.is_dead(name)] or names
        return {"client_message_id": names[place % len(names)] if names else "nowhere", "new_id": new}

    # Callers and operators

    def _call(self, method: str, args: Args, worker: int, *, alone: bool = True) -> None:
        """A send, or an operator's requeue; not `alone` it may find the outbox occupied."""
        due = self._due_of(method, args, self._model)
        answer = self._session.call(method, args, worker)
        if alone or answer.reason != UNAVAILABLE:
            self._judge(method, args, due, answer)
            self._done(method, args, answer, self._model)
            self._seen.rename(method, args, answer)

    def _due_of(self, method: str, args: Args, model: Outbox) -> set[str]:
        """The effect or the reasons of an operation that are due."""
        if method == "send":
            return {model.sent(args.get("client_message_id", ""), args)}
        return model.requeued(args["client_message_id"], args["new_id"])

    def _judge(self, method: str, args: Args, due: set[str], answer: Answer) -> None:
        came = answer.effect if answer.outcome == "accepted" else answer.reason
        if came not in due:
            refused = "wrong_reason" if due.isdisjoint((NEW, PRIOR)) else "over_refusal"
            verdict = refused if answer.outcome == "refused" else "fail_open"
            self._weigh(verdict, f"a {method}", " or ".join(sorted(due)), came)
        if answer.outcome == "accepted":
            name = args.get("new_id", args.get("client_message_id"))
            told = answer.value["client_message_id"]
            if name is not None and told != name:
                self._differs("wrong_reason", f"the id of a {method}", name, told)
            if name is None and told in self._model.rows:
                self._differs("fail_open", "the id that the daemon made", "a new one", told)

    def _done(self, method: str, args: Args, answer: Answer, model: Outbox) -> None:
        """What an answer has changed."""
        if answer.outcome == "accepted" and answer.effect == NEW:
            if method == "send":
                model.add(answer.value["client_message_id"], args, self._now)
            else:
                model.requeue(args["client_message_id"], args["new_id"], self._now)

    def _refused(self, why: str, worker: int) -> None:
        """What is refused, alone between two looks at the outbox."""
        names = sorted(self._model.rows)
        if why in WRONG:
            method, change = WRONG[why]
            args: Args = {**SEND, "client_message_id": "refused", "request": {**SEND["request"], **change}}
        elif why in MALFORMED:
            method, args, why = why, MALFORMED[why], "REQUEST_MALFORMED"
        else:
            wanted = [name for name in names if self._model.is_dead(name) is (why == IN_USE)]
            name = wanted[0] if wanted else "nowhere"
            why = IN_USE if wanted and why == IN_USE else NOT_DEAD
            method, args = "requeue", {"client_message_id": name, "new_id": names[-1] if why == IN_USE else "unused"}
        answer = self._session.call(method, args, worker)
        if (answer.outcome, answer.reason) != ("refused", why):
            verdict = "wrong_reason" if answer.outcome == "refused" else "fail_open"
            self._weigh(verdict, f"a {method}", f"refused with {why}", answer.reason or answer.effect)

    # Rounds

    def _armed(self, names: Sequence[str]) -> list[tuple[Said, str]]:
        """Answers for the next requests, each about a message of its own."""
        found: list[tuple[Said, str]] = []
        for name in names:
            self._messages += 1
            found.append((ANSWERS[name], str(uuid.UUID(int=0x0192F0C17A527C3E9D4B << 48 | self._messages))))
        self._session.answers([said.of(message_id) for said, message_id in found])
        return found

    def _deliver(self, answers: Sequence[str], worker: int) -> None:
        """One round; where it lets a row be that is due, another process may be the one that delivers."""
        due = self._model.due(self._now)
        for place in (worker, *(one for one in range(self._workers) if one != worker)):
            armed = self._armed(answers)
            due -= self._round(self._session.call("deliver", {}, place), armed, place)
            if not due or worker:
                break
        self._must_miss_none(set() if worker else due)

    def _must_miss_none(self, missed: set[str], what: str = "a round") -> None:
        if missed:
            self._differs("over_refusal", what, f"an attempt of {', '.join(sorted(missed))}", "none")

    def _round(self, answer: Answer, armed: Armed, worker: int, others: frozenset[str] = frozenset()) -> set[str]:
        """What one round has sent, and what came of it; `others` were there before and may be left alone."""
        if answer.outcome != "accepted":
            self._differs("over_refusal", "a round", "accepted", answer.reason or answer.outcome)
        names = self._seen.requests(self._model)
        told = self._attempts(self._model, names, armed, answer, self._now)
        self._seen.gone[worker] += told.count(ANSWERS["gone"])
        left = [name for name in self._model.rows if name not in names and name not in others]
        dying = self._model.passed_over(left, self._now, whole=self._workers == 1)
        self._seen.log(worker, told, dying=dying)
        return set(names)

    def _attempts(self, model: Outbox, names: Sequence[str], armed: Armed, answer: Answer, now: datetime) -> list[Said]:
        """What was said to the attempts of one round, which are right for it."""
        count = answer.value["attempts"] if answer.outcome == "accepted" else 0
        if answer.outcome != "accepted" and answer.reason != UNAVAILABLE:
            self._differs("over_refusal", "a round", "accepted", answer.reason or answer.outcome)
        self._must_be(count, len(names), "wrong_reason", "the attempts of a round")
        told = []
        for place, name in enumerate(names):
            said, message_id = answer_at(armed, place)
            if name in names[:place] or not model.attempted(name, said.fates, now, message_id):
                self._differs("fail_open", "an attempt", "none now", name)
            told.append(said)
        return told

    def _held(self, answers: Sequence[str], point: str) -> list[tuple[Said, str]] | None:
        """A round of worker 0 that stops at its first attempt; None where it need not make one."""
        if not self._model.due(self._now) or "hold_delivery" in self._bench.not_claimed:
            self._deliver(answers, 0)
            return None
        armed = self._armed([name for name in answers if name not in SLOW])
        self._session.hold("hold_delivery", {"point": point})
        return armed

    def _die(self, answers: Sequence[str], point: str) -> None:
        armed = self._held(answers, point)
        if armed is None:
            return
        session = self._session
        session.start("deliver")
        session.reached(point)
        if not any(row["status"] == "inflight" for row in self._seen.stored().values()):
            self._differs("lost_durability", "the row of an attempt", "inflight", "none in flight")
        self._end("kill", 0)
        told = {name: answer_at(armed, place) for place, name in enumerate(self._seen.requests(self._model))}
        self._model.died(self._now, {name: (said.fates, message_id) for name, (said, message_id) in told.items()})

    def _beside(self, answers: Sequence[str], point: str, method: str, about: Any) -> None:
        """A round that waits in an attempt, while another process does something else."""
        armed = self._held(answers, point)
        if armed is None:
            return
        session, args = self._session, self._args(method, about)
        before = frozenset(self._model.rows)
        handle = session.start("deliver")
        session.reached(point)
        must = self._model.due(self._now)
        # The round may have buried already what is too old.
        self._model.passed_over(list(self._model.rows), self._now, whole=False)
        self._call(method, args, 1, alone=False)
        session.release(point)
        added = frozenset(self._model.rows) - before
        self._must_miss_none(must - self._round(session.finish(handle), armed, 0, added))

    def _overlap(self, answers: Sequence[str], point: str, span: str) -> None:
        """One round waits in an attempt. Meanwhile, `span` later, another process delivers what is due."""
        armed = self._held(answers, point)
        if armed is None:
            return
        # What each round makes of the outbox by itself.
        session, started, model, other = self._session, self._now, self._model, self._model.copy()
        handle = session.start("deliver")
        session.reached(point)
        must = model.due(started)
        claimed = {name for name, row in self._seen.stored().items() if row["status"] == "inflight"}
        early = self._seen.requests(model)
        session.clock(span, waiting=0)
        other.passed_over(list(other.rows), self._now, whole=False)
        answer = session.call("deliver", {}, 1)
        others = self._seen.requests(model)
        told = self._attempts(other, others, armed[len(early) :], answer, self._now)
        session.release(point)
        answer = session.finish(handle)
        late = self._seen.requests(model)
        session.clock("+0s")
        again = [name for name in late if name in others and name not in claimed]
        if again:
            self._differs("fail_open", "an attempt of what another process has settled meanwhile", "none", again[0])
        own = [*early, *late]
        answered = [*armed[: len(early)], *armed[len(early) + len(others) :]]
        mine = self._attempts(model, own, answered, answer, started)
        self._must_miss_none(must - {*own, *others}, "two rounds")
        for name, rows in model.rows.items():
            model.rows[name] = _settled(rows, other.rows[name], own=name in own, other=name in others)
        # Whether both say what became of a row that both have sent is open.
        self._seen.log(0, [said for name, said in zip(own, mine, strict=True) if name not in others], dying=True)
        self._seen.log(1, [said for name, said in zip(others, told, strict=True) if name not in own], dying=True)

    # Races

    def _race(self, *both: tuple[str, Any]) -> None:
        """Two calls at once: some order explains both answers and what is there."""
        calls = [(method, self._args(method, about)) for method, about in both]
        answers = self._session.race(calls)
        stored, found = self._seen.stored(), []
        for order in ((0, 1), (1, 0)):
            model = self._model.copy()
            if self._explains(model, [(calls[at], answers[at]) for at in order]):
                found.append(model)
        if not found:
            told = [
                f"{method} {answer.effect or answer.reason}" for (method, _), answer in zip(calls, answers, strict=True)
            ]
            self._differs("fail_open", "two calls at once", "answers of one order of them", told)
        fitting = [model for model in found if model.copy().narrow(stored) is None]
        self._model = (fitting or found)[0]
        for (method, args), answer in zip(calls, answers, strict=True):
            self._seen.rename(method, args, answer)

    def _explains(self, model: Outbox, both: Sequence[tuple[tuple[str, Args], Answer]]) -> bool:
        for (method, args), answer in both:
            came = answer.effect if answer.outcome == "accepted" else answer.reason
            if came == UNAVAILABLE:
                continue
            if came not in self._due_of(method, args, model):
                return False
            self._done(method, args, answer, model)
        return True

    def _race_of_rounds(self) -> None:
        """Two processes deliver at once, and the broker takes all: nothing that is due is left."""
        due = self._model.due(self._now)
        armed = self._armed(("first",) * 2 * len(self._model.rows))
        answers = self._session.race([("deliver", {})] * 2)
        names = self._seen.requests(self._model)
        told = sum(answer.value["attempts"] for answer in answers if answer.outcome == "accepted")
        if told != len(names) and all(answer.outcome == "accepted" for answer in answers):
            self._weigh("wrong_reason", "the attempts of two rounds at once", len(names), told)
        for name in dict.fromkeys(names):
            messages = [answer_at(armed, place)[1] for place, each in enumerate(names) if each == name]
            if not self._model.taken(name, messages, self._now):
                self._differs("fail_open", "an attempt", "none now", name)
        self._model.passed_over([name for name in self._model.rows if name not in names], self._now, whole=False)
        for worker in range(2):
            self._seen.log(worker, [], dying=True)
        self._must_miss_none(due - set(names), "two rounds at once")

    # Time and processes

    def _edge(self, place: int, seconds: float) -> None:
        """The clock goes to the max age of a row, or near it, if that is still to come."""
        waiting = sorted(name for name, rows in self._model.rows.items() if rows[0].is_open)
        if waiting:
            born = self._model.rows[waiting[place % len(waiting)]][0].born
            moment = born + self._model.limit + timedelta(seconds=seconds)
            if moment > self._now:
                self._session.clock(format_instant(moment))

    def _end(self, how: str, worker: int) -> None:
        self._session.begin_again(how, worker)
        self._seen.forget(worker)

    # Every call of a daemon while its outbox is not where it was, and in its place is nothing, or what is no outbox.
    #
    # The file is moved under running processes. One that has it open may go on with it; any other refuses. Then it is
    # moved back, so that what was accepted has to be there, and what was refused has changed nothing.

    def lose(self) -> None:
        """Make every call in both processes: first without a file in the place of the outbox, then with a wrong one."""
        with closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE TABLE other (name TEXT)")
            other = connection.serialize()
        for number, put in enumerate((None, _CUT, _GARBAGE, other)):
            for worker in range(self._workers):
                self._prepare(f"{number}{worker}")
                for ask in self._calls(f"{number}{worker}", worker):
                    with self._lost(put):
                        ask()
                    self._seen.look(self._model)

    def _prepare(self, label: str) -> None:
        """A row that is done, one that is dead, and one that is due."""
        for name, answer in (("done", "first"), ("dead", "conflict")):
            self._call("send", _send(f"{name} {label}"), 0)
            self._deliver((answer,) * len(self._model.rows), 0)
        self._call("send", _send(f"due {label}"), 0)
        self._seen.look(self._model)

    def _calls(self, label: str, worker: int) -> Iterator[Callable[[], object]]:
        done, again = _send(f"done {label}"), _send(f"due {label}")
        other = {**done, "request": {**done["request"], "body": "AQ"}}
        for args in (done, again, other, _send(f"new {label}")):
            yield lambda args=args: self._call("send", args, worker, alone=False)  # type: ignore[misc]
        for name in (f"done {label}", f"dead {label}", "nowhere"):
            requeue = {"client_message_id": name, "new_id": f"{name} again"}
            yield lambda args=requeue: self._call("requeue", args, worker, alone=False)  # type: ignore[misc]
        yield lambda: self._listed(worker)
        yield lambda: self._round_of_a_lost_one(worker)

    @contextmanager
    def _lost(self, put: bytes | None) -> Iterator[None]:
        """Without the outbox, and in its place what is `put` there."""
        session = self._session
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
                    self._differs("fail_open", "the place of a lost outbox", "nothing", row["path"])
                session.remove(row["path"])
        for path in files:
            session.move(f"{_AWAY}/{path}", path)

    def _listed(self, worker: int) -> None:
        dead = sorted(name for name in self._model.rows if self._model.is_dead(name))
        told = self._session.sample("failed", {}, worker)
        if told is not None and [row["client_message_id"] for row in told["rows"]] != dead:
            self._differs("fail_open", "outbox --failed of a lost outbox", dead, told["rows"])

    def _round_of_a_lost_one(self, worker: int) -> None:
        due, armed = self._model.due(self._now), self._armed(("first",) * len(self._model.rows))
        answer = self._session.call("deliver", {}, worker)
        if answer.reason != UNAVAILABLE:
            due -= self._round(answer, armed, worker)
            if due and not worker:
                refusal = f"a refusal, or {', '.join(sorted(due))}"
                self._differs("fail_open", "a round of a lost outbox", refusal, "none")
        elif names := self._seen.requests(self._model):
            self._differs("fail_open", "the requests of a round that was refused", "none", names)


def _send(name: str) -> dict[str, Any]:
    return {**SEND, "client_message_id": name}


def _settled(mine: Rows, theirs: Rows, *, own: bool, other: bool) -> Rows:
    """What may be there behind two rounds that have sent it or not. The other has written first.

    What that has delivered stays so.
    """
    if not own:
        return theirs
    if not other:
        return (*mine, *(row for row in theirs if row.status == "dead"))
    kept = [row for row in mine if row.status == "done" or any(each.status != "done" for each in theirs)]
    twice = [replace(row, attempts=row.attempts + 1, due=longest(row)) for row in (*theirs, *kept)]
    return tuple(dict.fromkeys((*theirs, *kept, *twice)))


@contextmanager
def playing(bench: Bench, workers: int, max_age_hours: int) -> Iterator[HistoryRunner]:
    """A history on a fresh outbox."""
    config = {**CONFIG, "max_age_hours": str(max_age_hours)}
    with bench.session(workers, config=config, hurried=False) as session:
        yield HistoryRunner(bench, session, max_age_hours)
