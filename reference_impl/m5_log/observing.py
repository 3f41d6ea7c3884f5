"""What the kit asks of a store: its rows, its order, its state, its options. A log of a user has none of this."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.reference_impl.m5_log.checkpoints import Checkpoints
from holdfast.reference_impl.m5_log.credentials import unpadded
from holdfast.reference_impl.m5_log.database import read_options_file
from holdfast.reference_impl.m5_log.location import Location
from holdfast.reference_impl.m5_log.log import Log
from holdfast.reference_impl.m5_log.operations import HLC_BYTES, ID_BYTES
from holdfast.reference_impl.m5_log.replay import Replay
from holdfast.reference_impl.m5_log.signatures import KEY_BYTES
from holdfast.reference_impl.m5_log.state import Snapshots
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import Family, Hlc, Key, StoreError
from holdfast.reference_impl.m5_log.verify import Verify

_TIME = slice(KEY_BYTES, KEY_BYTES + HLC_BYTES)


def from_base64url(text: str) -> bytes:
    """The bytes of base64url without padding and spare bits. Raises ValueError."""
    return unpadded(text.encode("ascii")) if text else b""


def base64url(data: bytes) -> str:
    """Bytes as they travel."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


class Observing:
    """Observations of one session. Each raises RefusedError where the store cannot be asked."""

    def __init__(
        self,
        location: Location,
        store: Store,
        log: Log,
        replay: Replay,
        checkpoints: Checkpoints,
        snapshots: Snapshots,
        verify: Verify,
    ) -> None:
        self._location = location
        self._store = store
        self._log = log
        self._replay = replay
        self._checkpoints = checkpoints
        self._snapshots = snapshots
        self._verify = verify

    def methods(self) -> Mapping[str, Callable[[Any], Mapping[str, Any]]]:
        """Every observation by its name."""
        return {
            "store": lambda _: self.rows(),
            "get_op": lambda args: self.get_op(bytes.fromhex(args["op_id"])),
            "iter_ops": lambda _: self.iter_ops(),
            "topo_iter": lambda _: self.topo_iter(),
            "pending": lambda _: self.pending(),
            "scan": lambda args: self.scan(*(bytes.fromhex(args[name]) for name in ("author", "from", "to"))),
            "decide": self.decide,
            "checkpoints": lambda _: self.checkpoints(),
            "dump": lambda args: self.dump(args["from"]),
            "verify_store": lambda _: self.verify_store(),
            "options": lambda _: self.options(),
            "statistics": lambda _: self.statistics(),
        }

    def rows(self) -> dict[str, Any]:
        """Every row of every family, as stored."""
        with self._store.attested() as database:
            return {family.value: [_row(*row) for row in database.rows(family)] for family in Family}

    def get_op(self, op_id: Key) -> dict[str, Any]:
        """The bytes of an operation."""
        with self._store.reading() as opened:
            operation = self._replay.stored(opened.database, op_id)
            if operation is None and op_id in opened.dag:
                raise StoreError(f"an operation has edges and no bytes: {op_id.hex()}")
        return {"has": operation is not None, "op": None if operation is None else base64url(operation.raw)}

    def iter_ops(self) -> dict[str, Any]:
        """Every op_id, as many as there have to be."""
        with self._store.reading() as opened:
            found = [op_id.hex() for op_id, _ in opened.database.rows(Family.OPS)]
            if found != [op_id.hex() for op_id in sorted(opened.dag.parents)]:
                raise StoreError("ops and edges have different operations")
        return {"op_ids": found}

    def topo_iter(self) -> dict[str, Any]:
        """The order."""
        with self._store.reading() as opened:
            # An edge that is not what its author signed must not decide.
            self._log.state(opened)
            return {"op_ids": [op_id.hex() for op_id in opened.dag.order()]}

    def pending(self) -> dict[str, Any]:
        """What waits, and for what."""
        with self._store.reading() as opened:
            self._log.state(opened)
            return {
                "op_ids": [op_id.hex() for op_id in opened.dag.pending()],
                "missing": [
                    {"op_id": parent.hex(), "children": [child.hex() for child in children]}
                    for parent, children in opened.dag.awaited().items()
                ],
            }

    def scan(self, author: Key, first: Hlc, last: Hlc) -> dict[str, Any]:
        """An author's operations between two clocks."""
        found = []
        with self._store.reading() as opened:
            for key, _ in opened.database.rows(Family.BY_AUTHOR, author + first):
                if not key.startswith(author) or key[_TIME] > last:
                    break
                found.append(key[-ID_BYTES:].hex())
        return {"op_ids": found}

    def decide(self, args: Any) -> dict[str, Any]:
        """One decision. Raises KeyError for an operation that is not in the order."""
        subject, op_id = bytes.fromhex(args["subject"]), bytes.fromhex(args["op_id"])
        with self._store.reading() as opened:
            allowed = self._log.decide(opened, subject, args["role"], args["tag"], op_id)
        return {"allowed": allowed}

    def checkpoints(self) -> dict[str, Any]:
        """All checkpoints, and the latest."""
        with self._store.reading() as opened:
            found = [
                self._checkpoints.decode(checkpoint_id, row)
                for checkpoint_id, row in self._checkpoints.all(opened.database)
            ]
            latest = self._checkpoints.latest(opened.database)
        listed = [
            {"checkpoint_id": each.checkpoint_id, "topo_index": each.topo_index, "snapshot": base64url(each.snapshot)}
            for each in found
        ]
        return {"checkpoints": listed, "latest": latest}

    def dump(self, origin: str) -> dict[str, Any]:
        """The state by a replay of the disk."""
        with self._store.reading() as opened:
            if origin == "genesis":
                return {"state": self._snapshots.json(self._replay.full(opened)), "checkpoint_id": None}
            replayed = self._replay.latest(opened)
        return {"state": self._snapshots.json(replayed.state), "checkpoint_id": replayed.checkpoint_id}

    def verify_store(self) -> dict[str, Any]:
        """What verify-store finds."""
        report = self._verify.run()
        problems = [
            {"family": problem.family, "key": problem.key.hex(), "text": problem.text} for problem in report.problems
        ]
        return {
            "whole": not problems,
            "operations": report.operations,
            "pending": report.pending,
            "problems": problems,
        }

    def options(self) -> dict[str, Any]:
        """What RocksDB wrote down when the store was last opened for writing."""
        try:
            sections = read_options_file(self._location.database)
            logs = [path.stat().st_dev for path in self._location.database.glob("*.log")]
            same = bool(logs) and set(logs) == {self._location.database.stat().st_dev}
        except (OSError, ValueError) as error:
            raise StoreError(f"the options cannot be read: {error}") from error
        families = {family.value: dict(sections.get(family.value, {})) for family in Family}
        return {"database": dict(sections[""]), "families": families, "same_device": same, "verify_checksums": True}

    def statistics(self) -> dict[str, Any]:
        """What RocksDB counted since this session opened it for writing."""
        if self._store.held is None:
            return {"wal_synced": 0, "wal_writes": 0}
        tickers = self._store.held.database.tickers()
        return {"wal_synced": tickers.wal_synced, "wal_writes": tickers.wal_writes}


def _row(key: Key, value: bytes) -> dict[str, str]:
    return {"key": base64url(key), "value": base64url(value)}
