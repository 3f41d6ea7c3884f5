"""hx-sync: more than two thousand of everything that a device keeps, and the command line among many events.

One answer takes a mebibyte, so each kind of row has a device of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.suites.hx_sync.builders import Devices
from holdfast.conformance.suites.hx_sync.model import COMMAND, begun, beside, called, command
from holdfast.conformance.suites.hx_sync.objects import flipped
from holdfast.conformance.suites.hx_sync.operation_matrix import asked_of, lying_of
from holdfast.conformance.suites.hx_sync.permutations import Made, ObjectBuilder, at
from holdfast.conformance.suites.hx_sync.view import Tombstone, instant

# More than a page, a batch or a cache of two thousand, and of 2,048.
_MANY = 2050
# As many events as a segment may hold (methods.yaml).
_MOST = 10_000
# How many events lie in a second.
_PER_SECOND = 100
# Enough for the command line, which is another process over the same index.
_SOME = 1005


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
        world, devices = ObjectBuilder(bench, session, "many"), Devices(bench, session)
        made = _rows(world)
        devices.lay(*made.values())
        for node, segment in made.items():
            devices.do("import_object", node=node, key=segment.key)
        devices.compare(worker=1)
        # What is left to import is little.
        devices.remove(made["a"].key)
        devices.remove(made["c"].key)
        devices.lay(lying_of(world, "among many"))
        for call in asked_of(world, "b", "among many", enrolled="d").values():
            devices.ask(call)
            devices.must_show(next(devices.model.of_device(devices.state, "b")), f"after {call.row}")
        window = world.tombstone("most", at(0), at((_MANY - 10) / _PER_SECOND))
        devices.do("forget", **{**window.args, "node": "c"})
        devices.compare(worker=1)
        # The same events in another segment: each of them is known as forgotten.
        again = world.segment("z", "again", *made["c"].args["batch"]["events"])
        devices.lay(again)
        devices.do("import_object", 1, node="c", key=again.key)
        devices.compare()


@clause("HX-P5", "HX-TMB-5", "HX-TMB-7", whole=True, written=True)
def test_more_than_two_thousand_tombstones_are_all_applied(bench: Bench) -> None:
    """Each is imported alone, and then an event that it covers. One that none of them covers is shown."""
    with bench.session(hurried=False) as session:
        world, devices = ObjectBuilder(bench, session, "windows"), Devices(bench, session)
        windows = [world.tombstone(str(number), at(number), at(number + 0.5)) for number in range(_MANY)]
        devices.lay(*windows)
        for window in windows:
            session.accepted("import_object", {"node": "a", "key": window.key})
        # What follows from that many is reckoned once.
        devices.states.narrow(lambda state: [state.at("a", state.everything(state.devices["a"])[0])])
        one = {**world.event("z", "s1", 0, at(0)), "data": {}}
        covered = [{**one, "seq": seq, "ts": at(seq + 0.25)} for seq in range(_MANY)]
        late = world.segment("z", "late", *covered, {**one, "seq": _MANY, "ts": at(0.75)})
        devices.lay(late)
        devices.do("import_object", node="a", key=late.key)
        for each in devices.model.of_device(devices.state, "a"):
            devices.must_show(each, "with many tombstones")


@clause("HX-P5", "HX-REQ-1", whole=True, written=True)
def test_a_segment_of_as_many_events_as_it_may_hold_is_imported(bench: Bench) -> None:
    """They fit no answer; the status counts them, and again after a rebuild."""
    with bench.session(hurried=False) as session:
        world, devices = ObjectBuilder(bench, session, "most"), Devices(bench, session)
        segment = world.segment("z", "most", *_events(world, _MOST, "most"))
        devices.lay(segment)
        for call in (called("import_object", node="b", key=segment.key), called("rebuild", node="b")):
            devices.ask(call)
            _, status = devices.model.of_device(devices.state, "b")
            devices.must_show(status, f"after {call.row}")


# The command line


@clause("HX-CLI-1", "HX-P3", "HX-P4", whole=True, written=True)
def test_every_command_works_among_many_events_again_and_beside_others(bench: Bench) -> None:
    """Each is run twice, `forget` at three times of the clock, and those that change something at once."""
    if COMMAND in bench.not_claimed:
        return
    with bench.session(workers=2) as session:
        world, devices = ObjectBuilder(bench, session, "commands"), Devices(bench, session)
        made = world.segment("z", "many", *_events(world, _SOME, "many"))
        own = [world.segment("z", f"own {number}", world.event("z", "s1", number, at(number))) for number in range(3)]
        devices.lay(made)
        devices.ask(called("import_object", node="a", key=made.key))
        devices.lay(own[0])
        for row, *words in (("import", "import"), ("status", "sync", "status"), ("verify", "verify")):
            for _ in range(2):
                session.observe("state", {"node": "a"})
                devices.ask(command("a", row, *words))
            devices.compare(worker=1)
        # What is wrong in the store is told, and changes nothing.
        data = own[2].data
        for bad in (data[:50], flipped(data, -1 % len(data), 1), flipped(data, len(data) // 2, 0x80), data + b"\n"):
            session.place(own[2].key, bad, times="kept")
            session.observe("state", {"node": "a"})
            told = session.provoke(COMMAND, {"node": "a", "arguments": ["verify"]})
            if told["status"] == 0 and own[2].key not in told["output"]:
                bench.fail("fail_open", "an object that was altered is verified as sound", received=told["output"])
        for each in own[1:]:
            devices.lay(each)
        devices.compare(worker=1)
        # Two processes import at once, and then one forgets while the other imports.
        forget = command("a", "forget", "forget", "--since", at(9))
        both = [command("a", "import", "import")] * 2
        for calls in (both, [forget] * 2, "+0.5s", "-7200s", [forget, beside(called("import", node="a"))]):
            session.observe("state", {"node": "a"})
            if isinstance(calls, str):
                session.clock(calls)
                devices.ask(forget)
            else:
                undone = devices.race(calls)
                devices.compare(*undone)
                for call in undone:
                    devices.ask(begun(call))
            devices.compare(worker=1)
        devices.ask(called("import", node="a"))
        devices.compare()


@clause("HX-CLI-1", "HX-TMB-6", whole=True, written=True)
def test_the_command_line_forgets_until_now_in_any_time_zone(bench: Bench) -> None:
    """What it publishes under two time zones ends at most an hour apart, as far as the two runs are."""
    if COMMAND in bench.not_claimed:
        return
    ends = []
    for zone in ("UTC", "Pacific/Chatham", "America/Adak"):
        with bench.session(variables={"TZ": zone}) as session:
            devices = Devices(bench, session)
            devices.ask(command("a", "forget", "forget", "--since", at(9)))
            says = [each.says for each in devices.state.store.values()]
            ends += [instant(each.end_ts) for each in says if isinstance(each, Tombstone)]
    if max(ends) - min(ends) > timedelta(hours=1):
        bench.fail("wrong_reason", "forget ends at another time in another time zone", received=str(ends))
