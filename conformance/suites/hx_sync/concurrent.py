"""hx-sync: writers and readers at once, and the keys and nonces of many objects."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.suites.hx_sync.checks import (
    compare,
    compare_status,
    import_one,
    place,
)
from holdfast.conformance.suites.hx_sync.fresh import all_drawn, apart
from holdfast.conformance.suites.hx_sync.permutations import Made, ObjectBuilder, at, due
from holdfast.vectors.derive import derive
from holdfast.vectors.hx_sync.objects.format import parts_of

# How often the harness checks for an object that is being written.
_LOOKS = 400


def one_is_new(bench: Bench, answers: Sequence[Answer], what: str) -> str:
    """The key that all writers of the same content received, of whom one was the first."""
    effects = sorted(str(answer.effect or answer.reason) for answer in answers)
    keys = {answer.value["key"] for answer in answers if answer.outcome == "accepted"}
    if effects != ["new", *["prior"] * (len(answers) - 1)]:
        verdict = "fail_open" if effects.count("new") > 1 else "over_refusal"
        bench.fail(
            verdict, f"{len(answers)} wrote {what}", expected="one new, the others prior", received=repr(effects)
        )
    if len(keys) != 1:
        bench.report("wrong_reason", f"writers of {what} were told different keys", received=repr(sorted(keys)))
    key: str = keys.pop()
    return key


def early_looks(bench: Bench, session: SuiteSession, key: str, method: str, args: dict[str, Any]) -> int:
    """How many inspections of a key found nothing while worker 0 wrote there; none may find, or import, part of it."""
    handle = session.start(method, args)
    seen: list[dict[str, Any]] = []
    while len(seen) < _LOOKS and not (seen and seen[-1]["exists"]):
        seen.append(session.file(key))
    imported = session.call("import", {"node": "b"}, 1)
    seen.append(session.file(key))
    answer = session.finish(handle)
    whole = session.file(key)
    if answer.outcome != "accepted" or not whole["exists"]:
        bench.fail("over_refusal", f"{method} wrote no object: {answer.reason}")
    parts = {(look["size"], look["sha256"]) for look in seen if look["exists"]}
    if parts - {(whole["size"], whole["sha256"])}:
        bench.fail("lost_durability", "part of an object was seen at its key", received=repr(sorted(parts))[:300])
    if imported.outcome != "accepted" or imported.value["rejected"] or imported.value["foreign"]:
        bench.fail("wrong_reason", "an import met part of an object", received=repr(imported.value)[:300])
    return sum(not look["exists"] for look in seen)


def open_placed(bench: Bench, session: SuiteSession, key: str) -> dict[str, Any]:
    """What the object at a key says, read past the adapter and opened by the kit itself."""
    found = session.file(key)
    if found["bytes"] is None:
        bench.fail("lost_durability", f"no object of at most 64 KiB lies at {key}", received=repr(found)[:300])
    opened: dict[str, Any] = derive("hx.opened", {"object": found["bytes"]})
    if opened["error"] is not None:
        bench.fail("wrong_reason", f"the object at {key} does not open: {opened['error']}")
    return opened


def fresh(bench: Bench, session: SuiteSession, algorithm: str, count: int) -> None:
    """Of `count` objects of equal payload no two have a key, a nonce or a ciphertext in common."""
    world = ObjectBuilder(bench, session, "fresh")
    batch = {"events": [world.event("a", "s1", 0, at(0))]}
    seen: dict[str, set[bytes]] = {name: set() for name in ("wrapped key", "ciphertext", "object key", "nonce")}
    rows: list[tuple[bytes, bytes, bytes]] = []
    for number in range(count):
        if number == count // 2:
            session.restart(1)
        args = {"node": "a", "segment_id": world.uuid(str(number)), "batch": batch}
        key = bench.must_be(session.call("publish", args, number % 2), "accepted", "publish was refused")["key"]
        opened = open_placed(bench, session, key)
        if opened["header"]["crypto"] != {"alg": algorithm}:
            bench.report(
                "wrong_reason", "another algorithm", expected=algorithm, received=repr(opened["header"]["crypto"])
            )
        parts = parts_of(from_base64url(session.file(key)["bytes"]))
        own = bytes.fromhex(opened["object_key"])
        rows.append((parts.wrap_nonce, parts.nonce, own))
        for name, value in (("wrapped key", parts.wrapped_key), ("ciphertext", parts.ciphertext), ("object key", own)):
            if value in seen[name]:
                bench.fail("fail_open", f"two of {number + 1} objects have one {name}", received=base64url(value)[:64])
            seen[name].add(value)
        for value in rows[-1][:2]:
            if value in seen["nonce"]:
                bench.fail("fail_open", f"in {number + 1} objects a nonce stands twice", received=value.hex())
            seen["nonce"].add(value)
    all_drawn(bench, rows)


# Writers and readers at once


@clause("HX-TMB-5", "HX-TMB-4", "HX-P4")
def test_a_tombstone_beside_a_segment_forgets_whichever_is_first(bench: Bench) -> None:
    """Two processes import a segment of many events and the tombstone over them into one index at once."""
    with bench.session(workers=2) as session:
        world = ObjectBuilder(bench, session, "beside")
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
                    # One of two that meet may be asked to come again.
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
        world = ObjectBuilder(bench, session, "race")
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
                    say = bench.weigh if len(won) == 1 else bench.fail
                    say(verdict, "four contents of one segment", expected="one accepted", received=received)
                found = open_placed(bench, session, answers[won[0]].value["key"])["payload"]
                due_batches = [batches[won[0]]]
            if found["events"] not in [batch["events"] for batch in due_batches]:
                bench.fail("lost_durability", "the segment that stays is not the one that was accepted")


@clause("HX-P6", "HX-STO-3", "HX-LAY-4")
def test_who_looks_while_an_object_is_written_never_sees_part_of_it(bench: Bench) -> None:
    """The harness inspects the key again and again, and a device imports, while another one writes megabytes."""
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
    """Segments: an implementation may write them in another way than the objects of `put`."""
    with bench.session(workers=2) as session:
        world = ObjectBuilder(bench, session, "looks")
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
    with bench.session(workers=2) as session:
        fresh(bench, session, "xchacha20-poly1305", _PUBLISHED)


@clause("HX-CRY-5", "HX-CRY-2")
def test_of_two_hundred_objects_no_two_repeat_a_nonce_of_aes_gcm(bench: Bench) -> None:
    """The same with AES-256-GCM, all of whose keys are wrapped with one; a process is started anew in between."""
    with bench.session(workers=2, config={"algorithm": "aes-256-gcm"}) as session:
        fresh(bench, session, "aes-256-gcm", _PUBLISHED)
