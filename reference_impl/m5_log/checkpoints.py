"""Checkpoints: a state, which says of what prefix it was made, with its place in the order and a checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.reference_impl.m5_log.cbor import CborError
from holdfast.reference_impl.m5_log.database import Change, Database
from holdfast.reference_impl.m5_log.opening import CHECKPOINTS_MADE, LAST_CHECKPOINT, NUMBER_BYTES, number, read_number
from holdfast.reference_impl.m5_log.state import Snapshots, State
from holdfast.reference_impl.m5_log.terms import Family, Reason, StoreError
from holdfast.reference_impl.terms import RefusedError

_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is stored under an id. `snapshot` is the encoded state."""

    checkpoint_id: int
    topo_index: int
    snapshot: bytes


class Checkpoints:
    """Reads and writes the family of checkpoints."""

    def __init__(self, snapshots: Snapshots) -> None:
        self._snapshots = snapshots

    def created(self, database: Database, state: State) -> tuple[Checkpoint, Sequence[Change]]:
        """A checkpoint of this state with an id that none had, and the changes that store it. Raises StoreError."""
        made = read_number(database.get(Family.META, CHECKPOINTS_MADE))
        checkpoint = Checkpoint(made + 1, state.applied, self._snapshots.encode(state))
        key = number(checkpoint.checkpoint_id)
        return checkpoint, [
            (Family.CHECKPOINTS, key, self.encode(checkpoint)),
            (Family.META, CHECKPOINTS_MADE, key),
            (Family.META, LAST_CHECKPOINT, key),
        ]

    def deleted(self, database: Database, checkpoint_id: int) -> Sequence[Change]:
        """The changes that remove a checkpoint. Raises RefusedError."""
        self.stored(database, checkpoint_id)
        left = [key for key, _ in database.rows(Family.CHECKPOINTS) if key != number(checkpoint_id)]
        return [
            (Family.CHECKPOINTS, number(checkpoint_id), None),
            (Family.META, LAST_CHECKPOINT, left[-1] if left else number(0)),
        ]

    def encode(self, checkpoint: Checkpoint) -> bytes:
        """The value of its row."""
        content = number(checkpoint.topo_index) + checkpoint.snapshot
        return content + self.digest(content)

    def digest(self, content: bytes) -> bytes:
        """What shows that a row is as it was written."""
        return hashlib.sha256(content).digest()

    def stored(self, database: Database, checkpoint_id: int) -> bytes:
        """The row of a checkpoint. Raises RefusedError."""
        found = database.get(Family.CHECKPOINTS, number(checkpoint_id))
        if found is None:
            raise RefusedError(Reason.CHECKPOINT_UNKNOWN, f"there is no checkpoint {checkpoint_id}")
        return found

    def decode(self, checkpoint_id: int, row: bytes) -> Checkpoint:
        """The checkpoint in a row, as it was written. Raises RefusedError."""
        content, digest = row[:-_DIGEST_BYTES], row[-_DIGEST_BYTES:]
        if digest != self.digest(content):
            raise _damaged("its digest is another")
        return Checkpoint(checkpoint_id, read_number(content[:NUMBER_BYTES]), content[NUMBER_BYTES:])

    def state(self, checkpoint: Checkpoint) -> State:
        """The state of a checkpoint. Raises RefusedError."""
        try:
            return self._snapshots.decode(checkpoint.snapshot)
        except CborError as error:
            raise _damaged(str(error)) from error

    def load(self, database: Database, checkpoint_id: int) -> State:
        """The state of a stored checkpoint. Raises RefusedError."""
        return self.state(self.decode(checkpoint_id, self.stored(database, checkpoint_id)))

    def all(self, database: Database) -> Sequence[tuple[int, bytes]]:
        """The ids and rows of all checkpoints, in the order of the ids. Raises StoreError."""
        return [(self.id_of(key), row) for key, row in database.rows(Family.CHECKPOINTS)]

    def id_of(self, key: bytes) -> int:
        """The id in a key. Raises StoreError."""
        return read_number(key)

    def latest(self, database: Database) -> int | None:
        """The newest id that was not deleted. Raises StoreError where meta says otherwise."""
        ids = [checkpoint_id for checkpoint_id, _ in self.all(database)]
        noted = read_number(database.get(Family.META, LAST_CHECKPOINT))
        if noted != (ids[-1] if ids else 0):
            raise StoreError(f"meta says that checkpoint {noted} is the latest, the family says otherwise")
        return noted or None


def _damaged(detail: str) -> RefusedError:
    return RefusedError(Reason.CHECKPOINT_DAMAGED, detail)
