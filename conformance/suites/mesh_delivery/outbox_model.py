"""A daemon as a pure model: what is in its outbox, and what may become of it (sections 4.1 to 4.9).

Where the source leaves open what happens, an id has every row that may be there; what is inspected next narrows them.
"""

from __future__ import annotations

import contextlib
import json
import uuid
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import product
from typing import Any
from urllib.parse import unquote

from holdfast.conformance.attacks.model import Call, Model, Observation, Outcome
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.mesh_delivery.broker_answers import ANSWERS, UNSAID, Fate, Said
from holdfast.conformance.suites.mesh_delivery.sends import ALICE, MESH, Args
from holdfast.conformance.verdict import Verdict
from holdfast.vectors.derive import derive

NOT_DEAD, IN_USE = "NOT_DEAD", "ID_IN_USE"
HOLD = "hold_delivery"
# The title of `deliver`: a row without an answer is due again after ten minutes at the latest, later after five hours.
_SOON, _LATEST, _FIRST_ATTEMPTS = timedelta(minutes=10), timedelta(hours=5), 1
# Times are stored in whole numbers, and a daemon may cut its seconds.
_UNIT = timedelta(seconds=1)
# The source says nothing of the unit: seconds, or thousandths, millionths or billionths of them.
_UNITS = (1, 10**3, 10**6, 10**9)
_GONE = "cm_daemon_dedupe_history_pruned_total"
_TOLD: Sequence[str] = ("status", "attempts", "broker_message_id", "enqueued_at", "delivered_at", "last_error")
# A send that nothing is wrong with.
SEND: Mapping[str, Any] = {
    "mesh_id": MESH,
    "client_message_id": "",
    "request": {"envelope_version": 1, "destination_kind": "topic", "destination_ref": "alerts", "body": "AA"},
}


@dataclass(frozen=True, slots=True)
class Try:
    """An attempt of a row that was answered: what was said, about which message, and when.

    `late`: its round was held, so what came of it is written after what came of any other.
    """

    name: str
    said: Said
    message_id: str
    now: datetime
    late: bool = False


