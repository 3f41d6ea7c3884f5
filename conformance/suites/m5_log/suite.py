"""m5-log: what a script cannot say. Random histories in random orders, with kills, against the oracle."""

from __future__ import annotations

from random import Random

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.m5_log.graphs import Graph, Words, drawn
from holdfast.conformance.suites.m5_log.playing import Player
from holdfast.conformance.suites.m5_log.world import COMMAND
from holdfast.conformance.suites.session import SuiteSession

_SIZE = 16
_HISTORIES = 7
_ARRIVALS = 3


def _dice(session: SuiteSession, label: str) -> Random:
    return Random(session.hex64(label))  # noqa: S311 - nothing is kept secret with it


def _graph(session: SuiteSession, label: str, number: int) -> Graph:
    authors = [f"{name} {session.rand(f'{label} {name}')}" for name in ("alice", "bob", "carol")]
    dice = _dice(session, label)
    return drawn(dice, authors, _SIZE, Words.of(number, dice))


@clause(
    "M5-PRP-1", "M5-AC1", "M5-AC5", "M5-AC6", "M5-CLI-2", "M5-CLI-5", "M5-CLI-6", provocations=(COMMAND,), whole=True
)
def test_any_history_with_kills_anywhere_has_the_state_of_the_oracle(bench: Bench) -> None:
    """Any names, numbers, clocks and grants, and every question behind every operation, with kills and restarts."""
    for number in range(round(_HISTORIES * bench.thorough)):
        with bench.session() as session:
            graph = _graph(session, f"graph {number}", number)
            Player(bench, session, graph, _dice(session, f"play {number}")).play(crashes=True)


@clause("M5-CKP-5", "M5-CKP-6", "M5-AC5", provocations=(COMMAND,), whole=True)
def test_every_beginning_of_the_order_is_restored_and_continued(bench: Bench) -> None:
    """Among them those before and behind a revocation that ends two equal grants. Then each credential is revoked."""
    with bench.session() as session:
        Player(bench, session, _graph(session, "restore", 0), _dice(session, "restore")).restore()


@clause("M5-AC6", "M5-CKP-3", "M5-TOPO-2", provocations=(COMMAND,), whole=True)
def test_the_order_of_arrival_shows_nowhere(bench: Bench) -> None:
    """The same operations in several orders leave the same snapshot, byte for byte, each in a store of its own."""
    for number in range(round(2 * bench.thorough)):
        snapshots = []
        for arrival in range(_ARRIVALS):
            with bench.session() as session:
                graph = _graph(session, f"graph {number}", _HISTORIES + number)
                player = Player(bench, session, graph, _dice(session, f"play {number} {arrival}"))
                player.play(crashes=False)
                snapshots.append(player.snapshot())
                if len(set(snapshots)) > 1:
                    bench.fail("wrong_reason", "two orders of arrival have two snapshots", expected=snapshots[0])
