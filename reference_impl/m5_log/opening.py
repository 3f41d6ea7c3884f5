"""Making a store, and opening one: nothing is believed before it is proven against the witness."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from holdfast.reference_impl.ed25519 import KEY_BYTES
from holdfast.reference_impl.m5_log.dag import Dag
from holdfast.reference_impl.m5_log.database import Access, DamagedError, Database, Recovery
from holdfast.reference_impl.m5_log.location import Files, Location
from holdfast.reference_impl.m5_log.operations import HLC_BYTES, ID_BYTES, unpacked
from holdfast.reference_impl.m5_log.terms import Family, Reason, Settings, StoreError
from holdfast.reference_impl.m5_log.witness import Mark, Witness, decode_marks, encode_marks, newest, total_of

VERSION, UUID = b"schema_version", b"db_uuid"
LAST_CHECKPOINT, WATERMARK = b"last_checkpoint_id", b"topo_watermark"
# Besides the keys that the contract names: the highest checkpoint id ever given, and the marks of the witness.
CHECKPOINTS_MADE, MARKS = b"checkpoints_made", b"witness"
NUMBER_BYTES = 8


def number(value: int) -> bytes:
    """A number as it stands in keys and in meta: big-endian, so that bytes sort as numbers."""
    return value.to_bytes(NUMBER_BYTES, "big")


def read_number(data: bytes | None) -> int:
    """The number in these bytes. Raises StoreError."""
    if data is None or len(data) != NUMBER_BYTES:
        raise StoreError(f"expected a number of {NUMBER_BYTES} bytes")
    return int.from_bytes(data, "big")


@dataclass(slots=True)
class Opened:
    """An open store, and what is computed of it at every opening."""

    database: Database
    dag: Dag
    mark: Mark
    anchor: Mark
    recovery: Recovery
    files: Files = field(default_factory=dict)


class Opening:
    """Makes and opens the store of one location. Each method raises StoreError."""

    def __init__(self, location: Location, settings: Settings, witness: Witness) -> None:
        self._location = location
        self._settings = settings
        self._witness = witness

    def make(self) -> None:
        """A new, empty store. It has its name only once all of it is on the disk. Raises OSError too."""
        if self._location.exists():
            raise StoreError("expected no store there; it is never made anew")
        self._location.prepare()
        mark = Mark()
        self._witness.make(mark)
        database = Database(self._location.making, Access.MAKE)
        try:
            database.write(
                [
                    (Family.META, VERSION, self._settings.schema_version.encode("ascii")),
                    (Family.META, UUID, str(uuid.uuid4()).encode("ascii")),
                    (Family.META, LAST_CHECKPOINT, number(0)),
                    (Family.META, CHECKPOINTS_MADE, number(0)),
                    (Family.META, WATERMARK, number(0)),
                    (Family.META, MARKS, encode_marks(mark, mark)),
                ]
            )
        finally:
            database.close()
        self._location.publish()

    def open(self) -> Opened:
        """The store with its lock, ready to be written.

        It is read first, which changes nothing: RocksDB writes to whatever it opens for writing.
        """
        with self.read() as viewed:
            recovery = viewed.recovery
        opened = self.loaded(Access.WRITE, recovery, viewed)
        try:
            # A crash may have left the mark of the last batch unwritten, or no mark but the anchor on the disk.
            self._witness.make(opened.mark, self._witness.slots())
            opened.anchor = opened.mark
            opened.files = self._location.files()
        except (OSError, StoreError) as error:
            opened.database.close()
            raise StoreError(f"the witness cannot be written: {error}") from error
        return opened

    @contextlib.contextmanager
    def read(self) -> Iterator[Opened]:
        """The store as it is now, without its lock, also while another process writes it."""
        self.check_place()
        opened = self.viewed()
        try:
            yield opened
        finally:
            opened.database.close()

    def raw(self) -> Database:
        """The database without its lock and without a look at its rows. To be closed by the caller."""
        self.check_place()
        return Database(self._location.database, Access.READ)

    def attested(self) -> Database:
        """The same, if it is not behind the witness. A MANIFEST that is cut shows an older one without an error."""
        self.check_place()
        slots = self._witness.slots()
        database = Database(self._location.database, Access.READ)
        try:
            anchor, mark = decode_marks(database.get(Family.META, MARKS))
            self.check_acknowledged(slots, anchor, mark, Access.READ)
        except BaseException:
            database.close()
            raise
        return database

    def check_place(self) -> None:
        """There has to be a store: none is ever made by opening one."""
        self._location.files()

    def viewed(self) -> Opened:
        """The store, although a crash may have torn the end of its log.

        If RocksDB finds damage, what lies before it is read. If the witness says that this is all that was ever
        acknowledged, the rest may go; if not, nothing is opened. In both cases no file has changed.
        """
        try:
            return self.loaded(Access.READ, Recovery.ABSOLUTE)
        except DamagedError:
            return self.loaded(Access.READ, Recovery.POINT_IN_TIME)

    def loaded(self, access: Access, recovery: Recovery, viewed: Opened | None = None) -> Opened:
        """An open database that holds all that the witness says; what was computed of the same rows before is kept."""
        # Before the database: what another process writes meanwhile is in the database first.
        slots = self._witness.slots()
        database = Database(self._location.database, access, recovery, self._settings.write_buffer_bytes)
        try:
            # The one schema version; a missing one is no older one.
            found = database.get(Family.META, VERSION)
            if found != self._settings.schema_version.encode("ascii"):
                raise StoreError(f"expected schema_version {self._settings.schema_version}", Reason.SCHEMA_UNSUPPORTED)
            anchor, mark = decode_marks(database.get(Family.META, MARKS))
            dag = viewed.dag if viewed is not None and viewed.mark == mark else self.dag(database)
            self.check_contents(dag, mark)
            self.check_acknowledged(slots, anchor, mark, access)
        except BaseException:
            database.close()
            raise
        return Opened(database, dag, mark, anchor, recovery)

    def dag(self, database: Database) -> Dag:
        """The graph, from the edges and the clocks in by_author."""
        clocks: dict[bytes, bytes] = {}
        for key, value in database.rows(Family.BY_AUTHOR):
            if len(key) != KEY_BYTES + HLC_BYTES + ID_BYTES or value:
                raise StoreError(f"a row of by_author is malformed: {key.hex()}")
            clocks[key[-ID_BYTES:]] = key[KEY_BYTES : KEY_BYTES + HLC_BYTES]
        dag, rows = Dag(), 0
        for op_id, value in database.rows(Family.EDGES):
            if op_id not in clocks:
                raise StoreError(f"an operation is missing in by_author: {op_id.hex()}")
            try:
                dag.add(op_id, unpacked(value), clocks[op_id])
            except ValueError as error:
                raise StoreError(f"a row of edges is malformed: {op_id.hex()}: {error}") from error
            rows += 1
        if rows != len(clocks):
            raise StoreError("edges and by_author have different operations")
        return dag

    def check_contents(self, dag: Dag, mark: Mark) -> None:
        """The operations that are there are those that were written."""
        if (len(dag), total_of(dag.parents)) != (mark.operations, mark.total):
            raise StoreError(f"expected {mark.operations} operations, found {len(dag)} or others")

    def check_acknowledged(self, slots: Sequence[Mark | None], anchor: Mark, mark: Mark, access: Access) -> None:
        """The database is not behind the witness, and ahead of it by no more than a power failure takes.

        One that is read while another process writes it may be ahead by more.
        """
        acknowledged = newest(slots)
        if acknowledged == mark or (acknowledged.batches < mark.batches and anchor in slots):
            return
        if access is Access.READ and acknowledged.batches < anchor.batches:
            return
        raise StoreError(f"batch {acknowledged.batches} was acknowledged, the database ends with {mark.batches}")
