"""Checkpoints: a state, which says of what prefix it was made, with its place in the order and a checksum."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.reference_impl.m5_log.cbor import CborError
from holdfast.reference_impl.m5_log.database import Change, Database
from holdfast.reference_impl.m5_log.opening import CHECKPOINTS_MADE, LAST_CHECKPOINT, NUMBER_BYTES, number, read_number
from holdfast.reference_impl.m5_log.state import State, snapshot_of, state_of
from holdfast.reference_impl.m5_log.terms import Family, Reason, StoreError
from holdfast.reference_impl.terms import RefusedError

_DIGEST_BYTES = 32


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What is stored under an id. `snapshot` is the encoded state."""

    checkpoint_id: int
    topo_index: int
    snapshot: bytes


def created(database: Database, state: State) -> tuple[Checkpoint, Sequence[Change]]:
    """A checkpoint of this state with an id that none had, and the changes that store it. Raises StoreError."""
    made = read_number(database.get(Family.META, CHECKPOINTS_MADE))
    checkpoint = Checkpoint(made + 1, state.applied, snapshot_of(state))
    key, content = number(checkpoint.checkpoint_id), number(checkpoint.topo_index) + checkpoint.snapshot
    return checkpoint, [
        (Family.CHECKPOINTS, key, content + digest_of(content)),
        (Family.META, CHECKPOINTS_MADE, key),
        (Family.META, LAST_CHECKPOINT, key),
    ]


def deleted(database: Database, checkpoint_id: int) -> Sequence[Change]:
    """The changes that remove a checkpoint. Raises RefusedError."""
    stored(database, checkpoint_id)
    left = [key for key, _ in database.rows(Family.CHECKPOINTS) if key != number(checkpoint_id)]
    return [
        (Family.CHECKPOINTS, number(checkpoint_id), None),
        (Family.META, LAST_CHECKPOINT, left[-1] if left else number(0)),
    ]


def digest_of(content: bytes) -> bytes:
    """What shows that a row is as it was written."""
    return hashlib.sha256(content).digest()


def stored(database: Database, checkpoint_id: int) -> bytes:
    """The row of a checkpoint. Raises RefusedError."""
    found = database.get(Family.CHECKPOINTS, number(checkpoint_id))
    if found is None:
        raise RefusedError(Reason.CHECKPOINT_UNKNOWN, f"there is no checkpoint {checkpoint_id}")
    return found


def decode(checkpoint_id: int, row: bytes) -> Checkpoint:
    """The checkpoint in a row, as it was written. Raises RefusedError."""
    content, digest = row[:-_DIGEST_BYTES], row[-_DIGEST_BYTES:]
    if digest != digest_of(content):
        raise _damaged("its digest is another")
    return Checkpoint(checkpoint_id, read_number(content[:NUMBER_BYTES]), content[NUMBER_BYTES:])


def restored(checkpoint: Checkpoint) -> State:
    """The state of a checkpoint. Raises RefusedError."""
    try:
        return state_of(checkpoint.snapshot)
    except CborError as error:
        raise _damaged(str(error)) from error


def load(database: Database, checkpoint_id: int) -> State:
    """The state of a stored checkpoint. Raises RefusedError."""
    return restored(decode(checkpoint_id, stored(database, checkpoint_id)))


def listed(database: Database) -> Sequence[tuple[int, bytes]]:
    """The ids and rows of all checkpoints, in the order of the ids. Raises StoreError."""
    return [(read_number(key), row) for key, row in database.rows(Family.CHECKPOINTS)]


def latest(database: Database) -> int | None:
    """The newest id that was not deleted. Raises StoreError where meta says otherwise."""
    ids = [checkpoint_id for checkpoint_id, _ in listed(database)]
    noted = read_number(database.get(Family.META, LAST_CHECKPOINT))
    if noted != (ids[-1] if ids else 0):
        raise StoreError(f"meta says that checkpoint {noted} is the latest, the family says otherwise")
    return noted or None


def _damaged(detail: str) -> RefusedError:
    return RefusedError(Reason.CHECKPOINT_DAMAGED, detail)
