"""The harness reads the rows of a RocksDB database itself, from a copy, while its owner has it open."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rocksdict import BlockBasedOptions, ChecksumType, DBCompressionType, Options, Rdict, WriteOptions

from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.inspection import store
from holdfast.conformance.inspection.database import MAX_ROWS
from holdfast.conformance.suites.m5_log.model import Log, LogModel
from holdfast.reference_impl.m5_log.opening import MARKS
from holdfast.reference_impl.m5_log.terms import Family, StoreError
from holdfast.reference_impl.m5_log.witness import Witness, decode_marks
from holdfast.vectors.m5_log import derive
from tests.m5_log.logs import DATABASE, Box, draft, id_of, raw_of

pytestmark = pytest.mark.usefixtures("helper")


def inspected(root: Path) -> dict[str, Any]:
    return store.inspect(root, DATABASE, "rocksdb")


def rows_of(found: dict[str, Any]) -> dict[str, dict[bytes, bytes]]:
    return {
        family: {bytes.fromhex(row["key"]["blob"]): bytes.fromhex(row["value"]["blob"]) for row in rows}
        for family, rows in found["rows"].items()
    }


def put(key: bytes, value: bytes | None) -> dict[str, Any]:
    """A row that is put, or removed."""
    return {"key": key.hex(), "value": None if value is None else value.hex()}


def own(root: Path, **logs: str) -> Rdict:
    """A database of another owner, with one family more than it needs."""
    root.joinpath("m5").mkdir()
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    if logs:
        options.set_wal_dir(logs["wal_dir"])
    return Rdict(str(root / DATABASE), options, {"more": Options(raw_mode=True)})


def test_every_row_is_seen_while_its_owner_holds_the_lock(box: Box) -> None:
    drafts = [draft(1), draft(2, by="bob")]
    box.put_all(drafts)
    found = inspected(box.root)
    assert (found["exists"], found["error"], found["integrity"]) == (True, None, "ok")
    assert rows_of(found) == {family.value: box.rows(family) for family in Family}
    assert rows_of(found)["ops"] == {bytes.fromhex(id_of(each)): raw_of(each) for each in drafts}
    assert box.put(draft(3)).new


def test_looking_changes_nothing_and_two_looks_are_equal(box: Box) -> None:
    box.put(draft(1))
    before = {path: path.read_bytes() for path in box.root.rglob("*") if path.is_file()}
    first = inspected(box.root)
    assert first == inspected(box.root)
    assert before == {path: path.read_bytes() for path in box.root.rglob("*") if path.is_file()}


def test_a_torn_end_of_the_log_is_read_as_far_as_it_is_whole(box: Box) -> None:
    box.put(draft(1))
    box.parts.store.release()
    (log,) = (box.root / DATABASE).glob("*.log")
    before = rows_of(inspected(box.root))
    with log.open("ab") as file:
        file.write(b"\x01" * 5)
    assert rows_of(inspected(box.root)) == before


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST-*"])
def test_what_cannot_be_read_is_compared_by_what_its_owner_never_writes_again(box: Box, name: str) -> None:
    box.put(draft(1))
    box.parts.store.release()
    (file,) = (box.root / DATABASE).glob(name)
    file.unlink()
    found = inspected(box.root)
    assert found["exists"]
    assert found["error"]
    assert found["rows"] == {}
    (box.root / DATABASE / "000099.sst").write_bytes(b"an opening that failed may leave this")
    assert inspected(box.root)["digest"] == found["digest"]
    (box.root / DATABASE / "IDENTITY").write_text("of another database")
    assert inspected(box.root)["digest"] != found["digest"]


def test_a_damaged_block_is_an_error_and_no_empty_family(tmp_path: Path) -> None:
    database = own(tmp_path)
    more = database.get_column_family("more")
    more.put(b"k", b"v" * 1000)
    more.flush()
    database.close()
    for table in (tmp_path / DATABASE).glob("*.sst"):
        table.write_bytes(bytes([table.read_bytes()[0] ^ 0xFF]) + table.read_bytes()[1:])
    found = inspected(tmp_path)
    assert found["error"]
    assert found["rows"] == {}


def test_a_folder_without_a_database_holds_none(tmp_path: Path) -> None:
    assert not inspected(tmp_path)["exists"]
    (tmp_path / DATABASE).mkdir(parents=True)
    for name in ("LOCK", "LOG"):
        (tmp_path / DATABASE / name).touch()
    # RocksDB leaves both where it finds nothing to open.
    assert (inspected(tmp_path)["exists"], inspected(tmp_path)["error"]) == (False, None)


def test_where_no_database_was_made_yet_the_model_has_an_empty_log() -> None:
    model = LogModel(cast("SuiteSession", SimpleNamespace(rand=str)))
    due = next(each for each in model.observations(Log()) if each.read is not None)
    assert due.of({}) == due.due


def test_a_log_in_another_folder_of_the_workdir_is_read_too(tmp_path: Path) -> None:
    database = own(tmp_path, wal_dir=str(tmp_path / "m5" / "log"))
    synced = WriteOptions()
    synced.sync = True
    database.get_column_family("more").put(b"k", b"v", synced)
    assert list((tmp_path / "m5" / "log").glob("*.log"))
    assert rows_of(inspected(tmp_path)) == {"more": {b"k": b"v"}}
    database.close()


def test_a_log_outside_of_the_workdir_is_an_error(tmp_path: Path) -> None:
    root = tmp_path / "workdir"
    root.mkdir()
    own(root, wal_dir=str(tmp_path / "elsewhere")).close()
    assert "outside of the workdir" in inspected(root)["error"]


def test_a_link_is_not_followed(box: Box) -> None:
    box.parts.store.release()
    (log,) = (box.root / DATABASE).glob("*.log")
    shutil.move(log, box.root / "kept.log")
    os.symlink(box.root / "kept.log", log)
    assert "no plain file" in inspected(box.root)["error"]


def test_the_rows_of_a_family_of_its_own_are_shown_and_too_many_are_an_error(tmp_path: Path) -> None:
    database = own(tmp_path)
    more = database.get_column_family("more")
    more.put(b"", b"")
    assert rows_of(inspected(tmp_path)) == {"more": {b"": b""}}
    database.put(b"d", b"e")
    assert rows_of(inspected(tmp_path)) == {"default": {b"d": b"e"}, "more": {b"": b""}}
    for number in range(MAX_ROWS):
        more.put(str(number).encode(), b"")
    assert "rows" in inspected(tmp_path)["error"]
    database.close()


def test_a_row_is_put_and_removed_behind_the_back_of_its_owner(box: Box) -> None:
    box.put(draft(1))
    op_id = bytes.fromhex(id_of(draft(1)))
    assert "lock" in store.alter(box.root, DATABASE, "edges", put(op_id, bytes(32)))["error"].lower()
    box.parts.store.release()
    assert store.alter(box.root, DATABASE, "edges", put(op_id, bytes(32))) == {"error": None}
    assert rows_of(inspected(box.root))["edges"] == {op_id: bytes(32)}
    assert [problem.key for problem in box.again().problems()] == [op_id]
    assert store.alter(box.root, DATABASE, "edges", put(op_id, None)) == {"error": None}
    assert rows_of(inspected(box.root))["edges"] == {}


def test_a_family_is_dropped_behind_the_back_of_its_owner(box: Box) -> None:
    box.put(draft(1))
    assert "lock" in store.alter(box.root, DATABASE, "policy_index", {"drop": True})["error"].lower()
    box.parts.store.release()
    assert store.alter(box.root, DATABASE, "policy_index", {"drop": False}) == {"error": None}
    assert box.again().problems() == []
    assert store.alter(box.root, DATABASE, "policy_index", {"drop": True}) == {"error": None}
    assert "policy_index" not in inspected(box.root)["tables"]
    with pytest.raises(StoreError):
        box.again().put(draft(2))
    assert "policy_index" not in inspected(box.root)["tables"]


def test_no_row_is_put_where_no_database_or_no_family_is(box: Box, tmp_path_factory: pytest.TempPathFactory) -> None:
    box.parts.store.release()
    assert "no family" in store.alter(box.root, DATABASE, "nothing", put(b"k", b"v"))["error"]
    empty = tmp_path_factory.mktemp("empty")
    assert "no database" in store.alter(empty, DATABASE, "ops", put(b"k", b"v"))["error"]
    assert list(empty.iterdir()) == []


def options_of(folder: Path) -> str:
    return max(folder.glob("OPTIONS-*"), key=lambda file: int(file.name.rpartition("-")[2])).read_text()


def styled(root: Path, edits: dict[str, str], later: dict[str, str]) -> Path:
    """A database of the other owner with options of its own: four levels, LZ4, CRC32c, and `edits`.

    `later` are texts of the file of options that are replaced when the database is there.
    """
    folder = root / DATABASE
    folder.mkdir(parents=True)
    options, more, table = Options(raw_mode=True), Options(raw_mode=True), BlockBasedOptions()
    table.set_checksum_type(ChecksumType.crc32c())
    table.set_format_version(3)
    for each in (options, more):
        each.create_if_missing(True)
        each.create_missing_column_families(True)
        each.set_num_levels(4)
        each.set_compression_type(DBCompressionType.lz4())
        each.set_block_based_table_factory(table)
        each.set_level_zero_file_num_compaction_trigger(2)
    Rdict(str(root / "first"), options, {"more": more}).close()
    text = options_of(root / "first")
    for name, value in edits.items():
        text = re.sub(rf"(?m)^  {name}=.*$", f"  {name}={value}", text)
    (root / "first").rename(root / "edited")
    for file in (root / "edited").glob("OPTIONS-*"):
        file.write_text(text)
    options, families = Options.load_latest(str(root / "edited"))
    options.create_if_missing(True)
    options.create_missing_column_families(True)
    families["more"].set_disable_auto_compactions(True)
    database = Rdict(str(folder), options, families)
    rows = database.get_column_family("more")
    for number in range(4):
        rows.put(b"k%d" % number, b"v" * 999)
        rows.flush()
    rows.put(b"late", b"in the log")
    database.flush_wal(True)
    shutil.copytree(folder, root / "kept")
    del rows
    database.close()
    shutil.rmtree(folder)
    (root / "kept").rename(folder)
    (folder / "rocksdict-config.json").unlink(missing_ok=True)
    for file in folder.glob("OPTIONS-*"):
        for old, new in {"disable_auto_compactions=true": "disable_auto_compactions=false", **later}.items():
            file.write_text(file.read_text().replace(old, new))
    return folder


@pytest.mark.parametrize(
    ("edits", "later"),
    [
        ({}, {}),
        ({"comparator": "rocksdb.ReverseBytewiseComparator"}, {}),
        ({"prefix_extractor": "fixed:2", "index_type": "kHashSearch"}, {}),
        ({}, {"merge_operator=nullptr": "merge_operator=ANameThatNoLibraryHas"}),
        ({}, {"rocksdb_version=": "rocksdb_version=9", "[DBOptions]\n": "[DBOptions]\n  of_a_later_version=1\n"}),
    ],
)
def test_a_database_is_read_and_changed_with_its_own_options(
    tmp_path: Path, edits: dict[str, str], later: dict[str, str]
) -> None:
    folder = styled(tmp_path, edits, later)
    expected = {b"k%d" % number: b"v" * 999 for number in range(4)} | {b"late": b"in the log"}
    assert rows_of(inspected(tmp_path)) == {"more": expected}
    stated, tables = options_of(folder), {path: path.read_bytes() for path in folder.glob("*.sst")}
    assert store.alter(tmp_path, DATABASE, "more", put(b"k2", b"other")) == {"error": None}
    found = rows_of(inspected(tmp_path))
    assert found == {"more": expected | {b"k2": b"other"}}
    assert list(found["more"]) == sorted(found["more"])
    assert options_of(folder) == stated
    assert {path: path.read_bytes() for path in tables} == tables
    # What the change wrote has the checksum (the first byte of the footer), and the version of the format, of the rest.
    footers = {(each.read_bytes()[-53], each.read_bytes()[-12:]) for each in folder.glob("*.sst")}
    assert len(footers) == 1
    assert not (folder / "rocksdict-config.json").exists()


def test_a_dropped_family_is_dropped_from_the_options_too(tmp_path: Path) -> None:
    folder = styled(tmp_path, {}, {})
    before = options_of(folder)
    assert store.alter(tmp_path, DATABASE, "more", {"drop": True}) == {"error": None}
    assert '"more"' in before
    assert '"more"' not in options_of(folder)
    assert options_of(folder) == before[: before.index('[CFOptions "more"]')]
    options, families = Options.load_latest(str(folder))
    Rdict(str(folder), options, families).close()


def test_a_change_keeps_the_rows_of_a_log_in_another_folder(tmp_path: Path) -> None:
    database = own(tmp_path, wal_dir=str(tmp_path / "m5" / "log"))
    database.get_column_family("more").put(b"k", b"v")
    database.flush_wal(True)
    shutil.copytree(tmp_path / "m5", tmp_path / "kept")
    database.close()
    shutil.rmtree(tmp_path / "m5")
    (tmp_path / "kept").rename(tmp_path / "m5")
    assert store.alter(tmp_path, DATABASE, "more", put(b"l", b"w")) == {"error": None}
    assert rows_of(inspected(tmp_path)) == {"more": {b"k": b"v", b"l": b"w"}}


def test_an_operation_in_the_place_of_another_is_no_acknowledged_one(box: Box) -> None:
    box.put_all([draft(1), draft(2)])
    victim, forged = bytes.fromhex(id_of(draft(1))), bytes.fromhex(id_of(draft(7, by="mallory")))
    box.parts.store.release()
    for op_id, raw, edges, author in (
        (victim, None, None, derive.key_of("alice") + derive.hlc(1)),
        (forged, raw_of(draft(7, by="mallory")), b"", derive.key_of("mallory") + derive.hlc(7)),
    ):
        for family, key, value in (("ops", op_id, raw), ("edges", op_id, edges), ("by_author", author + op_id, edges)):
            assert store.alter(box.root, DATABASE, family, put(key, value)) == {"error": None}
    with pytest.raises(StoreError):
        box.again().put(draft(999))
    assert box.again().problems() != []


def test_no_mark_of_the_witness_is_written_over_the_one_that_was_synced_last(box: Box) -> None:
    for ms in range(70):
        box.put(draft(ms))
        marks = decode_marks(box.rows(Family.META)[MARKS])
        assert {*marks} <= {*Witness(box.root / "m5" / "witness").slots()}
