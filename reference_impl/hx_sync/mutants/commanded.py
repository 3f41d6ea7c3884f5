"""Bugs of hx-sync that one command of the command line has, while the devices themselves have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.reference_impl.hx_sync.command_line import CommandLine
from holdfast.reference_impl.planting import Change, part

# How SQLite and the system say that a disk is full.
_FULL = ("disk is full", "disk I/O error", "No space left")


def only(command: str, bug: str) -> type[CommandLine]:
    """A command line of which one command has another planted bug."""

    class Only(CommandLine):
        def words(self, node: str, arguments: Sequence[str], *, now: datetime) -> list[str]:
            # The process of any other command needs no bug: the whole one starts faster.
            line = CommandLine(self._root, self._config, bug if arguments[0] == command else None)
            return line.words(node, arguments, now=now)

    return Only


def ignoring_a_full_disk(command: str) -> type[CommandLine]:
    """A command line of which one command exits with 0 on a disk that is full."""

    class IgnoringAFullDisk(CommandLine):
        def run(self, node: str, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
            done = CommandLine(self._root, self._config, None).run(node, arguments, now=now)
            is_full = arguments[0] == command and any(words in done["output"] for words in _FULL)
            return {**done, "status": 0} if is_full else done

    return IgnoringAFullDisk


BUGS: Mapping[str, Change] = {
    "command-line-forgets-before-it-records": part(command_line=only("forget", "forget-deletes-before-it-records")),
    "command-line-forgets-unsynced": part(command_line=only("forget", "put-unsynced")),
    "command-line-forgets-on-a-full-disk": part(command_line=ignoring_a_full_disk("forget")),
    "command-line-records-before-it-applies": part(command_line=only("import", "tombstone-recorded-first")),
    "command-line-imports-unsynced": part(command_line=only("import", "index-unsynced")),
    "command-line-imports-on-a-full-disk": part(command_line=ignoring_a_full_disk("import")),
}
