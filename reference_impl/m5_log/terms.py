"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from enum import Enum, unique
from typing import TypeAlias

from holdfast.reference_impl.terms import RefusedError, reasons

CONTRACT = "m5-log"
Reason = reasons(CONTRACT)
# 32 bytes: the id of an operation, the hash of a credential, a public key.
Key: TypeAlias = bytes
# A clock as it stands in keys: 12 bytes.
Hlc: TypeAlias = bytes


@unique
class Family(Enum):
    """The column families of the store, in the order of the source."""

    OPS = "ops"
    EDGES = "edges"
    BY_AUTHOR = "by_author"
    META = "meta"
    VC_RAW = "vc_raw"
    VC_VERIFIED = "vc_verified"
    POLICY_INDEX = "policy_index"
    CHECKPOINTS = "checkpoints"


class StoreError(RefusedError):
    """The store cannot be asked or written, and nothing was written."""

    def __init__(self, detail: str, reason: Enum = Reason.STORE_UNAVAILABLE) -> None:
        super().__init__(reason, detail)


class UncertainError(Exception):
    """A write failed, and it is unknown whether it took effect."""
