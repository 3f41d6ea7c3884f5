"""hx-sync: what a script cannot say. All orders of a set of objects, many devices, every byte of an object, writers and
readers at once."""

from __future__ import annotations

import random
from typing import Any

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench, base64url, from_base64url
from holdfast.conformance.suites.hx_sync.fresh import apart
from holdfast.conformance.suites.hx_sync.history import NODES, Made, World, at, due
from holdfast.conformance.suites.hx_sync.hostile import Hostile, early_looks, flipped, fresh, one_is_new, open_placed
from holdfast.conformance.suites.hx_sync.play import (
    all_orders,
    compare,
    compare_status,
    enroll,
    import_all,
    import_one,
    in_some_order,
    must_show,
    place,
    publish,
    published,
)
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects import altering
from holdfast.vectors.hx_sync.objects.format import ALGORITHMS, BYTE, PRELUDE

# All orders


@clause("HX-P4", "HX-TMB-4", "HX-TMB-5", "HX-PIN-3")
def test_all_orders_of_segments_and_tombstones_come_to_the_state_of_the_model(bench: Bench) -> None:
    """Two segments that share events, a tombstone over some of them, and a pin of what is forgotten."""
    with bench.session() as session:
        world = World(bench, session, "orders")
        shared, other = world.event("a", "s1", 1, at(10)), world.event("a", "s2", 0, at(20))
        pins = [world.pin("a", "s1", 1), world.pin("a", "s2", 0)]
        made = [
            world.segment("a", "first", world.event("a", "s1", 0, at(5)), shared, other),
            world.segment("a", "second", shared, world.event("a", "s1", 2, at(15))),
            world.segment("b", "pins", world.event("b", "s1", 1, at(10)), pins=pins),
            world.tombstone("gone", at(10), at(15, offset=60), "a"),
        ]
        all_orders(bench, session, made)


@clause("HX-SEG-11", "HX-P4", "HX-TMB-5")
def test_an_event_of_many_contents_is_shown_alike_after_all_orders(bench: Bench) -> None:
    """Three contents of one event at three times; a tombstone over the time of one of them forgets them all."""
    with bench.session() as session:
        world = World(bench, session, "contents")
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
        all_orders(bench, session, [*told, world.segment("b", "same key", world.event("b", "s1", 0, at(3)))])
    with bench.session() as session:
        world = World(bench, session, "contents forgotten")
        told = [
            world.segment("a", f"says {number}", world.event("a", "s1", 0, at(10 * number), f"content {number}"))
            for number in range(3)
        ]
        all_orders(bench, session, [*told, world.tombstone("one", at(10), at(10))])


@clause("HX-TMB-8", "HX-P4", "HX-TMB-5")
def test_what_hangs_on_a_forgotten_event_is_gone_after_all_orders(bench: Bench) -> None:
    """Artifacts of a forgotten event and of one that stays, two blobs, a session left empty and one of the window."""
    with bench.session() as session:
        world = World(bench, session, "hangs")
        shared, own = world.blob("shared"), world.blob("own")
        gone = world.segment(
            "a",
            "gone",
            world.event("a", "s1", 0, at(10)),
            artifacts=[world.artifact("x", "s1", 0, shared), world.artifact("y", "s1", 0, own)],
            sessions=[world.session("s1", at(0)), world.session("s2", at(9), "began in the window")],
        )
        stays = world.segment(
            "a",
            "stays",
            world.event("a", "s2", 0, at(30)),
            artifacts=[world.artifact("z", "s2", 0, shared), world.artifact("x", "s1", 0, own, "renamed")],
            sessions=[world.session("s2", at(0), "another title")],
        )
        all_orders(bench, session, [gone, stays, world.tombstone("window", at(8), at(12)), own], then=[shared])


@clause("HX-TMB-9", "HX-TMB-3", "HX-P4")
def test_windows_that_overlap_cover_the_same_after_all_orders(bench: Bench) -> None:
    """One for all devices and one for another, events at their edges and a microsecond beside them."""
    edges = (10, 20, 30)
    with bench.session() as session:
        world = World(bench, session, "windows")
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
        all_orders(bench, session, [*segments, *windows])


