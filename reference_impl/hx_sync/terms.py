"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from enum import Enum, unique
from typing import TypeAlias

from holdfast.reference_impl import terms

CONTRACT = "hx-sync"
# Digits of a hash or of an id that has been checked, in their one spelling: they have no case to lose, and no blanks.
Hex: TypeAlias = str
# How the bytes of a blob may be packed.
COMPRESSIONS = ("zstd", "none")


@unique
class Reason(Enum):
    """The closed list of refusal reasons."""

    REQUEST_MALFORMED = "REQUEST_MALFORMED"
    KEY_INVALID = "KEY_INVALID"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    NODE_UNKNOWN = "NODE_UNKNOWN"
    NODE_EXISTS = "NODE_EXISTS"
    OBJECT_MISPLACED = "OBJECT_MISPLACED"
    OBJECT_MISSING = "OBJECT_MISSING"
    OBJECT_MALFORMED = "OBJECT_MALFORMED"
    FOREIGN_VAULT = "FOREIGN_VAULT"
    OBJECT_UNAUTHENTIC = "OBJECT_UNAUTHENTIC"
    SEGMENT_MALFORMED = "SEGMENT_MALFORMED"
    TOMBSTONE_MALFORMED = "TOMBSTONE_MALFORMED"
    MANIFEST_MALFORMED = "MANIFEST_MALFORMED"
    BLOB_MISMATCH = "BLOB_MISMATCH"
    OBJECT_REPLACED = "OBJECT_REPLACED"
    OBJECT_EXISTS = "OBJECT_EXISTS"


@unique
class Kind(Enum):
    """The four types of object, as `object_type` names them."""

    SEGMENT = "segment"
    BLOB = "blob"
    TOMBSTONE = "tombstone"
    MANIFEST = "manifest"


class RefusedError(terms.RefusedError):
    """An operation is refused. `key` is that of the object it is about."""

    def __init__(self, reason: Reason, detail: str = "", *, key: str | None = None) -> None:
        super().__init__(reason, detail, None if key is None else {"key": key})
