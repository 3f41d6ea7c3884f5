"""Bugs of an outbox that show only when something goes wrong: power loss, kills, a full disk, a store that is gone."""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Refused
from holdfast.reference_impl.mesh_delivery.daemon import Daemon
from holdfast.reference_impl.mesh_delivery.outbox import Outbox, OutboxError, Row
from holdfast.reference_impl.mesh_delivery.terms import Reason
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import UncertainError


class Unsynced(Outbox):
    """Commits of some operations are not synced."""

    syncs = True

    def settle(self, connection: sqlite3.Connection) -> None:
        super().settle(connection)
        if not self.syncs:
            connection.execute("PRAGMA synchronous = OFF")

    @contextlib.contextmanager
    def unsynced(self) -> Iterator[None]:
        self.syncs = False
        try:
            yield
        finally:
            self.syncs = True


class SendUnsynced(Unsynced):
    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        with self.unsynced():
            return super().insert(name, fingerprint, payload, now)


class RequeueUnsynced(Unsynced):
    def rotate(self, name: str, new: str, now: int) -> str | None:
        with self.unsynced():
            return super().rotate(name, new, now)


class OutcomeUnsynced(Unsynced):
    def settle_row(self, row: Row, changes: Mapping[str, str | bytes | int | None]) -> None:
        with self.unsynced():
            super().settle_row(row, changes)


class SendInTwo(Outbox):
    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        row, is_new = super().insert(name, fingerprint, b"{}", now)
        if is_new:
            self.settle_row(row, {"payload": payload})
            return super().insert(name, fingerprint, payload, now)[0], True
        return row, False


class RequeueInTwo(Outbox):
    def rotate(self, name: str, new: str, now: int) -> str | None:
        with self.transaction() as connection:
            row = self.by_name(connection, name)
        problem = super().rotate(name, f"{new} of {name}", now)
        if problem is None and row is not None:
            self.settle_row(row, {"client_message_id": new})
        return problem


class OutcomesInTwo(Daemon):
    """A round writes which rows are done, and at its end as what."""

    def deliver(self) -> int:
        self.taken: list[tuple[Row, Mapping[str, Any]]] = []
        tried = super().deliver()
        for row, body in self.taken:
            super().close(row, body)
        return tried

    def close(self, row: Row, body: Mapping[str, Any]) -> None:
        self.outbox.settle_row(row, {"status": "done"})
        self.taken.append((row, body))


class AsIfKept(Daemon):
    """What cannot be kept is said to be."""

    def send(self, args: Mapping[str, Any]) -> Answer:
        answer = super().send(args)
        name = args.get("client_message_id") or self.new_name()
        return Accepted(Effect.NEW, {"client_message_id": name}) if _is_unavailable(answer) else answer


class AsIfRequeued(Daemon):
    def requeue(self, name: str, new: str) -> Answer:
        answer = super().requeue(name, new)
        return Accepted(Effect.NEW, {"client_message_id": new}) if _is_unavailable(answer) else answer


class AsIfNothingWereDue(Daemon):
    def deliver(self) -> int:
        try:
            return super().deliver()
        except (OutboxError, UncertainError):
            return 0


def _is_unavailable(answer: Answer) -> bool:
    return isinstance(answer, Refused) and answer.reason == Reason.OUTBOX_UNAVAILABLE.value


class Anew(Outbox):
    """Makes another outbox where there is none that it can read."""

    def make_again(self) -> None:
        for path in self._path.parent.glob(f"{self._path.name}*"):
            path.unlink()
        Outbox(self._path, self._schema).make()

    def is_damaged(self) -> bool:
        connection = sqlite3.connect(f"file:{self._path}?mode=rw", uri=True)
        try:
            connection.execute("SELECT count(*) FROM outbox").fetchone()
        except sqlite3.OperationalError as error:
            return "no such table" in str(error)
        except sqlite3.DatabaseError:
            return True
        finally:
            connection.close()
        return False

    def make(self) -> None:
        Outbox(self._path, self._schema).make()


class MadeAnew(Anew):
    @contextlib.contextmanager
    def transaction(self, mode: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        if not self._path.exists():
            self.make_again()
        with super().transaction(mode) as connection:
            yield connection


class DamagedMadeAnew(Anew):
    @contextlib.contextmanager
    def transaction(self, mode: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        if self._path.exists() and self.is_damaged():
            self.make_again()
        with super().transaction(mode) as connection:
            yield connection


class RoundMakesAnew(Anew):
    def take_due(self, now: int) -> list[Row]:
        if not self._path.exists() or self.is_damaged():
            self.make_again()
        return super().take_due(now)


class NoLog(Outbox):
    def settle(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA journal_mode = OFF")
        connection.execute("PRAGMA synchronous = FULL")


class LogRemoved(Outbox):
    """A log that is there when it starts is taken for an old one."""

    started = False

    @contextlib.contextmanager
    def transaction(self, mode: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        for ending in () if self.started else ("-wal", "-shm"):
            self._path.with_name(f"{self._path.name}{ending}").unlink(missing_ok=True)
        self.started = True
        with super().transaction(mode) as connection:
            yield connection


class Rewritten(Outbox):
    """A start compacts the file, by a copy that takes the place for good before its bytes are synced."""

    started = False

    @contextlib.contextmanager
    def transaction(self, mode: str = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        if not self.started:
            self.started = True
            with super().transaction():
                """What a crash has left in the log goes into the file."""
            beside = self._path.with_name("compacted")
            beside.write_bytes(self._path.read_bytes())
            beside.replace(self._path)
            folder = os.open(self._path.parent, os.O_RDONLY)
            os.fsync(folder)
            os.close(folder)
        with super().transaction(mode) as connection:
            yield connection


class FailedCommitKept(Outbox):
    def commit(self, connection: sqlite3.Connection) -> None:
        with contextlib.suppress(sqlite3.Error, UncertainError):
            super().commit(connection)


class KnownByTime(Outbox):
    """A row of a time that has not come yet is not seen, and gives way."""

    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        with self.transaction() as connection:
            connection.execute("DELETE FROM outbox WHERE client_message_id = ? AND enqueued_at > ?", (name, now))
        return super().insert(name, fingerprint, payload, now)


BUGS: Mapping[str, Change] = {
    "send-unsynced": part(outbox=SendUnsynced),
    "requeue-unsynced": part(outbox=RequeueUnsynced),
    "outcome-unsynced": part(outbox=OutcomeUnsynced),
    "send-in-two-transactions": part(outbox=SendInTwo),
    "requeue-in-two-transactions": part(outbox=RequeueInTwo),
    "outcome-in-two-transactions": part(daemon=OutcomesInTwo),
    "kept-in-no-outbox": part(daemon=AsIfKept),
    "requeued-in-no-outbox": part(daemon=AsIfRequeued),
    "nothing-due-in-no-outbox": part(daemon=AsIfNothingWereDue),
    "outbox-made-anew": part(outbox=MadeAnew),
    "damaged-outbox-made-anew": part(outbox=DamagedMadeAnew),
    "outbox-made-anew-by-a-round": part(outbox=RoundMakesAnew),
    "outbox-without-a-log": part(outbox=NoLog),
    "outbox-log-removed": part(outbox=LogRemoved),
    "outbox-rewritten-unsynced": part(outbox=Rewritten),
    "failed-commit-is-kept": part(outbox=FailedCommitKept),
    "send-known-by-its-time": part(outbox=KnownByTime),
}
