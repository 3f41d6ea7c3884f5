"""mesh-delivery: a broker against the model of all its clauses, and on much of everything."""

from __future__ import annotations

from datetime import datetime, timedelta

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.any_history import any_history
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import checked
from holdfast.conformance.attacks.model import attacked
from holdfast.conformance.attacks.race import beside
from holdfast.conformance.suites.mesh_delivery.history import BrokerHistory
from holdfast.conformance.suites.mesh_delivery.model import BrokerModel, accept, job, make, prune
from holdfast.conformance.suites.mesh_delivery.sends import MESH, args_of, made

_HISTORIES, _PERMANENT = 6, 2
# With this number of members each send has more than a thousand rows. Of messages and records there are as many.
_MEMBERS, _SENDS, _MANY = 1100, 2, 1100
# Shorter and longer than the windows of other tests, and a year.
_WINDOWS = (1, 91, 400)
# A trial of a shorter history takes as long as a case.
_TRIALS = 24
# How long the nightly job has for itself beside a retry, in seconds.
_TAKEN = 1.0

TESTS = attacked(
    __name__,
    BrokerModel,
    # Sends at each point of their transaction and the sweep between its changes; beside them sends and every job.
    test_what_overlaps_a_held_operation_leaves_what_some_order_leaves=(
        beside,
        ("MESH-4.6-J4", "MESH-4.6-J1", "MESH-4.7-T8"),
        ("make_mesh", "hold_at"),
    ),
)


@clause("MESH-4.6-J4", "MESH-4.1-B2", "MESH-4.1-B3", "MESH-4.7-T7", "MESH-4.7-T8", whole=True)
def test_any_history_of_a_broker_agrees_with_the_model(bench: Bench) -> None:
    """Sends, retries and changes of them by two processes, jobs, clocks, the flag, and kills inside transactions."""
    any_history(bench, BrokerHistory, _HISTORIES, _TRIALS)


@clause("MESH-4.12-F2", "MESH-4.6-J4", whole=True)
def test_any_history_in_mode_permanent_agrees_with_the_model(bench: Bench) -> None:
    """The same where no record expires."""
    any_history(bench, BrokerHistory, _PERMANENT, _TRIALS, {"mode": "permanent"})


@clause("MESH-4.5-R4", "MESH-4.1-B2", whole=True)
def test_any_history_over_sockets_agrees_with_the_model(bench: Bench) -> None:
    """The same over HTTP and over a WebSocket, as far as the adapter claims them."""
    for transport in ("http", "websocket"):
        if transport not in bench.not_claimed:
            any_history(bench, BrokerHistory, 1, _TRIALS, {**BrokerHistory.config, "transport": transport})


@clause("MESH-4.7-T5", provocations=("make_mesh", "hold_at", "expire"), whole=True)
def test_a_retry_whose_record_goes_beside_it_is_answered(bench: Bench) -> None:
    """The nightly job comes between conflict and select, or waits; the retry is a first send, or came before it."""
    with checked(bench, BrokerModel, workers=2) as play:
        play.ask(play.make("accept"))
        play.session.clock("+31d")
        done, _ = play.overlap("after_conflict", play.make("again"), play.make("expire"), _TAKEN)
        if not done:
            bench.fail("over_refusal", "a retry whose record went beside it", expected="accepted", received="refused")


@clause("MESH-4.7-T6", "MESH-4.1-B2")
def test_a_send_to_hundreds_of_members_is_enqueued_for_each_of_them(bench: Bench) -> None:
    """Sends to a topic, each with more than a thousand rows of fan-out, and a retry of each, which adds none."""
    with checked(bench, BrokerModel) as play:
        members = [play.session.hex64(f"member {number}") for number in range(_MEMBERS)]
        play.ask(job("make_mesh", mesh_id=MESH, members=members, topics=["all"], queues=[]))
        request = {**args_of("")["request"], "destination_ref": "all"}
        send = {"mesh_id": MESH, "sender": members[0], "request": request}
        for _ in range(2):
            for number in range(_SENDS):
                play.ask(accept({**send, "client_message_id": f"send {number}"}))
            play.compare()
            state, shown = play.state, play.session.observe("broker_state")["fan_out"]
            due = [
                {"broker_message_id": name, "receiver": receiver}
                for name, message in sorted(state.messages.items())
                for receiver in state.receivers(message)
            ]
            if shown != due:
                lost = len([row for row in due if row not in shown])
                verdict = "lost_durability" if lost else "fail_open"
                bench.fail(verdict, f"{len(shown)} rows of fan-out, {lost} are not there", expected=str(len(due)))


@clause("MESH-17-4", "MESH-17-3", "MESH-4.1-E1", provocations=("make_mesh", "prune", "expire"))
def test_jobs_and_inboxes_take_in_all_of_a_thousand_messages(bench: Bench) -> None:
    """All are handed out; the sweep marks the record of each, and the nightly job leaves none that is over."""
    with checked(bench, BrokerModel) as play:
        play.ask(make(MESH))
        for number in range(_MANY):
            play.ask(accept(args_of(str(number), "queue")))
        play.compare()
        for later in ("+1d", "+10d", "+31d"):
            play.session.clock(later)
            now = datetime.fromisoformat(play.session.now)
            play.ask(prune(now) if later == "+1d" else job("expire"))
            play.compare()


@clause("MESH-4.3-C8", provocations=("make_mesh",))
def test_a_record_lives_as_long_as_is_advertised(bench: Bench) -> None:
    """Windows of a day, of months, and of more than a year."""
    for days in _WINDOWS:
        with bench.session(config={"dedupe_retention_days": str(days)}) as session:
            made(session)
            bench.must_be(session.call("accept", args_of("one")), "accepted new", "a send")
            told = session.observe("features")["supported"]["client_message_id_dedupe"]["dedupe_retention_days"]
            bench.same(told, days, "wrong_reason", "the window that is advertised")
            row = session.observe("broker_state")["dedupe"][0]
            lives = datetime.fromisoformat(row["expires_at"]) - datetime.fromisoformat(row["first_seen_at"])
            if lives != timedelta(days=days):
                verdict = "fail_open" if lives < timedelta(days=days) else "wrong_reason"
                bench.weigh(verdict, f"a record of {days} days", expected=f"{days} days", received=str(lives))