@dataclass(frozen=True, slots=True)
class Row:
    """One send. `born` is the moment that its age is counted from.

    No attempt is made at `after` or before it, and one is made from `due` on. `failed`: an attempt of it has failed.
    `taken` and `delivered` are when it came in and when it was delivered; None where that is open.
    """

    mesh_id: str
    fingerprint: str
    born: datetime
    due: datetime
    after: datetime | None = None
    status: str = "pending"
    attempts: int = 0
    message_id: str | None = None
    failed: bool = False
    taken: datetime | None = None
    delivered: datetime | None = None

    @property
    def is_open(self) -> bool:
        """Whether it is still to be delivered."""
        return self.status in ("pending", "inflight")

    def is_too_old(self, now: datetime, limit: timedelta) -> bool:
        """Whether every daemon has to find it so."""
        return now - self.born >= limit + (_UNIT if self.born.microsecond else timedelta())

    def may_be_sent(self, now: datetime, limit: timedelta) -> bool:
        """Whether an attempt is right at this time."""
        return self.is_open and not self.is_too_old(now, limit) and (self.after is None or now > self.after)

    def must_be_sent(self, now: datetime, limit: timedelta) -> bool:
        """Whether a round without an attempt of it is wrong."""
        return self.may_be_sent(now, limit) and now >= self.due and now - self.born <= limit - _UNIT

    def may_die(self, now: datetime, limit: timedelta) -> bool:
        """Whether it may be too old."""
        return self.is_open and now - self.born > limit - _UNIT

    def passed_over(self, now: datetime, limit: timedelta, *, whole: bool) -> Iterator[Row]:
        """What it may be behind a round without an attempt of it. `whole`: that had to bury what is due and too old."""
        if not (whole and self.is_open and now >= self.due and self.is_too_old(now, limit)):
            # A clock that was put back may bring its time nearer, and never to this moment.
            yield self if self.after is None or self.after < now else replace(self, after=now)
        if self.may_die(now, limit):
            yield replace(self, status="dead", failed=True)

    def tried(self, tries: Sequence[Try]) -> Iterator[Row]:
        """What it may be behind attempts, which overlapped if there are several.

        It is open which of their answers stands, and how many count. What is delivered stays so, but for a late answer:
        it may find a row that is not its own any more. A row that another round has buried stays dead.
        """
        if self.status == "dead":
            yield self
            return
        for results in product(*(list(self._answered(each)) for each in tries)):
            done = [row for row in results if row.status == "done"]
            stays = any(row.status == "done" and not each.late for row, each in zip(results, tries, strict=True))
            for row in done if stays else results:
                for more in range(len(results)):
                    counted = replace(row, attempts=row.attempts + more)
                    late = None if row.after is None or not more else row.after + _LATEST
                    yield counted if late is None else replace(counted, due=max(row.due, late))

    def _answered(self, each: Try) -> Iterator[Row]:
        counted, fates = replace(self, attempts=self.attempts + 1), each.said.fates
        if Fate.DONE in fates:
            yield replace(counted, status="done", message_id=each.message_id, delivered=each.now)
        if Fate.DEAD in fates or Fate.UNDONE in fates:
            yield replace(counted, status="dead", failed=True)
        if Fate.AGAIN in fates or Fate.UNDONE in fates:
            yield replace(counted, status="pending", failed=True, after=each.now, due=each.now + counted._pause)

    @property
    def _pause(self) -> timedelta:
        """How long it may wait at most for its next attempt."""
        return _SOON if self.attempts <= _FIRST_ATTEMPTS else _LATEST

    def cut_short(self, now: datetime, limit: timedelta, tries: Sequence[Try]) -> Iterator[Row]:
        """What it may be where the daemon has died in a round, whether or not it marked it or acted on an answer."""
        yield from (self, *self.passed_over(now, limit, whole=False))
        if self.may_die(now, limit):
            yield replace(self, status="inflight")
        if self.may_be_sent(now, limit):
            counted = replace(self, attempts=self.attempts + 1, after=None)
            due = now + counted._pause
            for attempts in (self.attempts, counted.attempts):
                yield from (
                    replace(counted, attempts=attempts, due=due, status=each) for each in ("inflight", "pending")
                )
            yield from (row for each in tries for row in self._answered(each))

    def agrees(self, stored: Args) -> bool:
        """Whether a row of the store is this one."""
        status = stored["status"]
        return (
            # What was left in flight may be found at any time.
            (status == self.status or (status, self.status) == ("pending", "inflight"))
            and stored["attempts"] == self.attempts
            and stored["request_fingerprint"] == {"blob": self.fingerprint}
            and stored["broker_message_id"] == self.message_id
            and bool(stored["delivered_at"]) is (self.status == "done")
            and _is_about(stored["delivered_at"], self.delivered)
            and _is_about(stored["enqueued_at"], self.taken)
            and (bool(stored["last_error"]) or not self.failed or self.status == "done")
        )

    def __str__(self) -> str:
        reason = " with its last_error" if self.failed and self.status != "done" else ""
        named = f" as {self.message_id}" if self.message_id else ""
        return f"{self.status} with {self.attempts} attempts{named}{reason}"


def _is_about(stored: Any, moment: datetime | None) -> bool:
    """Whether a time of a row is this moment, in the unit of the daemon and however its seconds were cut."""
    if moment is None or not isinstance(stored, int):
        return True
    return any(abs(stored / unit - moment.timestamp()) <= _UNIT.total_seconds() for unit in _UNITS)


def fingerprint_of(args: Args) -> str:
    """What is stored of a send."""
    found: str = derive("mesh.fingerprint", args["request"])
    return found


@dataclass(frozen=True, slots=True)
class Outbox:
    """The rows by their ids, and their attempts since they were inspected.

    `gone`: how many answers without history each worker had. `said`: what it was answered since it was inspected, and
    whether a row may have been too old then. `held`: the rows that a round which is held has marked, and not settled.
    """

    rows: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    tries: Mapping[str, Sequence[Try]] = field(default_factory=dict)
    gone: Mapping[int, int] = field(default_factory=dict)
    said: Mapping[int, tuple[Sequence[Said], bool]] = field(default_factory=dict)
    held: frozenset[str] = frozenset()

    def is_dead(self, name: str) -> bool:
        """Whether an id has a dead row. What was inspected since the last step leaves no doubt of it."""
        return any(row.status == "dead" for row in self.rows.get(name, ()))

    def at(self, name: str, *rows: Row) -> Outbox:
        """With these rows under an id."""
        return replace(self, rows={**self.rows, name: tuple(dict.fromkeys(rows))})

    def may_have(self, name: str) -> Sequence[Row]:
        """What may be under an id."""
        rows, tries = self.rows.get(name, ()), self.tries.get(name)
        return tuple(dict.fromkeys(each for row in rows for each in row.tried(tries))) if tries else rows


