"""Bugs in opening a store, and in the options of its database."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

from rocksdict import Options

from holdfast.reference_impl.m5_log.database import Access, Change, Database, Recovery
from holdfast.reference_impl.m5_log.opening import UUID, VERSION, Opened, Opening
from holdfast.reference_impl.m5_log.terms import Family
from holdfast.reference_impl.m5_log.witness import Mark
from holdfast.reference_impl.planting import part


class MissingVersionOpened(Opening):
    def check_version(self, database: Database) -> None:
        if database.get(Family.META, VERSION) is not None:
            super().check_version(database)


class VersionByItsBeginning(Opening):
    def check_version(self, database: Database) -> None:
        found = database.get(Family.META, VERSION)
        if found is None or not found.startswith(self._settings.schema_version.encode("ascii")):
            super().check_version(database)


class NewIdentity(Opening):
    def open(self) -> Opened:
        opened = super().open()
        opened.database.write([(Family.META, UUID, str(uuid.uuid4()).encode())])
        return opened


class CreatesIfMissing(Database):
    def options(self, access: Access, recovery: Recovery) -> Options:
        options = super().options(access, recovery)
        options.create_if_missing(True)
        return options


class MadeWithRow(Opening):
    def first_rows(self, mark: Mark) -> Sequence[Change]:
        return [*super().first_rows(mark), (Family.POLICY_INDEX, b"made", b"")]


BUGS = {
    "missing-version-opened": part(opening=MissingVersionOpened),
    "version-by-its-beginning": part(opening=VersionByItsBeginning),
    "identity-at-each-opening": part(opening=NewIdentity),
    "created-if-missing": part(database=CreatesIfMissing),
    "made-with-a-row": part(opening=MadeWithRow),
}
