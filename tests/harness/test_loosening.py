"""Databases that lose their constraints: all of them, or one whose unique indexes look as before and refuse nothing."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from holdfast.conformance.inspection.database import loosen

_KEY, _TAG = "a-key-of-a-row", "a-tag"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "store.db"
    with sqlite3.connect(made) as connection:
        connection.execute("CREATE TABLE effect (id TEXT PRIMARY KEY NOT NULL, key TEXT NOT NULL UNIQUE, note TEXT)")
        connection.execute("CREATE TABLE other (id TEXT PRIMARY KEY NOT NULL)")
        connection.execute("INSERT INTO effect VALUES ('1', ?, NULL)", (_KEY,))
        connection.execute("INSERT INTO other VALUES (?)", (_TAG,))
    return made


def _again(path: Path, table: str, *values: str | None) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)


def test_every_table_takes_a_second_row(path: Path) -> None:
    assert loosen(str(path), "", 5) == {"tables": ["effect", "other"], "error": None}
    _again(path, "effect", "1", _KEY, None)
    _again(path, "other", _TAG)


def test_the_table_that_holds_a_text_alone_takes_one_and_keeps_what_must_not_be_null(path: Path) -> None:
    assert loosen(str(path), _KEY, 5) == {"tables": ["effect"], "error": None}
    _again(path, "effect", "1", _KEY, "another")
    with pytest.raises(sqlite3.IntegrityError, match="UNIQUE"):
        _again(path, "other", _TAG)
    with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
        _again(path, "effect", "2", None, None)


def test_its_indexes_refuse_no_row_and_some_are_of_the_same_columns(path: Path) -> None:
    loosen(str(path), _KEY, 5)
    with sqlite3.connect(path) as connection:
        found = []
        for _, name, unique, _, partial in connection.execute("PRAGMA index_list(effect)").fetchall():
            columns = [row[2] for row in connection.execute(f"PRAGMA index_info({name})")]
            found.append((unique, partial, columns))
    assert sorted(found, key=repr) == [
        (0, 0, ["id"]),
        (0, 0, ["key"]),
        (1, 0, [None]),
        (1, 0, [None]),
        (1, 1, ["id"]),
        (1, 1, ["key"]),
    ]
