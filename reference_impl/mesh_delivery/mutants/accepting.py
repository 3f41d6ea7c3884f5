"""Bugs of accepting: what is compared, what is refused, and what an answer holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Refused
from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.mesh_delivery.broker import PREFIX_DIGITS, Broker, RejectedError
from holdfast.reference_impl.mesh_delivery.broker_admin import Administrator
from holdfast.reference_impl.mesh_delivery.broker_store import BrokerStore, Found, Record, Send, Sight
from holdfast.reference_impl.mesh_delivery.terms import Reason
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.postgres import Connection


class NoRecord(BrokerStore):
    def insert_record(self, *args: Any) -> bool:
        return True


class NewId(Broker):
    def original(self, connection: Connection, send: Send) -> Record:
        return replace(super().original(connection, send), broker_message_id=self.new_id())


class FanOutFirst(Broker):
    def decide(self, connection: Connection, send: Send, message_id: str) -> Answer:
        answer = super().decide(connection, send, message_id)
        if isinstance(answer, Accepted) and answer.effect is Effect.PRIOR:
            connection.execute(*self.store.fan_out(send, message_id))
        return answer


class NotCompared(Broker):
    def must_match(self, send: Send, record: Record) -> None:
        pass


class WithoutKind(Broker):
    def fingerprint_of(self, fields: list[bytes], args: Mapping[str, Any]) -> bytes:
        return super().fingerprint_of([fields[0], b"", b"", *fields[3:]], args)


class WithoutMeta(Broker):
    def fingerprint_of(self, fields: list[bytes], args: Mapping[str, Any]) -> bytes:
        return super().fingerprint_of([*fields[:5], b"", fields[6]], args)


class OfTheBroker(Broker):
    def fingerprint_of(self, fields: list[bytes], args: Mapping[str, Any]) -> bytes:
        return super().fingerprint_of([b"1", *fields[1:]], args)


class Believed(Broker):
    def fingerprint_of(self, fields: list[bytes], args: Mapping[str, Any]) -> bytes:
        claimed = args.get("claimed_fingerprint")
        return super().fingerprint_of(fields, args) if claimed is None else bytes.fromhex(claimed)


class Overwrites(Broker):
    def accept(self, args: Mapping[str, Any]) -> Answer:
        answer = super().accept(args)
        if isinstance(answer, Refused) and answer.reason == Reason.IDEMPOTENCY_KEY_REUSED.value:
            send = self.read(args)
            values = (send.fingerprint, send.mesh_id, send.client_message_id)
            statement = (
                "UPDATE mesh.client_message_dedupe SET request_fingerprint = %s "
                "WHERE mesh_id = %s AND client_message_id = %s"
            )
            self.store.transaction(lambda connection: connection.execute(statement, values))
        return answer


class IdDropped(Administrator):
    def inbox(self, mesh_id: str, receiver: str) -> list[dict[str, Any]]:
        return [{**message, "client_message_id": None} for message in super().inbox(mesh_id, receiver)]


class AnyMesh(Broker):
    def decide(self, connection: Connection, send: Send, message_id: str) -> Answer:
        statement = "SELECT mesh_id::text FROM mesh.client_message_dedupe WHERE client_message_id = %s"
        found = connection.execute(statement, (send.client_message_id,)).fetchone()
        mesh_id = send.mesh_id if found is None else str(found[0])
        record = self.store.select_record(connection, mesh_id, send.client_message_id)
        return super().decide(connection, send, message_id) if record is None else self.answer_retry(send, record)


class SenderIgnored(Broker):
    def must_be_sender(self, send: Send, record: Record) -> None:
        pass


class SenderTold(Broker):
    def must_be_sender(self, send: Send, record: Record) -> None:
        try:
            super().must_be_sender(send, record)
        except RejectedError as error:
            data = {**(error.data or {}), "broker_fingerprint_prefix": self.prefix(send, record)}
            raise RejectedError(error.reason, data) from error


class Uncounted(Broker):
    def count(self, error: RejectedError, args: Mapping[str, Any]) -> None:
        pass


class CountedAsOne(Broker):
    def count(self, error: RejectedError, args: Mapping[str, Any]) -> None:
        super().count(error, {**args, "mesh_id": ""})


class FirstIsDuplicate(Broker):
    def first(self, send: Send, message_id: str, place: str) -> Answer:
        answer = super().first(send, message_id, place)
        assert isinstance(answer, Accepted)
        return Accepted(answer.effect, {**answer.value, "duplicate": True})


class FirstTellsTheTime(Broker):
    def first(self, send: Send, message_id: str, place: str) -> Answer:
        answer = super().first(send, message_id, place)
        assert isinstance(answer, Accepted)
        return Accepted(answer.effect, {**answer.value, "first_seen_at": format_instant(self.now)})


class TimeOfTheRetry(Broker):
    def original(self, connection: Connection, send: Send) -> Record:
        return replace(super().original(connection, send), first_seen_at=self.now)


class RetryIsNew(Broker):
    def answer_retry(self, send: Send, record: Record) -> Answer:
        answer = super().answer_retry(send, record)
        assert isinstance(answer, Accepted)
        return Accepted(answer.effect, {**answer.value, "duplicate": False})


class PrefixOfTheSend(Broker):
    def prefix(self, send: Send, record: Record) -> str:
        return send.fingerprint.hex()[:PREFIX_DIGITS]


class ShortPrefix(Broker):
    def prefix(self, send: Send, record: Record) -> str:
        return super().prefix(send, record)[:8]


class OutageIsNew(Broker):
    def accept(self, args: Mapping[str, Any]) -> Answer:
        answer = super().accept(args)
        if isinstance(answer, Refused) and answer.reason == Reason.BROKER_UNAVAILABLE.value:
            return self.first(self.read(args), self.new_id(), "0")
        return answer


class RejectedRecorded(Broker):
    def accept(self, args: Mapping[str, Any]) -> Answer:
        answer = super().accept(args)
        if isinstance(answer, Refused) and answer.reason == Reason.DESTINATION_NOT_FOUND.value:
            send, message_id = self.read(args), self.new_id()
            self.store.transaction(
                lambda connection: self.store.insert_record(connection, send, message_id, self.now, self.expires())
            )
        return answer


class RejectedRemembered(Broker):
    remembered: Mapping[str, bytes] = {}

    def accept(self, args: Mapping[str, Any]) -> Answer:
        answer = super().accept(args)
        name = args["client_message_id"]
        if isinstance(answer, Refused) and answer.reason != Reason.BROKER_UNAVAILABLE.value:
            self.remembered = {**self.remembered, name: b""}
        elif name in self.remembered:
            return Refused(Reason.IDEMPOTENCY_KEY_REUSED.value)
        return answer


class AnySize(Broker):
    def must_be_small(self, body: bytes) -> None:
        pass


class AnySender(Broker):
    def must_be_member(self, sight: Sight) -> None:
        pass


class AnyDestination(Broker):
    def must_have_destination(self, sight: Sight) -> None:
        pass


class ExpiredTaken(Broker):
    def decide(self, connection: Connection, send: Send, message_id: str) -> Answer:
        connection.execute("DELETE FROM mesh.client_message_dedupe WHERE expires_at < %s", (self.now,))
        return super().decide(connection, send, message_id)


class _Asking(BrokerStore):
    def ask(self, connection: Connection, send: Send) -> Found:
        self.asked = send
        return super().ask(connection, send)


class MemberOfAny(_Asking):
    def seen(self, connection: Connection, found: Found) -> Sight:
        known = "SELECT EXISTS (SELECT FROM mesh.member WHERE public_key = %s)"
        sight = super().seen(connection, found)
        row: Any = connection.execute(known, (self.asked.sender,)).fetchone()
        return replace(sight, is_member=row[0])


class TopicInAnyCase(_Asking):
    def seen(self, connection: Connection, found: Found) -> Sight:
        sight = super().seen(connection, found)
        if self.asked.destination_kind != "topic":
            return sight
        known = "SELECT EXISTS (SELECT FROM mesh.topic WHERE mesh_id = %s AND lower(name) = lower(%s))"
        row: Any = connection.execute(known, (self.asked.mesh_id, self.asked.destination_ref)).fetchone()
        return replace(sight, has_destination=row[0])


BUGS: Mapping[str, Change] = {
    "member-of-any-mesh": part(broker_store=MemberOfAny),
    "topic-in-any-case": part(broker_store=TopicInAnyCase),
    "record-never-written": part(broker_store=NoRecord),
    "retry-has-a-new-id": part(broker=NewId),
    "fan-out-of-retries": part(broker=FanOutFirst),
    "fingerprint-not-compared": part(broker=NotCompared),
    "destination-not-compared": part(broker=WithoutKind),
    "meta-not-compared": part(broker=WithoutMeta),
    "version-of-the-broker": part(broker=OfTheBroker),
    "claim-believed": part(broker=Believed),
    "conflict-overwrites": part(broker=Overwrites),
    "inbox-without-ids": part(administrator=IdDropped),
    "scope-without-mesh": part(broker=AnyMesh),
    "sender-ignored": part(broker=SenderIgnored),
    "another-sender-told": part(broker=SenderTold),
    "conflict-uncounted": part(broker=Uncounted),
    "conflict-counted-without-mesh": part(broker=CountedAsOne),
    "first-is-a-duplicate": part(broker=FirstIsDuplicate),
    "first-tells-the-time": part(broker=FirstTellsTheTime),
    "time-of-the-retry": part(broker=TimeOfTheRetry),
    "retry-is-no-duplicate": part(broker=RetryIsNew),
    "prefix-of-the-send": part(broker=PrefixOfTheSend),
    "prefix-of-four-bytes": part(broker=ShortPrefix),
    "outage-is-accepted": part(broker=OutageIsNew),
    "rejected-send-recorded": part(broker=RejectedRecorded),
    "rejected-send-remembered": part(broker=RejectedRemembered),
    "body-of-any-size": part(broker=AnySize),
    "any-sender-accepted": part(broker=AnySender),
    "any-destination-accepted": part(broker=AnyDestination),
    "expired-record-ignored": part(broker=ExpiredTaken),
}
