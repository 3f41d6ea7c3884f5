"""Bugs of calyx-replay that an operation leaves behind for those after it, or that only large or odd letters show."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.calyx_replay.codec import Codec, Envelope, EnvelopeError
from holdfast.reference_impl.calyx_replay.location import IGNORE_FILE
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.pruning import Pruned, Pruning
from holdfast.reference_impl.calyx_replay.signatures import Signatures
from holdfast.reference_impl.calyx_replay.store import MailboxState, Store
from holdfast.reference_impl.calyx_replay.timing import Written, later, written
from holdfast.reference_impl.planting import Change, part

_MEMBERS, _BYTES, _BLOCKS = 32, 262_144, 1000


class SignatureAnywhere(Signatures):
    def valid(self, envelope: Envelope) -> bool:
        parts = json.loads(envelope.signed)
        parts["header"].pop("signature", None)
        signed = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
        return super().valid(replace(envelope, signed=signed))


class KeyOfTheFront(Codec):
    def replay_key(self, envelope: Envelope) -> str:
        return super().replay_key(replace(envelope, canonical=envelope.canonical[:_BYTES]))


class FewMembers(Codec):
    def check_header(self, header: Mapping[str, Any]) -> None:
        super().check_header(header)
        if len(header) > _MEMBERS:
            raise EnvelopeError(f"expected at most {_MEMBERS} members in the header, got {len(header)}")


class FewBlocks(Store):
    def block(self, connection: sqlite3.Connection, msg_id: str, until: Written) -> bool:
        done = super().block(connection, msg_id, until)
        newest = "SELECT rowid FROM blocked_msg_id ORDER BY rowid DESC LIMIT ?"
        connection.execute(f"DELETE FROM blocked_msg_id WHERE rowid NOT IN ({newest})", (_BLOCKS,))
        return done


class BlocksEndAtOnce(Pruning):
    def remove(self, connection: sqlite3.Connection, cutoff: datetime) -> Pruned:
        # A retention later: the time of the prune, as far as this method knows it.
        self._store.unblock_before(connection, written(later(cutoff, self._settings.least_retention)))
        return super().remove(connection, cutoff)


class IgnoreFileRewritten(Migration):
    def migrate(self, *, now: datetime) -> Answer:
        answer = super().migrate(now=now)
        beside = self._store.location.database.parent
        (beside / IGNORE_FILE).write_text("seen_cache.json\nenvelopes/\n", encoding="utf-8")
        return answer


class AheadBelieved(Pruning):
    def due(self, state: MailboxState, *, now: datetime) -> bool:
        last = state.last_automatic
        return last is None or now - datetime.fromisoformat(last) >= self._settings.prune_interval


BUGS: Mapping[str, Change] = {
    "signature-stripped-anywhere": part(signatures=SignatureAnywhere),
    "key-of-the-front": part(codec=KeyOfTheFront),
    "header-of-few-members": part(codec=FewMembers),
    "blocks-of-a-thousand": part(store=FewBlocks),
    "blocks-end-at-a-prune": part(pruning=BlocksEndAtOnce),
    "ignore-file-rewritten": part(migration=IgnoreFileRewritten),
    "prune-ahead-believed": part(pruning=AheadBelieved),
}
