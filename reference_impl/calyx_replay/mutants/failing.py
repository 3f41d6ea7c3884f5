"""Bugs of calyx-replay that a failure begins: after a forgery, and after a connection was opened again."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from holdfast.reference_impl.calyx_replay.codec import Envelope
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import StoreError

# After a full disk


class SeenThoughItFailed(Mailbox):
    def record(self, envelope: Envelope, key: str, timestamp: datetime, *, now: datetime) -> None:
        seen = self.__dict__.setdefault("_seen", set())
        if key in seen:
            raise self.duplicate(key)
        try:
            super().record(envelope, key, timestamp, now=now)
        except StoreError as error:
            # It was in memory before the disk was full.
            if "full" in str(error):
                seen.add(key)
            raise


# After a forgery


# After a connection was opened again


BUGS: Mapping[str, Change] = {
    "seen-though-it-failed": part(mailbox=SeenThoughItFailed),
}
