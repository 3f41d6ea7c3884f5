"""Bugs of calyx-replay where the store is lost, damaged or replaced: it is made anew, or told to others."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.provision import Provisioner
from holdfast.reference_impl.calyx_replay.schema import Schema
from holdfast.reference_impl.calyx_replay.settings import load_settings
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import Purpose
from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.sqlite import StoreError

_MARK = b"SQLite format 3\0"
_PAGE = 4096


def _made_anew(location: Location) -> None:
    """Removes every file of the database, and makes a new one."""
    for path in location.files():
        path.unlink(missing_ok=True)
    Provisioner(Schema()).make(location)


class MadeAnew(Store):
    """What cannot be opened for this purpose is made anew, so that mail goes on."""

    purpose = Purpose.RECEIVE

    def connection(self, purpose: Purpose) -> sqlite3.Connection:
        try:
            return super().connection(purpose)
        except (sqlite3.Error, StoreError):
            if purpose is not self.purpose or not self._is_lost():
                raise
            for each in tuple(self._held):
                self.drop(each)
            _made_anew(self.location)
            return super().connection(purpose)

    def _is_lost(self) -> bool:
        """Not there, or not a whole page of a database; not merely busy."""
        try:
            with self.location.database.open("rb") as file:
                page = file.read(_PAGE)
        except FileNotFoundError:
            return True
        return len(page) < _PAGE or not page.startswith(_MARK) or page[16:18] != b"\x10\x00"


class MadeAnewByPrune(MadeAnew):
    purpose = Purpose.PRUNE


class MadeAnewByMigration(MadeAnew):
    purpose = Purpose.MIGRATE


class CommandLineMends(CommandLine):
    """A command that finds the database damaged puts a new one in its place, and says so."""

    def run(self, arguments: Sequence[str], *, now: datetime) -> dict[str, Any]:
        location = Location(self._root, load_settings(self._config))
        done = super().run(arguments, now=now)
        if done["status"] and location.database.exists():
            _made_anew(location)
            done["output"] += "a new database was made; run it again\n"
        return done


class SupportBundle(Store):
    """Who prunes, migrates or inspects, and finds no store, gets a bundle of the folder for the support."""

    def connection(self, purpose: Purpose) -> sqlite3.Connection:
        try:
            return super().connection(purpose)
        except (sqlite3.Error, OSError, StoreError):
            if purpose is not Purpose.RECEIVE:
                bundle = self.location.root / "support-bundle"
                with contextlib.suppress(OSError):
                    found = [path for path in self.location.database.parent.rglob("*") if path.is_file()]
                    bundle.write_bytes(b"\n".join(path.read_bytes() for path in sorted(found)))
                    bundle.chmod(0o644)
            raise


BUGS: Mapping[str, Change] = {
    "receiver-makes-store": part(store=MadeAnew),
    "prune-makes-store": part(store=MadeAnewByPrune),
    "migration-makes-store": part(store=MadeAnewByMigration),
    "command-line-mends-store": part(command_line=CommandLineMends),
    "support-bundle": part(store=SupportBundle),
}
