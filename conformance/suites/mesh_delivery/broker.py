"""mesh-delivery: histories of a broker against the model of all its clauses."""

from __future__ import annotations

from functools import partial

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.histories import hold
from holdfast.conformance.suites.mesh_delivery.history import MESHES, draw, playing

_HISTORIES, _PERMANENT = 6, 2
_LENGTH = 60
# With this number of members a few sends have more than a thousand rows.
_MEMBERS, _SENDS = 350, 3
# A trial of a shorter history takes as long as a case.
_TRIALS = 24


@clause("MESH-4.6-J4", "MESH-4.1-B2", "MESH-4.1-B3", "MESH-4.7-T7", "MESH-4.7-T8", whole=True)
def test_any_history_of_a_broker_agrees_with_the_model(bench: Bench) -> None:
    """Sends, retries and changes of them by two processes, jobs, clocks, the flag, and kills inside transactions."""
    hold(
        bench,
        count=_HISTORIES,
        draw=partial(draw, length=_LENGTH),
        begin=partial(playing, bench, 30),
        trials=_TRIALS,
    )


@clause("MESH-4.12-F2", "MESH-4.6-J4", whole=True)
def test_any_history_in_mode_permanent_agrees_with_the_model(bench: Bench) -> None:
    """The same where no record expires."""
    hold(
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
            hold(bench, count=1, draw=partial(draw, length=_LENGTH), begin=begin, trials=_TRIALS)


@clause("MESH-4.7-T6", "MESH-4.1-B2")
def test_a_send_to_hundreds_of_members_is_enqueued_for_each_of_them(bench: Bench) -> None:
    """A few sends to a topic, more than a thousand rows of fan-out, and a retry of each, which adds none."""
    with bench.session() as session:
        members = [session.hex64(f"member {number}") for number in range(_MEMBERS)]
        session.provoke("make_mesh", {"mesh_id": MESHES[0], "members": members, "topics": ["all"], "queues": []})
        request = {"envelope_version": 1, "destination_kind": "topic", "destination_ref": "all", "body": "AA"}
        send = {"mesh_id": MESHES[0], "sender": members[0], "request": request}
        sends = [{**send, "client_message_id": f"send {number}"} for number in range(_SENDS)]
        due: list[dict[str, str]] = []
        for effect in ("new", "prior"):
            for args in sends:
                answer = session.call("accept", args)
                if (answer.outcome, answer.effect) != ("accepted", effect):
                    came = answer.effect or answer.reason or answer.outcome
                    verdict = "fail_open" if answer.outcome == "accepted" else "over_refusal"
                    bench.fail(verdict, "a send to hundreds", expected=effect, received=came)
                if effect == "new":
                    message = answer.value["broker_message_id"]
                    due += [{"broker_message_id": message, "receiver": member} for member in members[1:]]
            due.sort(key=lambda row: (row["broker_message_id"], row["receiver"]))
            rows = session.observe("broker_state")["fan_out"]
            if rows != due:
                lost = len([row for row in due if row not in rows])
                verdict = "lost_durability" if lost else "fail_open"
                bench.fail(verdict, f"{len(rows)} rows of fan-out, {lost} are not there", expected=str(len(due)))
