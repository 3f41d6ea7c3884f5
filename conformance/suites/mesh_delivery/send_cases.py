"""mesh-delivery: sends that differ from the usual one in what is stored of them, and how they come."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import count
from random import Random
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import checked
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.mesh_delivery.model import BrokerModel, accept, job, make
from holdfast.conformance.suites.mesh_delivery.sends import ALICE, MESH, PLACES, args_of, made, must_be_refused
from holdfast.conformance.suites.mesh_delivery.server import WRONG
from holdfast.conformance.suites.mesh_delivery.suite import KEY, requests_to_send
from holdfast.vectors.derive import derive
from holdfast.vectors.mesh_delivery.derive import preimage

# A name with letters of several bytes: what cuts bytes takes them apart.
_WIDE = "größe ✓ \U0001d4b3"
_BODY_HASH_CHARACTERS = 64
# Around what fits into integers of a database and of a language.
_VERSIONS = (2**15, 2**31 - 1, 2**31, 2**32, 2**53 - 1)
# Two digests are found that have this number of bytes in common, at one of their ends.
_COMPARED = 4
# This number of sends to each kind of destination shares a connection.
_TOGETHER = 3
# Texts that are one only to who decodes, normalises or splits them once more.
_IDS = (
    *("A", "%41", "%2541", "a b", "a+b", "a%20b", "a/b", "a%2Fb", "a?b=1", "a#b", "a;b", "a&b", "a=b", 'a"b', "a\\b"),
    *("é", "e\u0301", "%C3%A9", "Ã©", "\u2028", "\ufeffa", "a\tb", "a\u00a0b", ".", "..", "%", "%zz", "null"),
    *("\u0131", "\U0001d4b3"),
)


def _transports(bench: Bench) -> list[str]:
    claimed = [each for each in ("http", "websocket") if each not in bench.not_claimed]
    if not claimed:
        bench.fail("unsupported", "the test needs what the adapter does not claim: http or websocket")
    return claimed


@clause("MESH-4.7-T1", "MESH-4.4-P3", provocations=("make_mesh",), whole=True)
def test_every_request_that_has_a_fingerprint_can_be_sent_to_every_kind_of_destination(bench: Bench) -> None:
    """Versions, metas, replies, priorities and bodies at their bounds. A retry is known by all of them."""
    asked = list(requests_to_send(bench))
    requests = [(request, form) for request, form in asked if form is not None]
    requests += [(usual := {**args_of("")["request"], "envelope_version": version}, usual) for version in _VERSIONS]
    with bench.session() as session:
        made(session)
        due = {}
        for number, (request, form) in enumerate(requests):
            for kind, reference in PLACES.items():
                place = {"destination_kind": kind, "destination_ref": reference}
                args = {**args_of(f"{number} {kind}"), "request": {**request, **place}}
                what = f"request {number} to a {kind}"
                bench.must_be(session.call("accept", args), "accepted new", what)
                bench.must_be(session.call("accept", args), "accepted prior", f"{what}, again")
                due[args["client_message_id"]] = (derive(KEY, {**form, **place}), request["body"])
        for number, request in enumerate(request for request, form in asked if form is None):
            answer = session.call("accept", {**args_of(f"none {number}"), "request": request})
            must_be_refused(bench, answer, request)
        state = session.observe("broker_state")
        prints = {row["client_message_id"]: row["request_fingerprint"] for row in state["dedupe"]}
        bodies = {row["client_message_id"]: row["body"] for row in state["messages"]}
        for name, (digest, body) in due.items():
            if (prints.get(name), bodies.get(name)) != (digest, body):
                came = f"{prints.get(name)}, body {bodies.get(name)}"
                bench.fail("lost_durability", f"what is stored of {name}", expected=f"{digest}, {body}", received=came)


def _collision(dice: Random, behind: slice) -> tuple[bytes, bytes]:
    """Two bodies of which the fingerprints in `args_of` are the same in these bytes, and not in all."""
    head = preimage(args_of("")["request"])[:-_BODY_HASH_CHARACTERS]
    seen: dict[bytes, bytes] = {}
    for number in count(dice.getrandbits(64)):
        body = str(number).encode()
        print_ = hashlib.sha256(head + hashlib.sha256(body).hexdigest().encode()).digest()
        other = seen.setdefault(print_[behind], body)
        if other != body:
            return other, body
    raise AssertionError("unreachable")


@clause("MESH-4.4-P3", "MESH-4.1-B3", provocations=("make_mesh",))
def test_a_fingerprint_that_differs_in_a_part_of_its_bytes_alone_is_another_one(bench: Bench) -> None:
    """Two bodies are looked for whose fingerprints have the same first bytes, and two with the same last ones."""
    dice = Random(bench.seed)  # noqa: S311 - nothing is kept secret with it
    with bench.session() as session:
        made(session)
        for name, part in (("first", slice(0, _COMPARED)), ("last", slice(-_COMPARED, None))):
            one, other = _collision(dice, part)
            bench.must_be(session.call("accept", args_of(name, body=base64url(one))), "accepted new", name)
            conflict = session.call("accept", args_of(name, body=base64url(other)))
            what = f"another body, whose fingerprint has the same {name} bytes"
            bench.must_be(conflict, "refused IDEMPOTENCY_KEY_REUSED", what)


@clause("MESH-4.5-R2", provocations=("make_mesh",))
def test_a_retry_tells_the_very_moment_that_is_stored(bench: Bench) -> None:
    """The clock has fractions of a second, down to the last that an instant can have."""
    with bench.session(workers=2) as session:
        made(session)
        sent: dict[str, datetime] = {}
        for number, span in enumerate(("+0.123456s", "+0.000001s", "+0.999s", "+1h")):
            session.clock(span)
            sent[str(number)] = datetime.fromisoformat(session.now)
            bench.must_be(session.call("accept", args_of(str(number))), "accepted new", "a send")
        session.clock("+1d")
        stored = {row["client_message_id"]: row["first_seen_at"] for row in session.observe("broker_state")["dedupe"]}
        for name, moment in stored.items():
            # Some clocks of languages end at milliseconds.
            if abs(datetime.fromisoformat(moment) - sent[name]) >= timedelta(milliseconds=1):
                bench.report("wrong_reason", "first_seen_at of a send", expected=f"{sent[name]}", received=moment)
        for worker in range(session.workers):
            for name, moment in stored.items():
                answer = session.call("accept", args_of(name), worker)
                told = bench.must_be(answer, "accepted prior", "a retry")["first_seen_at"]
                if datetime.fromisoformat(told) != datetime.fromisoformat(moment):
                    bench.report("wrong_reason", "first_seen_at of a retry", expected=moment, received=told)


@clause("MESH-4.1-B1", "MESH-4.5-R4", provocations=("make_mesh",))
def test_ids_that_a_transport_may_spoil_are_each_another_one(bench: Bench) -> None:
    """Over HTTP and over a WebSocket; each id comes back as it was sent, and is stored so."""
    for transport in _transports(bench):
        with checked(bench, BrokerModel, config={**BrokerModel.config, "transport": transport}) as play:
            play.ask(make(MESH))
            for name in _IDS * 2:
                play.ask(accept(args_of(name)))


@clause("MESH-4.6-J2", "MESH-4.5-R4", provocations=("make_mesh",))
def test_letters_of_several_bytes_come_whole_over_every_transport(bench: Bench) -> None:
    """The harness sends them as they are, and lets the parts of a request end within one."""
    for transport in _transports(bench):
        with checked(bench, BrokerModel, config={**BrokerModel.config, "transport": transport}) as play:
            topics = [PLACES["topic"], _WIDE]
            play.ask(job("make_mesh", mesh_id=MESH, members=[ALICE], topics=topics, queues=[]))
            for number, topic in enumerate(topics):
                play.ask(accept(args_of(str(number), destination_ref=topic)))


@clause("MESH-4.6-J2", "MESH-4.5-R4", "MESH-4.1-B1", provocations=("make_mesh",))
def test_sends_that_share_a_connection_are_each_kept_and_answered(bench: Bench) -> None:
    """Sends over one WebSocket, each before the answer to the one before it has come; and then each of them again."""
    if "websocket" in bench.not_claimed:
        bench.fail("unsupported", "the test needs what the adapter does not claim: websocket")
    with bench.session(config={"transport": "websocket"}) as session:
        made(session)
        sends = [
            args_of(f"{number} {kind}", kind, body=base64url(f"{number} {kind}".encode()))
            for number in range(_TOGETHER)
            for kind in PLACES
        ]
        for due in ("accepted new", "accepted prior"):
            answers = session.race([("accept", args) for args in sends], worker=0)
            for args, answer in zip(sends, answers, strict=True):
                bench.must_be(answer, due, f"send {args['client_message_id']} on a connection with others")
            kept = {row["client_message_id"]: row["body"] for row in session.observe("broker_state")["messages"]}
            sent = {args["client_message_id"]: args["request"]["body"] for args in sends}
            bench.same(kept, sent, "lost_durability", "the messages of one connection")
            names = [answer.value["client_message_id"] for answer in answers]
            bench.same(names, list(sent), "wrong_reason", "the ids in the answers")
        # Both answers of a pair name one id, and may come in any order.
        pairs = [each for args in sends for each in (args, args_of(args["client_message_id"], body="AA"))]
        came = sorted(answer.words for answer in session.race([("accept", args) for args in pairs], worker=0))
        due_of_pairs = sorted(("accepted prior", "refused IDEMPOTENCY_KEY_REUSED") * len(sends))
        bench.same(came, due_of_pairs, "fail_open", "retries on a connection with other sends")


@clause("MESH-17-1", "MESH-4.3-C4", "MESH-4.3-C5", provocations=("make_mesh", "migrate", "raw_insert"))
def test_a_migrated_database_refuses_every_record_that_a_fresh_one_refuses(bench: Bench) -> None:
    """Its table of records is that of a fresh database, and what is put in past the broker is refused by both."""
    seen: list[tuple[Mapping[str, Any], list[str]]] = []
    for config in ({}, {"schema": "pre-v6"}):
        with bench.session(config=config) as session:
            made(session)
            if config:
                session.provoke("migrate")
            relation = session.observe("broker_schema")["relations"]["client_message_dedupe"]
            columns = {each["name"]: (each["type"], each["nullable"]) for each in relation["columns"]}
            seen.append((columns, [name for name, wrong in WRONG.items() if _inserted(session, name, wrong)]))
            if not _inserted(session, "right", {}):
                bench.fail("over_refusal", "a right record", expected="put in", received="refused")
    for what, (fresh, migrated) in zip(("columns", "wrong records"), zip(*seen, strict=True), strict=True):
        bench.same(migrated, fresh, "fail_open", f"{what} of a migrated database")


def _inserted(session: SuiteSession, name: str, other: Mapping[str, str | None]) -> bool:
    row = {
        "mesh_id": MESH,
        "client_message_id": name,
        "broker_message_id": "0192f0c1-7a52-7c3e-9d4b-0a1b2c3d4e5f",
        "request_fingerprint": "\\x" + "00" * 32,
        "destination_kind": "topic",
        "destination_ref": "alerts",
    }
    done = session.provoke("raw_insert", {"relation": "client_message_dedupe", "row": {**row, **other}})
    return bool(done["inserted"])
