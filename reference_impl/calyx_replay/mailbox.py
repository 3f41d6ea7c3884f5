"""Receiving one envelope (source sections 4.3 and 5): every guard is one method, in the contract's decision order."""

from __future__ import annotations

import sqlite3
from datetime import datetime
from typing import Any

from holdfast.reference_impl import base64url
from holdfast.reference_impl.answers import Accepted, Answer, Effect, Indeterminate
from holdfast.reference_impl.calyx_replay.codec import Codec, Envelope, EnvelopeError
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.store import KeyTakenError, Row, Store
from holdfast.reference_impl.calyx_replay.terms import Hex, Purpose, Reason, check_args
from holdfast.reference_impl.calyx_replay.timing import Window, later, written
from holdfast.reference_impl.instants import InstantError
from holdfast.reference_impl.sqlite import StoreError, UncertainError
from holdfast.reference_impl.terms import RefusedError
from holdfast.specs.schema import Validator


class Mailbox:
    """Accepts an envelope that it can prove to be new, and refuses every other."""

    def __init__(self, codec: Codec, window: Window, store: Store, pruning: Pruning, schema: Validator) -> None:
        """`schema` is that of the arguments of `accept`."""
        self._codec = codec
        self._window = window
        self._store = store
        self._pruning = pruning
        self._schema = schema

    def accept(self, args: Any, *, now: datetime) -> Answer:
        """Receive one envelope as the adapter hands it over."""
        try:
            raw = self.read_args(args)
        except RefusedError as error:
            return error.answer()
        return self.receive(raw, now=now)

    def read_args(self, args: Any) -> bytes:
        """The bytes in the arguments. Raises RefusedError."""
        check_args(self._schema, args)
        try:
            return base64url.read(args["envelope"])
        except base64url.SpellingError as error:
            raise RefusedError(Reason.REQUEST_MALFORMED, f"envelope: {error}") from error

    def receive(self, raw: bytes, *, now: datetime) -> Answer:
        """Receive the bytes of one envelope."""
        try:
            envelope = self.decode(raw)
            timestamp = self.admit(envelope, now=now)
            key = self._codec.replay_key(envelope)
            accepted = Accepted(Effect.NEW, {"replay_key": key, "msg_id": envelope.msg_id})
            self.record(envelope, key, timestamp, now=now)
        except RefusedError as error:
            return error.answer()
        except UncertainError as error:
            return Indeterminate(str(error))
        except StoreError as error:
            return RefusedError(Reason.STORE_UNAVAILABLE, str(error)).answer()
        self._pruning.automatic(now=now)
        return accepted

    # Before the store

    def decode(self, raw: bytes) -> Envelope:
        """The envelope. Raises RefusedError."""
        try:
            return self._codec.decode(raw)
        except EnvelopeError as error:
            raise RefusedError(Reason.ENVELOPE_MALFORMED, str(error)) from error

    def admit(self, envelope: Envelope, *, now: datetime) -> datetime:
        """The envelope's timestamp, if signature and time admit it. Does not read the store. Raises RefusedError."""
        timestamp = self.timestamp(envelope, now=now)
        self.guard_signature(envelope)
        self.guard_window(timestamp, now=now)
        return timestamp

    def timestamp(self, envelope: Envelope, *, now: datetime) -> datetime:  # noqa: ARG002 - now is never guessed for it
        """The instant of the header. Raises RefusedError."""
        try:
            return self._window.read(envelope.timestamp)
        except InstantError as error:
            raise RefusedError(Reason.TIMESTAMP_UNREADABLE, str(error)) from error

    def guard_signature(self, envelope: Envelope) -> None:
        """Raises RefusedError."""
        if not envelope.is_signed():
            raise RefusedError(
                Reason.SIGNATURE_INVALID, "expected the sender's Ed25519 signature in its canonical form"
            )

    def guard_window(self, timestamp: datetime, *, now: datetime) -> None:
        """Raises RefusedError."""
        if not self._window.admits(timestamp, now=now):
            detail = f"expected at most {self._window.width} from {written(now)}, got {written(timestamp)}"
            raise RefusedError(Reason.TIMESTAMP_OUT_OF_WINDOW, detail)

    # In the store

    def record(self, envelope: Envelope, key: Hex, timestamp: datetime, *, now: datetime) -> None:
        """Check, record and deliver in one transaction. Raises RefusedError, StoreError."""
        with self._store.writing(Purpose.RECEIVE) as connection:
            self.guard_duplicate(connection, key)
            self.guard_blocked(connection, envelope, timestamp)
            self.guard_provable(connection, timestamp)
            self.insert(connection, self.row(envelope, key, now=now))
            self._store.deliver(connection, envelope, key)

    def guard_duplicate(self, connection: sqlite3.Connection, key: Hex) -> None:
        """Raises RefusedError."""
        if self._store.has(connection, key) or self._store.is_ahead(connection, key):
            raise self.duplicate(key)

    def duplicate(self, key: Hex) -> RefusedError:
        """The refusal of a replay, naming the whole key."""
        return RefusedError(Reason.REPLAY_DUPLICATE, f"envelope already seen: {key}", {"replay_key": key})

    def guard_blocked(self, connection: sqlite3.Connection, envelope: Envelope, timestamp: datetime) -> None:
        """Version 0 received this id: refuse every envelope that may be the one of version 0. Raises RefusedError."""
        until = self._store.blocked_until(connection, envelope.msg_id)
        if until is not None and written(timestamp) <= until:
            detail = f"version 0 had seen this message id; refused with a timestamp until {until}"
            raise RefusedError(Reason.MSG_ID_BLOCKED, detail, {"msg_id": envelope.msg_id})

    def guard_provable(self, connection: sqlite3.Connection, timestamp: datetime) -> None:
        """The record may be pruned: every envelope received before the cutoff is older. Raises RefusedError."""
        cutoff = self._store.state(connection).pruned_before
        if cutoff is None:
            return
        provable = later(datetime.fromisoformat(cutoff), by=self._window.width)
        if timestamp < provable:
            raise RefusedError(Reason.REPLAY_UNPROVABLE, f"records first seen before {cutoff} are pruned")

    def insert(self, connection: sqlite3.Connection, row: Row) -> None:
        """Write the row. If the key is there by now, the envelope is a replay. Raises RefusedError."""
        try:
            self._store.insert(connection, row)
        except KeyTakenError as error:
            raise self.duplicate(str(row["replay_key"])) from error

    def row(self, envelope: Envelope, key: Hex, *, now: datetime) -> Row:
        """The record of one envelope, first received now by the receiver's clock."""
        return {
            "replay_key": key,
            "msg_id": envelope.msg_id,
            "sender_fp": envelope.sender_fp,
            "recipient_fp": envelope.recipient_fp,
            "seen_at": written(now),
            "envelope_timestamp": envelope.timestamp,
        }
