"""Bugs in what a row of replay_state holds."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Codec, Envelope
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.mutants.planting import mutant
from holdfast.reference_impl.calyx_replay.store import Row
from holdfast.reference_impl.calyx_replay.timing import SeenAt, written
from holdfast.reference_impl.mutants.planting import also, part

_SOME_ID = "00000000-0000-4000-8000-000000000000"


class SeenAtLocal(SeenAt):
    def write(self, instant: datetime) -> str:
        return instant.astimezone().replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


class TimestampReformatted(Mailbox):
    def row(self, envelope: Envelope, key: str, *, now: datetime) -> Row:
        row = super().row(envelope, key, now=now)
        return {**row, "envelope_timestamp": written(datetime.fromisoformat(envelope.timestamp))}


class TimestampIsSeenAt(Mailbox):
    def row(self, envelope: Envelope, key: str, *, now: datetime) -> Row:
        row = super().row(envelope, key, now=now)
        return {**row, "envelope_timestamp": row["seen_at"]}


class MsgIdMadeUp(Mailbox):
    def row(self, envelope: Envelope, key: str, *, now: datetime) -> Row:
        return super().row(replace(envelope, msg_id=str(uuid.uuid4())), key, now=now)


class MsgIdUnchecked(Codec):
    def check_header(self, header: Mapping[str, Any]) -> None:
        some = {"msg_id": _SOME_ID} if isinstance(header.get("msg_id"), str) else {}
        super().check_header({**header, **some})


class FingerprintsSwapped(Mailbox):
    def row(self, envelope: Envelope, key: str, *, now: datetime) -> Row:
        swapped = replace(envelope, sender_fp=envelope.recipient_fp, recipient_fp=envelope.sender_fp)
        return super().row(swapped, key, now=now)


_WHOLE_ROWS = "its case compares whole rows with their envelopes"

MUTANTS = (
    mutant("seen-at-local", "seen_at is the local time", part(seen_at=SeenAtLocal), {"SCH-6": "wrong_reason"}),
    mutant(
        "timestamp-reformatted",
        "envelope_timestamp is the instant of the header in the store's own format",
        part(mailbox=TimestampReformatted),
        {"SCH-7": "wrong_reason"},
        also(_WHOLE_ROWS, "SCH-14 SCH-15"),
    ),
    mutant(
        "timestamp-is-seen-at",
        "envelope_timestamp is the receiver's time",
        part(mailbox=TimestampIsSeenAt),
        {"SCH-7": "wrong_reason"},
        also(_WHOLE_ROWS, "SCH-14 SCH-15"),
    ),
    mutant(
        "msg-id-made-up",
        "Each row gets a message id of the store's own",
        part(mailbox=MsgIdMadeUp),
        {"SCH-14": "wrong_reason"},
        also(_WHOLE_ROWS, "SCH-7 SCH-15"),
    ),
    mutant(
        "msg-id-unchecked",
        "Any text will do as a message id",
        part(codec=MsgIdUnchecked),
        {"SCH-14": "fail_open"},
        also("an id in another spelling is refused for its signature, not for its form", "KEY-6"),
    ),
    mutant(
        "fingerprints-swapped",
        "Sender and recipient are mixed up in the row",
        part(mailbox=FingerprintsSwapped),
        {"SCH-15": "wrong_reason"},
        also(_WHOLE_ROWS, "SCH-7 SCH-14"),
    ),
)
