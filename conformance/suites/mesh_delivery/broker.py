"""mesh-delivery: histories of a broker against the model of all its clauses."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.histories import run_histories
from holdfast.conformance.suites.mesh_delivery.generate import MESHES, draw
from holdfast.conformance.suites.mesh_delivery.runner import playing
from holdfast.conformance.suites.mesh_delivery.sends import MESH, PLACES, args_of, made, must_be

_HISTORIES, _PERMANENT = 6, 2
_LENGTH = 60
# With this number of members each send has more than a thousand rows. Of messages and records there are as many.
_MEMBERS, _SENDS, _MANY = 1100, 2, 1100
# Shorter and longer than the windows of other tests, and a year.
_WINDOWS = (1, 91, 400)
# A trial of a shorter history takes as long as a case.
_TRIALS = 24


@clause("MESH-4.6-J4", "MESH-4.1-B2", "MESH-4.1-B3", "MESH-4.7-T7", "MESH-4.7-T8", whole=True)
def test_any_history_of_a_broker_agrees_with_the_model(bench: Bench) -> None:
    """Sends, retries and changes of them by two processes, jobs, clocks, the flag, and kills inside transactions."""
    run_histories(
        bench,
        count=_HISTORIES,
        draw=partial(draw, length=_LENGTH),
        begin=partial(playing, bench, 30),
        trials=_TRIALS,
    )


@clause("MESH-4.12-F2", "MESH-4.6-J4", whole=True)
def test_any_history_in_mode_permanent_agrees_with_the_model(bench: Bench) -> None:
    """The same where no record expires."""
    run_histories(
        bench,
        count=_PERMANENT,
        draw=partial(draw, length=_LENGTH),
        begin=partial(playing, bench, None),
        trials=_TRIALS,
    )


@clause("MESH-4.5-R4", "MESH-4.1-B2", whole=True)
def test_any_history_over_sockets_agrees_with_the_model(bench: Bench) -> None:
    """The same over HTTP and over a WebSocket, as far as the adapter claims them."""
    for transport in ("http", "websocket"):
        if transport not in bench.not_claimed:
            begin = partial(playing, bench, 30, transport)
            run_histories(bench, count=1, draw=partial(draw, length=_LENGTH), begin=begin, trials=_TRIALS)


@clause("MESH-4.7-T6", "MESH-4.1-B2")
def test_a_send_to_hundreds_of_members_is_enqueued_for_each_of_them(bench: Bench) -> None:
    """Sends to a topic, each with more than a thousand rows of fan-out, and a retry of each, which adds none."""
    with bench.session() as session:
        members = [session.hex64(f"member {number}") for number in range(_MEMBERS)]
        session.provoke("make_mesh", {"mesh_id": MESHES[0], "members": members, "topics": ["all"], "queues": []})
        request = {"envelope_version": 1, "destination_kind": "topic", "destination_ref": "all", "body": "AA"}
        send = {"mesh_id": MESHES[0], "sender": members[0], "request": request}
        sends = [{**send, "client_message_id": f"send {number}"} for number in range(_SENDS)]
        due: list[dict[str, str]] = []
        for effect in ("new", "prior"):
            for args in sends:
                answer = must_be(bench, session.call("accept", args), f"accepted {effect}", "a send to hundreds")
                if effect == "new":
                    message = answer.value["broker_message_id"]
                    due += [{"broker_message_id": message, "receiver": member} for member in members[1:]]
            due.sort(key=lambda row: (row["broker_message_id"], row["receiver"]))
            rows = session.observe("broker_state")["fan_out"]
            if rows != due:
                lost = len([row for row in due if row not in rows])
                verdict = "lost_durability" if lost else "fail_open"
                bench.fail(verdict, f"{len(rows)} rows of fan-out, {lost} are not there", expected=str(len(due)))


@clause("MESH-17-4", "MESH-17-3", "MESH-4.1-E1", provocations=("make_mesh", "prune", "expire"))
def test_jobs_and_inboxes_take_in_all_of_a_thousand_messages(bench: Bench) -> None:
    """All are handed out; the sweep marks the record of each, and the nightly job leaves none that is over."""
    with bench.session(config={"dedupe_retention_days": "30"}) as session:
        made(session)
        for number in range(_MANY):
            must_be(bench, session.call("accept", args_of(str(number), "queue")), "accepted new", f"send {number}")

        def must_count(what: str, verdict: str, due: int, rows: Sequence[Any]) -> None:
            if len(rows) != due:
                bench.fail(verdict, f"{what} of {_MANY} sends", expected=str(due), received=str(len(rows)))

        handed = session.observe("inbox", {"mesh_id": MESH, "receiver": PLACES["queue"]})["messages"]
        must_count("messages that are handed out", "lost_durability", _MANY, handed)
        session.clock("+1d")
        session.provoke("prune", {"older_than": session.now})
        state = session.observe("broker_state")
        marked = [row for row in state["dedupe"] if not row["history_available"]]
        must_count("records that are marked", "fail_open", _MANY, marked)
        must_count("messages behind the sweep", "state_leak", 0, state["messages"])
        session.clock("+10d")
        session.provoke("expire")
        must_count("records within their time", "lost_durability", _MANY, session.observe("broker_state")["dedupe"])
        session.clock("+31d")
        session.provoke("expire")
        must_count("records behind their time", "over_refusal", 0, session.observe("broker_state")["dedupe"])


@clause("MESH-4.3-C8", provocations=("make_mesh",))
def test_a_record_lives_as_long_as_is_advertised(bench: Bench) -> None:
    """Windows of a day, of months, and of more than a year."""
    for days in _WINDOWS:
        with bench.session(config={"dedupe_retention_days": str(days)}) as session:
            made(session)
            must_be(bench, session.call("accept", args_of("one")), "accepted new", "a send")
            told = session.observe("features")["supported"]["client_message_id_dedupe"]["dedupe_retention_days"]
            if told != days:
                bench.report("wrong_reason", "the window that is advertised", expected=str(days), received=str(told))
            row = session.observe("broker_state")["dedupe"][0]
            lives = datetime.fromisoformat(row["expires_at"]) - datetime.fromisoformat(row["first_seen_at"])
            if lives != timedelta(days=days):
                verdict = "fail_open" if lives < timedelta(days=days) else "wrong_reason"
                bench.weigh(verdict, f"a record of {days} days", expected=f"{days} days", received=str(lives))
