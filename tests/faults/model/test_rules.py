"""Each rule of what a crash may leave, on a recording of a few operations."""

from __future__ import annotations

import pytest

from holdfast.conformance.faults.model import names as model_names
from holdfast.conformance.faults.model.pending import Resized
from holdfast.conformance.faults.model.states import StateRule
from tests.faults.model.script import Script


def test_the_snapshot_is_durable() -> None:
    assert Script(a=b"1", b=b"").minimum() == {"a": b"1", "b": b""}


def test_what_was_not_synced_is_in_the_cache_and_not_on_the_disk() -> None:
    script = Script(log=b"old")
    script.append("log", b" new")
    assert script.minimum() == {"log": b"old"}
    assert script.state(StateRule.ALL) == {"log": b"old new"}


@pytest.mark.parametrize("data_only", [False, True])
def test_a_sync_keeps_the_bytes_before_it_and_not_those_after(data_only: bool) -> None:
    script = Script(log=b"", other=b"")
    script.append("log", b"one")
    script.append("other", b"x")
    script.fsync("log", data_only=data_only)
    script.append("log", b"two")
    assert script.minimum() == {"log": b"one", "other": b""}


def test_syncing_a_directory_keeps_names_and_no_bytes() -> None:
    script = Script()
    script.create("a")
    script.append("a", b"1")
    script.fsync()
    assert script.minimum() == {"a": b""}


def test_a_sync_of_all_keeps_all() -> None:
    script = Script(a=b"1")
    script.rename("a", "b")
    script.append("b", b"2")
    script.mkdir("d")
    script.sync()
    assert script.minimum() == {"b": b"12", "d": None}


def test_a_write_that_syncs_is_pending_only_while_it_is_under_way() -> None:
    script = Script(log=b"")
    number = script.append("log", b"x" * 100, durable=True)
    assert script.minimum(number) == {"log": b"x" * 100}
    assert script.minimum(number - 1) == {"log": b""}


# A plain file, written anew, renamed over: the linux column of the calibration.
def plain(*, sync: bool = True, directory: bool = True, later: bool = False) -> Script:
    script = Script(store=b"old")
    script.create("tmp")
    script.append("tmp", b"new")
    if sync:
        script.fsync("tmp")
    script.rename("tmp", "store")
    if directory:
        script.fsync()
    if later:
        script.fsync("store")
    script.ack()
    return script


def test_rename_over_with_both_syncs_is_safe() -> None:
    assert plain().minimum() == {"store": b"new"}


def test_rename_over_without_a_directory_sync_is_lost() -> None:
    assert plain(directory=False).minimum() == {"store": b"old", "tmp": b"new"}


def test_rename_over_without_a_file_sync_leaves_an_empty_file() -> None:
    assert plain(sync=False).minimum() == {"store": b""}


def test_rename_over_without_any_sync_may_leave_an_empty_file() -> None:
    script = plain(sync=False, directory=False)
    assert script.minimum() == {"store": b"old"}
    assert script.state(StateRule.NAMES) == {"store": b""}


def test_a_sync_of_the_renamed_file_keeps_its_rename() -> None:
    script = plain(directory=False, later=True)
    assert script.minimum() == {"store": b"new"}


@pytest.mark.parametrize("directory", [False, True])
def test_a_journal_that_is_unlinked_comes_back_unless_the_directory_is_synced(directory: bool) -> None:
    script = Script(db=b"old")
    script.create("db-journal")
    script.append("db-journal", b"undo")
    script.fsync("db-journal", data_only=True)
    script.fsync()
    script.write("db", b"new")
    script.fsync("db", data_only=True)
    script.unlink("db-journal")
    if directory:
        script.fsync()
    script.ack()
    assert ("db-journal" in script.minimum()) is not directory


def test_a_new_log_needs_no_directory_sync_on_linux() -> None:
    script = Script()
    script.create("log")
    script.append("log", b"1")
    script.fsync("log")
    assert script.minimum() == {"log": b"1"}


