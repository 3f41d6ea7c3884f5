"""hx-sync: more than two thousand of everything that a device keeps, and the command line among many events.

One answer takes a mebibyte, so each kind of row has a device of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import must_show
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.hx_sync.checks import compare_status, import_all, import_one, place
from holdfast.conformance.suites.hx_sync.model import shown_by
from holdfast.conformance.suites.hx_sync.objects import flipped
from holdfast.conformance.suites.hx_sync.operation_matrix import asked_of, lying_of
from holdfast.conformance.suites.hx_sync.permutations import Made, ObjectBuilder, at, due
from holdfast.conformance.suites.hx_sync.view import Tombstone, View, instant, told_window
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects.drafts import VAULT_KEY

# More than a page, a batch or a cache of two thousand, and of 2,048.
_MANY = 2050
# As many events as a segment may hold (methods.yaml).
_MOST = 10_000
# How many events lie in a second.
_PER_SECOND = 100
# Enough for the command line, which is another process over the same index.
_SOME = 1005
_COMMAND = "command_line"
# A method and its arguments.
Asked = tuple[str, Mapping[str, Any]]


def _events(world: ObjectBuilder, count: int, session: str = "") -> list[dict[str, Any]]:
    """`count` events of few bytes, of one session or each of its own."""
    one = {**world.event("z", "many", 0, at(0)), "data": {}}
    return [
        {**one, "session_id": world.uuid(session or f"session {seq}"), "seq": seq, "ts": at(seq / _PER_SECOND)}
        for seq in range(count)
    ]


def _rows(world: ObjectBuilder) -> Mapping[str, Made]:
    """By the device that imports it, a segment with many rows of a kind."""
    alone = _events(world, _MANY)
    sessions = [{"session_id": each["session_id"], "started_at": at(-1), "title": ""} for each in alone]
    one = world.event("z", "one", 0, at(0))
    blob = world.blob("many")
    artifacts = [world.artifact(str(number), "one", 0, blob) for number in range(_MANY)]
    pinned = _events(world, _MANY, "pinned")
    pins = [
        {"node_id": each["node_id"], "session_id": each["session_id"], "seq": each["seq"], "pinned": True}
        for each in pinned
    ]
    return {
        "a": world.segment("z", "sessions", *alone, sessions=sessions),
        "b": world.segment("z", "artifacts", one, artifacts=artifacts),
        "c": world.segment("z", "pins", *pinned, pins=pins),
    }


@clause("HX-P5", "HX-TMB-5", "HX-P1", whole=True, written=True)
def test_more_than_two_thousand_rows_of_each_kind_are_all_there(bench: Bench) -> None:
    """Events, sessions, artifacts and pins: imported, forgotten in part, published again; and every operation."""
    with bench.session(workers=2) as session:
        world = ObjectBuilder(bench, session, "many")
        made = _rows(world)
        place(session, made.values())
        for node, segment in made.items():
            import_one(bench, session, node, segment.key)
            _shows(bench, session, node, due([segment]), "with many rows", worker=1)
        # What is left to import is little.
        session.remove(made["a"].key)
        session.remove(made["c"].key)
        asked = {**asked_of(world, "b", "among many"), "enroll": {"node": "d", "node_id": world.node_id("d")}}
        place(session, [lying_of(world, "among many")])
        before = session.observe("state", {"node": "b"})
        for method, args in asked.items():
            bench.must_be(session.call(method, args), "accepted", f"{method} among many rows")
            after = session.observe("state", {"node": "b"})
            if after["artifacts"] != before["artifacts"]:
                received = f"{len(after['artifacts'])} of {len(before['artifacts'])}, or others"
                bench.fail("lost_durability", f"what there was before {method}", received=received)
        window = world.tombstone("most", at(0), at((_MANY - 10) / _PER_SECOND))
        bench.must_be(session.call("forget", {**window.args, "node": "c"}), "accepted", "forget among many rows")
        expected = due([made["c"], window])
        _shows(bench, session, "c", expected, "after most is forgotten", worker=1)
        # The same events in another segment: each of them is known as forgotten.
        again = world.segment("z", "again", *made["c"].args["batch"]["events"])
        place(session, [again])
        import_one(bench, session, "c", again.key, worker=1)
        _shows(bench, session, "c", due([made["c"], window, again]), "after they came again")
        compare_status(bench, session, "c", due([made["c"], window, again]), "after they came again")


def _shows(bench: Bench, session: SuiteSession, node: str, expected: View, told: str, worker: int = 0) -> None:
    must_show(bench, shown_by(node, expected), session.observe("state", {"node": node}, worker), told)


@clause("HX-P5", "HX-TMB-5", "HX-TMB-7", whole=True, written=True)
def test_more_than_two_thousand_tombstones_are_all_applied(bench: Bench) -> None:
    """Each is imported alone, and then an event that it covers. One that none of them covers is shown."""
    with bench.session(hurried=False) as session:
        world = ObjectBuilder(bench, session, "windows")
        windows = [world.tombstone(str(number), at(number), at(number + 0.5)) for number in range(_MANY)]
        place(session, windows)
        for window in windows:
            import_one(bench, session, "a", window.key)
        one = {**world.event("z", "s1", 0, at(0)), "data": {}}
        covered = [{**one, "seq": seq, "ts": at(seq + 0.25)} for seq in range(_MANY)]
        late = world.segment("z", "late", *covered, {**one, "seq": _MANY, "ts": at(0.75)})
        place(session, [late])
        import_one(bench, session, "a", late.key)
        expected = due([*windows, late])
        _shows(bench, session, "a", expected, "with many tombstones")
        compare_status(bench, session, "a", expected, "with many tombstones")


@clause("HX-P5", "HX-REQ-1", whole=True, written=True)
def test_a_segment_of_as_many_events_as_it_may_hold_is_imported(bench: Bench) -> None:
    """They fit no answer; the status counts them, and again after a rebuild."""
    with bench.session(hurried=False) as session:
        segment = (world := ObjectBuilder(bench, session, "most")).segment("z", "most", *_events(world, _MOST, "most"))
        place(session, [segment])
        import_one(bench, session, "a", segment.key)
        compare_status(bench, session, "a", due([segment]), "with as many events as a segment may hold")
        bench.must_be(session.call("rebuild", {"node": "a"}), "accepted", "rebuild was refused")
        compare_status(bench, session, "a", due([segment]), "after a rebuild")


# The command line


@clause("HX-CLI-1", "HX-P3", "HX-P4", whole=True, written=True)
def test_every_command_works_among_many_events_again_and_beside_others(bench: Bench) -> None:
    """Each is run twice, `forget` at three times of the clock, and those that change something at once."""
    if _COMMAND in bench.not_claimed:
        return
    with bench.session(workers=2) as session:
        world = ObjectBuilder(bench, session, "commands")
        made = world.segment("z", "many", *_events(world, _SOME, "many"))
        own = [world.segment("z", f"own {number}", world.event("z", "s1", number, at(number))) for number in range(3)]
        place(session, [made])
        import_one(bench, session, "a", made.key)
        place(session, own[:1])
        known = [made, own[0]]
        for words in (["import"], ["sync", "status"], ["verify"]):
            for _ in range(2):
                session.observe("state", {"node": "a"})
                _run(bench, session, words)
                _shows(bench, session, "a", due(known), f"after {words[0]}", worker=1)
        # What is wrong in the store is told, and changes nothing.
        data = own[2].data
        for bad in (data[:50], flipped(data, -1 % len(data), 1), flipped(data, len(data) // 2, 0x80), data + b"\n"):
            session.place(own[2].key, bad, times="kept")
            session.observe("state", {"node": "a"})
            told = session.provoke(*_asked(["verify"]))
            if told["status"] == 0 and own[2].key not in told["output"]:
                bench.fail("fail_open", "an object that was altered is verified as sound", received=told["output"])
        _shows(bench, session, "a", due(known), "after verify", worker=1)
        place(session, own[1:])
        known += own[1:]
        # Two processes import at once, and then one forgets while the other imports.
        _both(bench, session, [_asked(["import"]), _asked(["import"])])
        _shows(bench, session, "a", due(known), "after two imports at once")
        forget = ["forget", "--since", at(9)]
        windows = _forgotten(bench, session, [forget, forget])
        session.observe("state", {"node": "a"})
        for step in ("+0.5s", "-7200s"):
            session.clock(step)
            windows += _forgotten(bench, session, [forget])
        _shows(bench, session, "a", due([*known, *windows]), "after it was forgotten")
        windows += _forgotten(bench, session, [forget], beside=("import", {"node": "a"}))
        import_all(bench, session, "a")
        _shows(bench, session, "a", due([*known, *windows]), "after it was forgotten beside an import")


@clause("HX-CLI-1", "HX-TMB-6", whole=True, written=True)
def test_the_command_line_forgets_until_now_in_any_time_zone(bench: Bench) -> None:
    """What it publishes under two time zones ends at most an hour apart, as far as the two runs are."""
    if _COMMAND in bench.not_claimed:
        return
    ends = []
    for zone in ("UTC", "Pacific/Chatham", "America/Adak"):
        with bench.session(variables={"TZ": zone}) as session:
            (window,) = _forgotten(bench, session, [["forget", "--since", at(9)]])
            assert isinstance(window.says, Tombstone)
            ends.append(instant(window.says.end_ts))
    if max(ends) - min(ends) > timedelta(hours=1):
        bench.fail("wrong_reason", "forget ends at another time in another time zone", received=str(ends))


def _asked(words: Sequence[str]) -> Asked:
    return _COMMAND, {"node": "a", "arguments": [*words]}


def _run(bench: Bench, session: SuiteSession, words: Sequence[str]) -> None:
    told = session.provoke(*_asked(words))
    if VAULT_KEY in told["output"]:
        bench.fail("fail_open", "the key of the vault is printed", received=told["output"])
    if told["status"] != 0:
        received = f"{told['status']}: {told['output']}"
        bench.fail("over_refusal", f"the command {words[0]}", expected="exit status 0", received=received)


def _both(bench: Bench, session: SuiteSession, calls: Sequence[Asked]) -> None:
    """Two at once; a command that finds the index busy is run again."""
    answers = session.race(calls)
    for (method, args), answer in zip(calls, answers, strict=True):
        if method == _COMMAND and answer.value["status"] != 0:
            _run(bench, session, args["arguments"])


def _forgotten(
    bench: Bench, session: SuiteSession, commands: Sequence[Sequence[str]], beside: Asked | None = None
) -> list[Made]:
    """The windows that these commands have published, one each, run at once, or beside another call."""
    before = _tombstones(session)
    calls = [*map(_asked, commands), *([beside] if beside else [])]
    if len(calls) > 1:
        _both(bench, session, calls)
    else:
        _run(bench, session, commands[0])
    fresh = [key for key in _tombstones(session) if key not in before]
    if len(fresh) < len(commands):
        bench.fail("lost_durability", "a tombstone in the store for each command", received=repr(fresh))
    made = []
    for key in fresh:
        payload = derive("hx.opened", {"object": session.file(key)["bytes"]})["payload"] or {}
        made.append(Made(key, b"", told_window(key, payload), "", {}))
    return made


def _tombstones(session: SuiteSession) -> list[str]:
    return sorted(row["path"] for row in session.tree("HXSync") if row["path"].endswith(".hxtomb"))
