"""rs4a-replay: what a script cannot say. Any history against a small model, any spelling of a target, kills and
samples at any moment, races in which every rival brings a nonce of its own."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from holdfast.conformance.attacks import clause, tabled
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.explore import Explorer
from holdfast.conformance.attacks.histories import explore_histories, run_histories
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import shift
from holdfast.conformance.suites.rs4a_replay.generate import Step, history, openings, volume
from holdfast.conformance.suites.rs4a_replay.model_state import keys_of
from holdfast.conformance.suites.rs4a_replay.requests import BOUND_ELSEWHERE, bound, issue, registration, request
from holdfast.conformance.suites.rs4a_replay.runner import KILLED_AT, playing, scripted
from holdfast.conformance.suites.spans import SHARED, near
from holdfast.vectors.derive import derive


def stored_effect(bench: Bench, session: SuiteSession, attempt: str | None) -> tuple[str, Mapping[str, Any], str]:
    """A request for one effect, and another attempt at it: the method, its arguments and the key of the row.

    By it the kit finds the store that a run used.
    """
    nonce = issue(bench, session)
    if attempt is None:
        args = request(session, "lamp", nonce=nonce)
    else:
        args = request(session, "lamp", nonce=nonce, attempt_id=f"try-{attempt}")
    return "register", args, str(derive("rs4a.logical_request_key", args))


def _counts(session: SuiteSession, worker: int = 0) -> tuple[int, int]:
    state = session.observe("state", worker=worker)
    return len(state["registration"]), len(state["nonce_consume"])


def _must_pair(bench: Bench, state: Mapping[str, Any], when: str) -> None:
    """Every registration has its consumed nonce and the other way round."""
    registered = sorted((row["authorization_nonce"], row["logical_request_key"]) for row in state["registration"])
    consumed = sorted((row["authorization_nonce"], row["logical_request_key"]) for row in state["nonce_consume"])
    if registered != consumed:
        bench.fail(
            "lost_durability",
            f"{when}: {len(registered)} registrations stand beside {len(consumed)} consumed nonces",
            expected="each registration with its consumed nonce, or neither",
            received=f"registrations {registered!r}, consumed {consumed!r}",
        )


# Histories against the model


# A horizon that a history can pass and come back from.
_HORIZON_S = 7200


# Registrations of one session, and rows that come to five thousand with them.
_KEYS, _ROWS = 1010, 4010
# Histories that are explored, what the steps of each may cost, and how much has to be reached.
_STEERED, _COSTS, _FLOOR, _LEAST = 14, 90, 0.7, 1000


@clause("RS4A-RP-03b", provocations=("fail_verify",), whole=True)
def test_any_history_agrees_with_the_model(bench: Bench) -> None:
    """Every operation by two processes: near misses, retries, races, failures, kills, clock steps, a lost surface."""
    _play(bench, 6)


@clause("RS4A-TTL-4", "RS4A-RP-03b", provocations=("fail_verify",), whole=True)
def test_any_history_past_a_horizon_agrees_with_the_model(bench: Bench) -> None:
    """The same with a horizon that keys pass, where the database itself aborts transactions."""
    _play(bench, 4, horizon_s=_HORIZON_S, isolation="serializable")


@clause("RS4A-GATE-1", whole=True)
def test_any_history_without_a_surface_agrees_with_the_model(bench: Bench) -> None:
    """Requests of every kind in any order: nothing is admitted and nothing is made."""
    _play(bench, 2, parts=0, surface="absent")


def _play(bench: Bench, count: int, parts: int = 3, **opened: Any) -> None:
    draw = partial(history, horizon_s=_HORIZON_S, parts=parts)
    run_histories(bench, count=count, draw=draw, begin=partial(playing, bench, **opened))


@clause("RS4A-TTL-3", "RS4A-RP-05", whole=True)
def test_the_first_of_a_thousand_keys_blocks_as_the_last_does(bench: Bench) -> None:
    """A thousand keys and four thousand rows forget none, and retention tombstones every one of them."""
    run_histories(
        bench,
        count=1,
        draw=lambda dice: volume(dice, horizon_s=_HORIZON_S, keys=_KEYS, rows=_ROWS),
        begin=lambda: playing(bench, horizon_s=_HORIZON_S, hurried=False),
        trials=0,
    )


@clause("RS4A-RP-03b", "RS4A-S4-4", provocations=("fail_verify",), whole=True)
def test_every_operation_is_held_against_the_model_in_every_situation(bench: Bench) -> None:
    """States of a key, by whom it was made and who knows of it, with the operations and near misses offered there."""
    explore_histories(
        bench,
        count=_STEERED,
        length=_COSTS,
        begin=lambda: playing(bench, horizon_s=_HORIZON_S, hurried=False),
        steering=Explorer(floor=_FLOOR, least=_LEAST),
        opening=openings(horizon_s=_HORIZON_S),
    )


# Many refusals

# As long as an identity may be, and more refusals than anybody would allow in a moment.
_LONGEST, _REFUSALS = 512, 450
# As many records as fit into a line of the protocol, however an adapter names them.
_MANY = 3060
_AUDITED = ("register", "compensate", "issue_nonce", "resolve_status")


@clause("RS4A-AUD-1", "RS4A-RP-04")
def test_of_hundreds_of_refusals_at_one_instant_each_is_on_record(bench: Bench) -> None:
    """With the whole attempt that was refused; two reasons in turn, two processes. Each nonce serves its owner then."""
    with bench.session(workers=2) as session:
        nonces = [issue(bench, session, worker=worker) for worker in range(session.workers)]
        attempts = [f"try-{number}-".ljust(_LONGEST, "x") for number in range(_REFUSALS)]
        for number, attempt in enumerate(attempts):
            args = request(session, "refused", nonce=nonces[number % 2], attempt_id=attempt, principal="a stranger")
            extra: Mapping[str, str] = {"force": "true"}
            for reason, asked in (("NONCE_UNBOUND", args), ("REQUEST_MALFORMED", {**args, **extra})):
                bench.must_be(session.call("register", asked, number % 2), f"refused {reason}", f"refusal {number}")
        for worker, nonce in enumerate(nonces):
            bench.must_be(
                session.call("register", request(session, f"owned-{worker}", nonce=nonce), worker),
                "accepted new",
                f"a nonce that strangers presented {_REFUSALS // 2} times",
            )
        records = session.observe("audit")["records"]
        unbound = sorted(row["attempt_id"] for row in records if row["code"] == "NONCE_UNBOUND")
        malformed = sum(row["code"] == "REQUEST_MALFORMED" for row in records)
        if unbound != sorted(attempts) or malformed != _REFUSALS:
            told = f"{len(unbound)} records of NONCE_UNBOUND, {len({*unbound} & {*attempts})} of them with the attempt"
            bench.fail(
                "lost_durability",
                f"{_REFUSALS} refusals of each of two reasons at one instant",
                expected=f"{_REFUSALS} records of each, with the whole attempt where it could be read",
                received=f"{told}, and {malformed} of REQUEST_MALFORMED",
            )


@clause("RS4A-AUD-1")
def test_of_thousands_of_refusals_each_is_on_record(bench: Bench) -> None:
    """Of each operation in turn, by one process; a registration is admitted behind them."""
    with bench.session(hurried=False) as session:
        asked = [_AUDITED[number % len(_AUDITED)] for number in range(_MANY)]
        for method in asked:
            bench.must_be(session.call(method), "refused REQUEST_MALFORMED", f"{method} of nothing")
        args = request(session, "behind", nonce=issue(bench, session))
        bench.must_be(session.call("register", args), "accepted new", f"a registration behind {_MANY} refusals")
        kept = [row["method"] for row in session.observe("audit")["records"]]
        if sorted(kept) != sorted(asked):
            due = f"{_MANY} records, {len(asked) // len(_AUDITED)} of each operation"
            counts = ", ".join(f"{kept.count(method)} of {method}" for method in _AUDITED)
            bench.fail("lost_durability", f"{_MANY} refusals", expected=due, received=counts)


# Many nonces, many rivals


@clause("RS4A-ID-5", "RS4A-RP-02")
def test_fifty_issued_nonces_buy_one_effect(bench: Bench) -> None:
    """Fifty requests for one effect, each with its own issued nonce, attempt, run and time."""
    with bench.session() as session:
        outcomes: list[str] = []
        for number in range(50):
            nonce = issue(bench, session)
            varied = {"run_id": f"run-{number}", "attempt_id": f"try-{number}", "protocol_version": f"rs4a/0.{number}"}
            args = request(session, "lamp", nonce=nonce, age_s=number, **varied)
            outcomes.append(session.call("register", args).words)
        due = ["accepted new", *["refused REPLAY_DUPLICATE"] * 49]
        counts = _counts(session)
        if outcomes.count("accepted new") > 1 or counts[0] > 1:
            admitted = [number for number, outcome in enumerate(outcomes) if outcome == "accepted new"]
            bench.fail("fail_open", f"requests {admitted} of 50 each had an effect of their own", received=repr(counts))
        if outcomes != due or counts != (1, 1):
            verdict = "lost_durability" if 0 in counts else "state_leak" if counts[1] > 1 else "wrong_reason"
            bench.fail(verdict, "fifty requests for one effect", expected=repr(due[:2]), received=repr(outcomes))


@clause("RS4A-RP-01")
def test_an_implementation_always_answers_a_new_attempt_alike(bench: Bench) -> None:
    """The contract leaves two answers to a new attempt; one implementation gives one of them."""
    with bench.session(workers=2) as session:
        nonce = issue(bench, session)
        if session.call("register", request(session, "lamp", nonce=nonce)).effect != "new":
            bench.fail("not_reached", "the first registration was not admitted")
        seen = set()
        for number in range(8):
            args = request(session, "lamp", nonce=nonce, attempt_id=f"try-{number}", run_id=f"run-{number % 2}")
            seen.add(session.call("register", args, number % 2).words)
        if "accepted new" in seen:
            bench.fail("fail_open", "a new attempt had a second effect", received=repr(sorted(seen)))
        if len(seen) != 1 or not seen <= {"accepted prior", "refused REPLAY_ATTEMPT_NO_BYPASS"}:
            expected = "always the prior decision, or always REPLAY_ATTEMPT_NO_BYPASS"
            bench.fail("wrong_reason", "new attempts were answered in turns", expected=expected, received=repr(seen))


def _raced(bench: Bench, session: SuiteSession, calls: list[tuple[str, dict[str, Any]]]) -> list[Answer] | None:
    """The answers of one call a worker, all under way at once; None if they did not overlap."""
    answers = session.race(calls)
    sent_us = [record.sent_us or 0 for record in bench.records[-len(calls) :]]
    received_us = [record.received_us or 0 for record in bench.records[-len(calls) :]]
    return answers if max(sent_us) < min(received_us) else None


def _race_with_own_nonces(bench: Bench, level: str, rivals: int = 6, rounds: int = 3) -> None:
    with bench.session(workers=rivals, config={"isolation": level}) as session:
        raced = 0
        for number in range(rounds):
            nonces = [issue(bench, session) for _ in range(rivals)]
            label = f"lamp-{number}"
            calls = [
                ("register", request(session, label, nonce=nonce, attempt_id=f"try-{rival}", run_id=f"run-{rival}"))
                for rival, nonce in enumerate(nonces)
            ]
            answers = _raced(bench, session, calls)
            raced += answers is not None
            _judge_race(bench, session, nonces, answers or [], effects=number + 1)
        if not raced:
            bench.fail("not_reached", f"in {rounds} rounds the calls of {rivals} workers never overlapped")


def _judge_race(bench: Bench, session: SuiteSession, nonces: list[str], answers: list[Answer], *, effects: int) -> None:
    counts = _counts(session)
    winners = [answer for answer in answers if answer.effect == "new"]
    if len(winners) > 1 or max(counts) > effects:
        bench.fail("fail_open", f"{len(winners)} attempts won, rows {counts}", expected="one effect a round")
    if answers and not winners:
        bench.fail("over_refusal", "no attempt won", received=repr([answer.words for answer in answers]))
    if counts != (effects, effects):
        bench.fail("lost_durability", f"after {effects} rounds there are {counts} rows")
    for nonce, answer in zip(nonces, answers, strict=False):
        if answer.effect == "new":
            continue
        if answer.reason not in ("ATTEMPT_COLLISION", "REPLAY_DUPLICATE"):
            bench.report("wrong_reason", "a loser", expected="ATTEMPT_COLLISION", received=answer.words)
        told = (answer.data or {}).get("decision", {}).get("decision_id")
        if answer.reason == "ATTEMPT_COLLISION" and told != winners[0].value["decision"]["decision_id"]:
            bench.report("wrong_reason", "a loser was told another decision than the winner's", received=repr(told))
        if session.observe("nonce_state", {"nonce": nonce})["state"] != "issued":
            bench.fail("state_leak", "a loser's nonce is no longer issued")


TESTS = tabled(
    __name__,
    _race_with_own_nonces,
    # Each rival brings a fresh nonce, attempt and run; losers keep their nonces and learn of the winner.
    test_rivals_with_nonces_of_their_own_have_one_effect_at_read_committed=(
        ("RS4A-S4-3", "RS4A-S4-1", "RS4A-S4-4", "RS4A-RP-09"),
        ("read_committed",),
    ),
    # The same where a row that was committed meanwhile is invisible, and conflicts all the same.
    test_rivals_with_nonces_of_their_own_have_one_effect_at_repeatable_read=(
        ("RS4A-S4-3",),
        ("repeatable_read", 6, 1),
    ),
    # The same where the database itself aborts transactions.
    test_rivals_with_nonces_of_their_own_have_one_effect_at_serializable=(
        ("RS4A-S4-3", "RS4A-S4-4"),
        ("serializable",),
    ),
)


@clause("RS4A-LAYER-2", "RS4A-RP-09", provocations=("register_unvalidated",))
def test_rivals_past_the_validator_have_one_effect(bench: Bench) -> None:
    """Two registrations with forged verdicts race for one key."""
    with bench.session(workers=2) as session:
        raced = 0
        for number in range(4):
            nonces = [issue(bench, session) for _ in range(2)]
            calls = [("register_unvalidated", request(session, f"lamp-{number}", nonce=nonce)) for nonce in nonces]
            answers = _raced(bench, session, calls)
            raced += answers is not None
            counts = _counts(session)
            if max(counts) > number + 1:
                bench.fail("fail_open", f"two rivals past the validator left {counts} rows in round {number + 1}")
            if counts != (number + 1, number + 1):
                bench.fail("over_refusal", f"of two rivals past the validator none has an effect; rows {counts}")
        if not raced:
            bench.fail("not_reached", "in 4 rounds the calls of two workers never overlapped")


# Samples and kills at any moment


@clause("RS4A-S2-3")
def test_a_second_process_never_samples_half_a_registration(bench: Bench) -> None:
    """State is sampled again and again through one worker while registrations run in another."""
    with bench.session(workers=2) as session:
        during = 0
        for number in range(20):
            nonce = issue(bench, session)
            handle = session.start("register", request(session, f"lamp-{number}", nonce=nonce))
            samples = []
            for _ in range(3):
                sampled = session.sample("state", worker=1)
                if sampled is None:
                    continue
                _must_pair(bench, sampled, "sampled while a registration ran")
                samples.append(bench.records[-1].received_us or 0)
            if session.finish(handle).effect != "new":
                bench.fail("not_reached", "a registration was not admitted, so nothing was sampled")
            during += any(sample < (bench.records[-1].received_us or 0) for sample in samples)
            _must_pair(bench, session.observe("state", worker=1), "sampled after the answer")
        if _counts(session, worker=1) != (20, 20):
            bench.fail("lost_durability", "20 registrations were acknowledged", received=repr(_counts(session)))
        if not during:
            bench.fail("not_reached", "no sample was taken while a registration ran")


@clause("RS4A-S1-1", "RS4A-S2-3", "RS4A-RP-06", "RS4A-S1-2", whole=True, written=True)
def test_a_kill_at_any_moment_leaves_all_or_nothing(bench: Bench) -> None:
    """SIGKILL at moments that no failpoint chose; the status is true, and sending again has one effect."""
    killed = [Step("interrupt", key, how="register", number=len(KILLED_AT) * key) for key in range(4)]
    scripted(bench, *(step for each in killed for step in (each, Step("retry", each.key), Step("register", each.key))))


# A session that begins afresh, of which nothing is known and nothing can be computed; and texts of every length


_NONCES = 3
# Letters of one to four bytes in UTF-8, the last of two units in UTF-16; the longest target and name (methods.yaml).
_WIDTHS, _TARGET, _NAME = ("x", "\u00e9", "\u4e2d", "\U0001f512"), 1024, 512


@clause("RS4A-ID-8")
def test_registrars_that_are_asked_the_same_issue_different_nonces(bench: Bench) -> None:
    """The same calls at the same time, by processes that have just started: a nonce does not follow from them."""
    issued: list[str] = []
    for _ in range(2):
        with bench.session() as session:
            session.restart()
            issued += [issue(bench, session) for _ in range(_NONCES)]
    if len(set(issued)) < len(issued):
        bench.fail("fail_open", "a nonce was issued twice", expected=f"{len(issued)} nonces", received=f"{issued}")


@clause("RS4A-S2-1", "RS4A-S2-2")
def test_a_process_that_gets_another_store_knows_nothing_of_the_last_one(bench: Bench) -> None:
    """What it told of its first store, it does not tell of the second one: the request is new, or has a free nonce."""
    told = None
    for number in range(2):
        with bench.session() as session:
            if told is not None:
                again = session.call("register", told).words
                if again.startswith("accepted"):
                    bench.fail("fail_open", "a nonce of another store", expected="NONCE_UNBOUND", received=again)
                key = derive("rs4a.logical_request_key", told)
                status = session.accepted("resolve_status", {"logical_request_key": key})["status"]
                bench.same(status, "NOT_COMMITTED", "fail_open", "a key of another store")
            told = request(session, "afresh", nonce=issue(bench, session))
            bench.must_be(session.call("register", told), "accepted new", f"a registration in store {number + 1}")


@clause("RS4A-ID-2", "RS4A-ID-1")
def test_every_text_is_as_long_as_the_contract_allows_and_no_longer(bench: Bench) -> None:
    """The contract counts characters, not bytes and not units of an encoding."""
    begin = "dot://acme/"
    texts = [("canonical_target", begin + letter * (_TARGET - len(begin))) for letter in _WIDTHS]
    texts += [(name, "x" * _NAME) for name in ("owner_or_approval_binding", "run_id", "attempt_id")]
    with bench.session() as session:
        for number, (name, text) in enumerate(texts):
            for more, due in (("x", "refused REQUEST_MALFORMED"), ("", "accepted new")):
                args = request(session, f"long-{number}", nonce=issue(bench, session))
                args["request"][name] = text + more
                bench.must_be(
                    session.call("register", args),
                    due,
                    f"{name} of {len(text + more)} characters, the last {text[-1]!r}",
                )


# Registrations whose keys are nearly the keys of a request


@clause("RS4A-ID-2", "RS4A-ID-5", provocations=("raw_insert",))
def test_a_registration_with_nearly_its_keys_is_another_one(bench: Bench) -> None:
    """Rows whose keys share digits at the beginning or at the end; then the request comes, and comes again."""
    with bench.session() as session:
        for number, shared in enumerate(SHARED):
            args = request(session, f"near-{number}", nonce=issue(bench, session))
            other = request(session, f"beside-{number}", nonce=issue(bench, session))
            keys = {name: near(key)[shared] for name, key in keys_of(args).items()}
            row = registration(bench, session, other, f"beside-{number}", **keys)
            if not session.provoke("raw_insert", {"relation": "registration", "row": row})["inserted"]:
                bench.fail("over_refusal", f"a row that shares {shared}", expected="inserted", received="refused")
            for due in ("accepted new", "accepted prior"):
                bench.must_be(session.call("register", args), due, f"a request of whose keys {shared} are on record")


# What the `detail` of a refusal says of a nonce: not what it is bound to


# Words with a digit are names, numbers and times, which may differ.
_NUMBERED = re.compile(r"\S*\d\S*")


@clause("RS4A-ID-7", "RS4A-RP-03b")
def test_a_refusal_does_not_say_in_what_a_nonce_is_bound_elsewhere(bench: Bench) -> None:
    """Another principal, target, owner or artifact: `detail` is worded alike."""
    said: dict[str, set[str]] = {}
    with bench.session() as session:
        args = request(session, "lamp", nonce="")
        for number in range(2 * len(BOUND_ELSEWHERE)):
            member = BOUND_ELSEWHERE[number % len(BOUND_ELSEWHERE)]
            nonce = issue(bench, session, binding=bound(session, args, "elsewhere", number))
            args["request"]["authorization_nonce"] = nonce
            answer = session.call("register", args)
            bench.must_be(answer, "refused NONCE_UNBOUND", f"a nonce that is bound to another {member}")
            said.setdefault(member, set()).add(_NUMBERED.sub("#", (answer.detail or "").replace(nonce, "#")))
        args["request"]["authorization_nonce"] = issue(bench, session)
        bench.must_be(session.call("register", args), "accepted new", "a nonce that is bound to this principal")
    # What is worded in turns says nothing.
    worded = {member: next(iter(texts)) for member, texts in said.items() if len(texts) == 1}
    if len(worded) == len(said) and len(set(worded.values())) > 1:
        bench.fail(
            "wrong_reason",
            "`detail` says in what a nonce is bound elsewhere",
            expected="the same words for every member",
            received=repr(worded),
        )


# Files that look like a fitness proof, where a registrar might look for one. None of them proves its surface


# What documents, commands and habits call such a file.
_NAMES = ("fitness.json", "proof.json", "fitness-proof.json", "fitness/proof.json", ".fitness", "FIT")
_CLOSED = {"can_proceed": "NO", "gate": "REGISTRATION_HOLD", "domain": "REPLAY_DOMAIN_FAIL_CLOSED"}


@clause("RS4A-GATE-4", "RS4A-GATE-2")
def test_no_file_opens_the_gate_that_is_no_proof_of_this_surface(bench: Bench) -> None:
    """Nothing, an empty object, half a proof, one of another surface, version, time or seal; here and at a start."""
    with bench.session() as session:
        bench.must_be(_registered(bench, session), "accepted new", "a registration")
        for what, content in _files(session):
            for name in _NAMES:
                session.place(name, content)
            _stays_closed(bench, session, what)
            session.restart()
            _stays_closed(bench, session, f"{what}, behind a restart")
        bench.must_be(_registered(bench, session), "refused REPLAY_DUPLICATE", "a second registration")


def _registered(bench: Bench, session: SuiteSession) -> Answer:
    return session.call("register", request(session, "proven", nonce=issue(bench, session)))


def _stays_closed(bench: Bench, session: SuiteSession, what: str) -> None:
    gate = session.observe("gate")
    if not (_CLOSED.items() <= gate.items() and gate["surface"] == "PRESENT_UNPROVEN"):
        bench.fail("fail_open", f"the gate beside {what}", expected=f"{_CLOSED}, unproven", received=repr(gate))


def _files(session: SuiteSession) -> Iterator[tuple[str, bytes]]:
    proof = _proof(session.now)
    whole = json.dumps(proof).encode()
    yield "an empty file", b""
    yield "an empty object", b"{}"
    yield "half a proof", whole[: len(whole) // 2]
    yield "a proof of another surface", whole
    yield "a proof of another version", json.dumps({**proof, "schema": 2}).encode()
    yield "a proof that is a year old", json.dumps(_proof(shift(session.now, "-365d"))).encode()
    yield "a proof from the future", json.dumps(_proof(shift(session.now, "+365d"))).encode()
    yield "a proof with another seal", json.dumps({**proof, "seal": f"sha256:{'0' * 64}"}).encode()


def _proof(made: str) -> Mapping[str, Any]:
    """A document as `holdfast fitness` writes it, of a surface that is judged FIT and is another one."""
    proven = [{"criterion": letter, "standing": "PROVEN", "reasons": []} for letter in "abcdefghi"]
    proof = {
        "schema": 1,
        "contract": {"name": "rs4a-replay", "version": "0.2.0"},
        "made": made,
        "target": "postgresql://db.example/registrar",
        "server": {"name": "7391234567890123456/registrar", "replica": False, "facts": {}},
        "surface": {"name": "other.consumed_request", "parts": {}, "writer": "registrar"},
        "judgement": {"status": "FIT", "findings": proven, "notes": []},
        "verdict": "FIT",
        "status": "FIT",
        "fit": True,
        "digest": hashlib.sha256(b"another surface").hexdigest(),
    }
    return {**proof, "seal": f"sha256:{hashlib.sha256(json.dumps(proof).encode()).hexdigest()}"}
