"""The interface of a store to the registrar. PostgreSQL and SQLite implement it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from holdfast.reference_impl.rs4a_replay.surface import SurfaceReport

# A stored row: text, and booleans where the contract says boolean.
Row = Mapping[str, str | bool | None]


class StoreError(Exception):
    """An error of the store; the subclass says what is certain.

    Its text is the first line of what the store says. The lines below it may quote a row.
    """

    def __init__(self, said: object) -> None:
        super().__init__(str(said).partition("\n")[0])


class SurfaceUnreadableError(StoreError):
    """The surface cannot be reached or read, or does not answer in time: nothing is known about it."""


class RolledBackError(StoreError):
    """The transaction certainly rolled back; nothing of it is stored."""


class CommitUncertainError(StoreError):
    """The connection was lost while the commit was under way: it may have happened."""


class AuditError(StoreError):
    """The failure audit cannot be written."""


@dataclass(frozen=True, slots=True)
class Conflict:
    """A Phase-3 transaction found a committed row of another transaction, and rolled back as a whole."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A Phase-3 transaction committed; `durable` is its last row as read back after the commit, for the verifier."""

    durable: Row | None


Consumption = Committed | Conflict


@dataclass(frozen=True, slots=True)
class Insert:
    """One row to insert."""

    relation: str
    row: Row


@dataclass(frozen=True, slots=True)
class Sight:
    """The rows of one key and one nonce at one moment, and the surface that they were read from."""

    surface: SurfaceReport
    registration: Row | None = None
    verification: Row | None = None
    compensation: Row | None = None
    issue: Row | None = None
    consume: Row | None = None


class Store(Protocol):
    """The surface, with the rights of the restricted writer."""

    def look(self, *, logical_request_key: str | None, nonce: str | None) -> Sight:
        """Check the surface and read what is stored about a key and a nonce. Raises SurfaceUnreadableError."""

    def consume(self, inserts: Sequence[Insert]) -> Consumption:
        """Insert all rows in one transaction, or none. A broken unique constraint means that another was first.

        A conflict is decided only after the other's outcome is known. Raises RolledBackError or CommitUncertainError.
        """

    def append(self, inserts: Sequence[Insert]) -> int:
        """Insert those rows that no stored one conflicts with, in one transaction; the number inserted.

        Raises RolledBackError or CommitUncertainError.
        """

    def untombstoned(self) -> Sequence[Row]:
        """Registrations that have no tombstone. Raises SurfaceUnreadableError."""

    def settles(self, probe: Insert) -> bool:
        """Whether the probe's key is free, after waiting for every transaction that holds it; inserts nothing.

        Raises CommitUncertainError when a transaction goes on holding it.
        """

    def close(self) -> None:
        """Give back the connection. Never raises."""


class AuditSink(Protocol):
    """The failure audit: durable, and outside every transaction that it records."""

    def probe(self, record: Row) -> None:
        """Prove with a real write of `record`, rolled back, that one could be kept now. Raises AuditError."""

    def write(self, record: Row) -> None:
        """Make one record durable. Raises AuditError."""

    def close(self) -> None:
        """Give back the connection. Never raises."""
