"""Bugs of an outbox that show over time: with a second process, a restart, the clock, or many rows."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping
from typing import Any

from holdfast.reference_impl.mesh_delivery.daemon import Daemon, Response
from holdfast.reference_impl.mesh_delivery.outbox import Outbox, OutboxError, Row
from holdfast.reference_impl.mesh_delivery.terms import Reason
from holdfast.reference_impl.planting import Change, part

_PAGE = 500


class Remembers(Outbox):
    """Answers from what this process has taken in, whatever became of it since."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.taken: dict[str, Row] = {}

    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        known = self.taken.get(name)
        if known is not None:
            return known, False
        row, is_new = super().insert(name, fingerprint, payload, now)
        self.taken[name] = row
        return row, is_new


class ReadsFirst(Outbox):
    """Looks for the id in a transaction of its own, and replaces what has come in between."""

    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        with self.transaction() as connection:
            known = self.by_name(connection, name)
        if known is not None:
            return known, False
        with self.transaction() as connection:
            connection.execute("DELETE FROM outbox WHERE client_message_id = ?", (name,))
        return super().insert(name, fingerprint, payload, now)


class DoneIsForgotten(Outbox):
    """A row that was delivered makes room for another send."""

    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        with self.transaction() as connection:
            connection.execute("DELETE FROM outbox WHERE client_message_id = ? AND status = 'done'", (name,))
        return super().insert(name, fingerprint, payload, now)


class RevivesADeadRow(Outbox):
    """A send that is known already is tried again, also where the broker has refused it for good."""

    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        row, is_new = super().insert(name, fingerprint, payload, now)
        if row.status == "dead":
            self.settle_row(row, {"status": "pending", "next_attempt_at": now})
        return row, is_new


class TakesTheRest(Outbox):
    """A row that comes in while a round is under way is done with it."""

    def settle_row(self, row: Row, changes: Mapping[str, str | bytes | int | None]) -> None:
        super().settle_row(row, changes)
        if changes.get("status") == "done":
            with self.transaction() as connection:
                statement = (
                    "UPDATE outbox SET status = 'done', delivered_at = ? WHERE status = 'pending' AND attempts = 0"
                )
                connection.execute(statement, (changes["delivered_at"],))


class RequeueWhileInFlight(Outbox):
    """Gives a row that is in flight another id."""

    def rotate(self, name: str, new: str, now: int) -> str | None:
        with self.transaction() as connection:
            connection.execute(
                "UPDATE outbox SET status = 'dead' WHERE client_message_id = ? AND status = 'inflight'", (name,)
            )
        return super().rotate(name, new, now)


class SentBeforeItsTime(Outbox):
    """A restart sends everything at once, whenever its time is."""

    def own(self) -> bool:
        starts, owned = self._lock is None, super().own()
        if starts and owned:
            with self.transaction() as connection:
                connection.execute("UPDATE outbox SET next_attempt_at = 0 WHERE status IN ('pending', 'inflight')")
        return owned


class EveryProcess(Outbox):
    """Each process that delivers takes what is in flight for what a dead daemon has left."""

    def own(self) -> bool:
        return True


class PauseByDistance(Outbox):
    """Takes the time since the last attempt without its sign: a clock that was put back makes a row due."""

    def take_due(self, now: int) -> list[Row]:
        with self.transaction() as connection:
            connection.execute(
                "UPDATE outbox SET next_attempt_at = ? WHERE status = 'pending' AND next_attempt_at > ? + 360",
                (now, now),
            )
        return super().take_due(now)


class AgeInWholeHours(Daemon):
    """The age is cut to hours, and is more than the limit an hour too late."""

    def is_too_old(self, row: Row) -> bool:
        return (self.seconds - row.enqueued_at) // 3600 > self.settings.max_age_hours


class AgeOneSecondShort(Daemon):
    def is_too_old(self, row: Row) -> bool:
        return self.seconds - row.enqueued_at > self.settings.max_age_hours * 3600


class AgeOneSecondEarly(Daemon):
    def is_too_old(self, row: Row) -> bool:
        return self.seconds - row.enqueued_at >= self.settings.max_age_hours * 3600 - 1


class RecoveredTooOld(Daemon):
    """What was in flight is sent however old it is."""

    def is_too_old(self, row: Row) -> bool:
        return row.attempts > 0 and super().is_too_old(row)


class FirstAnswerOfARound(Daemon):
    """One answer is taken for all requests of a round."""

    kept: Response | None = None

    def deliver(self) -> int:
        self.kept = None
        return super().deliver()

    def act(self, row: Row, response: Response) -> None:
        self.kept = self.kept or response
        if self.kept is not response and isinstance(self.kept.body, dict):
            response = Response(self.kept.status, {**self.kept.body, "client_message_id": row.client_message_id})
        super().act(row, response)


class EndsAtAFailure(Daemon):
    """The first failure ends the round; the other rows stay in flight."""

    def put_off(self, row: Row, why: str) -> None:
        super().put_off(row, why)
        self.failing = True

    def answer_to(self, row: Row) -> Response:
        if getattr(self, "failing", False):
            return Response(0, None, "passed over")
        return super().answer_to(row)

    def deliver(self) -> int:
        self.failing = False
        return super().deliver()


class AnyServerError(Daemon):
    """An error of the server with the body of a first send counts as one."""

    def act(self, row: Row, response: Response) -> None:
        super().act(row, Response(201, response.body) if response.status == 502 else response)


