"""Bugs of calyx-replay in the command line for operators."""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.settings import load_settings
from holdfast.reference_impl.planting import Change, part

_NOTHING = {"status": 0, "output": "removed 0, kept 0, unreadable 0\n"}
_YEAR = timedelta(days=366)
_MOST = 1000


class RunsOnce(CommandLine):
    """A command that ran once leaves a mark, and is not run again."""

    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        mark = self._root / f".{arguments[0]}d"
        if mark.exists():
            return dict(_NOTHING)
        done = super().run(arguments, now=now)
        if arguments[0] != "inspect" and not done["status"]:
            mark.touch()
        return done


class LeavesItsLock(CommandLine):
    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        lock = self._root / "inspect.lock"
        if arguments[0] == "inspect":
            if lock.exists():
                return {"status": 1, "output": "another inspection runs\n"}
            lock.touch()
        return super().run(arguments, now=now)


class DoubtsTheClock(CommandLine):
    """A clock that is a year ahead of the file's time, or behind the last command's, is wrong: nothing is done."""

    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        mark = self._root / ".last-command"
        path = Location(self._root, load_settings(self._config)).database
        if path.exists() and now.timestamp() > path.stat().st_mtime + _YEAR.total_seconds() and not mark.exists():
            mark.write_text(now.isoformat(), encoding="utf-8")
            return dict(_NOTHING)
        if mark.exists() and now < datetime.fromisoformat(mark.read_text(encoding="utf-8")):
            return dict(_NOTHING)
        return super().run(arguments, now=now)


class KeepsToTheMinute(CommandLine):
    """The cutoff of a command is rounded up to a minute, as its output shows it."""

    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        if arguments[0] == "prune":
            now = now.replace(second=0, microsecond=0) + timedelta(minutes=1)
        return super().run(arguments, now=now)


class UsualRetention(CommandLine):
    def words(self, arguments: Sequence[str], *, now: datetime) -> list[str]:
        words = super().words(arguments, now=now)
        config = words.index("--config") + 1
        words[config] = json.dumps({name: value for name, value in self._config.items() if name != "retention_hours"})
        return words


class ReportsWhatItPruned(CommandLine):
    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        folder, before = self._root / "runtime/mailbox", set(self._rows())
        done = super().run(arguments, now=now)
        if arguments[0] == "prune" and (gone := before - set(self._rows())):
            report = os.open(folder / "pruned.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            with open(report, "a", encoding="utf-8") as file:
                file.writelines(f"{row}\n" for row in gone)
        return done

    def _rows(self) -> Sequence[str]:
        with contextlib.closing(sqlite3.connect(self._root / "runtime/mailbox/replay_state.db")) as connection:
            return [json.dumps(row) for row in connection.execute("SELECT * FROM replay_state")]


class ListOfAThousand(Migration):
    def read_list(self, path: Path) -> Sequence[str]:
        return super().read_list(path)[:_MOST]


class InspectsFew(CommandLine):
    """A status that says how many records there are, as far as a status can."""

    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        done = super().run(arguments, now=now)
        records = [line for line in done["output"].splitlines() if line.startswith("records ")]
        if records and int(records[0].split()[1].rstrip(",")) > _MOST:
            done["status"] = 255
        return done


def only(command: str, bug: str) -> type[CommandLine]:
    """A command line of which one command has another planted bug, while the mailbox itself has none."""

    class Only(CommandLine):
        def words(self, arguments: Sequence[str], *, now: datetime) -> list[str]:
            # The process of any other command needs no bug: the whole one starts faster.
            line = CommandLine(self._root, self._config, bug if arguments[0] == command else None)
            return line.words(arguments, now=now)

    return Only


BUGS: Mapping[str, Change] = {
    "command-line-reports-what-it-pruned": part(command_line=ReportsWhatItPruned),
    "command-line-usual-retention": part(command_line=UsualRetention),
    "command-line-migrates-in-pieces": part(command_line=only("migrate", "migration-in-pieces")),
    "command-line-migrates-unsynced": part(command_line=only("migrate", "migration-unsynced")),
    "command-line-migrates-on-a-full-disk": part(command_line=only("migrate", "full-disk-is-migrated")),
    "command-line-prunes-row-by-row": part(command_line=only("prune", "prune-row-by-row")),
    "command-line-prunes-unsynced": part(command_line=only("prune", "prune-unsynced")),
    "command-line-prunes-on-a-full-disk": part(command_line=only("prune", "full-disk-is-pruned")),
    "command-line-runs-once": part(command_line=RunsOnce),
    "command-line-leaves-its-lock": part(command_line=LeavesItsLock),
    "command-line-doubts-the-clock": part(command_line=DoubtsTheClock),
    "command-line-keeps-to-the-minute": part(command_line=KeepsToTheMinute),
    "list-of-a-thousand": part(migration=ListOfAThousand),
    "command-line-inspects-few": part(command_line=InspectsFew),
}
