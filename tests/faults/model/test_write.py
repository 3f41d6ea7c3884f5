"""Trees in a folder, and their hashes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from holdfast.conformance.faults.model.disk import points
from holdfast.conformance.faults.model.states import State, StateRule, states
from tests.faults.model.script import Script, told


def only(script: Script, kind: StateRule = StateRule.ALL) -> State:
    (state,) = states(script.point(), kinds=[kind])
    return state


def furnished() -> Script:
    return told(
        "has a 1*40000; mkdir d; mkdir d/empty; symlink ../a d/link; link a d/twin; create d/none; create d/holes; "
        "write d/holes x 1000000; truncate d/holes 3000000"
    )


def test_a_tree_stands_in_the_folder_as_recorded(tmp_path: Path) -> None:
    only(furnished()).write(tmp_path)
    found = {str(one.relative_to(tmp_path)) for one in tmp_path.rglob("*")}
    assert found == {"a", "d", "d/empty", "d/holes", "d/link", "d/none", "d/twin"}
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
    every = (
        "ack", "write a 2", "truncate a 2", "rename a b", "create b; write b 1", "link a b", "mkdir b", "create b",
        "symlink a b", "symlink b b",
    )  # fmt: skip
    assert len({hashed(told(f"has a 1; {steps}")) for steps in every}) == len(every)


def test_the_hash_knows_no_file_numbers_and_no_history() -> None:
    one = told("create a; write a xy")
    two = told("create b; create a; unlink b; write a zzz; write a xy\0; truncate a 2")
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
    script = told("has a 0; write a 1; fsync a; rename a b")
    held = list(points(script.recording))
    texts = [[state.text for state in states(point)] for point in held]
    again = [[state.text for state in states(point)] for point in points(script.recording)]
    assert texts == again
    assert [next(iter(point.durable.values())).read(0, 9) for point in held] == [b"0", b"0", b"1", b"1"]
