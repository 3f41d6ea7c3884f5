"""m5-log: what is nearly right, and what is larger than usual.

Schema versions, ids and clocks that differ in one thing, lists and chains of thousands, files that bring one operation
twice, credentials up to their limit, and as many problems as no byte counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import CheckedSession, checked
from holdfast.conformance.attacks.model import Call, Observation
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.suites.m5_log.generate import ISSUER, Issued, Made, clock_of
from holdfast.conformance.suites.m5_log.log import (
    COMMAND,
    alter,
    must_be_done,
    must_be_refused,
    place_status,
    place_trust,
)
from holdfast.conformance.suites.m5_log.log import put as put_all
from holdfast.conformance.suites.m5_log.model import LogModel, append, command, put
from holdfast.vectors.derive import derive

_VERSION_KEY = base64url(b"schema_version")
# What stands there, and what resembles it.
_VERSION = b"ecac:v1"
_NEAR_VERSIONS = (b"ecac:v10", b"ecac:v1.1", b"ecac:v1 ", b"ECAC:v1", b"ecac:v", b"ecac:v1\0", b"", b"ecac:v2")
# More than the thousand, and the 2^11, at which a list or a cascade may end unnoticed.
_LONG, _FULL, _MOST_PARENTS = 2**11 + 50, 5, 256
_POINTS = 1001
# Where numbers that are no integers of 64 or 32 bits begin to be taken for their neighbours.
_CLOCK_WIDTHS, _COUNTER_WIDTHS = (8, 15, 16, 24, 31, 32, 48, 53, 54, 63), (7, 8, 15, 16, 24, 31)
# The bytes of credentials: more than half of the limit of `$defs/credential`, and just below it.
_SIZES = (12_000, 29_000)
# A status of a process is one byte.
_STATUSES = 256


@clause("M5-OPEN-2", whole=True, written=True)
def test_no_near_miss_of_the_schema_version_is_that_version(bench: Bench) -> None:
    """Longer, shorter, in other letters, with a blank or a zero byte. The store stays as it is."""
    with bench.session() as session:
        play = CheckedSession(bench, session, LogModel(session))
        play.ask(play.make("put_op"))
        op = play.make("put_op").args["op"]
        for near in _NEAR_VERSIONS:
            session.kill()
            session.alter("meta", _VERSION_KEY, base64url(near))
            before = session.inspect()["rows"]
            session.reopen()
            for method, args in (("put_op", {"op": op}), ("checkpoint_create", {})):
                answer = session.call(method, args)
                must_be_refused(bench, answer, "SCHEMA_UNSUPPORTED", f"{method} on version {near!r}")
            session.kill()
            if session.inspect()["rows"] != before:
                bench.fail("state_leak", f"a store of version {near!r} was changed")
        session.alter("meta", _VERSION_KEY, base64url(_VERSION))
        session.reopen()
        play.compare()
        play.ask(play.make("put_op"))


def _made(author: str, number: int, ms: int, parents: Sequence[str] = ()) -> Made:
    payload = {"key": f"c{number % 7}", "amount": number}
    return Made.of({"key": author, "ms": ms, "kind": "add", "payload": payload, "parents": list(parents)})


def _chain(author: str, count: int) -> list[Made]:
    """Each operation names the one before it and the first. Clocks run backwards, and are equal in the second half."""
    chain = [_made(author, 0, count)]
    for number in range(1, count):
        parents = dict.fromkeys((chain[-1].op_id, chain[0].op_id))
        chain.append(_made(author, number, max(count - number, count // 2), list(parents)))
    return chain


@clause("M5-AC6", "M5-TOPO-3", "M5-ITER-1", "M5-CLI-1", provocations=(COMMAND,), whole=True, written=True)
def test_a_chain_of_thousands_that_arrives_in_reverse_waits_and_comes_at_once(bench: Bench) -> None:
    """No list ends before its end, and no cascade: here and after a restart."""
    with checked(bench, LogModel) as play:
        root, *others = _chain(f"alice {play.session.rand('long')}", _LONG)
        for call in (append("long", others[::-1]), put(root)):
            play.ask(call)
            play.compare()
            play.session.restart()
            play.compare()


def _near_clocks() -> Sequence[tuple[int, int]]:
    """Milliseconds on both sides of each width, each with the least and the largest counter; and so the counters."""
    late = {2**width + beside for width in _CLOCK_WIDTHS for beside in (-1, 0, 1)} | {2**64 - 2, 2**64 - 1}
    counters = {2**width + beside for width in _COUNTER_WIDTHS for beside in (-1, 0, 1)} | {2**32 - 2, 2**32 - 1}
    clocks = {(ms, counter) for ms in late for counter in (0, 2**32 - 1)} | {(2**53, counter) for counter in counters}
    return sorted(clocks)


@clause("M5-TOPO-5", "M5-TOPO-1", "M5-ITER-1", provocations=(COMMAND,), whole=True, written=True)
def test_no_near_miss_of_a_clock_is_as_early(bench: Bench) -> None:
    """Milliseconds that differ in the last bit, with counters the other way round. Here and after a restart."""
    with checked(bench, LogModel) as play:
        author = f"alice {play.session.rand('clocks')}"
        kind = {"key": author, "kind": "add", "payload": {"key": "c", "amount": 1}}
        made = [Made.of({**kind, "ms": ms, "logical": counter, "parents": []}) for ms, counter in _near_clocks()]
        # The later ones come first, half of them in one file.
        for call in (append("clocks", made[::-2]), *map(put, made[-2::-2])):
            play.ask(call)
        key = derive("m5.public_key", author)
        for _ in range(2):
            play.compare()
            for each in made:
                asked = {"author": key, "from": clock_of(each), "to": clock_of(each)}
                play.must_show(Observation("scan", {"op_ids": [each.op_id]}, asked), "of its own clock")
            play.session.restart()


@clause("M5-PUT-4", "M5-PEN-1", "M5-PUT-8", "M5-CF-3", provocations=(COMMAND,), whole=True, written=True)
def test_more_than_a_thousand_missing_parents_are_all_named(bench: Bench) -> None:
    """A few operations, each with as many parents as it may have. Here and after a restart."""
    with checked(bench, LogModel) as play:
        author, session = f"alice {play.session.rand('full')}", play.session
        missing = [[session.hex64(f"{of} {number}") for number in range(_MOST_PARENTS)] for of in range(_FULL)]
        play.ask(append("full", [_made(author, number, number, parents) for number, parents in enumerate(missing)]))
        play.compare()
        session.restart()


@clause("M5-CKP-2", "M5-CF-9", whole=True, written=True)
def test_more_than_a_thousand_checkpoints_are_all_listed(bench: Bench) -> None:
    """Their ids increase, and the latest is the last. Here, after a restart, and by the command."""
    with checked(bench, LogModel) as play:
        for _ in range(_POINTS):
            play.ask(Call("checkpoint_create", "checkpoint_create", {"topo_index": 0}))
        play.compare()
        play.session.restart()
        play.ask(command("checkpoint-list"))


@clause("M5-CLI-1", "M5-CF-2", "M5-PUT-5", provocations=(COMMAND,), whole=True, written=True)
def test_an_operation_that_stands_twice_in_a_file_or_is_stored_already_is_there_once(bench: Bench) -> None:
    """The store goes on, here and after a restart."""
    with checked(bench, LogModel) as play:
        play.ask(stored := play.make("put_op"))
        made = [play.make("put_op"), play.make("put_op")]
        for number, calls in enumerate(
            ([made[0], made[0]], [stored, made[1], made[0], made[1]], [stored, *made, stored])
        ):
            play.ask(append(f"twice-{number}", [each.about[0] for each in calls]))
            play.ask(play.make("put_op"))
            play.session.restart()
            play.ask(play.make("put_op"))
            play.compare()


@clause("M5-VER-1", "M5-VER-4", whole=True, written=True)
def test_a_changed_byte_of_an_operation_that_waits_is_found(bench: Bench) -> None:
    """Its signature, its parents, and its author: it is in no order, and in the store all the same."""
    with bench.session() as session:
        author = f"alice {session.rand('waits')}"
        made = _made(author, 1, 1, [session.hex64("missing")])
        put_all(bench, session, made, what="the append of an operation that waits")
        key, raw = base64url(bytes.fromhex(made.op_id)), from_base64url(made.raw)
        parts = (raw[-1:], bytes.fromhex(made.parents[0]), bytes.fromhex(derive("m5.public_key", author)))
        for at in (raw.rindex(part) for part in parts):
            changed = raw[:at] + bytes([raw[at] ^ 1]) + raw[at + 1 :]
            alter(session, "ops", key, base64url(changed))
            report = session.sample("verify_store")
            if report is not None and report["whole"]:
                bench.fail("fail_open", f"byte {at} of an operation that waits was changed; verify-store passes it")
        alter(session, "ops", key, base64url(raw))
        report = session.observe("verify_store")
        if not report["whole"] or report["pending"] != 1:
            bench.fail("over_refusal", "verify-store fails although every byte is right", received=str(report)[:300])


@clause("M5-GET-1", whole=True, written=True)
def test_get_op_has_nothing_for_a_part_of_an_id_and_for_more_than_one(bench: Bench) -> None:
    """None, one, half and all but one of its bytes from either end; a byte more, and another byte."""
    with bench.session() as session:
        made = _made(f"alice {session.rand('part')}", 1, 1)
        put_all(bench, session, made)
        whole = made.op_id
        parts = [*(whole[:size] for size in (0, 2, 32, 62)), *(whole[-size:] for size in (2, 32, 62))]
        other = f"{int(whole[-2:], 16) ^ 1:02x}"
        for op_id in (*parts, f"{whole}00", f"00{whole}", f"{whole}{whole[:2]}", whole * 2, whole[:-2] + other):
            found = session.observe("get_op", {"op_id": op_id})
            if found != {"has": False, "op": None}:
                bench.fail("fail_open", "something that is no id has an operation", received=str(found)[:200])
        bench.same(
            session.observe("get_op", {"op_id": whole}), {"has": True, "op": made.raw}, "lost_durability", "get_op"
        )


def _of_size(subject: str, size: int) -> Issued:
    """A credential with as many tags as fit into `size` bytes."""
    says: dict[str, Any] = {"issuer": ISSUER, "subject": subject, "role": "editor", "scope": [], "nbf": 0, "exp": 9}
    bare = len(from_base64url(Issued.of(says).raw))
    # Three bytes of JSON are four of the compact form; a tag of six letters has nine, with its quotes and its comma.
    return Issued.of({**says, "scope": [f"t{number:05}" for number in range((size - bare) // 12)]})


@clause("M5-CF-6", "M5-VC-2", "M5-EPO-1", whole=True, written=True)
def test_a_credential_of_any_size_up_to_the_limit_counts(bench: Bench) -> None:
    """It is stored, verified and granted, and its last tag is allowed. Here and after a restart."""
    for size in _SIZES:
        with bench.session() as session:
            place_trust(session, [ISSUER])
            subject, author = f"bob {session.rand('large')}", f"alice {session.rand('large')}"
            issued = _of_size(subject, size)
            says, raw, cred_hash = issued.draft, issued.raw, issued.cred_hash
            tag = says["scope"][-1]
            payload = {"subject": subject, "role": "editor", "tag": tag, "credential": cred_hash}
            grant = derive("m5.op", {"key": author, "ms": 1, "kind": "grant", "payload": payload})
            used = _made(author, 1, 2)
            stated = {name: says[name] for name in ("issuer", "role", "scope", "nbf", "exp")}
            for method, args, value in (
                ("persist_vc", {"credential": raw}, {"cred_hash": cred_hash}),
                ("persist_verified_vc", {"cred_hash": cred_hash}, stated),
                ("put_op", {"op": grant}, None),
                ("put_op", {"op": used.raw}, None),
            ):
                answer = session.call(method, args)
                what = f"{method}, with a credential of {len(from_base64url(raw))} bytes"
                must_be_done(bench, answer, what)
                if value is not None and answer.value != value:
                    bench.report(bench.verdict_on(method, value, answer.value), what, received=str(answer.value)[:200])
            asked = {"subject": derive("m5.public_key", subject), "role": "editor", "op_id": used.op_id}
            for _ in range(2):
                for name, allowed in ((tag, True), (f"{tag}0", False)):
                    found = session.observe("decide", {**asked, "tag": name})["allowed"]
                    bench.same(found, allowed, "fail_open" if found else "lost_durability", f"a decision about {name}")
                session.restart()


@clause("M5-CLI-6", provocations=(COMMAND,), whole=True, written=True)
def test_verify_store_fails_for_as_many_problems_as_a_byte_does_not_count(bench: Bench) -> None:
    """It fails while 256 verified credentials are revoked, and passes when none is."""
    with bench.session() as session:
        place_trust(session, [ISSUER])
        author = f"alice {session.rand('problems')}"
        says = {"issuer": ISSUER, "subject": author, "role": "editor", "nbf": 0, "exp": 9}
        issued = [Issued.of({**says, "scope": [f"t{number}"]}) for number in range(_STATUSES)]
        for each in issued:
            must_be_done(bench, session.call("persist_vc", {"credential": each.raw}), "persist_vc")
            asked = {"cred_hash": each.cred_hash}
            must_be_done(bench, session.call("persist_verified_vc", asked), "persist_verified_vc")
        for revoked, whole in (([each.cred_hash for each in issued], False), ([], True)):
            place_status(session, revoked)
            status = session.provoke(COMMAND, {"arguments": ["verify-store"]})["status"]
            if (status == 0) != whole:
                what = f"{len(revoked)} credentials noted as verified are revoked, verify-store exits with {status}"
                bench.fail("over_refusal" if whole else "fail_open", what)
