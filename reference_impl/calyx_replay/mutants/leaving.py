"""Bugs of calyx-replay that leave something behind: for others to read, of what was refused, or of what was pruned."""

from __future__ import annotations

import sqlite3
import subprocess
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer
from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.pruning import Pruned, Pruning
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.settings import load_settings
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.planting import Change, part

_LONG = 1 << 18

# For others to read


class OpenAfterCommand(CommandLine):
    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        done = super().run(arguments, now=now)
        if list(arguments) == ["prune"]:
            Location(self._root, load_settings(self._config)).database.chmod(0o644)
        return done


class MailLogged(Mailbox):
    def receive(self, raw: bytes, *, now: datetime) -> Answer:
        answer = super().receive(raw, now=now)
        if isinstance(answer, Accepted):
            path = self._store.location.root / "mail.log"
            with path.open("ab") as log:
                log.write(raw + b"\n")
            path.chmod(0o644)
        return answer


class LongMailSpooled(Mailbox):
    def receive(self, raw: bytes, *, now: datetime) -> Answer:
        answer = super().receive(raw, now=now)
        if isinstance(answer, Accepted) and len(raw) > _LONG:
            path = self._store.location.root / "spool.mail"
            path.write_bytes(raw)
            path.chmod(0o644)
        return answer


# Of what was refused


class RefusedKept(Mailbox):
    def receive(self, raw: bytes, *, now: datetime) -> Answer:
        answer = super().receive(raw, now=now)
        if not isinstance(answer, Accepted):
            path = self._store.location.database.with_name("refused")
            with path.open("ab") as kept:
                kept.write(raw + b"\n")
            path.chmod(0o600)
        return answer


# Of what was pruned


class WithArchive(Schema):
    def statements(self) -> tuple[str, ...]:
        archive = "CREATE TABLE archive (replay_key TEXT, msg_id TEXT, sender_fp TEXT, recipient_fp TEXT, seen_at TEXT)"
        return (*super().statements(), archive)


class Archiving(Store):
    def delete_before(self, connection: sqlite3.Connection, cutoff: int) -> int:
        connection.execute(
            "INSERT INTO archive SELECT replay_key, msg_id, sender_fp, recipient_fp, seen_at FROM replay_state "
            "WHERE instant(seen_at) < ?",
            (cutoff,),
        )
        return super().delete_before(connection, cutoff)


class BackedUp(Pruning):
    def run(self, cutoff: datetime) -> Pruned:
        location = self._store.location
        for path in location.files():
            if path.exists() and not path.name.endswith("-shm"):
                # The log too: what it holds is not yet in the database. By another process, because a process that
                # closes a file loses its locks on it.
                subprocess.run(["cp", "-p", path, path.with_name(f"{path.name}.bak")], check=True)  # noqa: S607
        return super().run(cutoff)


BUGS: Mapping[str, Change] = {
    "open-after-command": part(command_line=OpenAfterCommand),
    "long-mail-spooled": part(mailbox=LongMailSpooled),
    "mail-logged": part(mailbox=MailLogged),
    "refused-kept": part(mailbox=RefusedKept),
    "pruned-archived": part(schema=WithArchive, store=Archiving),
    "backed-up-before-prune": part(pruning=BackedUp),
}
