"""m5-log: what a script cannot say. Random histories in random orders, with kills, against the oracle."""

from __future__ import annotations

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.any_history import HistoryPlayer, Step, any_history
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.model import Call
from holdfast.conformance.suites.m5_log.history import LogHistory
from holdfast.conformance.suites.m5_log.log import COMMAND
from holdfast.conformance.suites.m5_log.model import persist, put, revoke

_HISTORIES = 7
_ARRIVALS = 3


@clause(
    "M5-PRP-1", "M5-AC1", "M5-AC5", "M5-AC6", "M5-CLI-2", "M5-CLI-5", "M5-CLI-6", provocations=(COMMAND,), whole=True
)
def test_any_history_with_kills_anywhere_has_the_state_of_the_oracle(bench: Bench) -> None:
    """Any names, numbers, clocks and grants, and every question behind every operation, with kills and restarts."""
    any_history(bench, LogHistory, _HISTORIES)


@clause("M5-CKP-5", "M5-CKP-6", "M5-AC5", provocations=(COMMAND,), whole=True)
def test_every_beginning_of_the_order_is_restored_and_continued(bench: Bench) -> None:
    """Among them those before and behind a revocation that ends two equal grants. Then each credential is revoked."""
    with bench.session() as session:
        model = LogHistory(session)
        player = HistoryPlayer(bench, session, model)
        graph = model.graph(0, session.dice("restore"))
        for call in (*map(put, graph.operations), *map(persist, graph.credentials)):
            player.step(Step(call))
        for index in range(len(model.order(player.state)) + 1):
            player.step(Step(Call("checkpoint_create", "checkpoint_create", {"topo_index": index})))
            player.step(model.dump(player.state, "latest"))
        for credential in graph.credentials:
            player.step(Step(revoke([credential.cred_hash])))
            for step in (*model.load_all(player.state), model.dump(player.state, "latest")):
                player.step(step)


@clause("M5-AC6", "M5-CKP-3", "M5-TOPO-2", provocations=(COMMAND,), whole=True)
def test_the_order_of_arrival_shows_nowhere(bench: Bench) -> None:
    """The same operations in several orders leave the same snapshot, byte for byte, each in a store of its own."""
    for number in range(round(2 * bench.thorough)):
        snapshots = []
        for arrival in range(_ARRIVALS):
            with bench.session() as session:
                model = LogHistory(session)
                graph = model.graph(_HISTORIES + number, session.dice(f"graph {number}"))
                player = HistoryPlayer(bench, session, model)
                dice = session.dice(f"play {number} {arrival}")
                for step in model.arrival(player, graph, dice, crashes=False):
                    player.step(step)
                found = session.observe("checkpoints")["checkpoints"]
                snapshots.append(found[-1]["snapshot"])
                if len(set(snapshots)) > 1:
                    bench.fail("wrong_reason", "two orders of arrival have two snapshots", expected=snapshots[0])