EXT4_XFS, BTRFS, LATER = "ext4 and xfs", "btrfs", "btrfs after a commit by its clock"


def test_a_sync_writes_all_names_before_it_where_there_is_a_journal_and_its_own_on_btrfs() -> None:
    script = Script(old=b"")
    script.create("a")
    script.unlink("old")
    script.create("b")
    script.create("c")
    script.fsync("b")
    assert script.minima() == {EXT4_XFS: {"a": b"", "b": b""}, BTRFS: {"old": b"", "b": b""}}
    # Beyond that in order: the clock commits everything.
    assert {frozenset(tree) for tree in script.trees(*StateRule)} == {frozenset("ab"), frozenset("abc")}


def test_a_sync_of_a_file_that_has_grown_keeps_what_was_renamed_before_it_grew() -> None:
    # LevelDB: the new CURRENT is renamed without a sync of its folder, and the next record of the log keeps it.
    script = Script(CURRENT=b"1", log=b"")
    script.create("tmp")
    script.append("tmp", b"2")
    script.fsync("tmp", data_only=True)
    script.rename("tmp", "CURRENT")
    script.append("log", b"record")
    script.fsync("log", data_only=True)
    assert script.minima() == {"": {"CURRENT": b"2", "log": b"record"}}


def test_a_sync_of_a_file_that_has_not_grown_keeps_no_rename_of_another() -> None:
    script = Script(CURRENT=b"1", log=b"old")
    script.create("tmp")
    script.append("tmp", b"2")
    script.fsync("tmp", data_only=True)
    script.rename("tmp", "CURRENT")
    script.write("log", b"new")
    script.fsync("log", data_only=True)
    assert script.minima()[EXT4_XFS] == {"CURRENT": b"1", "log": b"new", "tmp": b"2"}


def test_a_rename_of_a_file_that_was_not_synced_is_kept_by_no_other_file_on_btrfs() -> None:
    script = Script(CURRENT=b"1", new=b"2", log=b"")
    script.rename("new", "CURRENT")
    script.append("log", b"record")
    script.fsync("log")
    assert script.minima() == {
        EXT4_XFS: {"CURRENT": b"2", "log": b"record"},
        BTRFS: {"CURRENT": b"1", "new": b"2", "log": b"record"},
    }


def test_what_was_synced_for_an_earlier_request_may_be_forgotten_by_the_log_of_btrfs() -> None:
    script = Script(CURRENT=b"1", log=b"")
    script.create("new")
    script.append("new", b"2")
    script.fsync("new")
    later = script.rename("new", "CURRENT")
    script.append("log", b"record")
    script.fsync("log")
    assert script.minima() == {"": {"CURRENT": b"2", "log": b"record"}}
    kept = script.minima(idle=[later])
    assert kept[LATER] == {"CURRENT": b"1", "new": b"2", "log": b"record"}


def test_a_sync_of_a_directory_keeps_what_is_new_below_it() -> None:
    script = Script()
    script.mkdir("d")
    script.mkdir("d/e")
    script.create("d/e/f")
    script.create("g")
    script.fsync("d")
    below = {"d": None, "d/e": None, "d/e/f": b""}
    # For the journal the directory itself was changed before the last two.
    assert script.minima() == {EXT4_XFS: {"d": None, "d/e": None}, BTRFS: below}
    script.fsync()
    assert script.minima() == {"": {**below, "g": b""}}


def test_a_log_that_was_renamed_away_is_kept_with_the_one_that_takes_its_name() -> None:
    script = Script(log=b"1")
    script.rename("log", "log.1")
    script.create("log")
    script.append("log", b"2")
    script.fsync("log")
    assert script.minima() == {"": {"log": b"2", "log.1": b"1"}}


def test_a_sync_of_a_file_keeps_no_rename_of_its_directory() -> None:
    script = Script()
    script.mkdir("d")
    script.create("d/f")
    script.sync()
    script.rename("d", "e")
    script.fsync("e/f")
    assert script.minima() == {"": {"d": None, "d/f": b""}}


