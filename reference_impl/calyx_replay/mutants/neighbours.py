"""Bugs in which a near miss passes for a value."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from holdfast.reference_impl.calyx_replay.codec import Codec, Envelope
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.timing import Window
from holdfast.reference_impl.planting import Change, part


class FirstPageHashed(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        # The end of the ciphertext is beyond the page, and so is all behind it.
        return hashlib.sha256(envelope.canonical[:4096]).hexdigest()


class FirstDigitsLookedUp(Store):
    def has(self, connection: sqlite3.Connection, key: str) -> bool:
        # "An index of 32 bits is small."
        found = connection.execute("SELECT 1 FROM replay_state WHERE substr(replay_key, 1, 8) = ?", (key[:8],))
        return found.fetchone() is not None


class LineBreaksInBase64(Mailbox):
    def read_args(self, args: Any) -> bytes:
        text = args.get("envelope") if isinstance(args, Mapping) else None
        if not isinstance(text, str):
            return super().read_args(args)
        return super().read_args({**args, "envelope": "".join(text.split("\n"))})


class NamesWithoutCase(Mailbox):
    def read_args(self, args: Any) -> bytes:
        return super().read_args(
            {name.lower(): part for name, part in args.items()} if isinstance(args, dict) else args
        )


class MsgIdOfAnyCase(Codec):
    def check_header(self, header: Mapping[str, Any]) -> None:
        super().check_header({name: text.lower() if name == "msg_id" and isinstance(text, str) else text
                              for name, text in header.items()})  # fmt: skip


class HourTwentyFour(Window):
    def read(self, text: str) -> datetime:
        if "T24:00:00" in text:
            return super().read(text.replace("T24:", "T00:")) + timedelta(days=1)
        # time.Parse of Go read one digit for years.
        return super().read(re.sub("T([0-9]):", r"T0\1:", text))


class RetentionInWholeHours(Pruning):
    def retention(self, args: Any) -> timedelta:
        return timedelta(hours=super().retention(args) // timedelta(hours=1))


class RetentionAsText(Pruning):
    def retention(self, args: Any) -> timedelta:
        try:
            return super().retention({"retention_hours": float(args["retention_hours"])})
        except (KeyError, TypeError, ValueError, OverflowError):
            return super().retention(args)


class BlockedByLike(Store):
    def blocked_until(self, connection: sqlite3.Connection, msg_id: str) -> str | None:
        statement = 'SELECT "until" FROM blocked_msg_id WHERE ? LIKE msg_id'
        found = connection.execute(statement, (msg_id,)).fetchone()
        return None if found is None else str(found[0])


class MarkBeforeLeftEnvelope(Migration):
    def find(self, msg_id: str) -> bytes | None:
        raw = super().find(msg_id)
        return None if raw is None else raw.removeprefix(b"\xef\xbb\xbf")


BUGS: Mapping[str, Change] = {
    "first-page-hashed": part(codec=FirstPageHashed),
    "first-digits-looked-up": part(store=FirstDigitsLookedUp),
    "line-breaks-in-base64": part(mailbox=LineBreaksInBase64),
    "names-without-case": part(mailbox=NamesWithoutCase),
    "msg-id-of-any-case": part(codec=MsgIdOfAnyCase),
    "hour-twenty-four": part(window=HourTwentyFour),
    "retention-in-whole-hours": part(pruning=RetentionInWholeHours),
    "retention-as-text": part(pruning=RetentionAsText),
    "blocked-by-like": part(store=BlockedByLike),
    "mark-before-left-envelope": part(migration=MarkBeforeLeftEnvelope),
}
