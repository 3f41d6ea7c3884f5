"""The file: its schema, who may read it, and everything that can be wrong with it."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from holdfast.reference_impl.answers import Fault, Refused
from holdfast.reference_impl.calyx_replay.factory import REFERENCE
from holdfast.reference_impl.calyx_replay.provision import ProvisionError
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import Purpose
from holdfast.reference_impl.session import SurfaceWanted
from holdfast.reference_impl.sqlite import UncertainError
from tests.calyx_replay.conftest import ROW, Box, Opener, envelope, key_of

COLUMNS = {
    "replay_key": ("TEXT", 1, 1),
    "msg_id": ("TEXT", 1, 0),
    "sender_fp": ("TEXT", 1, 0),
    "recipient_fp": ("TEXT", 1, 0),
    "seen_at": ("TIMESTAMP", 1, 0),
    "envelope_timestamp": ("TEXT", 1, 0),
}
KEY = "0123456789abcdef" * 4


def test_the_table_has_the_columns_and_indexes_of_the_source(box: Box) -> None:
    with contextlib.closing(sqlite3.connect(box.database)) as connection:
        columns = connection.execute("PRAGMA table_xinfo(replay_state)").fetchall()
        assert {name: (kind, notnull, pk) for _, name, kind, notnull, _, pk, _ in columns} == COLUMNS
        assert all(hidden == 0 for *_, hidden in columns)
        indexes = {
            name: (unique, partial)
            for _, name, unique, _, partial in connection.execute("PRAGMA index_list(replay_state)")
        }
        assert {indexes.pop(name) for name in ("idx_seen_at", "idx_msg_id")} == {(0, 0)}
        assert set(indexes.values()) == {(1, 0)}
        for name in indexes:
            assert [row[2] for row in connection.execute(f"PRAGMA index_info({name})")] == ["replay_key"]
        assert connection.execute("SELECT count(*) FROM sqlite_schema WHERE type = 'trigger'").fetchone() == (0,)


@pytest.mark.parametrize(
    "key",
    [
        None,
        KEY.upper(),
        KEY[:-1],
        KEY + "0",
        KEY[:-1] + " ",
        KEY[:-1] + "g",
        KEY.encode(),
        KEY + "\0",
        KEY[:-1] + "\0",
        1,
        0.5,
        "",
        "\uff11" * 64,
    ],
)
def test_no_other_form_of_a_key_can_be_stored(box: Box, key: object) -> None:
    with pytest.raises(sqlite3.IntegrityError):
        box.put("2026-01-01T12:00:00Z", replay_key=key)


@pytest.mark.parametrize("column", [*ROW, "seen_at"])
def test_no_column_takes_null(box: Box, column: str) -> None:
    with pytest.raises(sqlite3.IntegrityError, match="NOT NULL"):
        box.put("2026-01-01T12:00:00Z", **{column: None}) if column != "seen_at" else box.put(None)


def test_a_second_row_with_one_key_is_an_error(box: Box) -> None:
    box.put("2026-01-01T12:00:00Z", replay_key=KEY)
    with pytest.raises(sqlite3.IntegrityError) as caught:
        box.put("2026-01-02T12:00:00Z", replay_key=KEY)
    assert caught.value.sqlite_errorname in ("SQLITE_CONSTRAINT_PRIMARYKEY", "SQLITE_CONSTRAINT_UNIQUE")


def test_every_connection_is_hardened(box: Box) -> None:
    for purpose, found in box.value("connections").items():
        assert found == {"foreign_keys": 1, "journal_mode": "wal", "synchronous": 2}, purpose


@pytest.fixture(params=[0o000, 0o022, 0o077])
def umask(request: pytest.FixtureRequest) -> Iterator[int]:
    before = os.umask(request.param)
    yield request.param
    os.umask(before)


def test_all_three_files_are_their_owners_alone_whatever_the_umask(umask: int, opener: Opener) -> None:
    box = opener()
    assert box.outcome(envelope()) == "new"
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in box.database.parent.glob("replay_state.db*")}
    assert modes == dict.fromkeys(("replay_state.db", "replay_state.db-wal", "replay_state.db-shm"), 0o600)
    for folder in (box.database.parent, box.database.parent.parent):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_modes_that_somebody_opened_are_closed_again(opener: Opener, tmp_path: Path) -> None:
    opener().session.close()
    (tmp_path / "runtime/mailbox/replay_state.db").chmod(0o664)
    box = opener()
    assert box.outcome(envelope()) == "new"
    assert {stat.S_IMODE(path.stat().st_mode) for path in box.database.parent.glob("replay_state.db*")} == {0o600}


def test_git_ignores_the_runtime(box: Box) -> None:
    assert box.outcome(envelope()) == "new"
    subprocess.run(["git", "init", "-q", box.workdir], check=True)
    names = [str(path.relative_to(box.workdir)) for path in box.database.parent.iterdir()]
    found = subprocess.run(["git", "check-ignore", *names], cwd=box.workdir, capture_output=True, text=True, check=True)
    assert sorted(found.stdout.split()) == sorted(names)


def test_the_place_does_not_depend_on_the_current_folder(
    opener: Opener, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    box, raw = opener(), envelope()
    assert box.outcome(raw) == "new"
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert opener().outcome(raw) == "REPLAY_DUPLICATE"


# What can be wrong with it


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    for place in range(4096, len(data), 512):
        data[place] ^= 0xFF
    path.write_bytes(data)


def _foreign(path: Path) -> None:
    _gone(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE replay_state (replay_key TEXT)")


def _gone(path: Path) -> None:
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()


def _journal(path: Path) -> None:
    data = bytearray(path.read_bytes())
    # File format versions: 1 is a rollback journal, 2 a write-ahead log.
    data[18:20] = b"\1\1"
    path.write_bytes(data)


def _trigger(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TRIGGER quiet BEFORE INSERT ON replay_state BEGIN SELECT RAISE(IGNORE); END")


def _folder(path: Path) -> None:
    _gone(path)
    path.mkdir()


def _link(path: Path) -> None:
    aside = path.with_name("elsewhere.db")
    path.rename(aside)
    path.symlink_to(aside)


BROKEN: dict[str, Callable[[Path], object]] = {
    "gone": _gone,
    "the folder gone": lambda path: shutil.rmtree(path.parent),
    "empty": lambda path: path.write_bytes(b""),
    "cut in half": lambda path: os.truncate(path, path.stat().st_size // 2 // 4096 * 4096),
    "cut in the header": lambda path: os.truncate(path, 50),
    "cut in a page": lambda path: os.truncate(path, 3 * 4096 + 100),
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "bytes flipped": _flip,
    "a text": lambda path: path.write_text("{}" * 4000),
    "another application's": _foreign,
    "another journal mode": _journal,
    "a trigger in it": _trigger,
    "read-only": lambda path: path.chmod(0o400),
    "a folder": _folder,
    "a link": _link,
}


# The page with the journal mode stands in the log too, so while that is there nothing is wrong.
CASES = [(how, "while closed") for how in BROKEN] + [(how, "while open") for how in BROKEN if "journal" not in how]


@pytest.mark.parametrize(("how", "when"), CASES)
def test_a_database_that_cannot_be_asked_is_a_refusal_and_nobody_makes_another(
    opener: Opener, tmp_path: Path, how: str, when: str
) -> None:
    box, raw = opener(), envelope()
    assert box.outcome(raw) == "new"
    if when == "while closed":
        box.session.close()
    BROKEN[how](box.database)
    # While it is open, a close is enough for SQLite to write its log into the file at that place.
    looked_at = [path for path in (box.database,) if when == "while closed" and path.is_file()]
    before = sorted(tmp_path.rglob("*.db")), [path.read_bytes() for path in looked_at]
    if when == "while closed":
        box = opener()
    for sent in (raw, envelope()):
        assert box.outcome(sent) == "STORE_UNAVAILABLE"
    assert box.outcome(envelope(at="1999-01-01T00:00:00Z")) == "TIMESTAMP_OUT_OF_WINDOW"
    for method in ("prune", "migrate"):
        answer = box.call(method)
        assert isinstance(answer, Refused), method
        assert answer.reason == "STORE_UNAVAILABLE"
    for method in ("state", "deliveries", "connections", "pruned"):
        assert isinstance(box.call(method), Fault), method
    assert (sorted(tmp_path.rglob("*.db")), [path.read_bytes() for path in looked_at]) == before


def test_a_database_that_comes_back_knows_what_it_knew(box: Box) -> None:
    raw, aside = envelope(), box.database.parent.with_name("aside")
    assert box.outcome(raw) == "new"
    box.database.parent.rename(aside)
    assert box.outcome(raw) == "STORE_UNAVAILABLE"
    aside.rename(box.database.parent)
    assert box.outcome(raw) == "REPLAY_DUPLICATE"
    assert box.outcome(envelope()) == "new"


def test_without_a_surface_everything_is_refused(opener: Opener) -> None:
    box = opener(surface=SurfaceWanted.ABSENT)
    assert box.outcome(envelope()) == "STORE_UNAVAILABLE"
    assert box.outcome(b"{}") == "ENVELOPE_MALFORMED"
    for method in ("prune", "migrate"):
        assert getattr(box.call(method), "reason", None) == "STORE_UNAVAILABLE"
    assert not box.database.exists()


LOCKS = {"a writer": "BEGIN IMMEDIATE", "everything": "PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE"}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_of_another_process_is_a_refusal(opener: Opener, tmp_path: Path, lock: str) -> None:
    box, raw = opener(), envelope()
    assert box.outcome(raw) == "new"
    if lock == "everything":
        # The lock is only available if no other connection has the file open.
        box.session.close()
    program = (
        "import sqlite3, sys\n"
        f"held = sqlite3.connect({str(box.database)!r}, isolation_level=None)\n"
        f"[held.execute(each) for each in {LOCKS[lock].split(';')!r}]\n"
        "held.execute('UPDATE mailbox_state SET automatic = automatic')\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == b"held\n"
        if lock == "everything":
            box = opener()
        for method, args in (("accept", {"envelope": None}), ("prune", {}), ("migrate", {})):
            if method == "migrate":
                (tmp_path / "runtime/mailbox/seen_cache.json").write_text('["x"]')
            answer = box.send(envelope()) if "envelope" in args else box.call(method)
            assert getattr(answer, "reason", None) == "STORE_UNAVAILABLE", method
        holder.stdin.close()
        holder.wait()
    assert box.outcome(raw) == "REPLAY_DUPLICATE"
    assert box.outcome(envelope()) == "new"
    assert len(box.keys()) == 2


def test_a_file_that_may_not_grow_is_a_refusal(box: Box) -> None:
    first, second = envelope(), envelope()
    assert box.outcome(first) == "new"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = box.database.with_name("replay_state.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        assert box.outcome(second) == "STORE_UNAVAILABLE"
        assert box.outcome(first) == "REPLAY_DUPLICATE"
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert box.outcome(second) == "new"
    assert box.delivered() == [key_of(first), key_of(second)]


@pytest.mark.parametrize("whole", [True, False])
def test_after_the_log_was_removed_a_session_accepts_nothing_and_writes_it_back_at_its_end(
    opener: Opener, *, whole: bool
) -> None:
    box, first, second = opener(), envelope(), envelope()
    assert box.outcome(first) == "new"
    box.value("state")
    log = box.database.with_name("replay_state.db-wal")
    if not whole:
        log.write_bytes(b"")
    log.unlink()
    for raw in (first, second, first):
        assert box.outcome(raw) == "STORE_UNAVAILABLE"
    box.session.close()
    again = opener()
    # What was cut off is gone, and no later process can tell.
    assert [again.outcome(raw) for raw in (first, second)] == ["REPLAY_DUPLICATE" if whole else "new", "new"]


class ReadOnly(Store):
    def connect(self, purpose: Purpose) -> sqlite3.Connection:
        return sqlite3.connect(f"{self.location.database.as_uri()}?mode=ro", uri=True, isolation_level=None)


def test_a_connection_that_cannot_write_is_a_refusal(opener: Opener) -> None:
    box = opener(parts={"store": ReadOnly})
    assert box.outcome(envelope()) == "STORE_UNAVAILABLE"
    assert box.keys() == set()


class LosesCommits(Store):
    happens = True

    def commit(self, connection: sqlite3.Connection) -> None:
        if self.happens:
            super().commit(connection)
        else:
            self.roll_back(connection)
        raise UncertainError("the answer was lost")


class NeverHappens(LosesCommits):
    happens = False


def test_a_commit_of_unknown_outcome_is_indeterminate(opener: Opener) -> None:
    raw = envelope()
    box = opener(parts={"store": NeverHappens})
    assert box.outcome(raw) == "indeterminate"
    assert box.delivered() == []
    box = opener(parts={"store": LosesCommits})
    assert box.outcome(raw) == "indeterminate"
    assert box.outcome(raw) == "REPLAY_DUPLICATE"
    assert box.delivered() == [key_of(raw)]


def test_provisioning_overwrites_nothing(box: Box) -> None:
    parts = REFERENCE.parts(box.workdir, {})
    with pytest.raises(ProvisionError, match="never overwritten"):
        REFERENCE.provisioner(REFERENCE.schema()).make(parts.store.location)
