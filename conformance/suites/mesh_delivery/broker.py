"""mesh-delivery: histories of a broker against the model of all its clauses."""

from __future__ import annotations

from functools import partial

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.histories import hold
from holdfast.conformance.suites.mesh_delivery.history import draw, playing

_HISTORIES, _PERMANENT = 6, 2
_LENGTH = 60
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
