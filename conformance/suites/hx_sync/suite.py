"""hx-sync: what a script cannot say. All orders of a set of objects, and many devices."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from dataclasses import replace

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.histories import run_histories
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.inspection.beyond import TMPDIR
from holdfast.conformance.suites.hx_sync.builders import Devices
from holdfast.conformance.suites.hx_sync.fresh import Published, judge
from holdfast.conformance.suites.hx_sync.generate import scheduled, volume
from holdfast.conformance.suites.hx_sync.permutations import NODES, Made, ObjectBuilder, at
from holdfast.conformance.suites.hx_sync.runner import playing

# Histories against the model


@clause("HX-P4", "HX-P3", "HX-P5", "HX-P7", "HX-CRY-2", whole=True)
def test_any_history_agrees_with_the_model(bench: Bench) -> None:
    """Every operation and command by two processes for four devices, among kills, races, damage and lost indexes.

    Of all that they publish no two objects share what must be random, and every bit of it is drawn.
    """
    published: list[Published] = []
    run_histories(bench, count=5, draw=scheduled(), begin=lambda: playing(bench, published), trials=24)
    judge(bench, published, "xchacha20-poly1305")


@clause("HX-P4", "HX-CRY-5", "HX-BLB-5", "HX-CRY-2", whole=True)
def test_any_history_of_a_session_with_other_settings_agrees_with_the_model(bench: Bench) -> None:
    """The same with the other algorithm, and with blobs that are not compressed, commands included."""
    other = {"algorithm": "aes-256-gcm", "compression": "none"}
    published: list[Published] = []
    draw = scheduled("operator", "published")
    run_histories(bench, count=3, draw=draw, begin=lambda: playing(bench, published, **other), trials=24)
    judge(bench, published, other["algorithm"])


@clause("HX-P5", "HX-P4", whole=True)
def test_a_thousand_events_and_a_mebibyte_agree_with_the_model(bench: Bench) -> None:
    """Imports, a rebuild and a tombstone over all of them, each interrupted somewhere and done again.

    Blobs are not compressed, so that all of them is written.
    """
    run_histories(bench, count=1, draw=volume, begin=lambda: playing(bench, [], compression="none"), trials=4)


# All orders


def all_orders(devices: Devices, made: Sequence[Made], first: Sequence[Made] = ()) -> None:
    """Each order on a device of its own, behind `first`. All show what the model has.

    Every second one has imported each object alone, so nothing else can have mended what that left.
    """
    devices.lay(*first, *made)
    for number, order in enumerate(itertools.permutations(made)):
        node = f"p{number}"
        devices.enroll(node)
        for each in (*first, *order):
            devices.do("import_object", node=node, key=each.key)
        if number % 2:
            devices.do("import", node=node)
    devices.compare()


@clause("HX-P4", "HX-TMB-4", "HX-TMB-5", "HX-PIN-3")
def test_all_orders_of_segments_and_tombstones_come_to_the_state_of_the_model(bench: Bench) -> None:
    """Two segments that share events, a tombstone over some of them, and a pin of what is forgotten."""
    with bench.session() as session:
        world = ObjectBuilder(bench, session, "orders")
        shared, other = world.event("a", "s1", 1, at(10)), world.event("a", "s2", 0, at(20))
        pins = [world.pin("a", "s1", 1), world.pin("a", "s2", 0)]
        made = [
            world.segment("a", "first", world.event("a", "s1", 0, at(5)), shared, other),
            world.segment("a", "second", shared, world.event("a", "s1", 2, at(15))),
            world.segment("b", "pins", world.event("b", "s1", 1, at(10)), pins=pins),
            world.tombstone("gone", at(10), at(15, offset=60), "a"),
        ]
        all_orders(Devices(bench, session), made)


@clause("HX-SEG-11", "HX-P4", "HX-TMB-5")
def test_an_event_of_many_contents_is_shown_alike_after_all_orders(bench: Bench) -> None:
    """Three contents of one event at three times; a tombstone over the time of one of them forgets them all."""
    with bench.session() as session:
        world = ObjectBuilder(bench, session, "contents")
        told = [
            world.segment(
                "a",
                f"says {number}",
                world.event("a", "s1", 0, at(10 * number), f"content {number}"),
                world.event("a", "s1", 1, at(1), f"content {number % 2}"),
                *(world.event("a", "s2", seq, at(1), f"content {seq} {number}") for seq in range(8)),
            )
            for number in range(3)
        ]
        all_orders(Devices(bench, session), [*told, world.segment("b", "same key", world.event("b", "s1", 0, at(3)))])
    with bench.session() as session:
        world = ObjectBuilder(bench, session, "contents forgotten")
        told = [
            world.segment(
                "a",
                f"says {number}",
                world.event("a", "s1", 0, at(10 * number), f"content {number}"),
                # Of even numbers, so that the segment holds no escape.
                *(world.event("a", "s2", seq, at(30), f"content {seq} {number}") for seq in range(0, 8, 2)),
            )
            for number in range(3)
        ]
        devices = Devices(bench, session)
        all_orders(devices, [*told, world.tombstone("one", at(10), at(10))])
        # What lay in the window is in the store no more, and a device makes its index anew.
        devices.remove(told[1].key)
        devices.do("rebuild", node="p0")
        devices.compare()


@clause("HX-TMB-8", "HX-P4", "HX-TMB-5")
def test_what_hangs_on_a_forgotten_event_is_gone_after_all_orders(bench: Bench) -> None:
    """Artifacts of a forgotten event and of one that stays, blobs, a session left empty, and contents of the window."""
    with bench.session() as session:
        world = ObjectBuilder(bench, session, "hangs")
        shared, own, late = world.blob("shared"), world.blob("own"), world.blob("late")
        words = [session.rand(word) for word in ("made", "renamed", "came late", "began in the window", "again")]
        gone = world.segment(
            "a",
            "gone",
            world.event("a", "s1", 0, at(10)),
            world.event("a", "s3", 0, at(11)),
            artifacts=[world.artifact("x", "s1", 0, shared, words[0]), world.artifact("y", "s1", 0, own)],
            # The third has one more event, which may come when it was left empty.
            sessions=[
                world.session("s1", at(0)),
                world.session("s3", at(1)),
                *(world.session("s2", at(9 + n), words[3 + n]) for n in range(2)),
            ],
        )
        artifacts = [world.artifact("z", "s2", 0, shared), world.artifact("x", "s1", 0, own, words[1])]
        stays = world.segment(
            "a",
            "stays",
            world.event("a", "s2", 0, at(30)),
            world.event("a", "s3", 1, at(31)),
            artifacts=[*artifacts, world.artifact("w", "s1", 0, late, words[2])],
            sessions=[world.session("s2", at(n), f"another title {n}") for n in range(4)],
        )
        window = world.tombstone("window", at(8), at(12))
        devices = Devices(bench, session)
        all_orders(devices, [gone, stays, window, own], first=[late, shared])
        # One more device has everything before it hears of the window, and that by a rebuild.
        devices.remove(window.key)
        devices.do("import", node="b")
        devices.lay(window)
        devices.do("rebuild", node="b")
        devices.compare()
        told = [*words, *({"bytes": blob.args["bytes"]} for blob in (own, late))]
        for folder in ("nodes", TMPDIR):
            devices.unread(folder, told, "what every device has forgotten")


@clause("HX-TMB-9", "HX-TMB-3", "HX-P4")
def test_windows_that_overlap_cover_the_same_after_all_orders(bench: Bench) -> None:
    """One for all devices and one for another, events at their edges and a microsecond beside them."""
    edges = (10, 20, 30)
    with bench.session() as session:
        world = ObjectBuilder(bench, session, "windows")
        segments = [
            world.segment(
                node,
                f"edges {node}",
                *(
                    world.event(node, "s1", 3 * number + beside, at(edge + (beside - 1) / 1e6, offset=60 * number))
                    for number, edge in enumerate(edges)
                    for beside in range(3)
                ),
            )
            for node in ("a", "b")
        ]
        windows = [
            world.tombstone("all", at(10), at(20, offset=-330)),
            world.tombstone("one", at(20, offset=825), at(30), "b"),
        ]
        all_orders(Devices(bench, session), [*segments, *windows])


# Any set in any order


@clause("HX-P4", "HX-P3", "HX-P5")
def test_any_set_in_any_order_comes_to_the_state_of_the_model(bench: Bench) -> None:
    """Random sets; three devices, each with its order, with repetitions, late objects and restarts in between."""
    for number in range(3):
        with bench.session(workers=2) as session:
            # Of the run's seed, so that each run has others, and the gate the same again.
            dice = random.Random(session.rand(f"dice {number}"))  # noqa: S311 - nothing is kept secret with it
            made = ObjectBuilder(bench, session, f"any {number}").any_objects(dice, 14)
            early, devices = dice.sample(made, len(made) // 2), Devices(bench, session)
            devices.lay(*early)
            for node in NODES:
                in_some_order(devices, node, early, dice)
            devices.compare(worker=1)
            session.restart(dice.randrange(2))
            devices.lay(*(each for each in made if each not in early))
            for node in NODES:
                in_some_order(devices, node, [each for each in made if each not in early], dice)
            devices.compare(worker=1)


def in_some_order(devices: Devices, node: str, made: Sequence[Made], dice: random.Random) -> None:
    """Import them one by one in a random order, some again, by either worker; then all that is left."""
    order = dice.sample(list(made), len(made))
    for each in order + dice.sample(order, len(order) // 3):
        devices.do("import_object", dice.randrange(2), node=node, key=each.key)
    devices.do("import", dice.randrange(2), node=node)


# Many devices


@clause("HX-T1", "HX-P1", "HX-P3")
def test_devices_that_are_late_offline_or_new_come_to_one_digest(bench: Bench) -> None:
    """Six devices over one store: one hears of nothing until the end, one is enrolled last, one is rebuilt.

    Half of the objects they publish themselves, half come from elsewhere.
    """
    with bench.session(workers=2) as session:
        world, dice = ObjectBuilder(bench, session, "devices"), random.Random(5)  # noqa: S311 - nothing is kept secret with it
        devices = Devices(bench, session)
        for node in ("d", "e"):
            devices.enroll(node)
        for part in range(4):
            if part % 2:
                devices.publish(*world.round(part), worker=part // 2 % 2)
            else:
                devices.lay(*world.round(part))
            # Device d is offline until the end.
            for node in dice.sample(["a", "b", "c", "e"], 2):
                devices.do("import", part % 2, node=node)
        devices.enroll("late", worker=1)
        everybody = [*NODES, "d", "e", "late"]
        for node in everybody:
            devices.do("import", 1, node=node)
        devices.compare()
        session.restart(0)
        for node in everybody:
            devices.do("import", node=node)
        devices.do("rebuild", node="b")
        devices.compare()


@clause("HX-T2", "HX-TMB-7", "HX-TMB-5")
def test_what_one_device_forgets_is_gone_everywhere_whatever_comes_later(bench: Bench) -> None:
    """Devices that publish themselves; the tombstone's object is taken away, and what it forgot is published again."""
    with bench.session(workers=2) as session:
        world = ObjectBuilder(bench, session, "forget")
        events = [world.event("a", "s1", number, at(10 * number)) for number in range(8)]
        window, devices = world.tombstone("tombstone", at(20), at(50)), Devices(bench, session)
        devices.publish(*(world.segment("a", f"segment {event['seq']}", event) for event in events))
        for node in ("a", "b"):
            devices.do("import", node=node)
        devices.publish(replace(window, args={**window.args, "node": "b"}))
        for node in NODES:
            devices.do("import", 1, node=node)
        devices.compare()
        # A blob of no event, which is gone as well.
        blob = world.blob("gone")
        devices.publish(blob)
        for node in NODES:
            devices.do("import", node=node)
        for each in (window, blob):
            devices.remove(each.key)
        pins = [world.pin("a", "s1", number) for number in range(8)]
        devices.publish(world.segment("a", "again", *events, pins=pins))
        session.restart(1)
        for node in NODES:
            devices.do("import", 1, node=node)
            _withholds(bench, session, node, {window.key, blob.key})
            devices.do("rebuild", 1, node=node)
        devices.compare()
        for node in NODES:
            _withholds(bench, session, node, {window.key})


def _withholds(bench: Bench, session: SuiteSession, node: str, gone: set[str]) -> None:
    """The status names what was applied and does not lie in the store."""
    withheld = session.observe("status", {"node": node})["withheld"]
    if missing := gone - set(withheld):
        told = f"{node} does not say that {sorted(missing)} is gone"
        bench.fail("wrong_reason", told, received=repr(withheld))
