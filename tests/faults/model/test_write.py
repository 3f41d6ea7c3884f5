"""Trees in a folder, and their hashes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.conformance.faults.model.disk import points
from holdfast.conformance.faults.model.states import State, StateRule, states
from tests.faults.model.script import Script


def only(script: Script, kind: StateRule = StateRule.ALL) -> State:
    (state,) = states(script.point(), kinds=[kind])
    return state


def furnished() -> Script:
    script = Script(a=b"1" * 40_000)
    script.mkdir("d")
    script.mkdir("d/empty")
    script.symlink(b"../a", "d/link")
    script.link("a", "d/twin")
    script.create("d/none")
    script.create("d/holes")
    script.write("d/holes", b"x", 1_000_000)
    script.truncate("d/holes", 3_000_000)
    return script


def test_a_tree_stands_in_the_folder_as_recorded(tmp_path: Path) -> None:
    only(furnished()).write(tmp_path)
    assert sorted(str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")) == [
        "a",
        "d",
        "d/empty",
        "d/holes",
        "d/link",
        "d/none",
        "d/twin",
    ]
    assert (tmp_path / "a").read_bytes() == b"1" * 40_000
    assert (tmp_path / "a").samefile(tmp_path / "d" / "twin")
    assert os.readlink(tmp_path / "d" / "link") == "../a"
    assert (tmp_path / "d" / "none").read_bytes() == b""
    holes = (tmp_path / "d" / "holes").read_bytes()
    assert (len(holes), holes.count(0), holes[1_000_000]) == (3_000_000, 2_999_999, ord("x"))
    assert (tmp_path / "d" / "holes").stat().st_blocks * 512 < 1_000_000


def test_a_tree_is_not_written_over_another(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        only(Script(a=b"")).write(tmp_path)


def test_names_need_not_be_text(tmp_path: Path) -> None:
    script = Script()
    script.create("x")
    name = b"\xff\n"
    script.names[name] = script.names.pop(b"x")
    one = script.operations[0]
    script.operations[0] = type(one)(1, 1, 1, "open", type(one.action)((type(one.action.changes[0])(name, 1),)))  # type: ignore[union-attr, call-arg, arg-type]
    only(script).write(tmp_path)
    assert os.listdir(os.fsencode(tmp_path)) == [name]
    assert only(script, StateRule.MINIMUM).text == (
        "unsynced dropped: a change of names had not been synced (op 1 +\\xff\n)"
    )


def hashed(script: Script) -> str:
    script.sync()
    return only(script).hash


def test_every_difference_of_trees_shows_in_the_hash() -> None:
    def varied(what: str) -> Script:
        script = Script(a=b"1")
        match what:
            case "byte":
                script.write("a", b"2")
            case "size":
                script.truncate("a", 2)
            case "name":
                script.rename("a", "b")
            case "copy":
                script.create("b")
                script.write("b", b"1")
            case "twin":
                script.link("a", "b")
            case "directory":
                script.mkdir("b")
            case "empty":
                script.create("b")
            case "link":
                script.symlink(b"a", "b")
            case "other link":
                script.symlink(b"b", "b")
        return script

    whats = [*"same byte size name copy twin directory empty link".split(), "other link"]
    assert len({hashed(varied(what)) for what in whats}) == len(whats)


def test_the_hash_knows_no_file_numbers_and_no_history() -> None:
    one, two = Script(), Script()
    one.create("a")
    one.write("a", b"xy")
    two.create("b")
    two.create("a")
    two.unlink("b")
    two.write("a", b"zzz")
    two.write("a", b"xy\0")
    two.truncate("a", 2)
    assert hashed(one) == hashed(two)


def test_a_large_directory_is_cheap() -> None:
    # 8,400 states of 1,000 files took a prototype 40 s; a regression to that shows as a test that takes a minute.
    script = Script(**{f"f{number}": b"%d" % number * 8000 for number in range(1000)})
    for number in range(60):
        script.write(f"f{number}", b"x" * 8192, 8192)
        if number % 7 == 0:
            script.fsync(f"f{number}")
    count = sum(1 for state in states(script.point()) if state.hash)
    assert 20 < count < 120


def test_points_do_not_change_under_those_who_hold_them() -> None:
    script = Script(a=b"0")
    script.write("a", b"1")
    script.fsync("a")
    script.rename("a", "b")
    held = list(points(script.recording))
    texts = [[state.text for state in states(point)] for point in held]
    again = [[state.text for state in states(point)] for point in points(script.recording)]
    assert texts == again
    assert [next(iter(point.durable.values())).read(0, 9) for point in held] == [b"0", b"0", b"1", b"1"]
