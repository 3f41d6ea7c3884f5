"""Each rule of what a crash may leave, on a recording of a few operations."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from holdfast.conformance.faults.model import names as model_names
from holdfast.conformance.faults.model.pending import Resized
from holdfast.conformance.faults.model.states import StateRule
from tests.faults.model.script import Script, told

Tree = Mapping[str, bytes | None]
EXT4_XFS, BTRFS, LATER = "ext4 and xfs", "btrfs", "btrfs after a commit by its clock"
# What is left at least, where file systems differ that of ext4 and xfs.
LEAST: Mapping[str, tuple[str, Tree]] = {
    "the snapshot is durable": ("has a 1; has b", {"a": b"1", "b": b""}),
    "what was not synced is not on the disk": ("has log old; append log new", {"log": b"old"}),
    "a sync keeps the bytes before it and not those after": (
        "has log; has other; append log one; append other x; fsync log; append log two",
        {"log": b"one", "other": b""},
    ),
    "a sync of data does the same": (
        "has log; has other; append log one; append other x; fdatasync log; append log two",
        {"log": b"one", "other": b""},
    ),
    "syncing a directory keeps names and no bytes": ("create a; append a 1; fsync", {"a": b""}),
    "a sync of all keeps all": ("has a 1; rename a b; append b 2; mkdir d; sync", {"b": b"12", "d": None}),
    # A plain file, written anew, renamed over: the linux column of the calibration.
    "rename over with both syncs is safe": (
        "has store old; create tmp; append tmp new; fsync tmp; rename tmp store; fsync; ack",
        {"store": b"new"},
    ),
    "rename over without a directory sync is lost": (
        "has store old; create tmp; append tmp new; fsync tmp; rename tmp store; ack",
        {"store": b"old", "tmp": b"new"},
    ),
    "rename over without a file sync leaves an empty file": (
        "has store old; create tmp; append tmp new; rename tmp store; fsync; ack",
        {"store": b""},
    ),
    "rename over without any sync is lost": (
        "has store old; create tmp; append tmp new; rename tmp store; ack",
        {"store": b"old"},
    ),
    "a sync of the renamed file keeps its rename": (
        "has store old; create tmp; append tmp new; fsync tmp; rename tmp store; fsync store; ack",
        {"store": b"new"},
    ),
    "a journal that is unlinked comes back": (
        "has db old; create j; append j undo; fdatasync j; fsync; write db new; fdatasync db; unlink j; ack",
        {"db": b"new", "j": b"undo"},
    ),
    "a journal does not come back where the directory is synced": (
        "has db old; create j; append j undo; fdatasync j; fsync; write db new; fdatasync db; unlink j; fsync; ack",
        {"db": b"new"},
    ),
    "a new log needs no directory sync on linux": ("create log; append log 1; fsync log", {"log": b"1"}),
    "a sync of a file that has not grown keeps no rename of another": (
        "has CURRENT 1; has log old; create tmp; append tmp 2; fdatasync tmp; rename tmp CURRENT; write log new; "
        "fdatasync log",
        {"CURRENT": b"1", "log": b"new", "tmp": b"2"},
    ),
    "a sync reaches the directories that the file is in": (
        "mkdir d; mkdir d/e; create d/e/f; fsync d/e/f",
        {"d": None, "d/e": None, "d/e/f": b""},
    ),
    # As observed on ext4: a rename before a write that grows the file is kept, one before an overwrite is not.
    "a sync of data keeps no name for an overwrite": ("has f old; rename f g; write g new; fdatasync g", {"f": b"new"}),
    "a sync of data keeps names for a size": ("has f old; rename f g; write g newer; fdatasync g", {"g": b"newer"}),
    "a sync of data of a new empty file keeps its name": ("create lock; fdatasync lock", {"lock": b""}),
    "a renamed directory is lost with what is in it": (
        "mkdir new; create new/a; sync; rename new current",
        {"new": None, "new/a": b""},
    ),
    "a renamed directory takes along what is in it": (
        "mkdir new; create new/a; sync; rename new current; fsync",
        {"current": None, "current/a": b""},
    ),
    "a rewrite saves what a failed sync doomed": (
        "has log; append log 1*100; fsync! log; write log 1*100; fsync log",
        {"log": b"1" * 100},
    ),
    "a rewrite saves its own page only": (
        "has log; append log 1*10000; fsync! log; write log 2 5000; fsync log",
        {"log": bytes(4096) + b"1" * 904 + b"2" + b"1" * 3191},
    ),
    "a rewrite saves its own page only, also behind a sync that was believed": (
        "has log; append log 1*10000; fsync! log; fsync log; write log 2 5000; fsync log",
        {"log": bytes(4096) + b"1" * 904 + b"2" + b"1" * 3191},
    ),
    "a doomed page stays a hole when the file grows behind it": (
        "has log 0*4096; append log 1*4096; fsync! log; append log 2*4096; fsync log",
        {"log": b"0" * 4096 + bytes(4096) + b"2" * 4096},
    ),
    "what is written after a failed sync is not doomed": (
        "has log; fsync! log; append log 1; fsync log",
        {"log": b"1"},
    ),
    "a sync of a mapping keeps its pages only": (
        "has db 0*12288; mapped db 1*12288; msync db 4096 8192",
        {"db": b"0" * 4096 + b"1" * 4096 + b"0" * 4096},
    ),
    "a sync of the file keeps its mapping": (
        "has db 0*12288; mapped db 1*12288; msync db 4096 8192; fsync db",
        {"db": b"1" * 12288},
    ),
    "a sync of a mapping keeps the size that its pages need": (
        "has db; truncate db 12288; mapped db 1*12288; msync db 0 4096",
        {"db": b"1" * 4096 + bytes(8192)},
    ),
    "who truncates first loses the log": (
        "has log 1; has snapshot; truncate log 0; fsync log; create tmp; append tmp 1",
        {"log": b"", "snapshot": b""},
    ),
    "sync_file_range keeps bytes and no size": ("has log 0*512; write log 1*1024; range log", {"log": b"1" * 512}),
    "hard links are one file": ("has a 0; link a b; unlink a; append b 1; fsync b", {"b": b"01"}),
    "sockets are not on the disk": ("socket s; sync", {}),
    "a file that was replaced does not lend its bytes": ("has a old; unlink a; create a; fsync", {"a": b""}),
}
# The same by the systems that leave it; of all by the empty name.
SYSTEMS: Mapping[str, tuple[str, Mapping[str, Tree]]] = {
    # LevelDB: the new CURRENT is renamed without a sync of its folder, and the next record of the log keeps it.
    "a sync of a file that has grown keeps what was renamed before it grew": (
        "has CURRENT 1; has log; create tmp; append tmp 2; fdatasync tmp; rename tmp CURRENT; append log record; "
        "fdatasync log",
        {"": {"CURRENT": b"2", "log": b"record"}},
    ),
    "a rename of a file that was not synced is kept by no other file on btrfs": (
        "has CURRENT 1; has new 2; has log; rename new CURRENT; append log record; fsync log",
        {
            EXT4_XFS: {"CURRENT": b"2", "log": b"record"},
            BTRFS: {"CURRENT": b"1", "new": b"2", "log": b"record"},
        },
    ),
    # For the journal the directory itself was changed before the last two.
    "a sync of a directory keeps what is new below it": (
        "mkdir d; mkdir d/e; create d/e/f; create g; fsync d",
        {EXT4_XFS: {"d": None, "d/e": None}, BTRFS: {"d": None, "d/e": None, "d/e/f": b""}},
    ),
    "a sync of the folder keeps all": (
        "mkdir d; mkdir d/e; create d/e/f; create g; fsync d; fsync",
        {"": {"d": None, "d/e": None, "d/e/f": b"", "g": b""}},
    ),
    "a log that was renamed away is kept with the one that takes its name": (
        "has log 1; rename log log.1; create log; append log 2; fsync log",
        {"": {"log": b"2", "log.1": b"1"}},
    ),
    "a sync of a file keeps no rename of its directory": (
        "mkdir d; create d/f; sync; rename d e; fsync e/f",
        {"": {"d": None, "d/f": b""}},
    ),
    "a rename into another directory is two on btrfs": (
        "mkdir one; mkdir two; create one/f; sync; rename one/f two/f; fsync two",
        {
            EXT4_XFS: {"one": None, "two": None, "two/f": b""},
            BTRFS: {"one": None, "two": None, "one/f": b"", "two/f": b""},
        },
    ),
}


@pytest.mark.parametrize(("steps", "due"), LEAST.values(), ids=LEAST)
def test_so_much_is_left_at_least(steps: str, due: Tree) -> None:
    assert told(steps).minimum() == due


@pytest.mark.parametrize(("steps", "due"), SYSTEMS.values(), ids=SYSTEMS)
def test_each_file_system_leaves_at_least(steps: str, due: Mapping[str, Tree]) -> None:
    assert told(steps).minima() == due


@pytest.mark.parametrize(
    ("steps", "kind", "due"),
    [
        ("has log old; append log new", StateRule.ALL, [{"log": b"oldnew"}]),
        ("has store old; create tmp; append tmp new; rename tmp store; ack", StateRule.NAMES, [{"store": b""}]),
        ("socket s; sync", StateRule.ALL, [{}]),
        ("has db 0*512; write db 1*120 8", StateRule.TORN, []),
        ("has log 0; append log 1*9", StateRule.TORN, [{"log": b"0" + b"1" * count} for count in (1, 4, 8)]),
        ("has log 0; append log 1*9", StateRule.ZEROS, [{"log": b"0" + bytes(9)}]),
        (
            "has log; append log 1*512; append log 2*512",
            StateRule.ZEROS,
            [{"log": bytes(1024)}, {"log": b"1" * 512 + bytes(512)}],
        ),
    ],
    ids=[
        "all is kept", "names without bytes", "sockets are not on the disk", "a small overwrite does not tear",
        "an append tears at any byte", "a size may be there without its bytes", "only the last of several is zeros",
    ],
)  # fmt: skip
def test_a_rule_leaves_these_states(steps: str, kind: StateRule, due: list[Tree]) -> None:
    assert told(steps).trees(kind) == due


def test_what_was_cut_off_does_not_come_back_with_a_range() -> None:
    script = told("has db; append db 1*12288; truncate db 4096; msync db 0 4096")
    assert script.trees(*StateRule) == [{"db": b"1" * 4096}]


def test_a_sync_writes_all_names_before_it_where_there_is_a_journal_and_its_own_on_btrfs() -> None:
    script = told("has old; create a; unlink old; create b; create c; fsync b")
    assert script.minima() == {EXT4_XFS: {"a": b"", "b": b""}, BTRFS: {"old": b"", "b": b""}}
    # Beyond that in order: the clock commits everything.
    assert {frozenset(tree) for tree in script.trees(*StateRule)} == {frozenset("ab"), frozenset("abc")}


def test_what_was_synced_for_an_earlier_request_may_be_forgotten_by_the_log_of_btrfs() -> None:
    script = told("has CURRENT 1; has log; create new; append new 2; fsync new; rename new CURRENT")
    later = len(script.operations)
    script.append("log", b"record")
    script.fsync("log")
    assert script.minima() == {"": {"CURRENT": b"2", "log": b"record"}}
    assert script.minima(idle=[later])[LATER] == {"CURRENT": b"1", "new": b"2", "log": b"record"}


def test_bytes_inside_a_file_may_be_there_without_the_names_that_were_changed_before_them() -> None:
    script = told("has CURRENT 1; has log old; rename CURRENT PREVIOUS; write log new")
    assert {"CURRENT": b"1", "log": b"new"} in script.trees(*StateRule)


def test_a_write_that_syncs_is_pending_only_while_it_is_under_way() -> None:
    script = told("has log; append! log x*100")
    assert (script.minimum(1), script.minimum(0)) == ({"log": b"x" * 100}, {"log": b""})


def test_of_pending_names_the_first_ones_are_kept() -> None:
    several = {StateRule.PREFIX, StateRule.ALL_BUT_ONE, StateRule.ONLY_ONE, StateRule.RANDOM}
    trees = told("create a; create b; create c").trees(*several)
    assert {frozenset(tree) for tree in trees} <= {frozenset("abc"[:count]) for count in range(4)}


def test_a_failed_sync_dooms_what_a_later_one_reports_as_safe() -> None:
    script = told("has log; append log 1*100; fsync! log")
    assert script.minimum() == {"log": b""}
    script.fsync("log")
    assert script.minimum() == {"log": b""}
    assert script.state(StateRule.ALL) == {"log": b"1" * 100}
    assert script.texts(StateRule.MINIMUM) == [
        "unsynced dropped: log had 100 bytes that the failed sync of op 2 gave up"
    ]


def test_each_page_of_a_mapping_is_on_disk_or_not_by_itself() -> None:
    script = told("has db 0*8192; mapped db 1*8192")
    assert [one.operation for one in script.point().pending] == [1, 1]
    assert {"db": b"0" * 4096 + b"1" * 4096} in script.trees(StateRule.ALL_BUT_ONE)


def test_an_overwrite_tears_between_sectors_only() -> None:
    torn = [tree["db"] for tree in told("has db 0*1536; write db 1*1200 100").trees(StateRule.TORN)]
    assert torn
    for data in torn:
        assert data is not None
        new = b"0" * 100 + b"1" * 1200 + b"0" * 236
        for begin in range(0, 1536, 512):
            assert data[begin : begin + 512] in (b"0" * 512, new[begin : begin + 512])


def test_an_append_that_has_durable_bytes_behind_it_tears_between_sectors() -> None:
    script = told("has log 0*100; append log 1*100")
    script.write("log", b"2", 4096, durable=True)
    assert script.trees(StateRule.TORN) == []
    assert script.minimum() == {"log": b"0" * 100 + bytes(3996) + b"2"}


def test_a_sector_is_of_one_moment() -> None:
    # Both writes are in one sector: what keeps the second keeps the first.
    script = told("has log; append log 1*100; append log 2*100")
    found = {tree["log"] for tree in script.trees(StateRule.ALL_BUT_ONE, StateRule.ONLY_ONE)}
    assert found == {b"1" * 100 + b"2" * 100, b"1" * 100}


def test_a_cut_that_is_not_on_disk_hides_what_was_written_after_it() -> None:
    script = told("has log 0*1024; truncate log 0; append log 1*600")
    assert {tree["log"] for tree in script.trees(*StateRule)} >= {b"0" * 1024, b"", b"1" * 600}
    (dropped,) = (tree["log"] for tree in script.trees(StateRule.ALL_BUT_ONE) if tree["log"] != b"")
    assert dropped == b"0" * 1024
    assert isinstance(script.point().data[0], Resized)


def test_data_may_be_there_without_names_and_names_without_data() -> None:
    script = told("has a 0; append a 1; create b; append b 2")
    assert script.state(StateRule.DATA) == {"a": b"01"}
    assert script.state(StateRule.NAMES) == {"a": b"0", "b": b""}
    assert {"a": b"0", "b": b"2"} in script.trees(StateRule.ONLY_ONE)


def test_a_file_has_no_new_size_without_the_names_that_were_changed_before_it() -> None:
    found = told("has CURRENT 1; has log old; rename CURRENT PREVIOUS; append log new").trees(*StateRule)
    assert {"CURRENT": b"1", "log": b"old"} in found
    assert {"PREVIOUS": b"1", "log": b"oldnew"} in found
    assert not [tree for tree in found if tree["log"] != b"old" and "CURRENT" in tree]


def test_events_and_failures_share_the_point_before_them() -> None:
    script = told("has log; append log 1; ack; failed")
    assert script.point(1).numbers == script.point(3).numbers == range(1, 4)
    with pytest.raises(LookupError):
        script.point(4)


def test_a_loss_is_told_in_words() -> None:
    script = told("has log; append log 0; fsync log; append log 1*12000; append log 2*384; create b")
    assert script.texts(StateRule.MINIMUM) == [
        "unsynced dropped: log had 12,384 unsynced bytes (ops 3\N{EN DASH}4, last sync at op 2); "
        "a change of names had not been synced (op 5 +b)"
    ]
    assert script.texts(StateRule.ALL) == ["everything kept"]
    assert script.texts(StateRule.TORN)[0].startswith("torn write: of 384 bytes of operation 4 in log the first ")
    assert Script().texts(StateRule.MINIMUM) == ["unsynced dropped: nothing was pending"]


def test_many_pending_operations_give_a_bounded_number_of_states() -> None:
    script = Script(log=b"")
    for number in range(200):
        script.append("log", b"%d" % number * 300)
        script.create(f"f{number}")
    assert len(script.trees(*StateRule)) < 120


def test_the_log_of_btrfs_is_committed_behind_so_many_names(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each step goes through what is pending there.
    monkeypatch.setattr(model_names, "_MOST_LOGGED", 20)
    script = Script(log=b"")
    for number in range(50):
        script.create(f"f{number}")
        script.append("log", b"1")
        script.fsync("log")
    (left,) = (tree for systems, tree in script.minima().items() if systems == "btrfs")
    assert 30 <= len(left) <= 51
