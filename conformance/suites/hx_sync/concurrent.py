"""hx-sync: writers and readers at once, and the keys and nonces of many objects."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.model import Call
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.hx_sync.builders import Devices
from holdfast.conformance.suites.hx_sync.fresh import Published, apart, judge, lying
from holdfast.conformance.suites.hx_sync.model import called
from holdfast.conformance.suites.hx_sync.permutations import ObjectBuilder, at
from holdfast.vectors.derive import derive

# How often the harness checks for an object that is being written.
_LOOKS = 400
# How many objects of one payload are published.
_PUBLISHED = 200


def never_in_part(bench: Bench, session: SuiteSession, written: Iterable[tuple[str, Call]]) -> None:
    """No inspection of a key, and no import, finds part of what worker 0 writes there; some of them come too early."""
    if not sum([early_looks(bench, session, key, call) for key, call in written]):
        bench.fail("not_reached", "every look came too late: what was written was there at once")


def early_looks(bench: Bench, session: SuiteSession, key: str, call: Call) -> int:
    """How many inspections of a key found nothing."""
    handle = session.start(call.method, call.args)
    seen: list[dict[str, Any]] = []
    while len(seen) < _LOOKS and not (seen and seen[-1]["exists"]):
        seen.append(session.file(key))
    imported = session.call("import", {"node": "b"}, 1)
    seen.append(session.file(key))
    answer = session.finish(handle)
    whole = session.file(key)
    if answer.outcome != "accepted" or not whole["exists"]:
        bench.fail("over_refusal", f"{call.method} wrote no object: {answer.reason}")
    parts = {(look["size"], look["sha256"]) for look in seen if look["exists"]}
    if parts - {(whole["size"], whole["sha256"])}:
        bench.fail("lost_durability", "part of an object was seen at its key", received=repr(sorted(parts))[:300])
    if imported.outcome != "accepted" or imported.value["rejected"] or imported.value["foreign"]:
        bench.fail("wrong_reason", "an import met part of an object", received=repr(imported.value)[:300])
    return sum(not look["exists"] for look in seen)


def of_one_payload(bench: Bench, algorithm: str) -> None:
    """No two objects of equal payload, by two processes, have a key or a nonce in common; one is begun anew."""
    with bench.session(workers=2, config={"algorithm": algorithm}) as session:
        world, found = ObjectBuilder(bench, session, "fresh"), list[Published]()
        batch = {"events": [world.event("a", "s1", 0, at(0))]}
        for number in range(_PUBLISHED):
            if number == _PUBLISHED // 2:
                session.restart(1)
            args = {"node": "a", "segment_id": world.uuid(str(number)), "batch": batch}
            key = bench.must_be(session.call("publish", args, number % 2), "accepted", "publish was refused")["key"]
            found.append(Published(f"object {number}", "segment", lying(bench, session, key, f"object {number}")))
        judge(bench, found, algorithm)


# Writers and readers at once


@clause("HX-TMB-5", "HX-TMB-4", "HX-P4")
def test_a_tombstone_beside_a_segment_forgets_whichever_is_first(bench: Bench) -> None:
    """Two processes import a segment of many events and the tombstone over them into one index at once."""
    with bench.session(workers=2) as session:
        world, devices = ObjectBuilder(bench, session, "beside"), Devices(bench, session)
        for number in range(12):
            events = [world.event("a", f"s{number}", seq, at(100 * number + seq / 10)) for seq in range(300)]
            pins = [world.pin("a", f"s{number}", 299)]
            segment = world.segment("a", f"events {number}", *events, pins=pins)
            made = [segment, world.tombstone(f"over {number}", at(100 * number), at(100 * number + 30))]
            for each in made:
                devices.lay(each)
            asked = [called("import_object", node="a", key=each.key) for each in made]
            for call in devices.race(asked[:: 1 if number % 2 else -1]):
                # One of two that meet may be asked to come again.
                devices.ask(call)
            devices.compare(worker=1)


def many_write(bench: Bench, rounds: Sequence[Sequence[Call]], devices: Devices) -> None:
    """Each process makes one call of a round, all at once: one of them writes, none is put off, and that stays."""
    for calls in rounds:
        if undone := devices.race(calls):
            bench.fail("over_refusal", f"{len(calls)} wrote the same", expected="an answer", received=f"{undone[0]}")
        devices.compare()


@clause("HX-BLB-7", "HX-P2")
def test_of_many_writers_of_one_blob_one_writes_it(bench: Bench) -> None:
    """Four processes publish the same bytes for different devices at once; the object that is there is whole."""
    with bench.session(workers=4) as session:
        contents = [base64url(f"{number} ".encode() * 5000) for number in range(8)]
        rounds = [[called("publish_blob", node=node, bytes=each) for node in "abca"] for each in contents]
        many_write(bench, rounds, Devices(bench, session))


@clause("HX-P2")
def test_of_many_writers_of_one_segment_one_content_stays(bench: Bench) -> None:
    """Four processes publish a segment of one id at once: the same content, then four contents."""
    with bench.session(workers=4) as session:
        world, rounds = ObjectBuilder(bench, session, "race"), list[Sequence[Call]]()
        for number in range(6):
            texts = [f"content {worker}" if number % 2 else "" for worker in range(4)]
            batches = [{"events": [world.event("a", "s1", number, at(number), text)]} for text in texts]
            segment_id = world.uuid(f"race {number}")
            rounds.append([called("publish", node="a", segment_id=segment_id, batch=each) for each in batches])
        many_write(bench, rounds, Devices(bench, session))


@clause("HX-P6", "HX-STO-3", "HX-LAY-4")
def test_who_looks_while_an_object_is_written_never_sees_part_of_it(bench: Bench) -> None:
    """The harness inspects the key again and again, and a device imports, while another one writes megabytes."""
    with bench.session(workers=2) as session:
        dice = random.Random(13)  # noqa: S311 - nothing is kept secret with it
        contents = [base64url(dice.randbytes(700_000)) for _ in range(5)]
        keys = [derive("hx.key", {"type": "blob", "id": derive("hx.sha256", each)}) for each in contents]
        calls = [called("publish_blob", node="a", bytes=each) for each in contents]
        never_in_part(bench, session, zip(keys, calls, strict=True))


@clause("HX-P6", "HX-STO-3", "HX-LAY-4")
def test_who_looks_while_a_segment_is_published_never_sees_part_of_it(bench: Bench) -> None:
    """Segments: an implementation may write them in another way than the objects of `put`."""
    with bench.session(workers=2) as session:
        world = ObjectBuilder(bench, session, "looks")
        made = []
        for number in range(5):
            events = [world.event("a", f"s{number}", seq, at(seq), "x" * 90_000) for seq in range(10)]
            segment_id = world.uuid(f"looked at {number}")
            call = called("publish", node="a", segment_id=segment_id, batch={"events": events})
            made.append((derive("hx.key", {"type": "segment", "id": segment_id}), call))
        never_in_part(bench, session, made)


# Keys and nonces


@clause("HX-CRY-2")
def test_objects_of_all_types_in_two_stores_have_keys_and_nonces_of_their_own(bench: Bench) -> None:
    """The same segments, blobs, tombstones and manifests, published by the same devices in two stores that begin alike.

    What is made from a clock, a count, a seed, an id or the content is the same in both.
    """
    apart(bench, "xchacha20-poly1305")


@clause("HX-CRY-5", "HX-CRY-2")
def test_objects_of_all_types_in_two_stores_repeat_no_nonce_of_aes_gcm(bench: Bench) -> None:
    """The same with AES-256-GCM, all of whose keys are wrapped with one."""
    apart(bench, "aes-256-gcm")


@clause("HX-CRY-2")
def test_of_two_hundred_objects_no_two_share_a_key_or_a_nonce(bench: Bench) -> None:
    """Segments of equal payload, as XChaCha20-Poly1305; two processes write."""
    of_one_payload(bench, "xchacha20-poly1305")


@clause("HX-CRY-5", "HX-CRY-2")
def test_of_two_hundred_objects_no_two_repeat_a_nonce_of_aes_gcm(bench: Bench) -> None:
    """The same with AES-256-GCM, all of whose keys are wrapped with one; a process is started anew in between."""
    of_one_payload(bench, "aes-256-gcm")
