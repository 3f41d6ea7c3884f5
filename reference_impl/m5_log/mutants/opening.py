"""Bugs in opening a store, and in the options of its database."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Any

from rocksdict import AccessType, BlockBasedOptions, ChecksumType, Options, Rdict

from holdfast.reference_impl.m5_log.database import Access, Change, Database, Recovery
from holdfast.reference_impl.m5_log.observing import Observing, base64url
from holdfast.reference_impl.m5_log.opening import UUID, VERSION, Opened, Opening
from holdfast.reference_impl.m5_log.terms import Family, StoreError
from holdfast.reference_impl.m5_log.witness import Mark
from holdfast.reference_impl.planting import part


class MissingVersionOpened(Opening):
    def check_version(self, database: Database) -> None:
        if database.get(Family.META, VERSION) is not None:
            super().check_version(database)


class AnyVersionOpened(Opening):
    def check_version(self, database: Database) -> None:
        pass


class VersionByItsBeginning(Opening):
    def check_version(self, database: Database) -> None:
        found = database.get(Family.META, VERSION)
        if found is None or not found.startswith(self._settings.schema_version.encode("ascii")):
            super().check_version(database)


class WitnessIgnored(Opening):
    def check_acknowledged(self, slots: Sequence[Mark | None], anchor: Mark, mark: Mark, access: Access) -> None:
        pass


class NewIdentity(Opening):
    def open(self) -> Opened:
        opened = super().open()
        opened.database.write([(Family.META, UUID, str(uuid.uuid4()).encode())])
        return opened


class MadeAnew(Opening):
    def check_place(self) -> None:
        if not self._location.exists():
            self.make()
        super().check_place()


class NoChecksums(Database):
    def family_options(self) -> Options:
        options, table = Options(raw_mode=True), BlockBasedOptions()
        table.set_checksum_type(ChecksumType.no_checksum())
        options.set_block_based_table_factory(table)
        return options


class NotParanoid(Database):
    def options(self, access: Access, recovery: Recovery) -> Options:
        options = super().options(access, recovery)
        options.set_paranoid_checks(False)
        return options


class CreatesIfMissing(Database):
    def options(self, access: Access, recovery: Recovery) -> Options:
        options = super().options(access, recovery)
        options.create_if_missing(True)
        return options


class FamilyMadeAnew(Database):
    def _opened(self, access: Access) -> Rdict:
        known = {family.value for family in Family}
        if access is not Access.MAKE and known - {*Rdict.list_cf(str(self.path))}:
            options = self.options(access, Recovery.POINT_IN_TIME)
            options.create_missing_column_families(True)
            families = {name: self.family_options() for name in ("default", *known)}
            Rdict(str(self.path), options, families, AccessType.read_write()).close()
        return super()._opened(access)


class MadeWithRow(Opening):
    def first_rows(self, mark: Mark) -> Sequence[Change]:
        return [*super().first_rows(mark), (Family.POLICY_INDEX, b"made", b"")]


class GetsDamaged(Observing):
    def get_op(self, op_id: bytes) -> dict[str, Any]:
        with self._store.reading() as opened:
            raw = opened.database.get(Family.OPS, op_id)
        return {"has": raw is not None, "op": None if raw is None else base64url(raw)}


class GetsByTheBeginning(Observing):
    def get_op(self, op_id: bytes) -> dict[str, Any]:
        with self._store.reading() as opened:
            key, _ = next(opened.database.rows(Family.OPS, op_id), (b"", b""))
        return super().get_op(key if key.startswith(op_id) else op_id)


class GetsNone(Observing):
    def get_op(self, op_id: bytes) -> dict[str, Any]:
        try:
            return super().get_op(op_id)
        except StoreError:
            return {"has": False, "op": None}


BUGS = {
    "missing-version-opened": part(opening=MissingVersionOpened),
    "any-version-opened": part(opening=AnyVersionOpened),
    "version-by-its-beginning": part(opening=VersionByItsBeginning),
    "witness-ignored": part(opening=WitnessIgnored),
    "identity-at-each-opening": part(opening=NewIdentity),
    "lost-store-made-anew": part(opening=MadeAnew),
    "no-checksums-of-blocks": part(database=NoChecksums),
    "not-paranoid": part(database=NotParanoid),
    "created-if-missing": part(database=CreatesIfMissing),
    "lost-family-made-anew": part(database=FamilyMadeAnew),
    "made-with-a-row": part(opening=MadeWithRow),
    "damaged-operation-is-shown": part(observing=GetsDamaged),
    "damaged-operation-is-none": part(observing=GetsNone),
    "operation-by-the-beginning-of-its-id": part(observing=GetsByTheBeginning),
}
