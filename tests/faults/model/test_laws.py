"""Properties of every recording, tried on generated ones."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.conformance.faults.model.contents import Content
from holdfast.conformance.faults.model.disk import Point, points
from holdfast.conformance.faults.model.pending import SECTOR, Moved
from holdfast.conformance.faults.model.plan import Plan
from holdfast.conformance.faults.model.states import State, StateRule, states
from holdfast.conformance.faults.recording import (
    Action,
    Mapped,
    Names,
    Recording,
    Sync,
    SyncAll,
    Truncate,
    Unnamed,
    Write,
)
from tests.faults.model.script import Script, tree

FILES = ("a", "b", "d/c")

names = st.sampled_from(FILES)
offsets = st.sampled_from((0, 1, 500, 512, 1024, 3000, 4096, 5000))
lengths = st.sampled_from((1, 100, 512, 700, 1500, 5000))
steps = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(("write", "write", "mapped", "durable")), names, offsets, lengths),
        st.tuples(st.just("append"), names, lengths),
        st.tuples(st.just("truncate"), names, offsets),
        st.tuples(st.sampled_from(("fsync", "fdatasync", "broken", "msync")), names),
        st.tuples(st.sampled_from(("create", "unlink", "again")), names),
        st.tuples(st.sampled_from(("rename", "link")), names, names),
        st.tuples(st.sampled_from(("fsync", "sync", "ack")), st.just("")),
    ),
    min_size=4,
    max_size=20,
)


def played(drawn: list[tuple[object, ...]]) -> Script:
    """A script of those steps that a program could have done."""
    script = Script(a=b"\xfe" * 1300)
    script.mkdir("d")
    script.sync()
    for number, (what, name, *rest) in enumerate(drawn, start=1):
        assert isinstance(name, str)
        there = name.encode() in script.names
        data = bytes([number])
        match what, rest:
            case (("write" | "mapped" | "durable"), [int(offset), int(length)]) if there:
                if what == "mapped":
                    script.mapped(name, data * length, offset)
                else:
                    script.write(name, data * length, offset, durable=what == "durable")
            case "append", [int(length)] if there:
                script.append(name, data * length)
            case "truncate", [int(size)] if there:
                script.truncate(name, size)
            case (("fsync" | "fdatasync" | "broken"), []) if there or not name:
                script.fsync(name, data_only=what == "fdatasync", error=5 * (what == "broken"))
            case "msync", [] if there:
                script.msync(name, 0, 4096)
            case "create", [] if not there:
                script.create(name)
            case "unlink", [] if there:
                script.unlink(name)
            case "again", [] if there:
                script.unlink(name)
                script.create(name)
            case "rename", [str(new)] if there and new != name:
                script.rename(name, new)
            case "link", [str(new)] if there and new.encode() not in script.names:
                script.link(name, new)
            case "sync", _:
                script.sync()
            case "ack", _:
                script.ack()
    return script


scripts = steps.map(played)
lawful = settings(max_examples=60)


def every(script: Script) -> Iterator[State]:
    for point in points(script.recording):
        yield from states(point)


def replayed(recording: Recording) -> dict[str, bytes | None]:
    """What the operations leave, done one after the other on a dictionary."""
    paths = {name: entry.file for entry in recording.snapshot for name in entry.names if name}
    contents = {entry.file: entry.data for entry in recording.snapshot}
    kinds = {entry.file: entry.type.value for entry in recording.snapshot}
    for operation in recording.operations:
        action = operation.action
        if isinstance(action, Write | Mapped):
            old = contents.get(action.file, b"").ljust(action.offset, b"\0")
            contents[action.file] = old[: action.offset] + action.data + old[action.offset + len(action.data) :]
        elif isinstance(action, Truncate):
            contents[action.file] = contents.get(action.file, b"")[: action.size].ljust(action.size, b"\0")
        elif isinstance(action, Names):
            for change in action.changes:
                if isinstance(change, Unnamed):
                    paths.pop(change.path)
                else:
                    paths[change.path] = change.file
                    kinds.setdefault(change.file, change.type.value)
    return {
        path.decode(): None if kinds[file] == "directory" else contents.get(file, b"") for path, file in paths.items()
    }


@lawful
@given(scripts)
def test_everything_kept_is_the_replay(script: Script) -> None:
    assert script.state(StateRule.ALL) == replayed(script.recording)


@lawful
@given(scripts)
def test_after_a_sync_of_all_nothing_is_lost(script: Script) -> None:
    # What a failed sync gave up is lost all the same, so that one is left out.
    script.operations = [one for one in script.operations if not getattr(one.action, "error", 0)]
    recorded: list[Action] = [one.action for one in script.operations]
    script.operations = []
    for action in recorded:
        script.add(action)
    script.sync()
    assert [tree(state) for state in states(script.point())] == [replayed(script.recording)]


def versions(script: Script) -> dict[int, list[bytes]]:
    """The bytes of each file after each operation."""
    found: dict[int, list[bytes]] = {}
    for point in points(script.recording):
        for file, content in point.live.items():
            found.setdefault(file, [b""]).append(content.read(0, content.size))
    return found


@lawful
@given(scripts)
def test_each_sector_was_written_so_or_is_zero(script: Script) -> None:
    written = versions(script)
    for state in every(script):
        for file, content in state.contents().items():
            data = content.read(0, content.size)
            for begin in range(0, len(data), SECTOR):
                sector = data[begin : begin + SECTOR]
                olds = [old[begin : begin + len(sector)] for old in written.get(file, [])]
                if state.kind is StateRule.ZEROS:
                    # A cut may be on disk, and after it a size.
                    assert not any(sector) or any(old.startswith(sector.rstrip(b"\0")) for old in olds)
                else:
                    assert not any(sector) or sector in [old.ljust(len(sector), b"\0") for old in olds]


@lawful
@given(scripts)
def test_each_name_was_there_once_and_has_its_directory(script: Script) -> None:
    named = {(path, file) for point in points(script.recording) for path, file in point.live_names.paths.items()}
    for state in every(script):
        for path, file, first in state.names.visible:
            assert (path, file) in named
            assert (first, file) in named
            assert not path.startswith(b"d/") or b"d" in state.names.paths


def held(point: Point, origin: dict[int, int]) -> set[tuple[object, ...]]:
    """What is pending and what is doomed, by the operations of the recording without the sync that was put in."""
    found: set[tuple[object, ...]] = {(file, page) for file, pages in point.doomed.items() for page in pages}
    for one in point.pending:
        number = origin[one.operation]
        if isinstance(one, Moved):
            found.add((number, one.changes))
        else:
            spans = getattr(one, "spans", ((0, SECTOR),))
            found |= {(number, one.file, begin) for low, high in spans for begin in range(low, high, SECTOR)}
    return found


@lawful
@given(scripts, st.randoms(use_true_random=False))
def test_one_more_sync_never_loses_more(script: Script, draw: random.Random) -> None:
    actions: list[Action] = [one.action for one in script.operations]
    place = draw.randrange(2, len(actions) + 1)
    file = draw.choice([0, *script.names.values()])
    more = Script(a=b"\xfe" * 1300)
    origin = {}
    put_in = Sync(file) if draw.random() < 0.7 else SyncAll()
    for number, action in enumerate([*actions[:place], put_in, *actions[place:]], start=1):
        more.add(action)
        origin[number] = number if number <= place else number - 1
    before = script.point()
    after = more.point()
    assert held(after, origin) <= held(before, {number: number for number in origin})


@lawful
@given(scripts)
def test_trees_are_equal_if_and_only_if_their_hashes_are(script: Script) -> None:
    found: dict[str, object] = {}
    for state in every(script):
        links = sorted((first, path) for path, _, first in state.names.visible)
        said = (tree(state), links)
        assert found.setdefault(state.hash, said) == said
    assert all(one != two for one, two in pairwise(sorted(map(repr, found.values()))))


@lawful
@given(scripts, st.integers(0, 9))
def test_the_same_seed_gives_the_same_order(script: Script, seed: int) -> None:
    one, two = (
        [(each.state.hash, each.numbers, each.state.text) for each in Plan(script.recording, seed=seed)]
        for _ in range(2)
    )
    assert one == two


@lawful
@given(scripts)
def test_a_plan_has_every_state_with_every_point_at_which_it_is_legal(script: Script) -> None:
    legal: dict[str, set[int]] = {}
    for state in every(script):
        legal.setdefault(state.hash, set()).update(state.point.numbers)
    planned: dict[str, set[int]] = {}
    plan = Plan(script.recording)
    for candidate in plan:
        assert candidate.again == (candidate.state.hash in planned)
        planned.setdefault(candidate.state.hash, set()).update(candidate.numbers)
    assert planned == legal
    assert plan.count() == len(legal)


@given(st.lists(st.tuples(offsets, lengths, st.booleans()), max_size=8))
def test_contents_are_bytes(changes: list[tuple[int, int, bool]]) -> None:
    content, data = Content(0, {}), b""
    for number, (offset, length, cut) in enumerate(changes, start=1):
        if cut:
            offset *= 9
            content, data = content.resize(offset), data[:offset].ljust(offset, b"\0")
        else:
            new = bytes([number % 3]) * (length * 7)
            content = content.write(offset * 5, new)
            data = data.ljust(offset * 5, b"\0")
            data = data[: offset * 5] + new + data[offset * 5 + len(new) :]
    assert content.read(0, len(data) + 9) == data
    assert content == Content.of(b"").write(0, data).resize(len(data))
    assert content.digest == Content.of(data).digest
    assert content.read(700, 40_000) == data[700:40_000]
    assert b"".join(piece for _, piece in content.pieces()).count(0) <= data.count(0)


def test_every_point_is_found_by_its_numbers() -> None:
    script = played([("append", "a", 5), ("ack", ""), ("fsync", ""), ("durable", "a", 0, 5), ("ack", "")])
    first = [script.points(number)[-1].first for number in range(8)]
    assert first == [0, 1, 2, 3, 3, 5, 6, 6]
