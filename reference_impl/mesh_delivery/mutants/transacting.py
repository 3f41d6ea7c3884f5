"""Bugs of the one transaction: its order, its borders, and what it does beside another."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any
from uuid import uuid4

import psycopg

from holdfast.reference_impl.answers import Accepted, Answer, Effect
from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.mesh_delivery.broker import Broker
from holdfast.reference_impl.mesh_delivery.broker_store import AgainError, BrokerStore, Record, Send, Statement
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.postgres import Connection


def _committed(connection: Connection) -> None:
    connection.execute("COMMIT")
    connection.execute("BEGIN")


_PAGE = 100


class RecordFirst(BrokerStore):
    def insert_record(self, connection: Connection, *args: Any) -> bool:
        first = super().insert_record(connection, *args)
        _committed(connection)
        return first


class QueueForgotten(Broker):
    def decide(self, connection: Connection, send: Send, message_id: str) -> Answer:
        if send.destination_kind == "queue":
            return self.accept_without_record(connection, send, message_id)
        return super().decide(connection, send, message_id)


class MemberForgotten(Broker):
    def decide(self, connection: Connection, send: Send, message_id: str) -> Answer:
        if send.destination_kind == "dm":
            return self.accept_without_record(connection, send, message_id)
        return super().decide(connection, send, message_id)


class OwnIds(BrokerStore):
    def insert_message(self, connection: Connection, send: Send, message_id: str, *args: Any, **named: Any) -> str:
        return super().insert_message(connection, send, str(uuid4()), *args, **named)


class FallsThrough(Broker):
    def decide(self, connection: Connection, send: Send, message_id: str) -> Answer:
        self.must_be_member(self.store.sight)
        self.store.insert_record(connection, send, message_id, self.now, self.expires())
        return self.accept_first(connection, send, message_id)


class Literal(Broker):
    """The code of the source: where there is a conflict, nothing was returned that could be compared."""

    def answer_retry(self, send: Send, record: Record) -> Answer:
        return super().answer_retry(replace(send, fingerprint=record.fingerprint), record)


class ComparedBefore(Broker):
    def decide(self, connection: Connection, send: Send, message_id: str) -> Answer:
        early = self.store.select_record(connection, send.mesh_id, send.client_message_id)
        if early is not None:
            return self.answer_retry(send, early)
        if self.store.insert_record(connection, send, message_id, self.now, self.expires()):
            return self.accept_first(connection, send, message_id)
        record = self.original(connection, send)
        return self.answer_retry(replace(send, fingerprint=record.fingerprint), record)


class VanishedIsKnown(Broker):
    def original(self, connection: Connection, send: Send) -> Record:
        try:
            return super().original(connection, send)
        except AgainError:
            return Record(self.new_id(), send.fingerprint, send.sender, self.now, True, None)


class VanishedIsNew(Broker):
    """Answers as if it had accepted what is not there."""

    def decide(self, connection: Connection, send: Send, message_id: str) -> Answer:
        try:
            return super().decide(connection, send, message_id)
        except AgainError:
            value = {"client_message_id": send.client_message_id, "history_id": None, "duplicate": True}
            known = {"history_available": False, "first_seen_at": format_instant(self.now)}
            return Accepted(Effect.PRIOR, {"broker_message_id": message_id, **value, **known})


class _Apart(BrokerStore):
    """The message row and its fan-out are two statements."""

    def insert_message(
        self, connection: Connection, send: Send, message_id: str, now: datetime, *, client_message_id: str | None
    ) -> str:
        found: Any = connection.execute(*self.message(send, message_id, now, client_message_id)).fetchone()
        self.send_on(connection, *self.fan_out(send, message_id))
        return str(found[0])

    def send_on(self, connection: Connection, statement: str, values: Sequence[object]) -> None:
        connection.execute(statement, values)


class FanOutLater(_Apart):
    def send_on(self, connection: Connection, statement: str, values: Sequence[object]) -> None:
        _committed(connection)
        super().send_on(connection, statement, values)


class FanOutOfAPage(BrokerStore):
    def receivers(self, send: Send) -> Statement:
        query, values = super().receivers(send)
        return f"{query} LIMIT {_PAGE}", values


class FanOutOptional(_Apart):
    def send_on(self, connection: Connection, statement: str, values: Sequence[object]) -> None:
        connection.execute("SAVEPOINT fan_out")
        with contextlib.suppress(psycopg.IntegrityError):
            super().send_on(connection, statement, values)
            return
        connection.execute("ROLLBACK TO fan_out")


class ByProcess(Broker):
    """The id counts in the process that has accepted it."""

    def read(self, args: Mapping[str, Any]) -> Send:
        send = super().read(args)
        return replace(send, client_message_id=f"{os.getpid()} {send.client_message_id}")


class RecordStays(Broker):
    def accept_first(self, connection: Connection, send: Send, message_id: str) -> Answer:
        connection.execute("SAVEPOINT message")
        try:
            return super().accept_first(connection, send, message_id)
        except psycopg.IntegrityError:
            connection.execute("ROLLBACK TO message")
            _committed(connection)
            raise


class TimeMoved(BrokerStore):
    def insert_record(
        self, connection: Connection, send: Send, message_id: str, now: datetime, expires: datetime | None
    ) -> bool:
        first = super().insert_record(connection, send, message_id, now, expires)
        if not first:
            statement = (
                "UPDATE mesh.client_message_dedupe SET first_seen_at = %s WHERE mesh_id = %s AND client_message_id = %s"
            )
            connection.execute(statement, (now, send.mesh_id, send.client_message_id))
        return first


BUGS: Mapping[str, Change] = {
    "record-committed-first": part(broker_store=RecordFirst),
    "queue-without-record": part(broker=QueueForgotten),
    "member-without-record": part(broker=MemberForgotten),
    "message-with-its-own-id": part(broker_store=OwnIds),
    "conflict-falls-through": part(broker=FallsThrough),
    "unreachable-mismatch-check": part(broker=Literal),
    "compared-before-the-winner": part(broker=ComparedBefore),
    "vanished-record-is-known": part(broker=VanishedIsKnown),
    "vanished-record-is-a-duplicate": part(broker=VanishedIsNew),
    "fan-out-behind-the-commit": part(broker_store=FanOutLater),
    "fan-out-of-a-page": part(broker_store=FanOutOfAPage),
    "fan-out-optional": part(broker_store=FanOutOptional),
    "ids-of-a-process": part(broker=ByProcess),
    "record-outlives-a-failed-message": part(broker=RecordStays),
    "retry-moves-the-time": part(broker_store=TimeMoved),
}
