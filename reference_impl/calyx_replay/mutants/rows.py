"""Bugs in what a row of replay_state holds."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Codec, Envelope
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.store import Row
from holdfast.reference_impl.calyx_replay.timing import SeenAt, written
from holdfast.reference_impl.planting import Change, part

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


BUGS: Mapping[str, Change] = {
    "seen-at-local": part(seen_at=SeenAtLocal),
    "timestamp-reformatted": part(mailbox=TimestampReformatted),
    "timestamp-is-seen-at": part(mailbox=TimestampIsSeenAt),
    "msg-id-made-up": part(mailbox=MsgIdMadeUp),
    "msg-id-unchecked": part(codec=MsgIdUnchecked),
    "fingerprints-swapped": part(mailbox=FingerprintsSwapped),
}
