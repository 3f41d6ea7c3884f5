"""The broker: what it accepts, what it takes for a retry, and what it refuses (sections 4.4 to 4.7)."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from datetime import datetime, timedelta
from enum import Enum
from typing import Any
from uuid import UUID

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Indeterminate, Refused
from holdfast.reference_impl.instants import format_instant
from holdfast.reference_impl.mesh_delivery.broker_store import (
    AgainError,
    BrokerStore,
    Record,
    Send,
    Sight,
    UnavailableError,
    UncertainError,
)
from holdfast.reference_impl.mesh_delivery.counters import Counters
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter, decoded
from holdfast.reference_impl.mesh_delivery.terms import Made, Mode, Reason, RefusedError, Settings, Word
from holdfast.reference_impl.postgres import Connection

# The first eight bytes of the stored fingerprint, in hexadecimal digits.
PREFIX_DIGITS = 16
MISMATCH_TOTAL = "cm_broker_dedupe_fingerprint_mismatch_total"


class RejectedError(Exception):
    """The send is refused; raised within the transaction, it rolls back."""

    def __init__(self, reason: Enum, data: Mapping[str, Any] | None = None) -> None:
        super().__init__(reason.value)
        self.reason = reason
        self.data = data


class Broker:
    """Accepts sends. One method for each guard."""

    def __init__(
        self, settings: Settings, fingerprinter: Fingerprinter, store: BrokerStore, counters: Counters, now: datetime
    ) -> None:
        self.settings = settings
        self.fingerprinter = fingerprinter
        self.store = store
        self.counters = counters
        self.now = now

    def accept(self, args: Mapping[str, Any]) -> Answer:
        """One send that fits the schema."""
        try:
            send = self.read(args)
            message_id = self.new_id()
            return self.store.transaction(lambda connection: self.decide(connection, send, message_id), about=send)
        except RefusedError as error:
            return Refused(error.reason.value, {"field": f"request.{error.field.value}"}, str(error))
        except RejectedError as error:
            self.count(error, args)
            return Refused(error.reason.value, error.data)
        except UnavailableError as error:
            return Refused(Reason.BROKER_UNAVAILABLE.value, detail=str(error))
        except UncertainError as error:
            return Indeterminate(str(error))

    # Before the transaction

    def read(self, args: Mapping[str, Any]) -> Send:
        """The send with the broker's own fingerprint. Raises RefusedError, RejectedError."""
        request = args["request"]
        fields = self.fingerprinter.fields(request)
        body = decoded(request["body"])
        self.must_be_small(body)
        found = dict(zip(self.fingerprinter.order(), fields, strict=True))
        return Send(
            mesh_id=args["mesh_id"],
            sender=args["sender"],
            client_message_id=args["client_message_id"],
            # The broker's own, whatever the sender claims.
            fingerprint=self.fingerprinter.digest(self.fingerprinter.joined(fields)),
            destination_kind=found["destination_kind"].decode(),
            destination_ref=found["destination_ref"].decode(),
            reply_to=found["reply_to"].decode(),
            priority=found["priority"].decode(),
            meta=found["meta"],
            body=body,
        )

    def must_be_small(self, body: bytes) -> None:
        """Raise RejectedError for a body that is too large."""
        if len(body) > self.settings.inline_bytes:
            raise RejectedError(Reason.PAYLOAD_TOO_LARGE)

    def new_id(self) -> str:
        """A new broker_message_id: a ULID of the session's time, as a UUID."""
        milliseconds = int(self.now.timestamp() * 1000)
        return str(UUID(int=milliseconds << 80 | secrets.randbits(80)))

    # Within the transaction

    def decide(self, connection: Connection, send: Send, message_id: Made) -> Answer:
        """Accept a first send, answer a retry, refuse the rest. Raises RejectedError, AgainError, psycopg.Error."""
        self.must_be_member(self.store.sight)
        if not self.store.sight.is_enforced:
            return self.accept_without_record(connection, send, message_id)
        if self.store.insert_record(connection, send, message_id, self.now, self.expires()):
            return self.accept_first(connection, send, message_id)
        return self.answer_retry(send, self.original(connection, send))

    def must_be_member(self, sight: Sight) -> None:
        """Raise RejectedError for a sender that the mesh does not know."""
        if not sight.is_member:
            raise RejectedError(Reason.AUTH_MISSING)

    def must_have_destination(self, sight: Sight) -> None:
        """Raise RejectedError where a message cannot go. It takes the record with it."""
        if not sight.has_destination:
            raise RejectedError(Reason.DESTINATION_NOT_FOUND)

    def expires(self) -> datetime | None:
        """When the record of a send of now expires; None for never."""
        if self.settings.mode is Mode.PERMANENT:
            return None
        return self.now + timedelta(days=self.settings.dedupe_retention_days)

    def accept_first(self, connection: Connection, send: Send, message_id: Made) -> Answer:
        """The record is inserted; now the message and its fan-out."""
        self.must_have_destination(self.store.sight)
        place = self.store.insert_message(
            connection, send, message_id, self.now, client_message_id=send.client_message_id
        )
        return self.first(send, message_id, place)

    def accept_without_record(self, connection: Connection, send: Send, message_id: Made) -> Answer:
        """As before v6: no record, and a message row of legacy traffic."""
        self.must_have_destination(self.store.sight)
        place = self.store.insert_message(connection, send, message_id, self.now, client_message_id=None)
        return self.first(send, message_id, place)

    def original(self, connection: Connection, send: Send) -> Record:
        """The record that the insert met. Raises AgainError if it is gone by now."""
        record = self.store.select_record(connection, send.mesh_id, send.client_message_id)
        if record is None:
            raise AgainError
        return record

    # The answers

    def first(self, send: Send, message_id: Made, place: Word) -> Answer:
        """201."""
        value = {
            "broker_message_id": message_id,
            "client_message_id": send.client_message_id,
            "history_id": place,
            "duplicate": False,
        }
        return Accepted(Effect.NEW, value)

    def answer_retry(self, send: Send, record: Record) -> Answer:
        """200 or, with RejectedError, 409: decided on the record that was selected."""
        self.must_be_sender(send, record)
        self.must_match(send, record)
        value = {
            "broker_message_id": record.broker_message_id,
            "client_message_id": send.client_message_id,
            "history_id": record.history_id,
            "duplicate": True,
            "history_available": record.history_available,
            "first_seen_at": format_instant(record.first_seen_at),
        }
        return Accepted(Effect.PRIOR, value)

    def must_be_sender(self, send: Send, record: Record) -> None:
        """Raise RejectedError for the id of another member's message; the refusal tells nothing of it."""
        if send.sender != record.sender:
            data = {"client_message_id": send.client_message_id, "conflict": "sender_mismatch"}
            raise RejectedError(Reason.IDEMPOTENCY_KEY_REUSED, data)

    def must_match(self, send: Send, record: Record) -> None:
        """Raise RejectedError for another send under the id of an accepted one."""
        if send.fingerprint != record.fingerprint:
            data = {
                "client_message_id": send.client_message_id,
                "conflict": "request_fingerprint_mismatch",
                "broker_fingerprint_prefix": record.fingerprint.hex()[:PREFIX_DIGITS],
            }
            raise RejectedError(Reason.IDEMPOTENCY_KEY_REUSED, data)

    def count(self, error: RejectedError, args: Mapping[str, Any]) -> None:
        """Count a conflict of fingerprints."""
        if error.data is not None and error.data.get("conflict") == "request_fingerprint_mismatch":
            self.counters.add(MISMATCH_TOTAL, client_id=args["sender"], mesh_id=args["mesh_id"])