def test_a_rename_into_another_directory_is_two_on_btrfs() -> None:
    script = Script()
    script.mkdir("one")
    script.mkdir("two")
    script.create("one/f")
    script.sync()
    script.rename("one/f", "two/f")
    script.fsync("two")
    base = {"one": None, "two": None}
    assert script.minima() == {EXT4_XFS: {**base, "two/f": b""}, BTRFS: {**base, "one/f": b"", "two/f": b""}}


def test_a_sync_reaches_the_directories_that_the_file_is_in() -> None:
    script = Script()
    script.mkdir("d")
    script.mkdir("d/e")
    script.create("d/e/f")
    script.fsync("d/e/f")
    assert script.minimum() == {"d": None, "d/e": None, "d/e/f": b""}


def test_fdatasync_keeps_names_as_far_as_it_needs_the_size() -> None:
    # As observed on ext4: a rename before a write that grows the file is kept, one before an overwrite is not.
    for data, kept in ((b"new", "f"), (b"newer", "g")):
        script = Script(f=b"old")
        script.rename("f", "g")
        script.write("g", data)
        script.fsync("g", data_only=True)
        assert next(iter(script.minima().values())) == {kept: data}


def test_fdatasync_of_a_new_empty_file_keeps_its_name() -> None:
    script = Script()
    script.create("lock")
    script.fsync("lock", data_only=True)
    assert script.minimum() == {"lock": b""}


def test_of_pending_names_the_first_ones_are_kept() -> None:
    script = Script()
    for name in "abc":
        script.create(name)
    several = {StateRule.PREFIX, StateRule.ALL_BUT_ONE, StateRule.ONLY_ONE, StateRule.RANDOM}
    assert {frozenset(tree) for tree in script.trees(*several)} <= {frozenset("abc"[:count]) for count in range(4)}


def test_a_renamed_directory_takes_along_what_is_in_it() -> None:
    script = Script()
    script.mkdir("new")
    script.create("new/a")
    script.sync()
    script.rename("new", "current")
    assert script.minimum() == {"new": None, "new/a": b""}
    script.fsync()
    assert script.minimum() == {"current": None, "current/a": b""}
    assert not script.point().moves


def test_a_failed_sync_dooms_what_a_later_one_reports_as_safe() -> None:
    script = Script(log=b"")
    script.append("log", b"1" * 100)
    failed = script.fsync("log", error=5)
    assert script.minimum() == {"log": b""}
    script.fsync("log")
    assert script.minimum() == {"log": b""}
    assert script.state(StateRule.ALL) == {"log": b"1" * 100}
    assert script.texts(StateRule.MINIMUM) == [
        f"unsynced dropped: log had 100 bytes that the failed sync of op {failed} gave up"
    ]


def test_a_rewrite_saves_what_a_failed_sync_doomed() -> None:
    script = Script(log=b"")
    script.append("log", b"1" * 100)
    script.fsync("log", error=5)
    script.write("log", b"1" * 100)
    script.fsync("log")
    assert script.minimum() == {"log": b"1" * 100}


@pytest.mark.parametrize("believed", [False, True])
def test_a_rewrite_saves_its_own_page_only(believed: bool) -> None:
    script = Script(log=b"")
    script.append("log", b"1" * 10_000)
    script.fsync("log", error=5)
    if believed:
        script.fsync("log")
    script.write("log", b"2", 5000)
    script.fsync("log")
    kept = script.minimum()["log"]
    assert kept == bytes(4096) + b"1" * 904 + b"2" + b"1" * 3191


def test_a_doomed_page_stays_a_hole_when_the_file_grows_behind_it() -> None:
    script = Script(log=b"0" * 4096)
    script.append("log", b"1" * 4096)
    script.fsync("log", error=5)
    script.append("log", b"2" * 4096)
    script.fsync("log")
    assert script.minimum() == {"log": b"0" * 4096 + bytes(4096) + b"2" * 4096}


def test_what_is_written_after_a_failed_sync_is_not_doomed() -> None:
    script = Script(log=b"")
    script.fsync("log", error=5)
    script.append("log", b"1")
    script.fsync("log")
    assert script.minimum() == {"log": b"1"}


