"""mesh-delivery: histories of a daemon and its outbox against the model of all their clauses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from random import Random
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.histories import run_histories
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.match import of_rows
from holdfast.conformance.suites.mesh_delivery.broker_answers import ANSWERS
from holdfast.conformance.suites.mesh_delivery.generate import MESHES
from holdfast.conformance.suites.mesh_delivery.outbox_generate import draw, every_answer
from holdfast.conformance.suites.mesh_delivery.outbox_observations import CONFIG
from holdfast.conformance.suites.mesh_delivery.outbox_runner import playing
from holdfast.conformance.suites.mesh_delivery.sends import must_be_refused
from holdfast.conformance.suites.mesh_delivery.suite import KEY, requests_to_send
from holdfast.conformance.verdict import Verdict
from holdfast.vectors.derive import derive

_WEEK, _SHORT, _MONTH = 168, 6, 648
_HISTORIES, _SHORTER = 5, 3
_LENGTH = 40
_TRIALS = 24
_RIVALS, _RACES = 4, 12
_OCCUPIED = "OUTBOX_UNAVAILABLE"
_ROWS, _ASKED = 1000, 12


@clause(
    "MESH-4.5-O7",
    "MESH-4.1-L1",
    "MESH-4.1-L2",
    "MESH-4.1-L4",
    "MESH-4.5-O6",
    "MESH-4.8-C6",
    "MESH-4.8-R1",
    "MESH-4.8-R2",
    "MESH-4.8-R3",
    whole=True,
)
def test_any_history_of_a_daemon_agrees_with_the_model(bench: Bench) -> None:
    """Sends, rounds with any answers, requeues, clocks, restarts, and kills inside of attempts."""
    _play(bench, _HISTORIES, 1, _WEEK)


@clause("MESH-4.5-O7", "MESH-4.5-O1", "MESH-4.5-O2", "MESH-4.5-O3", "MESH-4.5-O4", whole=True)
def test_every_answer_makes_of_a_row_what_the_model_says(bench: Bench) -> None:
    """Each answer of the protocol once, to a first attempt or to a second."""
    run_histories(bench, count=1, draw=every_answer, begin=partial(playing, bench, 1, _WEEK), trials=_TRIALS)


@clause("MESH-4.9-A9", "MESH-4.7-T10", "MESH-4.8-C5", "MESH-4.8-C7", whole=True)
def test_any_history_of_a_daemon_with_a_short_max_age_agrees_with_the_model(bench: Bench) -> None:
    """The same where rows grow too old while they wait."""
    _play(bench, _SHORTER, 1, _SHORT)


@clause("MESH-4.1-L4", "MESH-4.5-O1", "MESH-4.5-O6", "MESH-4.8-C2", whole=True)
def test_any_history_of_two_processes_on_one_outbox_agrees_with_the_model(bench: Bench) -> None:
    """The same by two processes, with calls and rounds that overlap: what one round has delivered stays so."""
    _play(bench, _HISTORIES, 2, _WEEK)


def _play(bench: Bench, count: int, workers: int, hours: int) -> None:
    draws = partial(draw, length=_LENGTH, workers=workers)
    run_histories(bench, count=count, draw=draws, begin=partial(playing, bench, workers, hours), trials=_TRIALS)


@clause("MESH-4.1-L4", "MESH-4.5-O4", "MESH-4.5-O6", whole=True)
def test_an_outbox_of_many_rows_is_as_one_of_few(bench: Bench) -> None:
    """Sends and requeues of any row among a thousand, and a round of what was requeued."""
    dice = Random(bench.seed)  # noqa: S311 - nothing is kept secret with it
    with playing(bench, 1, _WEEK) as player:
        rows = player.fill(_ROWS)
        for number, (name, args) in enumerate((rows[0], rows[-1], *dice.sample(rows, _ASKED))):
            player.ask(name, args, number)
        player.compare()


@clause("MESH-4.1-L4", "MESH-4.1-L1", "MESH-4.1-L3", "MESH-4.5-O6", whole=True)
def test_no_call_takes_an_outbox_that_is_not_in_its_place_for_an_empty_one(bench: Bench) -> None:
    """It is moved away under two processes, and nothing, or what is no outbox, is there for one call each."""
    with playing(bench, 2, _WEEK) as player:
        player.lose()


@clause("MESH-4.4-P1", "MESH-4.1-L2", whole=True)
def test_every_request_that_has_a_fingerprint_is_taken_in_with_it(bench: Bench) -> None:
    """The row has the fingerprint of the request; what has none is refused."""
    with bench.session(config=CONFIG) as session:
        due: dict[str, str] = {}
        for number, (request, form) in enumerate(requests_to_send(bench)):
            method, args = _send(str(number), "")
            answer = session.call(method, {**args, "request": request})
            if form is None:
                must_be_refused(bench, answer, request)
                continue
            bench.must_be(answer, "accepted new", f"{request}: has a fingerprint")
            due[args["client_message_id"]] = derive(KEY, form)
        rows = session.inspect()["rows"]["outbox"]
        stored = {row["client_message_id"]: row["request_fingerprint"].get("blob") for row in rows}
        if stored != due:
            wrong = next(name for name in {**due, **stored} if due.get(name) != stored.get(name))
            what = f"the fingerprint of request {wrong}"
            verdict = (of_rows(sorted(due), sorted(stored)) or Verdict.WRONG_REASON).value
            bench.fail(verdict, what, expected=str(due.get(wrong)), received=str(stored.get(wrong)))


@clause("MESH-4.8-C6", "MESH-4.8-C7", "MESH-4.9-A9", "MESH-4.7-T10", "MESH-4.5-O6")
def test_a_row_outlasts_an_outage_that_is_shorter_than_its_max_age(bench: Bench) -> None:
    """A broker that is not available for a week, or a month, asked every five hours and at once again."""
    for hours in (_WEEK, _MONTH):
        with playing(bench, 1, hours) as player:
            player.outlast("waiting")


@clause("MESH-4.8-C2", "MESH-4.1-L4", "MESH-4.5-O6", "MESH-4.5-O1")
def test_of_processes_that_ask_at_once_one_is_the_first(bench: Bench) -> None:
    """Four processes: one send, sends with one id, requeues of one row and to one id; then all deliver."""
    with bench.session(_RIVALS, config=CONFIG) as session:
        session.call("deliver")
        for number in range(_RACES):
            _race(bench, session, [_send(f"same{number}", "AA")] * _RIVALS, "prior")
            others = [_send(f"other{number}", body) for body in ("AA", "AQ", "Ag", "Aw")]
            _race(bench, session, others, "IDEMPOTENCY_KEY_REUSED")
        session.clock("+169h")
        session.call("deliver")
        for number in range(_RACES):
            rotated = [_requeue(f"same{number}", f"new{number}-{rival}") for rival in range(_RIVALS)]
            _race(bench, session, rotated, "NOT_DEAD")
        for number in range(0, _RACES, _RIVALS):
            rotated = [_requeue(f"other{number + rival}", f"joint{number}") for rival in range(_RIVALS)]
            _race(bench, session, rotated, "ID_IN_USE")
        waiting = _statuses(session)["pending"]
        said = ANSWERS["first"].of("0192f0c1-7a52-7c3e-9d4b-0a1b2c3d4e5f")
        session.answers([said] * _RIVALS * waiting)
        session.race([("deliver", {})] * _RIVALS)
        # One that found the outbox occupied may have left its rows for a later round.
        session.clock("+5h")
        session.call("deliver")
        left = _statuses(session)
        if left["done"] != waiting:
            bench.fail("over_refusal", "rounds at once left rows", expected=f"{waiting} done", received=str(dict(left)))


def _send(name: str, body: str) -> tuple[str, Mapping[str, Any]]:
    request = {"envelope_version": 1, "destination_kind": "topic", "destination_ref": "alerts", "body": body}
    return "send", {"mesh_id": MESHES[0], "client_message_id": name, "request": request}


def _requeue(name: str, new: str) -> tuple[str, Mapping[str, Any]]:
    return "requeue", {"client_message_id": name, "new_id": new}


def _race(bench: Bench, session: SuiteSession, calls: Sequence[tuple[str, Mapping[str, Any]]], late: str) -> None:
    """One of the calls is the first; the others find what it has done, or the outbox occupied."""
    answers = session.race(calls)
    came = Counter(answer.effect if answer.outcome == "accepted" else answer.reason for answer in answers)
    expected = f"one accepted as new, the others {late}"
    if came["new"] != 1:
        verdict = "fail_open" if came["new"] else "over_refusal"
        bench.fail(
            verdict,
            f"{came['new']} of {len(calls)} calls at once were the first",
            expected=expected,
            received=str(dict(came)),
        )
    if came.keys() - {"new", late, _OCCUPIED}:
        verdict = "fail_open" if came["prior"] and late != "prior" else "wrong_reason"
        bench.fail(verdict, "the others of calls at once", expected=expected, received=str(dict(came)))


def _statuses(session: SuiteSession) -> Counter[Any]:
    return Counter(row["status"] for row in session.inspect()["rows"]["outbox"])
