"""Bugs in what a row of replay_state holds."""

from __future__ import annotations

import re
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


class ShortFractions(SeenAt):
    def read_text(self, stored: str) -> int | None:
        # Any number of digits behind the point is taken for microseconds.
        return super().read_text(re.sub(r"[.]([0-9]+)", lambda found: f".{found[1]:0>6}", stored))


class OffsetByItsHours(SeenAt):
    def read_text(self, stored: str) -> int | None:
        return super().read_text(re.sub("-(00:[0-9]{2})$", r"+\1", stored))


class FourthYears(SeenAt):
    def read_text(self, stored: str) -> int | None:
        if stored[5:10] == "02-29" and int(stored[:4]) % 4 == 0:
            return super().read_text(f"{stored[:5]}03-01{stored[10:]}")
        return super().read_text(stored)


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
    "short-fractions-misread": part(seen_at=ShortFractions),
    "every-fourth-year-is-a-leap-year": part(seen_at=FourthYears),
    "seen-at-local": part(seen_at=SeenAtLocal),
    "timestamp-reformatted": part(mailbox=TimestampReformatted),
    "offset-by-its-hours": part(seen_at=OffsetByItsHours),
    "timestamp-is-seen-at": part(mailbox=TimestampIsSeenAt),
    "msg-id-made-up": part(mailbox=MsgIdMadeUp),
    "msg-id-unchecked": part(codec=MsgIdUnchecked),
    "fingerprints-swapped": part(mailbox=FingerprintsSwapped),
}