@dataclass(slots=True, eq=False)
class Round:
    """One round of delivery: the answers that are armed for it, by name, or None where it takes what was armed.

    `tries` are its attempts; if they are `shared`, those of all that overlap it, `beside` one of them. `told` is then
    how many each says that it made, None where it does not. `claimed` are the rows that it has marked when it is held,
    `early` the number of its attempts then. `missed` is the verdict on what is due and left; none where that may be.
    """

    answers: Sequence[str] | None
    missed: str = "over_refusal"
    beside: Round | None = None
    shared: bool = False
    tries: list[Try] = field(default_factory=list)
    told: list[int | None] = field(default_factory=list)
    claimed: set[str] = field(default_factory=set)
    early: int = 0
    begun: datetime | None = None


class OutboxModel(Model[Outbox]):
    """The model of a daemon for one session."""

    unavailable = ("OUTBOX_UNAVAILABLE",)
    exclusive, busy = False, True
    chosen = "failed"
    first = Outbox()
    points = ("in_flight", "answered")
    config: Mapping[str, str] = {"broker": "{peer}", "member": ALICE, "max_age_hours": "168"}
    hurried = False
    untold = "fail_open"

    def __init__(self, session: SuiteSession) -> None:
        self._session = session
        self.limit = timedelta(hours=int(session.config["max_age_hours"]))
        self._messages = self._place = self._received = 0
        self._armed: list[tuple[Said, str]] = []
        # What came since the last inspection; the bytes of each row in its attempts, and in the store.
        self._came: list[tuple[str, Args]] = []
        self.bodies: dict[str, str] = {}
        self._payloads: dict[str, Any] = {}
        self.stored: dict[str, Args] = {}
        # How many lines of each worker were read, and how many there are.
        self._logged: dict[int, int] = {}
        self._lines: dict[int, int] = {}

    @property
    def now(self) -> datetime:
        """The time of the session."""
        return datetime.fromisoformat(self._session.now)

    # Calls

    def before(self, call: Call) -> None:
        """See `attacks.model.Model`. Each answer that is armed is about a message of its own."""
        if not isinstance(call.about, Round):
            return
        call.about.tries, call.about.told, call.about.claimed, call.about.begun = [], [], set(), self.now
        if call.about.answers is not None:
            self._armed, self._place = [], 0
            for name in call.about.answers:
                self._messages += 1
                self._armed.append((ANSWERS[name], str(uuid.UUID(int=0x0192F0C17A527C3E9D4B << 48 | self._messages))))
            self._session.answers([said.of(message_id) for said, message_id in self._armed])

    def after(self, call: Call, answer: Answer | None) -> None:
        """See `attacks.model.Model`. What is known of a row goes with it to its new id; requests are of a round."""
        if call.method == "requeue" and answer is not None and answer.outcome == "accepted":
            for known in (self.bodies, self._payloads):
                if call.args["client_message_id"] in known:
                    known[call.args["new_id"]] = known.pop(call.args["client_message_id"])
        if not isinstance(call.about, Round):
            return
        if call.about.shared and call.about.answers is None and call.about.beside is not None:
            call.about.tries, call.about.told = call.about.beside.tries, call.about.beside.told
        else:
            for request in self._session.received(self._received):
                self._received += 1
                name = unquote(request["headers"].get("client-message-id", ""))
                # Where nothing is armed the number of the request stands for a message: no two attempts are one.
                unsaid = UNSAID, f"{self._received}"
                said, message_id = self._armed[self._place] if self._place < len(self._armed) else unsaid
                self._place += 1
                self._came.append((name, request))
                now = call.about.begun or self.now
                call.about.tries.append(Try(name, said, message_id, now, late=bool(call.about.claimed)))
        call.about.told.append(None if answer is None or not answer.value else answer.value["attempts"])

    def held(self, state: Outbox, call: Call) -> Outbox:
        """See `attacks.model.Model`. It may have buried already what is too old."""
        rows = self._session.inspect()["rows"]["outbox"]
        call.about.claimed = {row["client_message_id"] for row in rows if row["status"] == "inflight"}
        self.after(call, None)
        call.about.early = len(call.about.tries)
        if not call.about.claimed:
            raise NonConformance(
                Judgement(Verdict.LOST_DURABILITY, None, "no row of an attempt is in flight", "inflight")
            )
        tried = {each.name for each in call.about.tries}
        state = replace(state, held=frozenset(call.about.claimed))
        return self._passed_over(state, state.rows.keys() - tried, whole=False)

    def holding(self, point: str) -> tuple[str, Args]:
        """See `attacks.model.Model`."""
        return HOLD, {"point": point}

    def passes(self, state: Outbox, call: Call, point: str) -> bool:
        """See `attacks.model.Model`."""
        del call, point
        return bool(self.due(state)) and HOLD not in self._session.not_claimed

    def ended(self, state: Outbox, worker: int) -> Outbox:
        """See `attacks.model.Model`."""
        self._logged.pop(worker, None)
        return replace(state, gone={each: count for each, count in state.gone.items() if each != worker})

    # What may be answered

    def outcomes(self, state: Outbox, call: Call, seen: Any) -> Iterator[Outcome[Outbox]]:
        """See `attacks.model.Model`. What is known to be wrong with a call is the reason of its refusal."""
        if isinstance(call.about, str):
            yield Outcome(f"refused {call.about}", state)
        else:
            yield from getattr(self, f"_{call.method}")(state, call, seen or {})

    def _send(self, state: Outbox, call: Call, seen: Args) -> Iterator[Outcome[Outbox]]:
        name, print_ = call.args.get("client_message_id"), fingerprint_of(call.args)
        if name is None and seen.get("client_message_id") in state.rows:
            yield Outcome("accepted new", state, {"client_message_id": "a new one"}, "fail_open")
            return
        name = seen.get("client_message_id", "") if name is None else name
        known = state.rows.get(name)
        if known is None:
            due = self.now + (_UNIT if self.now.microsecond else timedelta())
            row = Row(call.args["mesh_id"], print_, self.now, due, taken=self.now)
            yield Outcome("accepted new", state.at(name, row), {"client_message_id": name})
        elif (known[0].mesh_id, known[0].fingerprint) == (call.args["mesh_id"], print_):
            yield Outcome("accepted prior", state, {"client_message_id": name})
        else:
            yield Outcome("refused IDEMPOTENCY_KEY_REUSED", state)

    def _requeue(self, state: Outbox, call: Call, _: Args) -> Iterator[Outcome[Outbox]]:
        """Of two reasons no clause says which is looked at first."""
        name, new = call.args["client_message_id"], call.args["new_id"]
        rows = state.rows.get(name, ()) if name in state.held else state.may_have(name)
        dead = [row for row in rows if row.status == "dead"]
        if len(dead) < len(rows) or not rows:
            yield Outcome(f"refused {NOT_DEAD}", state)
        if new in state.rows:
            yield Outcome(f"refused {IN_USE}", state)
        elif dead:
            # Its age begins anew.
            fresh = {"status": "pending", "attempts": 0, "after": None, "due": self.now, "failed": False}
            rows = [replace(row, **fresh, taken=None, born=self.now) for row in dead]  # type: ignore[arg-type]
            left = {each: there for each, there in state.rows.items() if each != name}
            tries = {**state.tries, name: ()} if name in state.tries else state.tries
            after = replace(state, rows=left, tries=tries).at(new, *rows)
            yield Outcome("accepted new", after, {"client_message_id": new})

    def due(self, state: Outbox, now: datetime | None = None) -> set[str]:
        """The ids that a round has to send."""
        now = now or self.now
        return {name for name, rows in state.rows.items() if all(row.must_be_sent(now, self.limit) for row in rows)}

    def _deliver(self, state: Outbox, call: Call, seen: Args) -> Iterator[Outcome[Outbox]]:
        """A round; `failed` is shown where the daemon has died in it."""
        mine: Round = call.about
        now, others = mine.begun or self.now, {each.name for each in mine.beside.tries} if mine.beside else set()
        tries = {**state.tries}
        for each in mine.tries:
            known = tries.get(each.name, ())
            tries[each.name] = known if each in known else (*known, each)
        if "rows" in seen:
            yield Outcome("", self._died(state, tries, now))
            return
        own = {each.name for each in mine.tries}
        # One that is not held may bury a row that is too old by then, and in flight in the one that is.
        left = state.rows.keys() - own - (others if mine.claimed or mine.shared else set())
        wrong = self._wrong(state, mine, others)
        missed = sorted(self.due(state, now) & left - others) if mine.missed else []
        dying = any(row.may_die(now, self.limit) for name in left for row in state.rows[name])
        after = self._passed_over(state, left, now, whole=mine.beside is None and self._session.workers == 1)
        for name in own & state.rows.keys():
            buried = [row for row in state.rows[name] if row.status == "dead" and mine.beside is not None]
            after = after.at(name, *(row for row in state.rows[name] if row.may_be_sent(now, self.limit)), *buried)
        told = [each.said for each in mine.tries if each.name not in others]
        gone = state.gone.get(call.worker, 0) + [each.said for each in mine.tries].count(ANSWERS["gone"])
        said = {**state.said, call.worker: (told, dying or mine.beside is not None)}
        due: dict[str, Any] = {} if mine.shared else {"attempts": len(mine.tries)}
        if mine.shared and None not in mine.told and sum(filter(None, mine.told)) != len(mine.tries):
            due["attempts of all rounds at once"] = len(mine.tries)
        due |= {f"an attempt of {name}": "none now" for name in wrong}
        due |= {f"an attempt of {name}": "made" for name in missed}
        is_told = mine.shared or seen.get("attempts") == len(mine.tries)
        verdict = "fail_open" if wrong else mine.missed if missed and is_told else "wrong_reason"
        after = replace(after, tries=tries, gone={**state.gone, call.worker: gone}, said=said)
        yield Outcome("accepted new", after, due, verdict)

    def _wrong(self, state: Outbox, mine: Round, others: Collection[str]) -> list[str]:
        """The ids of which an attempt is none that a round may make."""
        found, names = [], [each.name for each in mine.tries]
        for at, each in enumerate(mine.tries):
            is_again = not mine.shared and each.name in names[:at]
            # What another process has settled meanwhile.
            is_late = at >= mine.early and each.name in others and bool(mine.claimed) and each.name not in mine.claimed
            may_be = any(row.may_be_sent(each.now, self.limit) for row in state.rows.get(each.name, ()))
            found += [each.name] * (is_again or is_late or not may_be)
        return found

    def _died(self, state: Outbox, tries: Mapping[str, Sequence[Try]], now: datetime) -> Outbox:
        rows = {}
        for name, there in state.rows.items():
            ends = (end for row in there for end in row.cut_short(now, self.limit, tries.get(name, ())))
            rows[name] = tuple(dict.fromkeys(ends))
        return replace(state, rows=rows, tries={name: () for name in tries if name in rows})

    def _passed_over(self, state: Outbox, names: Iterable[str], now: datetime | None = None, *, whole: bool) -> Outbox:
        rows = dict(state.rows)
        for name in names:
            left = (end for row in rows[name] for end in row.passed_over(now or self.now, self.limit, whole=whole))
            rows[name] = tuple(dict.fromkeys(left))
        return replace(state, rows=rows)

    # What is shown

    def observations(self, state: Outbox) -> Iterator[Observation]:
        """See `attacks.model.Model`."""
        due: dict[str, list[str]] = {"lost": [], "more": [], "delivered": [], "other": []}
        yield Observation("the outbox", due, {}, partial(self._differences, state), _verdict, self._inspected)
        due = {"form": [], "attempts": []}
        yield Observation("the requests", due, {}, partial(self._requests, state), _verdict, lambda _: self._came)
        for worker in range(self._session.workers):
            due = {"more": [], "other": []}
            yield Observation("failed", due, {}, self._listed, _verdict, worker=worker)
            gone = {"gone": state.gone.get(worker, 0)}
            yield Observation("daemon_counters", gone, {}, _pruned, "wrong_reason", worker=worker)
            if worker in state.said:
                levels = partial(self._levels, state, worker)
                yield Observation("daemon_log", {"lines": []}, {}, levels, "wrong_reason", worker=worker)

    def _inspected(self, session: SuiteSession) -> Sequence[Args]:
        rows: Sequence[Args] = session.inspect()["rows"].get("outbox", [])
        self.stored = {str(row["client_message_id"]): row for row in rows}
        return rows

    def _differences(self, state: Outbox, shown: Sequence[Args]) -> Mapping[str, Any]:
        found: dict[str, list[str]] = {"lost": sorted(state.rows.keys() - self.stored.keys())}
        found["more"] = sorted(self.stored.keys() - state.rows.keys())
        if len(shown) > len(self.stored):
            found["more"].append("several rows of an id")
        found |= {"delivered": [], "other": []}
        for name, row in self.stored.items():
            may_be = state.may_have(name)
            told = f"{name}: {', '.join(f'{part} {row[part]!r}' for part in _TOLD)}"
            if may_be and not any(each.agrees(row) for each in may_be):
                is_early = row["status"] == "done" and all(each.status != "done" for each in may_be)
                due = " or ".join(dict.fromkeys(map(str, may_be)))
                found["delivered" if is_early else "other"].append(f"{told}, {due} is due")
            if self._payloads.get(name, row["payload"]) != row["payload"]:
                found["delivered"].append(f"{name} has another payload: {row['payload']}")
        return found

    def _requests(self, state: Outbox, shown: Sequence[tuple[str, Args]]) -> Mapping[str, Any]:
        """Each is the one of its row, with the bytes of every attempt."""
        found: dict[str, list[str]] = {"form": [], "attempts": []}
        bodies = dict(self.bodies)
        for name, request in shown:
            headers, body = request["headers"], request["body"]
            kind = headers.get("content-type", "")
            if headers.get("mesh-member") != ALICE:
                found["form"].append(f"Mesh-Member {headers.get('mesh-member')}")
            if kind.partition(";")[0].strip().lower() != "application/json":
                found["form"].append(f"Content-Type {kind}")
            if name in state.tries and name not in state.rows:
                # It has another id by now.
                continue
            is_right = bodies.setdefault(name, body) == body
            with contextlib.suppress(ValueError, KeyError, TypeError):
                sent, (row, *_) = json.loads(from_base64url(body)), state.rows[name]
                is_right = is_right and name in state.tries
                if is_right and (sent["mesh_id"], fingerprint_of(sent)) == (row.mesh_id, row.fingerprint):
                    continue
            found["attempts"].append(f"of {name!r}, with {body[:200]}")
        return found

    def _listed(self, shown: Any) -> Mapping[str, Any]:
        """The dead rows are listed as they are stored; one that is not listed is lost to who looks there."""
        names = ("client_message_id", "last_error")
        dead = [row for _, row in sorted(self.stored.items()) if row["status"] == "dead"]
        due = [{name: row[name] for name in names} for row in dead]
        if shown["rows"] == due:
            return {"more": [], "other": []}
        wrong = [f"{shown['rows']}, {due} is due"[:400]]
        return {"more": wrong, "other": []} if len(shown["rows"]) < len(due) else {"more": [], "other": wrong}

    def _levels(self, state: Outbox, worker: int, shown: Any) -> Mapping[str, Any]:
        """What has to be said aloud, and what must not, unless a row may have been too old."""
        told, dying = state.said[worker]
        self._lines[worker] = len(shown["records"])
        levels = Counter(record["level"] for record in shown["records"][self._logged.get(worker, 0) :])
        loud, quiet = levels["WARN"] + levels["ERROR"], sum(said is ANSWERS["retry"] for said in told)
        due = sum(said.fates == (Fate.DEAD,) or said is ANSWERS["gone"] for said in told)
        found = [f"{loud} at WARN and above, {due} are due"] * (loud < due)
        found += [f"{levels['INFO']} at INFO, {quiet} are due"] * (levels["INFO"] < quiet)
        is_quiet = quiet and quiet == len(told) and not dying
        return {"lines": found + [f"{loud} at WARN and above, none is due"] * bool(loud and is_quiet)}

    def learned(self, state: Outbox) -> Outbox:
        """See `attacks.model.Model`. What agrees with the store is there, and what was not inspected stays open."""
        self._logged |= self._lines
        self._lines = {}
        for name, request in self._came:
            self.bodies.setdefault(name, request["body"])
        self._came = []
        self._payloads = {name: row["payload"] for name, row in self.stored.items()}
        rows = {}
        for name in state.rows.keys() & self.stored.keys():
            row = self.stored[name]
            may_be = state.may_have(name)
            fits = [replace(each, status=row["status"]) for each in may_be if each.agrees(row)]
            # After a wrong row what is there counts: one error is not reported as two.
            there = {"status": row["status"], "attempts": row["attempts"], "message_id": row["broker_message_id"]}
            rows[name] = tuple(dict.fromkeys(fits or (replace(each, **there) for each in may_be)))
        return replace(
            state, rows={name: rows[name] for name in state.rows if name in rows}, tries={}, said={}, held=frozenset()
        )


def _pruned(shown: Any) -> Mapping[str, Any]:
    return {"gone": sum(each["value"] for each in shown["counters"] if each["name"] == _GONE)}


def _verdict(found: Mapping[str, Any]) -> str:
    """A row that counts as delivered, or is sent or there unasked, fails open; one that is gone is lost."""
    if any(found.get(name) for name in ("more", "delivered", "attempts")):
        return "fail_open"
    return "lost_durability" if found.get("lost") else "wrong_reason"
