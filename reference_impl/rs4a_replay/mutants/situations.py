"""Bugs of the operations beside the main one that show in one situation only: a time, a rival, another process."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteStore
from holdfast.reference_impl.rs4a_replay.store import Store


def _asked(store: Store, statement: str, *values: object) -> Any:
    """The first value that the surface answers a statement with; None if it has none."""
    assert isinstance(store, SqliteStore), "these bugs are planted on SQLite"
    found = store._database.connection().execute(statement, values).fetchone()
    return None if found is None else found[0]


# Issuing


def _issued_before(authority: Authority, args: Any, now: datetime, until: datetime) -> str | None:
    """A nonce that was issued for the same, until then."""
    row = authority.issue_row(args, now=now)
    found: str | None = _asked(
        authority.store,
        "SELECT min(authorization_nonce) FROM nonce_issue WHERE binding = ? AND not_before = ? AND not_after = ? "
        "AND issued_at < ?",
        *(row[name] for name in ("binding", "not_before", "not_after")),
        until.strftime("%Y-%m-%dT%H:%M:%S"),
    )
    return found


# Validating


# Registering


# Compensating


# The status


# Retention
