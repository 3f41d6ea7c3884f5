"""Steps that change what lies in the workdir: they stay in it, and leave alone what has another name elsewhere."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.cases.report import ReportError, written
from holdfast.conformance.inspection import changing, files, store
from holdfast.conformance.inspection.database import loosen
from holdfast.conformance.steps.files import COPY, LIST
from tests.harness.ledger import verdict

PUT = {"call": "put", "args": {"key": "one"}}
AGAIN = {"call": "put", "args": {"key": "one"}, "expect": {"outcome": "refused", "reason": "DUPLICATE"}}


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    """A workdir, and a file beside it."""
    workdir, outside = tmp_path / "workdir", tmp_path / "outside"
    workdir.mkdir()
    outside.write_bytes(b"of somebody else")
    return workdir, outside


@pytest.mark.parametrize("change", [{"flip": 1}, {"truncate": 3}, {"delete": True}])
def test_what_is_tampered_with_through_a_link_stays_as_it_is(
    places: tuple[Path, Path], change: Mapping[str, Any]
) -> None:
    workdir, outside = places
    (workdir / "inside").write_bytes(b"of the implementation")
    (workdir / "folder").mkdir()
    (workdir / "folder" / "inside").write_bytes(b"of the implementation")
    (workdir / "away").symlink_to(outside)
    (workdir / "near").symlink_to("inside")
    (workdir / "above").symlink_to("..")
    (workdir / "by").symlink_to("folder")
    assert store.tamper(workdir, "away", change) == "away is no plain file in the workdir but a link"
    assert store.tamper(workdir, "near", change) == "near is no plain file in the workdir but a link"
    for path in ("above/outside", "by/inside"):
        with pytest.raises(OSError, match="symbolic link"):
            store.tamper(workdir, path, change)
    assert outside.read_bytes() == b"of somebody else"
    assert (workdir / "inside").read_bytes() == b"of the implementation"
    assert (workdir / "folder" / "inside").read_bytes() == b"of the implementation"


@pytest.mark.parametrize(
    ("change", "left"), [({"flip": 0}, b"\x90f somebody else"), ({"truncate": 2}, b"of"), ({"delete": True}, None)]
)
def test_a_file_that_has_another_name_elsewhere_is_changed_under_this_one_only(
    places: tuple[Path, Path], change: Mapping[str, Any], left: bytes | None
) -> None:
    workdir, outside = places
    outside.chmod(0o640)
    os.link(outside, workdir / "shared")
    assert store.tamper(workdir, "shared", change) is None
    assert outside.read_bytes() == b"of somebody else"
    assert (workdir / "shared").exists() is (left is not None)
    if left is not None:
        assert (workdir / "shared").read_bytes() == left
        assert (workdir / "shared").stat().st_mode & 0o777 == 0o640


def test_what_is_placed_over_a_file_with_another_name_elsewhere_leaves_that_one(places: tuple[Path, Path]) -> None:
    workdir, outside = places
    os.link(outside, workdir / "shared")
    changing.place(workdir, "shared", b"placed")
    assert (outside.read_bytes(), (workdir / "shared").read_bytes()) == (b"of somebody else", b"placed")
    # A file with one name is written in place: a process that has it open reads the new content.
    with (workdir / "own").open("w+b") as file:
        changing.place(workdir, "own", b"longer than what comes next")
        changing.place(workdir, "own", b"next")
        assert file.read() == b"next"


def test_what_is_placed_with_the_time_of_what_was_there_looks_as_old(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"one")
    os.utime(tmp_path / "file", ns=(5, 7))
    changing.place(tmp_path, "file", b"two", "kept")
    assert ((tmp_path / "file").read_bytes(), (tmp_path / "file").stat().st_mtime_ns) == (b"two", 7)
    changing.place(tmp_path, "file", b"six")
    assert (tmp_path / "file").stat().st_mtime_ns > 7


# Copies


def test_a_copy_of_a_folder_takes_the_place_of_what_lies_there(tmp_path: Path) -> None:
    made = tmp_path / "one" / "deep" / "er"
    made.mkdir(parents=True)
    (made / "file").write_bytes(b"bytes")
    (made / "file").chmod(0o440)
    (tmp_path / "one" / "empty").write_bytes(b"")
    (tmp_path / "one" / "away").symlink_to("/nowhere")
    made.chmod(0o500)
    old = tmp_path / "two" / "old"
    old.mkdir(parents=True)
    (old / "gone").write_bytes(b"old")
    assert changing.copy(tmp_path, "one", "two") == {"to": "two", "files": 2, "size": 5}
    there = tmp_path / "two" / "deep" / "er"
    assert sorted(os.listdir(tmp_path / "two")) == ["away", "deep", "empty"]
    assert (there.stat().st_mode & 0o777, (there / "file").stat().st_mode & 0o777) == (0o500, 0o440)
    assert (there / "file").read_bytes() == b"bytes"
    assert (there / "file").stat().st_ino != (made / "file").stat().st_ino
    assert os.readlink(tmp_path / "two" / "away") == "/nowhere"
    # And back again, over a folder that cannot be written to.
    made.chmod(0o700)
    (made / "file").unlink()
    assert changing.copy(tmp_path, "two", "one")["files"] == 2
    assert (made / "file").read_bytes() == b"bytes"


def test_what_is_moved_is_the_same_for_whoever_has_it_open(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    (tmp_path / "two" / "old").write_bytes(b"old")
    with (tmp_path / "one" / "file").open("wb", buffering=0) as file:
        file.write(b"by")
        assert changing.copy(tmp_path, "one", "two", move=True) == {"to": "two", "files": 1, "size": 2}
        file.write(b"tes")
    assert os.listdir(tmp_path / "two") == ["file"]
    assert (tmp_path / "two" / "file").read_bytes() == b"bytes"
    assert not (tmp_path / "one").exists()
    with pytest.raises(FileNotFoundError):
        changing.copy(tmp_path, "one", "two", move=True)
    assert (tmp_path / "two" / "file").exists()


def test_a_copy_that_cannot_be_made_leaves_what_lies_there(places: tuple[Path, Path]) -> None:
    workdir, outside = places
    (workdir / "kept").write_bytes(b"kept")
    (workdir / "away").symlink_to(outside)
    (workdir / "above").symlink_to("..")
    (workdir / "odd").mkdir()
    os.mkfifo(workdir / "odd" / "pipe")
    for path, words in (
        ("none", "No such file"),
        ("away", "symbolic link"),
        ("odd", "neither file"),
        ("above/outside", "link"),
    ):
        with pytest.raises(OSError, match=words):
            changing.copy(workdir, path, "kept")
    assert (workdir / "kept").read_bytes() == b"kept"
    with pytest.raises(OSError, match="symbolic link"):
        changing.copy(workdir, "kept", "above/outside")
    # A link at the place itself is replaced, and not followed.
    assert changing.copy(workdir, "kept", "away") == {"to": "away", "files": 1, "size": 4}
    assert (outside.read_bytes(), (workdir / "away").is_symlink()) == (b"of somebody else", False)


def test_more_than_fits_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "much").mkdir()
    for number in range(5):
        (tmp_path / "much" / str(number)).write_bytes(bytes(10))
    with monkeypatch.context() as patch:
        patch.setattr(changing, "MAX_ENTRIES", 5)
        with pytest.raises(OSError, match="more than 5 files and folders"):
            changing.copy(tmp_path, "much", "to")
    with monkeypatch.context() as patch:
        patch.setattr(changing, "MAX_FILE", 49)
        with pytest.raises(OSError, match="more than 49 bytes"):
            changing.copy(tmp_path, "much", "to")
        patch.setattr(changing, "MAX_FILE", 50)
        assert changing.copy(tmp_path, "much", "to")["size"] == 50


def test_an_older_copy_of_a_store_is_put_back_and_seen() -> None:
    steps = (
        PUT,
        {"kill": 0},
        {"copy": "data", "to": "aside/data", "bind": {"files": "value.files"}},
        {"check": "$files", "differs": 0},
        {"reopen": 0},
        {"call": "put", "args": {"key": "two"}},
        {"inspect": "store", "expect": {"value": {"rows.entry": {"$count": 2}}}},
        {"kill": 0},
        {"copy": "aside/data", "to": "data", "expect": {"value": {"to": "data"}}},
        {"reopen": 0},
        {"inspect": "store", "expect": {"value": {"rows.entry": {"$count": 1}}}},
        AGAIN,
        {"call": "put", "args": {"key": "two"}},
    )
    assert verdict(*steps) == ("conforms", "")


def test_a_store_that_a_copy_replaced_is_compared_by_its_bytes() -> None:
    broken = {"place": "aside/deep/ledger.db", "content": {"$utf8": "no database"}}
    refused = {**PUT, "expect": {"outcome": "refused", "reason": "DUPLICATE"}}
    # The one that runs has the database open which it began with.
    for copied in ({"copy": "aside/deep", "to": "data"}, {"copy": "aside/deep/ledger.db", "to": "data/ledger.db"}):
        found, detail = verdict(PUT, broken, copied, refused)
        assert (found, detail) == ("conforms", "")


def test_a_copy_that_is_told_of_another_place_is_no_evidence() -> None:
    value = {"to": "data", "files": 1, "size": 1}
    assert COPY.read(written(value), {"path": "aside", "to": "data"}) == value
    with pytest.raises(ReportError, match="elsewhere than the case has it"):
        COPY.read(written(value), {"path": "aside", "to": "other"})
    with pytest.raises(ReportError, match="files"):
        COPY.read(written({**value, "files": -1}))


# Names


def test_names_that_would_be_told_alike_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "in\\side").mkdir()
    os.mkfifo(tmp_path / "in\\side" / "pipe")
    for name in (b"\xff", b"\\xff", b"\\x5cxff", b"a\\b"):
        os.close(os.open(os.fsencode(tmp_path) + b"/in\\side/" + name, os.O_CREAT | os.O_WRONLY))
    for path in (".", "in\\side"):
        value = files.tree(tmp_path, path)
        # The very check that the run and the gate make of it.
        assert LIST.read(written(value), {"path": path}) == value
    told = [entry["path"] for entry in value["files"]]
    assert told == [f"in\\x5cside/{name}" for name in ("\\x5cx5cxff", "\\x5cxff", "\\xff", "a\\x5cb", "pipe")]
    assert [(entry["kind"], entry["size"]) for entry in value["files"]] == [("file", 0)] * 4 + [("other", None)]


def test_a_name_with_a_backslash_is_judged() -> None:
    placed = {"place": "in\\side/\\xff", "content": ""}
    listed = {"tree": "in\\side", "expect": {"value": {"files.0.path": "in\\x5cside/\\x5cxff", "files": {"$count": 1}}}}
    assert verdict(placed, listed) == ("conforms", "")
    other = {"tree": "in\\side", "expect": {"value": {"files": {"$count": 2}}}}
    assert verdict(placed, other)[0] == "lost_durability"


# Databases that lose their constraints: all of them, or one whose unique indexes look as before and refuse nothing.

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
