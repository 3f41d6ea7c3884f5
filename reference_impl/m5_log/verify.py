"""verify-store: reads everything, believes nothing, and fails where it cannot read."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from holdfast.reference_impl.m5_log import checkpoints, credentials
from holdfast.reference_impl.m5_log.cbor import CborError
from holdfast.reference_impl.m5_log.credentials import TrustFiles, cred_hash_of
from holdfast.reference_impl.m5_log.dag import Dag
from holdfast.reference_impl.m5_log.database import Database
from holdfast.reference_impl.m5_log.opening import (
    LAST_CHECKPOINT,
    MARKS,
    UUID,
    VERSION,
    WATERMARK,
    Opened,
    number,
    read_number,
)
from holdfast.reference_impl.m5_log.operations import OpCodec, author_key, packed
from holdfast.reference_impl.m5_log.replay import Replay
from holdfast.reference_impl.m5_log.state import snapshot_of
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import Family, Settings, StoreError
from holdfast.reference_impl.m5_log.witness import Witness, decode_marks, newest, total_of
from holdfast.reference_impl.terms import RefusedError


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that is not as it was written; `key` is that of the row, or empty."""

    family: str
    key: bytes
    text: str


@dataclass(slots=True)
class Report:
    """What was read, and what was wrong with it."""

    operations: int = 0
    pending: int = 0
    problems: list[Problem] = field(default_factory=list)


class Verify:
    """Checks one store against itself, its signatures, its witness and the files of trust."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        witness: Witness,
        codec: OpCodec,
        trust: TrustFiles,
        replay: Replay,
    ) -> None:
        self._settings = settings
        self._store = store
        self._witness = witness
        self._codec = codec
        self._trust = trust
        self._replay = replay

    def run(self) -> Report:
        """The report. Never raises: what cannot be read is a problem."""
        report = Report()
        try:
            with self._store.raw() as database:
                self.scan(database, report)
            if not report.problems:
                # Only a store whose rows are right is opened as one.
                with self._store.reading() as opened:
                    report.problems += self.replayed(opened)
        except RefusedError as error:
            report.problems.append(Problem("store", b"", str(error)))
        return report

    def scan(self, database: Database, report: Report) -> None:
        """Read every row of every family."""
        dag, authors = Dag(), set()
        edges = dict(database.rows(Family.EDGES))
        for op_id, raw in database.rows(Family.OPS):
            report.operations += 1
            try:
                operation = self._codec.accept(raw, op_id)
            except RefusedError as error:
                report.problems.append(Problem("ops", op_id, str(error)))
                edges.pop(op_id, None)
                continue
            if edges.pop(op_id, None) != packed(operation.parents):
                report.problems.append(Problem("edges", op_id, "expected the parents of the operation"))
            dag.add(op_id, operation.parents, operation.hlc)
            authors.add(author_key(operation))
        report.pending = len(dag.pending())
        report.problems += [Problem("edges", op_id, "there is no such operation") for op_id in sorted(edges)]
        report.problems += self.by_author(database, authors)
        report.problems += self.meta(database, dag)
        report.problems += self.credentials(database)
        report.problems += self.checkpoints(database)
        # Never used; it has to be readable.
        deque(database.rows(Family.POLICY_INDEX), maxlen=0)

    def by_author(self, database: Database, expected: set[bytes]) -> Iterator[Problem]:
        """Its rows are those of the operations, no less and no more."""
        for key, value in database.rows(Family.BY_AUTHOR):
            if key not in expected:
                yield Problem("by_author", key, "there is no such operation, or it has another author or clock")
            elif value:
                yield Problem("by_author", key, "expected an empty value")
            expected.discard(key)
        for key in sorted(expected):
            yield Problem("by_author", key, "the operation is missing")

    def meta(self, database: Database, dag: Dag) -> Iterator[Problem]:
        """Version, identity, watermark, and the witness inside and outside of the database."""
        found = dict(database.rows(Family.META))
        if found.get(VERSION) != self._settings.schema_version.encode("ascii"):
            yield Problem("meta", VERSION, f"expected {self._settings.schema_version}")
        if not found.get(UUID):
            yield Problem("meta", UUID, "expected an identity")
        if found.get(WATERMARK) != number(dag.surfaced):
            yield Problem("meta", WATERMARK, f"expected {dag.surfaced}")
        try:
            anchor, mark = decode_marks(found.get(MARKS))
            if (mark.operations, mark.total) != (len(dag), total_of(dag.parents)):
                yield Problem("ops", b"", f"expected {mark.operations} operations, found {len(dag)} or others")
            # A crash tears one slot only, and then the other one holds the anchor.
            slots = self._witness.slots()
            if None in slots and newest(slots) != anchor:
                yield Problem("witness", b"", "a slot is damaged")
        except StoreError as error:
            yield Problem("witness", b"", str(error))

    def credentials(self, database: Database) -> Iterator[Problem]:
        """Credentials are what their keys say; the cache says what the credentials say, and no more."""
        raws = dict(database.rows(Family.VC_RAW))
        for cred_hash, raw in raws.items():
            if cred_hash_of(raw) != cred_hash:
                yield Problem("vc_raw", cred_hash, "its hash is another")
        trust = self._trust.read()
        for cred_hash, row in database.rows(Family.VC_VERIFIED):
            if cred_hash not in raws:
                yield Problem("vc_verified", cred_hash, "there is no such credential")
                continue
            try:
                if row != credentials.row_of(credentials.verify(raws[cred_hash], trust)):
                    yield Problem("vc_verified", cred_hash, "the credential says something else")
            except RefusedError as error:
                yield Problem("vc_verified", cred_hash, str(error))

    def checkpoints(self, database: Database) -> Iterator[Problem]:
        """Checkpoints are as they were written, and the latest is the one that is noted."""
        latest = number(0)
        for key, row in database.rows(Family.CHECKPOINTS):
            latest = key
            try:
                checkpoints.restored(checkpoints.decode(read_number(key), row))
            except (RefusedError, CborError) as error:
                yield Problem("checkpoints", key, str(error))
        if database.get(Family.META, LAST_CHECKPOINT) != latest:
            yield Problem("meta", LAST_CHECKPOINT, "expected the newest checkpoint")

    def replayed(self, opened: Opened) -> Iterator[Problem]:
        """All of it can be replayed, and every checkpoint of a prefix of it has the state of a full replay."""
        self._replay.full(opened)
        for checkpoint_id, row in checkpoints.listed(opened.database):
            state = checkpoints.restored(checkpoints.decode(checkpoint_id, row))
            # One that is stale is no damage: it is never used.
            if self._replay.is_prefix(opened, state) and self._replay.fold(opened).still_true(state):
                anew = snapshot_of(self._replay.at(opened, state.applied))
                if anew != snapshot_of(state):
                    yield Problem("checkpoints", number(checkpoint_id), "its state is not that of a replay")
