"""m5-log: what a script cannot say. Random histories in random orders, with kills, against the oracle.

Who is trusted, what is revoked and which credentials are there changes between two questions, and so does the order.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.m5_log.generate import (
    ISSUER,
    STRANGER,
    Graph,
    Issued,
    Made,
    Words,
    clock_of,
    decision_of,
    drawn,
    order_of,
    state_of,
)
from holdfast.conformance.suites.m5_log.log import (
    COMMAND,
    must_be_done,
    must_be_refused,
    must_have_rows,
    place_status,
    place_trust,
)
from holdfast.vectors.derive import derive

QUESTIONS = (
    "order",
    "dump",
    "dump",
    "load",
    "load",
    "delete",
    "range",
    "scan",
    "decide",
    "verify",
    "verify",
    "trust",
    "revoke",
    "part",
)
# Whose key each name has in the trust file. Two of them have the same length.
TRUSTED: Sequence[Mapping[str, str]] = (
    {ISSUER: ISSUER},
    {ISSUER: ISSUER},
    {ISSUER: STRANGER},
    {ISSUER: ISSUER, STRANGER: STRANGER},
    # It may end grants, and no credential names it.
    {ISSUER: ISSUER, "other": STRANGER},
    {},
)
_LAST_COUNT = "f" * 8
# How often a command is asked for what an operation has just told.
_BY_COMMAND = 0.2
_LATEST = base64url(b"last_checkpoint_id")
# How long after a call the process is killed, in seconds: within an append, or behind it.
_MOMENTS = (0.0, 0.001, 0.003, 0.006, 0.01)
_STEPS = ("kill", "restart", "again", "checkpoint", "checkpoint", "credential", "", "")
_END = "at the end"
# How many questions are asked behind each operation.
_ASKED = 3
# How many operations are looked up by their id when everything is compared.
_LOOKED_UP = 3


@dataclass(frozen=True, slots=True)
class _Believed:
    """What decides whether a credential verifies."""

    trusted: Mapping[str, str]
    revoked: frozenset[str]
    persisted: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Point:
    """A checkpoint: the operations in it, the state, and what was believed then."""

    prefix: Sequence[str]
    state: str
    believed: _Believed


class HistoryRunner:
    """One history: what its session is known to hold, and the questions. `stored` is in the order of arrival."""

    def __init__(self, bench: Bench, session: SuiteSession, graph: Graph, dice: Random) -> None:
        self.bench, self.session, self.graph, self.dice = bench, session, graph, dice
        self.stored: list[Made] = []
        self._persisted: list[Issued] = []
        self._cached: set[str] = set()
        self._trusted: Mapping[str, str] = {}
        self._revoked: frozenset[str] = frozenset()
        self._points: dict[int, _Point] = {}
        self._highest = 0
        self._ends: list[int] = []
        self.trust(TRUSTED[0])

    def ask(self, question: str) -> None:
        """Ask one of `QUESTIONS`."""
        asked = {
            "order": self.must_be_in_order,
            "dump": self._dump,
            "load": self._load,
            "delete": self._delete,
            "range": self._range,
            "scan": self._scan,
            "decide": self._decide,
            "verify": self._verify,
            "trust": lambda: self.trust(self.dice.choice(TRUSTED)),
            "revoke": self._revoke,
            "part": self._part,
        }
        asked[question]()

    # What is believed

    def trust(self, trusted: Mapping[str, str]) -> None:
        """Write the trust file."""
        self._trusted = trusted
        place_trust(self.session, trusted)

    def revoke(self, revoked: Sequence[str]) -> None:
        """Write the status file."""
        self._revoked = frozenset(revoked)
        place_status(self.session, revoked)

    def _revoke(self) -> None:
        hashes = [each.cred_hash for each in self.graph.credentials]
        # Mostly one: another one in its place leaves a file of the same length.
        self.revoke(self.dice.sample(hashes, self.dice.choice((0, 1, 1, 1, 2))))

    def _believes(self, credential: Issued) -> bool:
        issuer = credential.draft["issuer"]
        return self._trusted.get(issuer) == issuer and credential.cred_hash not in self._revoked

    @property
    def believes_what_is_cached(self) -> bool:
        """Whether each credential that was verified once verifies now."""
        return all(self._believes(each) for each in self._persisted if each.cred_hash in self._cached)

    def _believed(self) -> _Believed:
        return _Believed(self._trusted, self._revoked, tuple(each.cred_hash for each in self._persisted))

    # Credentials

    def persist(self, credential: Issued) -> None:
        """Store a credential, and perhaps what it says. Often the latest checkpoint was made just before it came."""
        if self.stored and self.dice.random() < 0.5:
            self.checkpoint()
        must_be_done(self.bench, self.session.call("persist_vc", {"credential": credential.raw}), "persist_vc")
        if credential not in self._persisted:
            self._persisted.append(credential)
        self._dump()
        if self.dice.random() < 0.5:
            self._verify()

    def _verify(self) -> None:
        if not self._persisted:
            return
        cached = [each for each in self._persisted if each.cred_hash in self._cached]
        credential = self.dice.choice(self.dice.choice((cached, self._persisted)) or self._persisted)
        cred_hash = credential.cred_hash
        answer = self.session.call("persist_verified_vc", {"cred_hash": cred_hash})
        if not self._believes(credential):
            must_be_refused(
                self.bench, answer, "CREDENTIAL_INVALID", "persist_verified_vc of a credential that does not verify"
            )
            return
        must_be_done(self.bench, answer, "persist_verified_vc")
        said = {name: credential.draft[name] for name in ("issuer", "role", "scope", "nbf", "exp")}
        due = ("prior" if cred_hash in self._cached else "new", said)
        if (answer.effect, answer.value) != due:
            verdict = "fail_open" if answer.effect == "new" != due[0] else "wrong_reason"
            verdict = self.bench.verdict_on("persist_verified_vc", said, answer.value, verdict)
            self.differs(verdict, "what persist_verified_vc says", due, (answer.effect, answer.value))
        self._cached.add(cred_hash)

    def _decide(self) -> None:
        grants, places = self._grants(), self._places()
        if grants and places:
            self._decided(self.dice.choice(grants), self.dice.choice(places))

    def decide_all(self) -> None:
        """Decide about each grant at the end of the order."""
        for last in self._places()[-1:]:
            for grant in self._grants():
                self._decided(grant, last)

    def _grants(self) -> list[Mapping[str, Any]]:
        return [each.draft["payload"] for each in self.stored if each.draft["kind"] == "grant"]

    def _places(self) -> list[str]:
        # Whether a grant or a revocation holds at itself already, the contract leaves open.
        kinds = {each.op_id: each.draft["kind"] for each in self.stored}
        return [op_id for op_id in order_of(self.stored) if kinds[op_id] in ("set", "add")]

    def _decided(self, grant: Mapping[str, Any], op_id: str) -> None:
        asked = {**{name: grant[name] for name in ("subject", "role", "tag")}, "op_id": op_id}
        due = decision_of(self.stored, *self._world(), asked)
        subject = derive("m5.public_key", grant["subject"])
        found = self.session.observe("decide", {**asked, "subject": subject})["allowed"]
        self.same(found, due, "fail_open" if found else "over_refusal", f"the decision about {asked}")

    # Checkpoints

    def checkpoint(self, at: int | None = None) -> int:
        """Make one, of the whole order or of a beginning, `at` if that is named; its id."""
        order, args = order_of(self.stored), {}
        if at is not None:
            args = {"topo_index": at}
        elif self.dice.random() < 0.5:
            args = {"topo_index": self.dice.choice((0, 1, len(order), self.dice.randint(0, len(order) + 2)))}
        index = args.get("topo_index", len(order))
        if not args and self.dice.random() < _BY_COMMAND:
            printed = self.session.provoke(COMMAND, {"arguments": ["checkpoint-create"]})["output"].strip()
            found = {"checkpoint_id": int(printed) if printed.isdecimal() else 0, "topo_index": index}
        else:
            answer = self.session.call("checkpoint_create", args)
            if index > len(order):
                must_be_refused(
                    self.bench, answer, "RANGE_INVALID", f"a checkpoint of {index} operations of {len(order)}"
                )
                return self.checkpoint()
            must_be_done(self.bench, answer, "checkpoint_create")
            found = answer.value
        checkpoint_id: int = found["checkpoint_id"]
        if found["topo_index"] != index or checkpoint_id <= self._highest:
            due = f"topo_index {index} and an id above {self._highest}"
            self.differs("lost_durability", "a new checkpoint", due, found)
        self._highest = checkpoint_id
        self._points[checkpoint_id] = _Point(order[:index], self._state_at(index), self._believed())
        return checkpoint_id

    def _state_at(self, index: int) -> str:
        first = set(order_of(self.stored)[:index])
        return self._state([each for each in self.stored if each.op_id in first])

    def load_all(self) -> None:
        """Load each checkpoint."""
        for checkpoint_id in self._points:
            self._loaded(checkpoint_id)

    def _load(self) -> None:
        if self._points:
            self._loaded(self.dice.choice(list(self._points)))

    def _loaded(self, checkpoint_id: int) -> None:
        point = self._points[checkpoint_id]
        index = len(point.prefix)
        answer = self.session.call("checkpoint_load", {"checkpoint_id": checkpoint_id})
        if self.dice.random() < _BY_COMMAND:
            due = answer.value["state"] if answer.outcome == "accepted" else None
            self.command(["checkpoint-load", str(checkpoint_id)], due)
        same = order_of(self.stored)[:index] == point.prefix and self._state_at(index) == point.state
        if not same:
            must_be_refused(
                self.bench, answer, "CHECKPOINT_STALE", f"a checkpoint of {index} operations whose state is another now"
            )
        elif answer.outcome == "accepted":
            if answer.value != {"topo_index": index, "state": point.state}:
                self.differs("lost_durability", "the state of a checkpoint", point.state, answer.value)
        elif point.believed == self._believed():
            must_be_done(self.bench, answer, "checkpoint_load")
        else:
            # A credential may be judged otherwise, although nothing came of it.
            must_be_refused(self.bench, answer, "CHECKPOINT_STALE", "a checkpoint behind another belief")

    def _delete(self) -> None:
        if not self._points:
            return
        checkpoint_id = self.dice.choice(list(self._points))
        must_be_done(
            self.bench, self.session.call("checkpoint_delete", {"checkpoint_id": checkpoint_id}), "checkpoint_delete"
        )
        del self._points[checkpoint_id]
        gone = self.session.call("checkpoint_delete", {"checkpoint_id": checkpoint_id})
        must_be_refused(self.bench, gone, "CHECKPOINT_UNKNOWN", "a checkpoint that was deleted")
        self.must_list("behind a deletion")

    def must_list(self, when: str) -> None:
        """All checkpoints are listed, and the latest is the newest that is there, in meta too."""
        found = self.session.observe("checkpoints")
        listed = [(each["checkpoint_id"], each["topo_index"]) for each in found["checkpoints"]]
        due = [(number, len(point.prefix)) for number, point in sorted(self._points.items())]
        if (listed, found["latest"]) != (due, max(self._points, default=None)):
            self.differs("lost_durability", f"the list of checkpoints {when}", due, found)
        meta = {row["key"]: row["value"] for row in self.session.observe("store")["meta"]}
        latest = derive("m5.row", {"parts": [{"number": max(self._points, default=0)}]})
        self.same(meta.get(_LATEST), latest, "lost_durability", f"last_checkpoint_id in meta {when}")

    def _dump(self) -> None:
        self.must_dump(self.state(), self.dice.choice(("genesis", "latest", "latest")))

    def must_dump(self, state: str, origin: str, when: str = "now") -> None:
        """A replay from there ends in this state."""
        if (shown := self.session.observe("dump", {"from": origin})["state"]) != state:
            verdict = self.bench.verdict_on("dump", {"state": state}, {"state": shown}, "lost_durability")
            self.differs(verdict, f"the state from {origin} {when}", state, shown)

    # The order, ranges and parts

    def must_be_in_order(self, when: str = "now") -> None:
        """Everything that does not wait stands in the order, once."""
        found = self.session.observe("topo_iter")["op_ids"]
        self.must_list_all("topo_iter", order_of(self.stored), found, f"the order {when}")

    def _range(self) -> None:
        total = len(order_of(self.stored))
        # Often one that was asked for before: since then the order may be another one.
        last = self.dice.choice((self.dice.randint(0, total), *self._ends[-2:]))
        first = self.dice.randint(1, last + 1)
        self._ends.append(last)
        if self.dice.random() < 0.2:
            first, last = self.dice.randint(0, total + 2), self.dice.randint(0, total + 2)
        for source in self.dice.sample(("store", "memory"), 2):
            args = {"from_index": first, "to_index": last, "source": source}
            answer = self.session.call("apply_incremental", args)
            if not (1 <= first <= last + 1 and last <= total):
                must_be_refused(self.bench, answer, "RANGE_INVALID", f"{args} of {total} operations")
                continue
            must_be_done(self.bench, answer, f"apply_incremental {args} of {total} operations")
            self.same(answer.value["state"], self._state_at(last), "lost_durability", f"the state behind {args}")

    def _scan(self) -> None:
        if not self.stored:
            return
        author = self.dice.choice(self.stored).draft["key"]
        own = sorted((clock_of(each), each.op_id) for each in self.stored if each.draft["key"] == author)
        clocks = [clock for clock, _ in own]
        clocks += [clock[:16] + count for clock in clocks for count in ("0" * 8, _LAST_COUNT)]
        first, last = self.dice.choice(clocks), self.dice.choice(clocks)
        due = [op_id for clock, op_id in own if first <= clock <= last]
        asked = {"author": derive("m5.public_key", author), "from": first, "to": last}
        found = self.session.observe("scan", asked)["op_ids"]
        self.must_list_all("scan", due, found, f"the scan from {first} to {last}")

    def _part(self) -> None:
        if not self.stored:
            return
        op_id = self.dice.choice(self.stored).op_id
        near = self.dice.choice((op_id[:2], op_id[:32], op_id[:-2], "", op_id + "00"))
        found = self.session.observe("get_op", {"op_id": near})
        if found != {"has": False, "op": None}:
            self.differs("fail_open", f"the operation with the id {near!r}", "none", found)

    # The oracle

    def _world(self) -> tuple[list[Issued], list[str]]:
        """The credentials that verify, and the labels whose keys are trusted."""
        return [each for each in self._persisted if self._believes(each)], sorted(set(self._trusted.values()))

    def _state(self, operations: Sequence[Made]) -> str:
        return state_of(operations, *self._world())

    def state(self) -> str:
        """The state of everything that is stored."""
        return self._state(self.stored)

    # Commands

    def command(self, arguments: Sequence[str], due: str | None) -> None:
        """Run a command, which prints what is due, or fails where nothing is."""
        printed = self.session.provoke(COMMAND, {"arguments": list(arguments)})
        done, output = printed["status"] == 0, printed["output"]
        if done != (due is not None) or (due is not None and output != f"{due}\n"):
            verdict = "fail_open" if due is None else "lost_durability"
            shown = f"status {printed['status']}: {output[:300]}"
            self.differs(verdict, f"what {' '.join(arguments)} says", "a failure" if due is None else due, shown)

    # What is no answer

    def must_list_all(self, method: str, due: Sequence[str], found: Sequence[str], what: str) -> None:
        """An observation lists these operations, none of them twice, and no other."""
        if found != due:
            verdict = self.bench.verdict_on(method, {"op_ids": due}, {"op_ids": found}, "lost_durability")
            self.differs(verdict, what, due, found)

    def same(self, found: object, due: object, verdict: str, what: str) -> None:
        """What is due was found."""
        if found != due:
            self.differs(verdict, what, due, found)

    def differs(self, verdict: str, what: str, expected: object, received: object) -> None:
        """Fail; a wrong answer is reported."""
        self.bench.weigh(verdict, f"{what} differs", expected=str(expected), received=str(received))

    # Plays a random history against the session, and compares what it shows with the oracle

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
        must_be_done(self.bench, answer, "put_op")
        due = "new" if new else "prior"
        self.same(answer.effect, due, "lost_durability", "the effect of put_op")
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
        self.session.begin_again("kill")
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
        self.same(report, due_report, "lost_durability", f"what verify-store finds {when}")

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
        must_be_done(self.bench, made, "checkpoint_create")
        found = self.session.observe("checkpoints")["checkpoints"]
        snapshot: str = next(each["snapshot"] for each in found if each["checkpoint_id"] == made.value["checkpoint_id"])
        return snapshot


_SIZE = 16
_HISTORIES = 7
_ARRIVALS = 3


def _graph(session: SuiteSession, label: str, number: int) -> Graph:
    authors = [f"{name} {session.rand(f'{label} {name}')}" for name in ("alice", "bob", "carol")]
    dice = session.dice(label)
    return drawn(dice, authors, _SIZE, Words.of(number, dice))


@clause(
    "M5-PRP-1", "M5-AC1", "M5-AC5", "M5-AC6", "M5-CLI-2", "M5-CLI-5", "M5-CLI-6", provocations=(COMMAND,), whole=True
)
def test_any_history_with_kills_anywhere_has_the_state_of_the_oracle(bench: Bench) -> None:
    """Any names, numbers, clocks and grants, and every question behind every operation, with kills and restarts."""
    for number in range(round(_HISTORIES * bench.thorough)):
        with bench.session() as session:
            graph = _graph(session, f"graph {number}", number)
            HistoryRunner(bench, session, graph, session.dice(f"play {number}")).play(crashes=True)


@clause("M5-CKP-5", "M5-CKP-6", "M5-AC5", provocations=(COMMAND,), whole=True)
def test_every_beginning_of_the_order_is_restored_and_continued(bench: Bench) -> None:
    """Among them those before and behind a revocation that ends two equal grants. Then each credential is revoked."""
    with bench.session() as session:
        HistoryRunner(bench, session, _graph(session, "restore", 0), session.dice("restore")).restore()


@clause("M5-AC6", "M5-CKP-3", "M5-TOPO-2", provocations=(COMMAND,), whole=True)
def test_the_order_of_arrival_shows_nowhere(bench: Bench) -> None:
    """The same operations in several orders leave the same snapshot, byte for byte, each in a store of its own."""
    for number in range(round(2 * bench.thorough)):
        snapshots = []
        for arrival in range(_ARRIVALS):
            with bench.session() as session:
                graph = _graph(session, f"graph {number}", _HISTORIES + number)
                player = HistoryRunner(bench, session, graph, session.dice(f"play {number} {arrival}"))
                player.play(crashes=False)
                snapshots.append(player.snapshot())
                if len(set(snapshots)) > 1:
                    bench.fail("wrong_reason", "two orders of arrival have two snapshots", expected=snapshots[0])