def test_msync_keeps_its_pages_only() -> None:
    script = Script(db=b"0" * 12288)
    script.mapped("db", b"1" * 12288)
    script.msync("db", 4096, 8192)
    assert script.minimum() == {"db": b"0" * 4096 + b"1" * 4096 + b"0" * 4096}
    script.fsync("db")
    assert script.minimum() == {"db": b"1" * 12288}


def test_each_page_of_a_mapping_is_on_disk_or_not_by_itself() -> None:
    script = Script(db=b"0" * 8192)
    number = script.mapped("db", b"1" * 8192)
    assert [one.operation for one in script.point().pending] == [number, number]
    assert {"db": b"0" * 4096 + b"1" * 4096} in script.trees(StateRule.ALL_BUT_ONE)


def test_msync_keeps_the_size_that_its_pages_need() -> None:
    script = Script(db=b"")
    script.truncate("db", 12288)
    script.mapped("db", b"1" * 12288)
    script.msync("db", 0, 4096)
    assert script.minimum() == {"db": b"1" * 4096 + bytes(8192)}


def test_what_was_cut_off_does_not_come_back_with_a_range() -> None:
    script = Script(db=b"")
    script.append("db", b"1" * 12288)
    script.truncate("db", 4096)
    script.msync("db", 0, 4096)
    assert script.trees(*StateRule) == [{"db": b"1" * 4096}]


def test_sync_file_range_keeps_bytes_and_no_size() -> None:
    script = Script(log=b"0" * 512)
    script.write("log", b"1" * 1024)
    script.fsync("log")
    script.operations[-1] = script.operations[-1].__class__(2, 2, 1, "sync_file_range", script.operations[-1].action)
    assert script.minimum() == {"log": b"1" * 512}


def test_an_overwrite_tears_between_sectors_only() -> None:
    script = Script(db=b"0" * 1536)
    script.write("db", b"1" * 1200, 100)
    torn = [tree["db"] for tree in script.trees(StateRule.TORN)]
    assert torn
    for data in torn:
        assert data is not None
        new = b"0" * 100 + b"1" * 1200 + b"0" * 236
        for begin in range(0, 1536, 512):
            assert data[begin : begin + 512] in (b"0" * 512, new[begin : begin + 512])


def test_a_small_overwrite_does_not_tear() -> None:
    script = Script(db=b"0" * 512)
    script.write("db", b"1" * 120, 8)
    assert script.trees(StateRule.TORN) == []


def test_an_append_tears_at_any_byte() -> None:
    script = Script(log=b"0")
    script.append("log", b"1" * 9)
    assert script.trees(StateRule.TORN) == [{"log": b"0" + b"1" * count} for count in (1, 4, 8)]


def test_an_append_that_has_durable_bytes_behind_it_tears_between_sectors() -> None:
    script = Script(log=b"0" * 100)
    script.append("log", b"1" * 100)
    script.write("log", b"2", 4096, durable=True)
    assert script.trees(StateRule.TORN) == []
    assert script.minimum() == {"log": b"0" * 100 + bytes(3996) + b"2"}


def test_a_size_may_be_there_without_its_bytes() -> None:
    script = Script(log=b"0")
    script.append("log", b"1" * 9)
    assert script.trees(StateRule.ZEROS) == [{"log": b"0" + bytes(9)}]


def test_only_the_last_write_of_several_may_be_zeros() -> None:
    script = Script(log=b"")
    script.append("log", b"1" * 512)
    script.append("log", b"2" * 512)
    assert script.trees(StateRule.ZEROS) == [{"log": bytes(1024)}, {"log": b"1" * 512 + bytes(512)}]


def test_a_sector_is_of_one_moment() -> None:
    # Both writes are in one sector: what keeps the second keeps the first.
    script = Script(log=b"")
    script.append("log", b"1" * 100)
    script.append("log", b"2" * 100)
    assert {tree["log"] for tree in script.trees(StateRule.ALL_BUT_ONE, StateRule.ONLY_ONE)} == {
        b"1" * 100 + b"2" * 100,
        b"1" * 100,
    }


