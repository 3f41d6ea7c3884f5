"""A live file is read in place, also while another process has it open. It and its folder are not written."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.gather import Names, search_file
from holdfast.conformance.fitness.gather import assess as gather
from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.model import Part, RelationName, Standing, Status
from holdfast.conformance.fitness.proof import bound_to
from holdfast.conformance.fitness.sqlite.live import path_of, read, relation_name, take
from holdfast.conformance.fitness.sqlite.probes import gather_evidence
from tests.fitness.sqlite.files import Files, made, policy_of, surface_of
from tests.fitness.sqlite.schemas import FIT_ONES, Schema

FIT = FIT_ONES[0]
_ROLLBACK_JOURNAL = next(schema for schema in FIT_ONES if schema.journal == "delete")
# A writer of another process, as the registrar would be: it says when it has the file open, then waits.
_WRITER = """
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("INSERT INTO consumed VALUES ('issued', 'k')")
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO consumed VALUES ('open', 'k')")
print("open", flush=True)
sys.stdin.read()
"""


@contextmanager
def _open_elsewhere(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has a transaction open, and committed one before."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-c", _WRITER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def _state(folder: Path) -> Mapping[str, tuple[int, int, int, bytes]]:
    """Everything in a folder: inode, size, time of the last write, and the bytes."""
    found = {}
    for path in sorted(folder.iterdir()):
        observed = path.stat()
        found[path.name] = (observed.st_ino, observed.st_size, observed.st_mtime_ns, path.read_bytes())
    return found


def _all_of_it(files: Files, schema: Schema) -> Status:
    """Search, snapshot, probes and judgement."""
    search_file(files.live, policy_of(schema))
    found = gather(str(files.live), Names(schema.effect, schema.nonce, f"{files.audit}:refusals"), policy_of(schema))
    return found.judgement.status


@pytest.mark.parametrize("schema", [FIT, _ROLLBACK_JOURNAL], ids=lambda schema: schema.name)
def test_nothing_is_written_and_nothing_is_made_beside_a_file_that_nobody_has_open(
    schema: Schema, tmp_path: Path
) -> None:
    with made(schema, tmp_path) as files:
        before = _state(files.live.parent)

        assert _all_of_it(files, schema) is Status.FIT

        assert _state(files.live.parent) == before
        assert sorted(before) == ["audit.sqlite3", "live.sqlite3"]


def test_nothing_is_written_while_the_registrar_has_a_transaction_open(tmp_path: Path) -> None:
    with made(FIT, tmp_path) as files, _open_elsewhere(files.live):
        for ending in ("-wal", "-shm"):
            path = files.live.with_name(files.live.name + ending)
            path.chmod(0o600)
            os.chown(path, files.live.stat().st_uid, -1)
        before = _state(files.live.parent)

        assert _all_of_it(files, FIT) is Status.FIT

        assert _state(files.live.parent) == before
        assert "live.sqlite3-wal" in before


def test_what_was_committed_to_the_log_is_seen_and_what_is_open_is_not(tmp_path: Path) -> None:
    with made(FIT, tmp_path) as files, _open_elsewhere(files.live):
        rows = read(files.live, lambda connection: connection.execute("SELECT * FROM consumed").fetchall())

        assert rows == [("issued", "k")]


def test_a_log_that_nobody_recovered_is_not_read_around_and_not_recovered(tmp_path: Path) -> None:
    with made(FIT, tmp_path) as files:
        with _open_elsewhere(files.live) as process:
            process.kill()
            process.wait()
        files.live.with_name(files.live.name + "-shm").unlink()
        before = _state(files.live.parent)

        with pytest.raises(FitnessError, match="were not recovered"):
            take(files.live, surface_of(FIT, files))
        assert _state(files.live.parent) == before


def test_a_reader_without_locks_reads_again_when_somebody_wrote_meanwhile(tmp_path: Path) -> None:
    observed: list[int] = []

    def reading(connection: sqlite3.Connection) -> int:
        observed.append(connection.execute("SELECT count(*) FROM consumed").fetchone()[0])
        if len(observed) == 1:
            with sqlite3.connect(files.live) as writer:
                writer.execute("INSERT INTO consumed VALUES ('n', 'k')")
            writer.close()
            # A file with the old time is identified by its size and the files beside it; this one is a moment younger.
            os.utime(files.live, ns=(time.time_ns(), time.time_ns()))
        return observed[-1]

    with made(FIT, tmp_path) as files:
        assert read(files.live, reading) == 1
    assert observed == [0, 1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"no database, but long enough to hold one " * 9, "is no SQLite database"),
        (None, "No such file"),
    ],
)
def test_what_is_no_database_is_said_so(content: bytes | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "file"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(FitnessError, match=words):
        read(path, lambda connection: connection.execute("SELECT 1").fetchone())
    assert path.exists() is (content is not None)


def test_a_file_that_is_cut_short_is_said_to_be_unreadable_or_unsound(tmp_path: Path) -> None:
    with made(FIT, tmp_path) as files:
        os.truncate(files.live, 4096)

        with pytest.raises(FitnessError, match="cannot be read as a SQLite database"):
            take(files.live, surface_of(FIT, files))


def test_an_index_that_lacks_its_entries_refutes_single_use(tmp_path: Path) -> None:
    with made(FIT, tmp_path) as files:
        with sqlite3.connect(files.live) as connection:
            row = ", ".join(
                f"'{value}'" for value in ("d", "a" * 64, "b" * 64, "register_dot", "t", "r", "c" * 64, "o")
            )
            connection.execute(f"INSERT INTO effect VALUES ({row}, '1', 'now')")
            connection.execute("PRAGMA writable_schema = ON")
            # Another index in the place of the key's: SQLite searches there from now on, and finds no row.
            connection.execute("CREATE TABLE empty (k TEXT UNIQUE) STRICT")
            roots = dict(connection.execute("SELECT name, rootpage FROM sqlite_schema WHERE type = 'index'").fetchall())
            connection.execute(
                "UPDATE sqlite_schema SET rootpage = ? WHERE name = 'sqlite_autoindex_effect_2'",
                (roots["sqlite_autoindex_empty_1"],),
            )
        connection.close()

        evidence = gather_evidence(files.live, surface_of(FIT, files), policy_of(FIT))
    reasons = [reason.code for finding in judge(evidence, policy_of(FIT)).findings for reason in finding.reasons]
    assert "CORRUPT" in reasons


def test_a_digest_is_bound_to_schema_and_rights_and_not_to_rows_or_log(tmp_path: Path) -> None:
    def now() -> str:
        return bound_to(take(files.live, surface_of(FIT, files)).structure, policy_of(FIT).written())

    with made(FIT, tmp_path) as files:
        first = now()
        with sqlite3.connect(files.live) as connection:
            connection.execute("INSERT INTO consumed VALUES ('n', 'k')")
            connection.execute("ANALYZE")
        assert now() == first
        connection.close()
        assert now() == first

        files.live.chmod(0o640)
        second = now()
        files.live.chmod(0o600)
        with sqlite3.connect(files.live) as connection:
            connection.execute("DROP TRIGGER effect_no_update")
        connection.close()

        assert len({first, second, now()}) == 3


def test_evidence_that_lacks_a_single_probe_proves_no_more_than_the_rest(tmp_path: Path) -> None:
    with made(FIT, tmp_path) as files:
        evidence = gather_evidence(files.live, surface_of(FIT, files), policy_of(FIT))
    judged = [probe.name for probe in evidence.probes if probe.name not in ("first", "audit-first")]
    unheeded = []
    for name in judged:
        rest = tuple(probe for probe in evidence.probes if probe.name != name)
        found = judge(type(evidence)(evidence.surface, evidence.snapshot, rest), policy_of(FIT)).findings
        if all(finding.standing is Standing.PROVEN for finding in found):
            unheeded.append(name)
    assert unheeded == []


def test_names_are_read_and_files_are_told_from_servers(tmp_path: Path) -> None:
    with made(FIT, tmp_path) as files:
        path, other = files.live, files.audit
        link = tmp_path / "link.sqlite3"
        link.symlink_to(path)

        assert relation_name("effect", path) == relation_name("main.effect", path) == RelationName("main", "effect")
        assert relation_name(f"{other}:refusals", path) == RelationName(str(other), "refusals")
        assert relation_name(f"{link}:effect", path) == RelationName("main", "effect")
        assert {
            path_of(text) for text in (str(path), f"sqlite:{path}", f"sqlite://{path}", f"file:{path}?mode=rw")
        } == {path}
        assert path_of("postgresql://user:secret@host/db") is None
        assert path_of("host=/tmp dbname=x") is None
        found = {(each.part, each.relation.name) for each in search_file(path, policy_of(FIT)) if not each.reasons}
        assert found == {(Part.EFFECT, "effect"), (Part.NONCE, "consumed")}


def test_nothing_of_the_copy_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    with made(FIT, tmp_path) as files:
        gather_evidence(files.live, surface_of(FIT, files), policy_of(FIT))
    assert list(scratch.iterdir()) == []
