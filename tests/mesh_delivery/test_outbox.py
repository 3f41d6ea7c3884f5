"""The outbox of the reference: durable before it is answered, owned by one process, and never made over another."""

from __future__ import annotations

import contextlib
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.reference_impl.mesh_delivery.outbox import Outbox, OutboxError, OutboxSchema

FINGERPRINT, PAYLOAD = b"\x01" * 32, b"{}"


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    """A new outbox."""
    made = Outbox(tmp_path / "outbox.db", OutboxSchema())
    made.make()
    yield made
    made.release()


def test_a_row_is_readable_by_another_connection_when_insert_returns(outbox: Outbox, tmp_path: Path) -> None:
    row, is_new = outbox.insert("one", FINGERPRINT, PAYLOAD, 7)
    assert is_new
    assert Outbox(tmp_path / "outbox.db", OutboxSchema()).insert("one", FINGERPRINT, PAYLOAD, 8) == (row, False)


def test_commits_are_synced_and_the_file_is_the_owners(outbox: Outbox, tmp_path: Path) -> None:
    with outbox.transaction() as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert stat.S_IMODE((tmp_path / "outbox.db").stat().st_mode) == 0o600


def test_an_outbox_is_never_made_over_another(outbox: Outbox) -> None:
    with pytest.raises(FileExistsError):
        outbox.make()


def test_an_outbox_that_is_gone_is_no_empty_one(outbox: Outbox, tmp_path: Path) -> None:
    (tmp_path / "outbox.db").unlink()
    with pytest.raises(OutboxError):
        outbox.insert("one", FINGERPRINT, PAYLOAD, 7)
    assert not (tmp_path / "outbox.db").exists()


def test_what_fails_within_a_transaction_leaves_nothing(outbox: Outbox) -> None:
    with pytest.raises(OutboxError):
        outbox.insert("one", b"short", PAYLOAD, 7)
    with contextlib.suppress(RuntimeError), outbox.transaction() as connection:
        connection.execute(
            "INSERT INTO outbox (id, client_message_id, request_fingerprint, payload, enqueued_at, next_attempt_at, "
            "status) VALUES ('1', 'two', ?, ?, 1, 1, 'pending')",
            (FINGERPRINT, PAYLOAD),
        )
        raise RuntimeError
    assert outbox.take_due(9) == []


def test_only_the_first_process_of_an_outbox_owns_it(outbox: Outbox, tmp_path: Path) -> None:
    other = Outbox(tmp_path / "outbox.db", OutboxSchema())
    assert outbox.own()
    assert not other.own()
    outbox.release()
    assert other.own()
    other.release()


def test_a_locked_outbox_is_no_answer(outbox: Outbox, tmp_path: Path) -> None:
    holder = sqlite3.connect(tmp_path / "outbox.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    try:
        with pytest.raises(OutboxError, match="locked"):
            outbox.insert("one", FINGERPRINT, PAYLOAD, 7)
    finally:
        holder.close()
    assert outbox.insert("one", FINGERPRINT, PAYLOAD, 7)[1]


def test_what_is_in_flight_before_a_round_is_due_in_it(outbox: Outbox) -> None:
    outbox.insert("one", FINGERPRINT, PAYLOAD, 7)
    assert [row.client_message_id for row in outbox.take_due(7)] == ["one"]
    assert [row.client_message_id for row in outbox.take_due(7)] == ["one"]


def test_dead_rows_are_shown_while_another_process_writes(outbox: Outbox, tmp_path: Path) -> None:
    row, _ = outbox.insert("one", FINGERPRINT, PAYLOAD, 7)
    outbox.settle_row(row, {"status": "dead"})
    holder = sqlite3.connect(tmp_path / "outbox.db", isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    try:
        assert [dead.client_message_id for dead in outbox.dead()] == ["one"]
    finally:
        holder.close()