def test_a_cut_that_is_not_on_disk_hides_what_was_written_after_it() -> None:
    script = Script(log=b"0" * 1024)
    script.truncate("log", 0)
    script.append("log", b"1" * 600)
    assert {tree["log"] for tree in script.trees(*StateRule)} >= {b"0" * 1024, b"", b"1" * 600}
    (dropped,) = (tree["log"] for tree in script.trees(StateRule.ALL_BUT_ONE) if tree["log"] != b"")
    assert dropped == b"0" * 1024
    assert isinstance(script.point().data[0], Resized)


def test_truncate_first_loses_the_log() -> None:
    script = Script(log=b"1", snapshot=b"")
    script.truncate("log", 0)
    script.fsync("log")
    script.create("tmp")
    script.append("tmp", b"1")
    assert script.minimum() == {"log": b"", "snapshot": b""}


def test_data_may_be_there_without_names_and_names_without_data() -> None:
    script = Script(a=b"0")
    script.append("a", b"1")
    script.create("b")
    script.append("b", b"2")
    assert script.state(StateRule.DATA) == {"a": b"01"}
    assert script.state(StateRule.NAMES) == {"a": b"0", "b": b""}
    assert {"a": b"0", "b": b"2"} in script.trees(StateRule.ONLY_ONE)


def test_a_file_has_no_new_size_without_the_names_that_were_changed_before_it() -> None:
    script = Script(CURRENT=b"1", log=b"old")
    script.rename("CURRENT", "PREVIOUS")
    script.append("log", b" and new")
    found = script.trees(*StateRule)
    assert {"CURRENT": b"1", "log": b"old"} in found
    assert {"PREVIOUS": b"1", "log": b"old and new"} in found
    assert not [tree for tree in found if tree["log"] != b"old" and "CURRENT" in tree]


def test_bytes_inside_a_file_may_be_there_without_the_names_that_were_changed_before_them() -> None:
    script = Script(CURRENT=b"1", log=b"old")
    script.rename("CURRENT", "PREVIOUS")
    script.write("log", b"new")
    assert {"CURRENT": b"1", "log": b"new"} in script.trees(*StateRule)


def test_hard_links_are_one_file() -> None:
    script = Script(a=b"0")
    script.link("a", "b")
    script.unlink("a")
    script.append("b", b"1")
    script.fsync("b")
    assert script.minimum() == {"b": b"01"}


def test_sockets_are_not_on_the_disk() -> None:
    script = Script()
    script.socket("s")
    script.sync()
    assert script.minimum() == script.state(StateRule.ALL) == {}


def test_a_file_that_was_replaced_does_not_lend_its_bytes() -> None:
    script = Script(a=b"old")
    script.unlink("a")
    script.create("a")
    script.fsync()
    assert script.minimum() == {"a": b""}


def test_events_and_failures_share_the_point_before_them() -> None:
    script = Script(log=b"")
    number = script.append("log", b"1")
    script.ack()
    last = script.failed()
    assert script.point(number).numbers == script.point(last).numbers == range(number, last + 1)
    with pytest.raises(LookupError):
        script.point(last + 1)


def test_a_loss_is_told_in_words() -> None:
    script = Script(log=b"")
    script.append("log", b"0")
    synced = script.fsync("log")
    first = script.append("log", b"1" * 12_000)
    last = script.append("log", b"2" * 384)
    name = script.create("b")
    assert script.texts(StateRule.MINIMUM) == [
        f"unsynced dropped: log had 12,384 unsynced bytes (ops {first}\N{EN DASH}{last}, last sync at op {synced}); "
        f"a change of names had not been synced (op {name} +b)"
    ]
    assert script.texts(StateRule.ALL) == ["everything kept"]
    assert script.texts(StateRule.TORN)[0].startswith(f"torn write: of 384 bytes of operation {last} in log the first ")
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
