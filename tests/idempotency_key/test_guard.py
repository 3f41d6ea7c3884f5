"""The guard and its table, without HTTP."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from holdfast.reference_impl.idempotency_key.databases import Sqlite
from holdfast.reference_impl.idempotency_key.guard import Fingerprints, Guard, Request
from holdfast.reference_impl.idempotency_key.keys import Keys
from holdfast.reference_impl.idempotency_key.records import Found, Records
from holdfast.reference_impl.idempotency_key.terms import Answer, StoreError

LEASE, LIFETIME = 100, 1000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    Sqlite.make(tmp_path / "keys.db")
    return tmp_path / "keys.db"


@pytest.fixture
def records(path: Path) -> Records:
    return Records(Sqlite(path), lifetime_ms=LIFETIME, lease_ms=LEASE)


def test_a_key_is_claimed_once_and_then_has_its_answer(records: Records) -> None:
    claim = records.claim("s", "k", "p", 0)
    assert claim.found is Found.MINE
    assert records.claim("s", "k", "p", 1).found is Found.RUNNING
    records.complete("s", "k", claim.token, Answer(201, (("Location", "/1"),), b"\xff"))
    found = records.claim("s", "k", "p", LEASE + 1)
    assert found.found is Found.DONE
    assert found.answer == Answer(201, (("Location", "/1"),), b"\xff")
    assert records.claim("s", "k", "other", 1).found is Found.OTHER
    assert records.claim("t", "k", "other", 1).found is Found.MINE


def test_behind_the_lease_nothing_is_known_and_a_late_answer_still_counts(records: Records) -> None:
    claim = records.claim("s", "k", "p", 0)
    assert records.claim("s", "k", "p", LEASE).found is Found.ABANDONED
    # A clock that was set back does not make it run again.
    assert records.claim("s", "k", "p", -1).found is Found.ABANDONED
    records.complete("s", "k", claim.token, Answer(200))
    assert records.claim("s", "k", "p", LEASE).found is Found.DONE


def test_a_key_is_free_at_the_end_of_its_time_whether_it_was_swept_or_not(records: Records) -> None:
    for swept in (False, True):
        name = f"k{swept}"
        records.claim("s", name, "p", 0)
        assert records.claim("s", name, "p", LIFETIME - 1).found is Found.ABANDONED
        if swept:
            records.sweep(LIFETIME)
        assert records.claim("s", name, "p", LIFETIME).found is Found.MINE


def test_only_who_holds_the_token_can_store_an_answer_and_only_once(records: Records) -> None:
    claim = records.claim("s", "k", "p", 0)
    with pytest.raises(StoreError):
        records.complete("s", "k", "another", Answer(200))
    records.complete("s", "k", claim.token, Answer(200))
    with pytest.raises(StoreError):
        records.complete("s", "k", claim.token, Answer(500))


def test_a_row_that_another_hand_changed_is_not_believed(records: Records, path: Path) -> None:
    claim = records.claim("s", "k", "p", 0)
    records.complete("s", "k", claim.token, Answer(201, (), b"one"))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE records SET body = x'00'")
    with pytest.raises(StoreError, match="digest"):
        records.claim("s", "k", "p", 1)


def test_a_store_that_is_missing_or_damaged_is_not_made_anew(path: Path) -> None:
    with pytest.raises(StoreError):
        Sqlite(path.with_name("other.db"))
    assert not path.with_name("other.db").exists()
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(StoreError):
        Sqlite(path)
    with pytest.raises(StoreError):
        Sqlite.make(path)


def _asked(**changed: object) -> Request:
    return Request(**{**dict(_FIELDS), **changed})  # type: ignore[arg-type]


_FIELDS = {
    "method": "POST",
    "path": "/orders",
    "query": "",
    "content_type": "application/json",
    "body": b"{}",
    "keys": (b'"k"',),
    "principal": "a",
}


def test_no_two_requests_have_one_fingerprint() -> None:
    prints = Fingerprints()
    asked = [_asked(), _asked(body=b" {}"), _asked(query="a"), _asked(content_type=""), _asked(path="/")]
    asked += [_asked(query="ab", content_type="c"), _asked(query="a", content_type="bc")]
    assert len({prints.of(each) for each in asked}) == len(asked)


def test_an_answer_that_cannot_be_stored_is_not_given(path: Path, records: Records) -> None:
    guard = Guard(Keys(255), Fingerprints(), records, lambda: 0)

    def handler(_: bytes) -> Answer:
        path.rename(path.with_name("gone"))
        return Answer(201)

    assert guard.answer(_asked(), handler).status == 500
    # And nothing is executed without the store.
    assert guard.answer(_asked(), lambda _: pytest.fail("it was executed")).status == 503