class OlderAnswers(Daemon):
    """Takes the answers of brokers of version 1, which say nothing of the history."""

    def is_first(self, row: Row, body: Mapping[str, Any]) -> bool:
        return super().is_first(row, {"history_id": None, **body})

    def is_retry(self, row: Row, body: Mapping[str, Any]) -> bool:
        return super().is_retry(row, {"history_available": True, "first_seen_at": "", **body})

    def note_history(self, row: Row, body: Mapping[str, Any]) -> None:
        super().note_history(row, {"history_available": True, **body})


class OnePage(Outbox):
    """Knows the oldest rows alone, and the newest."""

    def by_name(self, connection: sqlite3.Connection, name: str) -> Row | None:
        row = super().by_name(connection, name)
        if row is None:
            return None
        statement = (
            "SELECT count(*), (SELECT count(*) FROM outbox) FROM outbox "
            "WHERE rowid <= (SELECT rowid FROM outbox WHERE id = ?)"
        )
        place, last = connection.execute(statement, (row.id,)).fetchone()
        return row if place <= _PAGE or place == last else None


class KeepsSome(Outbox):
    """Makes room: of rows that were delivered only the newest are kept."""

    def settle_row(self, row: Row, changes: Mapping[str, str | bytes | int | None]) -> None:
        super().settle_row(row, changes)
        with self.transaction() as connection:
            statement = (
                "DELETE FROM outbox WHERE status = 'done' AND id NOT IN "
                "(SELECT id FROM outbox WHERE status = 'done' ORDER BY delivered_at DESC, rowid DESC LIMIT ?)"
            )
            connection.execute(statement, (_PAGE,))


class FailedOfAPage(Daemon):
    def failed(self) -> list[dict[str, str | None]]:
        return super().failed()[:5]


class RequeuesAll(Outbox):
    """The words of a requeue that is refused are used all the same: a dead row is tried again."""

    def rotate(self, name: str, new: str, now: int) -> str | None:
        problem = super().rotate(name, new, now)
        if problem == Reason.ID_IN_USE.value:
            with self.transaction() as connection:
                connection.execute("UPDATE outbox SET status = 'pending' WHERE client_message_id = ?", (name,))
        return problem


class CountsARefusal(Outbox):
    """A refused requeue counts as an attempt."""

    def rotate(self, name: str, new: str, now: int) -> str | None:
        problem = super().rotate(name, new, now)
        if problem is not None:
            with contextlib.suppress(sqlite3.Error), self.transaction() as connection:
                connection.execute("UPDATE outbox SET attempts = attempts + 1 WHERE client_message_id = ?", (name,))
        return problem


class RequeueForgotten(Outbox):
    """A requeue is answered and not written; the row stays dead."""

    def rotate(self, name: str, new: str, now: int) -> str | None:
        problem = super().rotate(name, new, now)
        if problem is None:
            with self.transaction() as connection:
                statement = "UPDATE outbox SET client_message_id = ?, status = 'dead' WHERE client_message_id = ?"
                connection.execute(statement, (name, new))
        return problem


class RotatesBlindly(Outbox):
    """Looks at the row in a transaction of its own, and writes in another."""

    def rotate(self, name: str, new: str, now: int) -> str | None:
        with self.transaction() as connection:
            row, taken = self.by_name(connection, name), self.by_name(connection, new)
        if row is None or row.status != "dead":
            return Reason.NOT_DEAD.value
        if taken is not None:
            return Reason.ID_IN_USE.value
        with contextlib.suppress(OutboxError), self.transaction() as connection:
            statement = "UPDATE outbox SET client_message_id = ?, status = 'pending', attempts = 0 WHERE id = ?"
            connection.execute(statement, (new, row.id))
        return None


BUGS: Mapping[str, Change] = {
    "answered-from-memory": part(outbox=Remembers),
    "read-and-then-written": part(outbox=ReadsFirst),
    "done-rows-make-room": part(outbox=DoneIsForgotten),
    "second-send-revives-a-dead-row": part(outbox=RevivesADeadRow),
    "round-takes-what-came-since": part(outbox=TakesTheRest),
    "row-in-flight-requeued": part(outbox=RequeueWhileInFlight),
    "restart-sends-at-once": part(outbox=SentBeforeItsTime),
    "every-process-is-the-daemon": part(outbox=EveryProcess),
    "clock-back-makes-due": part(outbox=PauseByDistance),
    "age-in-whole-hours": part(daemon=AgeInWholeHours),
    "max-age-is-still-sent": part(daemon=AgeOneSecondShort),
    "dead-a-second-early": part(daemon=AgeOneSecondEarly),
    "first-attempt-at-any-age": part(daemon=RecoveredTooOld),
    "one-answer-for-a-round": part(daemon=FirstAnswerOfARound),
    "round-ends-at-a-failure": part(daemon=EndsAtAFailure),
    "server-error-with-a-body-is-done": part(daemon=AnyServerError),
    "older-answers-taken": part(daemon=OlderAnswers),
    "later-rows-not-known": part(outbox=OnePage),
    "delivered-rows-make-room": part(outbox=KeepsSome),
    "few-failed-rows-listed": part(daemon=FailedOfAPage),
    "refused-requeue-revives": part(outbox=RequeuesAll),
    "refused-requeue-counts": part(outbox=CountsARefusal),
    "requeue-not-kept": part(outbox=RequeueForgotten),
    "requeue-reads-first": part(outbox=RotatesBlindly),
}