# Any set in any order


@clause("HX-P4", "HX-P3", "HX-P5")
def test_any_set_in_any_order_comes_to_the_state_of_the_model(bench: Bench) -> None:
    """Random sets; three devices, each with its order, with repetitions, late objects and restarts in between."""
    for number in range(3):
        with bench.session(workers=2) as session:
            # Of the run's seed, so that each run draws others, and the gate the same again.
            dice = random.Random(session.rand(f"dice {number}"))  # noqa: S311 - nothing is kept secret with it
            made = World(bench, session, f"any {number}").any_objects(dice, 14)
            early = dice.sample(made, len(made) // 2)
            place(session, early)
            for node in NODES:
                in_some_order(bench, session, node, early, dice)
            compare(bench, session, NODES, due(early), "with a part of the objects", worker=1)
            session.restart(dice.randrange(2))
            place(session, made)
            for node in NODES:
                in_some_order(bench, session, node, [each for each in made if each not in early], dice)
            compare(bench, session, NODES, due(made), "with all objects", worker=1)
            compare_status(bench, session, "b", due(made), "with all objects")


# Many devices


@clause("HX-T1", "HX-P1", "HX-P3")
def test_devices_that_are_late_offline_or_new_come_to_one_digest(bench: Bench) -> None:
    """Six devices over one store: one hears of nothing until the end, one is enrolled last, one is rebuilt.

    Half of the objects they publish themselves, half come from elsewhere.
    """
    with bench.session(workers=2) as session:
        world, dice = World(bench, session, "devices"), random.Random(5)  # noqa: S311 - nothing is kept secret with it
        made: list[Made] = []
        for node in ("d", "e"):
            enroll(bench, session, node)
        for part in range(4):
            told = world.round(part)
            made += told
            if part % 2:
                published(bench, session, told, worker=part // 2 % 2)
            else:
                place(session, told)
            # Device d is offline until the end.
            for node in dice.sample(["a", "b", "c", "e"], 2):
                import_all(bench, session, node, worker=part % 2)
        enroll(bench, session, "late", worker=1)
        everybody = [*NODES, "d", "e", "late"]
        for node in everybody:
            import_all(bench, session, node, worker=1)
        expected = due(made)
        compare(bench, session, everybody, expected, "at the end")
        session.restart(0)
        again = [session.call("import", {"node": node}).effect for node in everybody]
        if set(again) != {"prior"}:
            bench.fail(
                "fail_open", "importing everything again was something new", expected="prior", received=repr(again)
            )
        answer = session.call("rebuild", {"node": "b"})
        if answer.outcome != "accepted":
            bench.fail("over_refusal", f"rebuild was refused: {answer.reason}")
        compare(bench, session, everybody, expected, "after everything was imported again")


@clause("HX-T2", "HX-TMB-7", "HX-TMB-5")
def test_what_one_device_forgets_is_gone_everywhere_whatever_comes_later(bench: Bench) -> None:
    """Devices that publish themselves; the tombstone's object is taken away, and what it forgot is published again."""
    with bench.session(workers=2) as session:
        world = World(bench, session, "forget")
        events = [world.event("a", "s1", number, at(10 * number)) for number in range(8)]
        for number, event in enumerate(events):
            publish(bench, session, "a", world.uuid(f"segment {number}"), {"events": [event]})
        for node in ("a", "b"):
            import_all(bench, session, node)
        asked = {"node": "b", "tombstone_id": world.uuid("tombstone"), "start_ts": at(20), "end_ts": at(50)}
        answer = session.call("forget", asked)
        if answer.outcome != "accepted":
            bench.fail("over_refusal", f"forget was refused: {answer.reason}")
        left = [event["seq"] for event in events if not 20 <= 10 * event["seq"] <= 50]
        for node in NODES:
            import_all(bench, session, node, worker=1)
        must_show(bench, session, NODES, left, "after the tombstone")
        session.remove(answer.value["key"])
        again = {"events": events, "pins": [world.pin("a", "s1", number) for number in range(8)]}
        publish(bench, session, "a", world.uuid("again"), again)
        session.restart(1)
        for node in NODES:
            import_all(bench, session, node, worker=1)
            if session.call("rebuild", {"node": node}, 1).outcome != "accepted":
                bench.fail("over_refusal", "rebuild was refused")
        must_show(bench, session, NODES, left, "after it was published again without the tombstone in the store")
        for node in NODES:
            withheld = session.observe("status", {"node": node})["withheld"]
            if answer.value["key"] not in withheld:
                bench.fail("wrong_reason", f"{node} does not say that the tombstone is gone", received=repr(withheld))


# Every byte of an object

_UNCHANGED = frozenset({"OBJECT_MALFORMED", "FOREIGN_VAULT", "OBJECT_MISPLACED", "OBJECT_UNAUTHENTIC"})


@clause("HX-CRY-6", "HX-T5", "HX-CRY-4")
def test_with_any_byte_changed_an_object_is_refused_and_counted(bench: Bench) -> None:
    """Every byte of a small one, in turn; with the other algorithm those outside of the header, which is the same."""
    for algorithm in BYTE:
        with bench.session() as session:
            hostile = Hostile(bench, session, "bytes", algorithm)
            header = range(PRELUDE, altering.regions(hostile.small.data)["wrap-nonce"])
            for number in range(len(hostile.small.data)):
                if algorithm != ALGORITHMS[1] and number in header:
                    continue
                told = f"with a bit changed at byte {number}, {algorithm}"
                hostile.refused(flipped(hostile.small.data, number, 1 << number % 8), told, _UNCHANGED)
            for number in range(0, len(hostile.own.data), 7):
                told = f"of its own with a bit changed at byte {number}"
                hostile.refused(flipped(hostile.own.data, number, 1 << number % 8), told, _UNCHANGED, hostile.own)
            hostile.conclude()


@clause("HX-CRY-6", "HX-T5", "HX-T3")
def test_a_large_object_is_refused_wherever_a_byte_of_it_is_another(bench: Bench) -> None:
    """A segment and a blob of some hundred kilobytes: the edges of every part, and places in between."""
    with bench.session() as session:
        hostile = Hostile(bench, session, "large")
        dice = random.Random(11)  # noqa: S311 - nothing is kept secret with it
        for target in (hostile.large, hostile.blob):
            starts = altering.regions(target.data).values()
            edges = {edge + beside for edge in (*starts, len(target.data)) for beside in (-1, 0)}
            places = {*edges, *dice.sample(range(len(target.data)), 16)} & set(range(len(target.data)))
            for number in sorted(places):
                told = f"with a bit changed at byte {number}"
                hostile.refused(flipped(target.data, number, 0x80), told, _UNCHANGED, target)
        hostile.conclude()


@clause("HX-T3", "HX-CRY-6", "HX-IMP-5")
def test_an_object_that_was_cut_anywhere_is_refused_until_the_whole_one_comes(bench: Bench) -> None:
    """At every sixteenth, at the edges of every part, with nothing left, and with something behind."""
    with bench.session() as session:
        hostile = Hostile(bench, session, "cut")
        for target in (hostile.small, hostile.large, hostile.blob):
            size = len(target.data)
            starts = altering.regions(target.data).values()
            lengths = sorted({size * part // 16 for part in range(16)} | set(starts) | {1, size - 1})
            for length in lengths:
                hostile.refused(target.data[:length], f"cut to {length} of {size} bytes", _UNCHANGED, target)
            for tail in (b"\x00", b"\n", target.data):
                hostile.refused(target.data + tail, f"with {len(tail)} bytes behind it", _UNCHANGED, target)
        hostile.conclude()


@clause("HX-T5", "HX-CRY-3", "HX-CRY-4", "HX-SEG-3", "HX-SEG-5", "HX-SEG-6")
def test_no_part_and_no_place_of_an_object_can_be_exchanged(bench: Bench) -> None:
    """Header, wrapped key, nonces and payload of another object, and each object at the other's key."""
    with bench.session() as session:
        hostile = Hostile(bench, session, "swaps")
        others = {"large": hostile.large, "blob": hostile.blob, "tombstone": hostile.tombstone, "twin": hostile.twin}
        for name, other in others.items():
            for how in ("swap-header", "swap-wrap", "swap-wrap-nonce", "swap-nonce", "swap-payload"):
                change = altering.Alteration(how, other=other.data)
                mixed = altering.altered(hostile.small.data, change)
                hostile.refused(mixed, f"with {how} of the {name}", _UNCHANGED)
            for target in (hostile.small, hostile.tombstone):
                if other is not target:
                    hostile.refused(other.data, f"the {name} at its place", frozenset({"OBJECT_MISPLACED"}), target)
            hostile.refused(hostile.small.data, f"at the place of the {name}", frozenset({"OBJECT_MISPLACED"}), other)
        for how in ("swap-header", "swap-wrap", "swap-payload"):
            mixed = altering.altered(hostile.own.data, altering.Alteration(how, other=hostile.own_later.data))
            hostile.refused(mixed, f"of its own with {how} of one of another time", _UNCHANGED, hostile.own)
        hostile.conclude()


@clause("HX-BLB-6")
def test_a_blob_that_grows_beyond_all_measure_is_refused_at_once(bench: Bench) -> None:
    """Frames of a few kilobytes that hold a gibibyte, state more or less than they hold, or do not say."""
    gibibyte = 1 << 30
    bombs: dict[str, dict[str, Any]] = {
        "a gibibyte, as it says": {"length": gibibyte, "frame": {"zeros": gibibyte}},
        "a gibibyte that says 1000": {"length": 1000, "frame": {"zeros": gibibyte, "stated_size": 1000}},
        "a gibibyte that does not say": {"length": 1000, "frame": {"zeros": gibibyte, "without_size": True}},
        "a gibibyte in a header of 1000": {"length": 1000, "frame": {"zeros": gibibyte}},
        "1000 that say a tebibyte": {"length": 1000, "frame": {"zeros": 1000, "stated_size": 1 << 40}},
        "1000 in a header of a tebibyte": {"length": 1 << 40, "frame": {"zeros": 1000}},
        "1000, and as many behind": {"length": 1000, "frame": {"zeros": 1000, "frames": 2}},
        "1000, and garbage behind": {"length": 1000, "frame": {"zeros": 1000, "trailing": "AAAA"}},
        "1000 in a thousand frames": {"length": 1000, "frame": {"zeros": 1, "frames": 1000}},
    }
    with bench.session() as session:
        world = World(bench, session, "bombs")
        for name, bomb in bombs.items():
            frame = derive("hx.zstd", bomb["frame"])
            asked = {"zeros": 1000, "frame": frame, "byte_len_plain": bomb["length"], "label": name}
            made = derive("hx.blob", asked)
            key = derive("hx.key", {"object": made})
            session.place(key, from_base64url(made))
            answer = session.call("import_object", {"node": "a", "key": key})
            if answer.reason != "BLOB_MISMATCH":
                verdict = "fail_open" if answer.outcome == "accepted" else "wrong_reason"
                received = answer.reason or answer.outcome
                bench.fail(verdict, f"a blob: {name}", expected="BLOB_MISMATCH", received=received)
        if session.observe("state")["blobs"]:
            bench.fail("state_leak", "a blob that was refused lies in the cache")
        session.remove(key)
        honest = world.blob("honest")
        place(session, [honest])
        import_all(bench, session, "a")
        compare(bench, session, ["a"], due([honest]), "after blobs that grow")


# More than fits a page


@clause("HX-STO-1", "HX-P5")
def test_a_store_of_more_than_a_thousand_objects_is_listed_and_imported_whole(bench: Bench) -> None:
    """What comes last in any order is among empty objects: a page that is taken for the whole loses it."""
    with bench.session() as session:
        world = World(bench, session, "many")
        ends = [world.segment(node, f"{node} has one", world.event(node, "s1", 0, at(0))) for node in NODES]
        folder = ends[1].key.rpartition("/")[0]
        empty = [f"{folder}/{world.uuid(f'empty {number}')}.hxseg" for number in range(1100)]
        for key in empty:
            session.place(key, b"")
        place(session, ends)
        there = sorted(row["path"] for row in session.tree("HXSync") if row["kind"] == "file")
        listed = session.observe("list", {"prefix": "HXSync"})["keys"]
        if sorted(listed) != there:
            received = f"{len(listed)} keys, {len(set(listed))} of them different"
            bench.fail("lost_durability", "a list of the store is another", expected=str(len(there)), received=received)
        done = import_all(bench, session, "a")
        if sorted(row["key"] for row in done["rejected"]) != sorted(empty):
            bench.fail("wrong_reason", "empty objects were not all refused", received=str(len(done["rejected"])))
        compare(bench, session, ["a"], due(ends), "among more than a thousand objects")


# Writers and readers at once


@clause("HX-TMB-5", "HX-TMB-4", "HX-P4")
def test_a_tombstone_beside_a_segment_forgets_whichever_is_first(bench: Bench) -> None:
    """Two processes import a segment of many events and the tombstone over them into one index at once."""
    with bench.session(workers=2) as session:
        world = World(bench, session, "beside")
        made: list[Made] = []
        for number in range(12):
            events = [world.event("a", f"s{number}", seq, at(100 * number + seq / 10)) for seq in range(300)]
            pins = [world.pin("a", f"s{number}", 299)]
            segment = world.segment("a", f"events {number}", *events, pins=pins)
            window = world.tombstone(f"over {number}", at(100 * number), at(100 * number + 30))
            made += [segment, window]
            place(session, [segment, window])
            turn = [segment, window] if number % 2 else [window, segment]
            answers = session.race([("import_object", {"node": "a", "key": each.key}) for each in turn])
            for each, answer in zip(turn, answers, strict=True):
                if answer.outcome != "accepted":
                    # One of two that meet may be told to come again.
                    import_one(bench, session, "a", each.key)
            left = session.observe("status", {"node": "a"})["events"]
            if left:
                bench.fail("fail_open", f"{left} events came in past a tombstone", expected="none", received=str(left))
        compare(bench, session, ["a"], due(made), "after a tombstone beside its segment", worker=1)
        compare_status(bench, session, "a", due(made), "after a tombstone beside its segment")


@clause("HX-BLB-7", "HX-P2")
def test_of_many_writers_of_one_blob_one_writes_it(bench: Bench) -> None:
    """Four processes publish the same bytes for different devices at once; the object that is there is whole."""
    with bench.session(workers=4) as session:
        count = 8
        for number in range(count):
            content = f"{number} ".encode() * 5000
            args = [{"node": node, "bytes": base64url(content)} for node in ("a", "b", "c", "a")]
            answers = session.race([("publish_blob", each) for each in args])
            key = one_is_new(bench, answers, "the same blob")
            opened = open_placed(bench, session, key)
            if opened["payload"] != base64url(content):
                bench.fail("lost_durability", "the blob that many wrote holds other bytes")
        left = [row["path"] for row in session.tree("HXSync") if row["kind"] == "file"]
        objects = [path for path in left if "/objects/" in path and "/tmp/" not in path]  # noqa: S108 - of the store
        if len(objects) != count:
            bench.fail(
                "state_leak", f"{count} blobs left {len(objects)} objects in the store", received=repr(left)[:300]
            )


@clause("HX-P2")
def test_of_many_writers_of_one_segment_one_content_stays(bench: Bench) -> None:
    """Four processes publish a segment of one id at once: the same content, then four contents."""
    with bench.session(workers=4) as session:
        world = World(bench, session, "race")
        for number in range(6):
            same = number % 2 == 0
            batches = [
                {"events": [world.event("a", "s1", number, at(number), "" if same else f"content {worker}")]}
                for worker in range(4)
            ]
            args = [{"node": "a", "segment_id": world.uuid(f"race {number}"), "batch": batch} for batch in batches]
            answers = session.race([("publish", each) for each in args])
            if same:
                found = open_placed(bench, session, one_is_new(bench, answers, "the same segment"))["payload"]
                due_batches = batches[:1]
            else:
                won = [worker for worker, answer in enumerate(answers) if answer.outcome == "accepted"]
                lost = [answer.reason for answer in answers if answer.outcome != "accepted"]
                if len(won) != 1 or set(lost) != {"OBJECT_EXISTS"}:
                    verdict = "fail_open" if len(won) > 1 else "wrong_reason"
                    received = ", ".join(answer.reason or answer.outcome for answer in answers)
                    bench.fail(verdict, "four contents of one segment", expected="one accepted", received=received)
                found = open_placed(bench, session, answers[won[0]].value["key"])["payload"]
                due_batches = [batches[won[0]]]
            if found["events"] not in [batch["events"] for batch in due_batches]:
                bench.fail("lost_durability", "the segment that stays is not the one that was accepted")


@clause("HX-P6", "HX-STO-3", "HX-LAY-4")
def test_who_looks_while_an_object_is_written_never_sees_part_of_it(bench: Bench) -> None:
    """The harness looks at the key again and again, and a device imports, while another one writes megabytes."""
    with bench.session(workers=2) as session:
        dice = random.Random(13)  # noqa: S311 - nothing is kept secret with it
        looks = 0
        for _ in range(5):
            content = dice.randbytes(700_000)
            key = derive("hx.key", {"type": "blob", "id": derive("hx.sha256", base64url(content))})
            looks += early_looks(bench, session, key, "publish_blob", {"node": "a", "bytes": base64url(content)})
        if not looks:
            bench.fail("not_reached", "every look came too late: the objects were there at once")


@clause("HX-P6", "HX-STO-3", "HX-LAY-4")
def test_who_looks_while_a_segment_is_published_never_sees_part_of_it(bench: Bench) -> None:
    """The same of segments, which an implementation may write another way than what is put."""
    with bench.session(workers=2) as session:
        world = World(bench, session, "looks")
        looks = 0
        for number in range(5):
            events = [world.event("a", f"s{number}", seq, at(seq), "x" * 90_000) for seq in range(10)]
            args = {"node": "a", "segment_id": world.uuid(f"looked at {number}"), "batch": {"events": events}}
            key = derive("hx.key", {"type": "segment", "id": args["segment_id"]})
            looks += early_looks(bench, session, key, "publish", args)
        if not looks:
            bench.fail("not_reached", "every look came too late: the segments were there at once")


# Keys and nonces

_PUBLISHED = 200


@clause("HX-CRY-2")
def test_objects_of_all_types_in_two_stores_have_keys_and_nonces_of_their_own(bench: Bench) -> None:
    """The same segments, blobs, tombstones and manifests, published by the same devices in two stores that begin alike.

    What is drawn from a clock, a count, a seed, an id or the content is the same in both.
    """
    apart(bench, "xchacha20-poly1305")


@clause("HX-CRY-5", "HX-CRY-2")
def test_objects_of_all_types_in_two_stores_repeat_no_nonce_of_aes_gcm(bench: Bench) -> None:
    """The same with AES-256-GCM, all of whose keys are wrapped with one."""
    apart(bench, "aes-256-gcm")


@clause("HX-CRY-2")
def test_of_two_hundred_objects_no_two_share_a_key_or_a_nonce(bench: Bench) -> None:
    """Segments of equal payload, as XChaCha20-Poly1305; two processes write."""
    with bench.session(workers=2) as session:
        fresh(bench, session, "xchacha20-poly1305", _PUBLISHED)


@clause("HX-CRY-5", "HX-CRY-2")
def test_of_two_hundred_objects_no_two_repeat_a_nonce_of_aes_gcm(bench: Bench) -> None:
    """The same with AES-256-GCM, all of whose keys are wrapped with one; a process is started anew in between."""
    with bench.session(workers=2, config={"algorithm": "aes-256-gcm"}) as session:
        fresh(bench, session, "aes-256-gcm", _PUBLISHED)
