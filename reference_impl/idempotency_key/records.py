"""The table of keys: one row for each scope and key, claimed before the handler runs and completed after it.

Each change is one transaction, and the comparison of fingerprints is made in it, on the row that won. A row carries a
digest of all that it says, so a row that was damaged is found before it is believed.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from contextlib import AbstractContextManager
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any, Protocol

from holdfast.reference_impl.idempotency_key.terms import Answer, StoreError

COLUMNS = "scope, name, print, token, state, expires, lease, status, headers, body, digest"
MAKE = """CREATE TABLE records (
    scope TEXT NOT NULL, name TEXT NOT NULL, print TEXT NOT NULL, token TEXT NOT NULL,
    state TEXT NOT NULL CHECK (state IN ('running', 'done')),
    expires BIGINT NOT NULL, lease BIGINT NOT NULL,
    status INTEGER, headers TEXT, body {bytes}, digest TEXT NOT NULL,
    PRIMARY KEY (scope, name))"""


@unique
class Found(Enum):
    """What a claim found."""

    MINE = "mine"
    DONE = "done"
    RUNNING = "running"
    ABANDONED = "abandoned"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Claim:
    """The outcome of a claim: the token of one that was won, the answer of one that is done."""

    found: Found
    token: str = ""
    answer: Answer | None = None
    left_ms: int = 0


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table."""

    scope: str
    name: str
    print: str
    token: str
    state: str
    expires: int
    lease: int
    status: int | None = None
    headers: str | None = None
    body: bytes | None = None

    def digest(self) -> str:
        """What the row says, in 64 digits."""
        said = [self.scope, self.name, self.print, self.token, self.state, self.expires, self.lease, self.status]
        body = None if self.body is None else self.body.hex()
        return hashlib.sha256(json.dumps([*said, self.headers, body]).encode()).hexdigest()


class Transaction(Protocol):
    """What can be done in a transaction."""

    def execute(self, statement: str, values: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        """The rows that a statement gives. Raises StoreError."""


class Database(Protocol):
    """A store."""

    def transaction(self) -> AbstractContextManager[Transaction]:
        """A transaction that no other overlaps on the same row; leaving it well commits durably. Raises StoreError."""


class Records:
    """The rules of the table."""

    def __init__(self, database: Database, *, lifetime_ms: int, lease_ms: int) -> None:
        self._database, self._lifetime_ms, self._lease_ms = database, lifetime_ms, lease_ms

    def claim(self, scope: str, name: str, print_: str, now: int) -> Claim:
        """Claim a key, or say what stands there. Raises StoreError."""
        with self._database.transaction() as change:
            self.remove_expired(change, scope, name, now)
            row = Row(
                scope, name, print_, secrets.token_hex(8), "running", now + self._lifetime_ms, now + self._lease_ms
            )
            if self.insert(change, row):
                return Claim(Found.MINE, row.token)
            return self.judged(self.read(change, scope, name), print_, now)

    def remove_expired(self, change: Transaction, scope: str, name: str, now: int) -> None:
        """Free a key whose time is over."""
        change.execute("DELETE FROM records WHERE scope = ? AND name = ? AND expires <= ?", (scope, name, now))

    def insert(self, change: Transaction, row: Row) -> bool:
        """Whether the row came in: no other with its key is there."""
        values = (row.scope, row.name, row.print, row.token, row.state, row.expires, row.lease, None, None, None)
        statement = f"INSERT INTO records ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"
        return bool(change.execute(f"{statement} RETURNING name", (*values, row.digest())))

    def read(self, change: Transaction, scope: str, name: str) -> Row:
        """The row of a key. Raises StoreError."""
        found = change.execute(f"SELECT {COLUMNS} FROM records WHERE scope = ? AND name = ?", (scope, name))
        if len(found) != 1:
            raise StoreError("a row that was there is gone")
        *said, digest = found[0]
        row = Row(*said)
        self.check(row, digest)
        return row

    def check(self, row: Row, digest: str) -> None:
        """Believe no row that was changed by another hand. Raises StoreError."""
        if row.digest() != digest:
            raise StoreError("a row does not have its digest")

    def judged(self, row: Row, print_: str, now: int) -> Claim:
        """What a row that stands there means for a request."""
        if row.print != print_:
            return Claim(Found.OTHER)
        if row.state == "done":
            return Claim(Found.DONE, answer=stored(row))
        return self.running(row, now)

    def running(self, row: Row, now: int) -> Claim:
        """A request is under way from its claim to the end of its lease. By any other time nothing is known of it."""
        if row.lease - self._lease_ms <= now < row.lease:
            return Claim(Found.RUNNING, left_ms=row.lease - now)
        return Claim(Found.ABANDONED)

    def complete(self, scope: str, name: str, token: str, answer: Answer) -> None:
        """Store the answer of the request that holds the token. Raises StoreError, also where it holds it no more."""
        with self._database.transaction() as change:
            row = self.read(change, scope, name)
            if row.token != token or row.state != "running":
                raise StoreError("another request holds this key")
            done = Row(
                scope,
                name,
                row.print,
                token,
                "done",
                row.expires,
                row.lease,
                answer.status,
                json.dumps([list(pair) for pair in answer.headers]),
                answer.body,
            )
            change.execute(
                "UPDATE records SET state = ?, status = ?, headers = ?, body = ?, digest = ?"
                " WHERE scope = ? AND name = ?",
                (done.state, done.status, done.headers, done.body, done.digest(), scope, name),
            )


def stored(row: Row) -> Answer:
    """The answer of a row that is done."""
    headers = tuple((name, value) for name, value in json.loads(row.headers or "[]"))
    return Answer(row.status or 0, headers, row.body or b"", replayed=True)
