"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from enum import Enum, unique
from typing import TypeAlias

from holdfast.reference_impl import terms
from holdfast.reference_impl.terms import reasons

CONTRACT = "hx-sync"
Reason = reasons(CONTRACT)
# Digits of a hash or of an id that has been checked, in their one spelling: they have no case to lose, and no blanks.
Hex: TypeAlias = str
# How the bytes of a blob may be packed.
COMPRESSIONS = ("zstd", "none")


@unique
class Kind(Enum):
    """The four types of object, as `object_type` names them."""

    SEGMENT = "segment"
    BLOB = "blob"
    TOMBSTONE = "tombstone"
    MANIFEST = "manifest"


class RefusedError(terms.RefusedError):
    """An operation is refused. `key` is that of the object it is about."""

    def __init__(self, reason: Enum, detail: str = "", *, key: str | None = None) -> None:
        super().__init__(reason, detail, None if key is None else {"key": key})
