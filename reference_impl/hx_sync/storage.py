"""What every store backend is (source section 6): `list`, `get` and `put_atomic`, and what durability needs besides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, unique
from typing import Protocol


class TooLargeError(Exception):
    """The object is longer than the limit of a read."""


@unique
class Put(Enum):
    """What `put_atomic` found: it wrote the object, the same bytes lay there, or others did and still do."""

    NEW = "new"
    SAME = "same"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Listing:
    """Keys of objects, sorted, and what else lies there: links and other things that are no files."""

    keys: Sequence[str]
    strays: Sequence[str]


class Store(Protocol):
    """Every method raises StoreError where the store cannot be asked or written, never an empty answer instead.

    The three that write raise UncertainError where the write may have happened.
    """

    def check(self) -> None:
        """The store of the vault is there."""

    def make(self) -> None:
        """Make the store of a vault; one that is there stays as it is."""

    def list(self, prefix: str) -> Listing:
        """Everything under objects/ of a vault whose key `prefix` is a beginning of, by whole parts of the path."""

    def get(self, key: str) -> bytes | None:
        """The bytes of an object; None if there is none. Raises TooLargeError."""

    def put_atomic(self, key: str, data: bytes) -> Put:
        """Write an object that then lies there durably and as a whole; never in place of another."""

    def replace(self, key: str, data: bytes) -> None:
        """Write a manifest in place of the one that its node wrote before, in one step."""

    def settle(self, key: str, data: bytes) -> None:
        """Make the existing object `data` durable before it is reported as present."""
