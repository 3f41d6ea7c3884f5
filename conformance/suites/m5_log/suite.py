"""m5-log: what a script cannot say. Random histories in random orders, with kills, against the oracle."""

from __future__ import annotations

import time
from random import Random

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.m5_log.client import QUESTIONS, TRUSTED, LogClient
from holdfast.conformance.suites.m5_log.generate import ISSUER, Graph, Made, Words, drawn, order_of
from holdfast.conformance.suites.m5_log.log import COMMAND, must_have_rows
from holdfast.conformance.suites.session import SuiteSession

# Plays a random history against a session, and compares what it shows with the oracle

# How long after a call the process is killed, in seconds: within an append, or behind it.
_MOMENTS = (0.0, 0.001, 0.003, 0.006, 0.01)
_STEPS = ("kill", "restart", "again", "checkpoint", "checkpoint", "credential", "", "")
_END = "at the end"
# How many questions are asked behind each operation.
_ASKED = 3
# How many operations are looked up by their id when everything is compared.
_LOOKED_UP = 3


class HistoryRunner(LogClient):
    """One history in one session."""

    def play(self, *, crashes: bool) -> None:
        """Send all operations in a random order; between two, a retry, an end, a kill, or any other request.

        At the end everything is there, and the same is believed in every history.
        """
        arrival = self.dice.sample(self.graph.operations, len(self.graph.operations))
        credentials = list(self.graph.credentials)
        for each in arrival:
            what = self.dice.choice(_STEPS)
            if what == "kill" and crashes:
                self._interrupted(each)
            else:
                self._put(each, new=True)
            if what == "restart" and crashes:
                self.session.restart()
                self.compare("after a restart")
            elif what == "again":
                # The process knows the order from before.
                self.must_be_in_order("before a retry")
                self._put(self.dice.choice(self.stored), new=False)
                self.must_be_in_order("behind a retry")
            elif what == "checkpoint":
                self.checkpoint()
            elif what == "credential" and credentials:
                self.persist(credentials.pop())
            for question in self.dice.choices(QUESTIONS, k=_ASKED):
                self.ask(question)
        for credential in credentials:
            self.persist(credential)
        self.compare("with all operations")
        self.revoke(())
        self.checkpoint()
        for trusted in TRUSTED:
            self.trust(trusted)
            self.load_all()
        self.trust({ISSUER: ISSUER})
        self.decide_all()
        self.checkpoint()
        self.compare(_END)

    def restore(self) -> None:
        """Go on from every beginning of the order, also of one that depends on a credential that is revoked then."""
        for each in self.graph.operations:
            self._put(each, new=True)
        for credential in self.graph.credentials:
            self.persist(credential)
        for index in range(len(self.stored) + 1):
            self.checkpoint(index)
            self.must_dump(self.state(), "latest", f"behind a checkpoint of {index} operations")
        for credential in self.graph.credentials:
            self.revoke([credential.cred_hash])
            self.load_all()
            self.must_dump(self.state(), "latest", "behind a revocation")

    def _put(self, each: Made, *, new: bool) -> None:
        there = {stored.op_id for stored in self.stored}
        answer = self.session.call("put_op", {"op": each.raw})
        self.accepted(answer, "put_op")
        due = "new" if new else "prior"
        if answer.effect != due:
            self.differs("lost_durability", "the effect of put_op", due, answer.effect)
        if new:
            self.stored.append(each)
        value = answer.value or {}
        missing = [parent for parent in each.parents if parent not in there]
        shown = {"op_id": each.op_id, "pending": each.op_id not in order_of(self.stored), "missing": missing}
        if value != shown:
            self.differs(self.bench.verdict_on("put_op", shown, value), "what put_op says", shown, value)

    def _interrupted(self, each: Made) -> None:
        """Kill the process within an append. The operation is there whole or not at all, and all others are."""
        self.session.start("put_op", {"op": each.raw})
        time.sleep(self.dice.choice(_MOMENTS))
        self.session.kill()
        self.session.reopen()
        found = self.session.observe("get_op", {"op_id": each.op_id})
        if found["has"]:
            self.stored.append(each)
        self.compare("after a kill")
        self._put(each, new=not found["has"])

    def compare(self, when: str) -> None:
        """Everything that the log shows is that of the oracle, and verify-store finds nothing."""
        order, session = order_of(self.stored), self.session
        if when == _END:
            must_have_rows(self.bench, session, self.stored)
        there = [row["value"] for row in session.observe("store")["ops"]]
        if sorted(there) != sorted(each.raw for each in self.stored):
            verdict = self.bench.verdict_on(
                "store", {"ops": [""] * len(self.stored)}, {"ops": there}, "lost_durability"
            )
            self.differs(verdict, f"the operations {when}", len(self.stored), f"others, {len(there)}")
        for each in self.dice.sample(self.stored, min(_LOOKED_UP, len(self.stored))):
            if session.observe("get_op", {"op_id": each.op_id}) != {"has": True, "op": each.raw}:
                self.differs("lost_durability", f"an operation {when}", each.raw, "nothing, or other bytes")
        self.must_be_in_order(when)
        listed, due = session.observe("iter_ops")["op_ids"], sorted(each.op_id for each in self.stored)
        self.must_list_all("iter_ops", due, listed, f"the list of operations {when}")
        waiting = sorted({each.op_id for each in self.stored} - set(order))
        pending = session.observe("pending")["op_ids"]
        self.must_list_all("pending", waiting, pending, f"what waits {when}")
        self.must_list(when)
        state = self.state()
        for origin in ("genesis", "latest"):
            self.must_dump(state, origin, when)
        report = session.observe("verify_store")
        due_report = {"whole": True, "operations": len(self.stored), "pending": len(waiting), "problems": []}
        self._ask_a_command(state, whole=report["whole"], last=when == _END)
        if not self.believes_what_is_cached:
            # What was verified once and is not now may be told as a problem.
            told = [each for each in report["problems"] if each["family"] != "vc_verified"]
            report = {**report, "problems": told, "whole": not told}
        if report != due_report:
            self.differs("lost_durability", f"what verify-store finds {when}", due_report, report)

    def _ask_a_command(self, state: str, *, whole: bool, last: bool) -> None:
        """One command says what the observations have just shown."""
        name = "dump-state-json" if last else self.dice.choice(("verify-store", "replay-from-store"))
        if name == "verify-store":
            status = self.session.provoke(COMMAND, {"arguments": [name]})["status"]
            if (status == 0) != whole:
                self.differs("fail_open" if status == 0 else "over_refusal", f"what {name} says", whole, status)
        else:
            words = ["--from", self.dice.choice(("genesis", "latest"))] if name == "replay-from-store" else []
            self.command([name, *words], state)

    def snapshot(self) -> str:
        """The bytes of a checkpoint of the whole order."""
        made = self.session.call("checkpoint_create")
        self.accepted(made, "checkpoint_create")
        found = self.session.observe("checkpoints")["checkpoints"]
        snapshot: str = next(each["snapshot"] for each in found if each["checkpoint_id"] == made.value["checkpoint_id"])
        return snapshot


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
            HistoryRunner(bench, session, graph, _dice(session, f"play {number}")).play(crashes=True)


@clause("M5-CKP-5", "M5-CKP-6", "M5-AC5", provocations=(COMMAND,), whole=True)
def test_every_beginning_of_the_order_is_restored_and_continued(bench: Bench) -> None:
    """Among them those before and behind a revocation that ends two equal grants. Then each credential is revoked."""
    with bench.session() as session:
        HistoryRunner(bench, session, _graph(session, "restore", 0), _dice(session, "restore")).restore()


@clause("M5-AC6", "M5-CKP-3", "M5-TOPO-2", provocations=(COMMAND,), whole=True)
def test_the_order_of_arrival_shows_nowhere(bench: Bench) -> None:
    """The same operations in several orders leave the same snapshot, byte for byte, each in a store of its own."""
    for number in range(round(2 * bench.thorough)):
        snapshots = []
        for arrival in range(_ARRIVALS):
            with bench.session() as session:
                graph = _graph(session, f"graph {number}", _HISTORIES + number)
                player = HistoryRunner(bench, session, graph, _dice(session, f"play {number} {arrival}"))
                player.play(crashes=False)
                snapshots.append(player.snapshot())
                if len(set(snapshots)) > 1:
                    bench.fail("wrong_reason", "two orders of arrival have two snapshots", expected=snapshots[0])
