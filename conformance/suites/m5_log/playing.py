"""Plays a random history against a session, and compares what it shows with the oracle."""

from __future__ import annotations

import time
from random import Random

from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.session import Answer
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.m5_log.graphs import ISSUER, Draft, Graph, Made, order_of, state_of
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.derive import derive

# How long after a call the process is killed, in seconds: within an append, or behind it.
_MOMENTS = (0.0, 0.001, 0.003, 0.006, 0.01)


class Player:
    """One history in one session. What it stored stands in `stored`, in the order of arrival."""

    def __init__(self, bench: Bench, session: SuiteSession, graph: Graph, dice: Random) -> None:
        self._bench, self._session, self._graph, self._dice = bench, session, graph, dice
        self.stored: list[Made] = []
        self._persisted: list[Draft] = []
        session.place("m5/trust.json", from_base64url(derive("m5.trust", [ISSUER])))

    def play(self, *, crashes: bool) -> None:
        """Send all operations in a random order, with credentials, checkpoints, retries, ends and kills in between."""
        arrival = self._dice.sample(self._graph.operations, len(self._graph.operations))
        credentials = list(self._graph.credentials)
        for each in arrival:
            what = self._dice.choice(("kill", "restart", "again", "checkpoint", "credential", "", "", "", ""))
            if what == "kill" and crashes:
                self._interrupted(each)
            else:
                self._put(each, new=True)
            if what == "restart" and crashes:
                self._session.restart()
                self.compare("after a restart")
            elif what == "again":
                self._put(self._dice.choice(self.stored), new=False)
            elif what == "checkpoint":
                self._accepted(self._session.call("checkpoint_create"), "checkpoint_create")
            elif what == "credential" and credentials:
                self._persist(credentials.pop())
        for credential in credentials:
            self._persist(credential)
        self.compare("at the end")

    def _persist(self, credential: Draft) -> None:
        raw = derive("m5.credential", credential)
        self._accepted(self._session.call("persist_vc", {"credential": raw}), "persist_vc")
        self._persisted.append(credential)
        if credential["issuer"] == ISSUER and self._dice.random() < 0.5:
            asked = {"cred_hash": derive("m5.cred_hash", raw)}
            self._accepted(self._session.call("persist_verified_vc", asked), "persist_verified_vc")

    def _put(self, each: Made, *, new: bool) -> None:
        there = {stored.op_id for stored in self.stored}
        answer = self._session.call("put_op", {"op": each.raw})
        self._accepted(answer, "put_op")
        due = "new" if new else "prior"
        if answer.effect != due:
            verdict = "lost_durability" if due == "prior" else "wrong_reason"
            self._differs(verdict, "the effect of put_op", due, answer.effect)
        if new:
            self.stored.append(each)
        value = answer.value or {}
        missing = [parent for parent in each.parents if parent not in there]
        shown = {"op_id": each.op_id, "pending": each.op_id not in order_of(self.stored), "missing": missing}
        if value != shown:
            self._differs("wrong_reason", "what put_op says", shown, value)

    def _interrupted(self, each: Made) -> None:
        """Kill the process within an append. The operation is there whole or not at all, and all others are."""
        self._session.start("put_op", {"op": each.raw})
        time.sleep(self._dice.choice(_MOMENTS))
        self._session.kill()
        self._session.reopen()
        found = self._session.observe("get_op", {"op_id": each.op_id})
        if found["has"]:
            self.stored.append(each)
        self.compare("after a kill")
        self._put(each, new=not found["has"])

    def compare(self, when: str) -> None:
        """Everything that the log shows is that of the oracle, and verify-store finds nothing."""
        order, session = order_of(self.stored), self._session
        for each in self.stored:
            if session.observe("get_op", {"op_id": each.op_id}) != {"has": True, "op": each.raw}:
                self._differs("lost_durability", f"an operation {when}", each.raw, "nothing, or other bytes")
        found = session.observe("topo_iter")["op_ids"]
        if found != order:
            self._differs("lost_durability", f"the order {when}", order, found)
        waiting = sorted({each.op_id for each in self.stored} - set(order))
        pending = session.observe("pending")["op_ids"]
        if pending != waiting:
            self._differs("lost_durability", f"what waits {when}", waiting, pending)
        state = state_of(self.stored, self._persisted)
        for origin in ("genesis", "latest"):
            dumped = session.observe("dump", {"from": origin})["state"]
            if dumped != state:
                self._differs("lost_durability", f"the state from {origin} {when}", state, dumped)
        report = session.observe("verify_store")
        due = {"whole": True, "operations": len(self.stored), "pending": len(waiting), "problems": []}
        if report != due:
            self._differs("lost_durability", f"what verify-store finds {when}", due, report)

    def snapshot(self) -> str:
        """The bytes of a checkpoint of the whole order."""
        made = self._session.call("checkpoint_create")
        self._accepted(made, "checkpoint_create")
        found = self._session.observe("checkpoints")["checkpoints"]
        snapshot: str = next(each["snapshot"] for each in found if each["checkpoint_id"] == made.value["checkpoint_id"])
        return snapshot

    def _accepted(self, answer: Answer, method: str) -> None:
        if answer.outcome != "accepted":
            received = f"{answer.outcome} {answer.reason or ''}"
            self._bench.fail("over_refusal", f"{method} was not accepted", expected="accepted", received=received)

    def _differs(self, verdict: str, what: str, expected: object, received: object) -> None:
        self._bench.fail(verdict, f"{what} differs", expected=str(expected), received=str(received))
