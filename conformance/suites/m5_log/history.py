"""m5-log: random histories. Operations come in any order, with kills, retries and every question between them.

Who is trusted, what is revoked and which credentials are there changes between two questions, and so does the order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from random import Random
from typing import ClassVar

from holdfast.conformance.attacks.any_history import HistoryModel, Now, Step
from holdfast.conformance.attacks.model import Call, Observation
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.m5_log.generate import (
    ISSUER,
    STRANGER,
    Graph,
    Issued,
    Words,
    clock_of,
    decision_of,
    drawn,
)
from holdfast.conformance.suites.m5_log.model import (
    Log,
    LogModel,
    about_point,
    command,
    persist,
    put,
    revoke,
    trust,
    verify,
)
from holdfast.vectors.derive import derive

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
_ORIGINS = ("genesis", "latest")
_CRASHES = ("kill", "restart")
_STEPS = (*_CRASHES, "again", "checkpoint", "checkpoint", "credential", "", "")
# How many operations a history has beside those of credentials, and how many questions are asked after each.
_SIZE, _ASKED = 16, 3


class LogHistory(LogModel, HistoryModel[Log]):
    """The model of m5-log with histories."""

    relations: ClassVar = {
        "put_op": ("is stored already", "waits", "lets others come", "comes before others", "comes into a checkpoint"),
        "persist_vc": ("is granted already", "a checkpoint is older"),
        "persist_verified_vc": ("verifies", "verifies not", "was verified before"),
        "checkpoint_load": ("its order is another now", "its state is another now", "all is as it was"),
        "checkpoint_delete": ("is gone",),
        "apply_incremental": ("is beyond the end", "begins later"),
        "decide": ("is allowed", "is denied"),
        "dump": ("the latest is of no use", "the latest is of use"),
        **dict.fromkeys(("trust", "revoke"), ("ends what was verified",)),
    }

    def __init__(self, session: SuiteSession) -> None:
        """See `attacks.model.Model`."""
        super().__init__(session)
        self._session = session

    def graph(self, number: int, dice: Random) -> Graph:
        """The operations of a history, by authors of this session."""
        authors = [f"{name} {self._session.rand(f'{number} {name}')}" for name in ("alice", "bob", "carol")]
        return drawn(dice, authors, _SIZE, Words.of(number, dice))

    # What is drawn

    def history(self, now: Now[Log], dice: Random, number: int) -> Iterator[Step]:
        """See `attacks.any_history.HistoryModel`."""
        yield from self.arrival(now, self.graph(number, dice), dice, crashes=True)

    def arrival(self, now: Now[Log], graph: Graph, dice: Random, *, crashes: bool) -> Iterator[Step]:
        """All operations come in a random order; at the end the same is there and believed in every history."""
        credentials = list(graph.credentials)
        for each in dice.sample(graph.operations, len(graph.operations)):
            act = dice.choice(_STEPS)
            act = act if crashes or act not in _CRASHES else ""
            yield Step(put(each), act if act == "kill" else "")
            if act == "restart":
                yield Step(None, "restart")
                words = dice.choice((("verify-store",), ("replay-from-store", "--from", dice.choice(_ORIGINS))))
                yield Step(command(*words))
            elif act == "again":
                yield Step(put(self._made[dice.choice(sorted(now.state.stored))]), "again")
            elif act == "checkpoint":
                yield self._checkpoint(now.state, dice)
            elif act == "credential" and credentials:
                yield from self._persisted(now, credentials.pop(), dice)
            for _ in range(_ASKED):
                yield from self._question(now, dice)
        for credential in credentials:
            yield from self._persisted(now, credential, dice)
        yield Step()
        yield Step(command("dump-state-json"))
        yield Step(revoke(()))
        yield Step(Call("checkpoint_create", "checkpoint_create", {}))
        for trusted in TRUSTED:
            yield Step(trust(trusted))
            yield from self.load_all(now.state)
        yield Step(trust({ISSUER: ISSUER}))
        for op_id in self._places(now.state)[-1:]:
            yield from (Step(self._decision(now.state, grant, op_id)) for grant in self._grants(now.state))
        yield Step(Call("checkpoint_create", "checkpoint_create", {}))

    def load_all(self, state: Log) -> Iterator[Step]:
        """Load each checkpoint."""
        return (Step(about_point("checkpoint_load", number)) for number, _ in state.points)

    def dump(self, state: Log, origin: str) -> Step:
        """A replay from there ends in the state of everything that is stored."""
        return Step(Observation("dump", {"state": self.state_at(state)}, {"from": origin}))

    def _persisted(self, now: Now[Log], credential: Issued, dice: Random) -> Iterator[Step]:
        """Store a credential, and perhaps what it says. Often the latest checkpoint was made just before it came."""
        if now.state.stored and dice.random() < 0.5:
            yield self._checkpoint(now.state, dice)
        yield Step(persist(credential))
        yield self.dump(now.state, "latest")
        if dice.random() < 0.5:
            yield Step(verify(credential.cred_hash))

    def _checkpoint(self, state: Log, dice: Random) -> Step:
        """One of the whole order or of a beginning; sometimes one that goes beyond the end."""
        total = len(self.order(state))
        if dice.random() < 0.5:
            index = dice.choice((0, 1, total, dice.randint(0, total + 2)))
            return Step(Call("checkpoint_create", "checkpoint_create", {"topo_index": index}))
        if dice.random() < _BY_COMMAND:
            return Step(command("checkpoint-create"))
        return Step(Call("checkpoint_create", "checkpoint_create", {}))

    def _question(self, now: Now[Log], dice: Random) -> Iterator[Step]:
        log, points = now.state, [number for number, _ in now.state.points]
        hashes = sorted(log.belief.credentials)
        asked: Sequence[Callable[[], Iterable[Step]]] = (
            lambda: [Step(next(self.observations(log)))],
            lambda: [self.dump(log, dice.choice((*_ORIGINS, "latest")))],
            lambda: [self.dump(log, "latest")],
            lambda: self._loaded(dice.choice(points), dice) if points else (),
            lambda: self._loaded(dice.choice(points), dice) if points else (),
            lambda: [Step(about_point("checkpoint_delete", dice.choice(points)))] * 2 if points else (),
            lambda: self._range(log, dice),
            lambda: self._scan(log, dice) if log.stored else (),
            lambda: self._decided(log, dice),
            lambda: (
                [Step(verify(dice.choice(dice.choice((sorted(log.verified), hashes)) or hashes)))] if hashes else ()
            ),
            lambda: [Step(verify(dice.choice(hashes)))] if hashes else (),
            lambda: [Step(trust(dice.choice(TRUSTED)))],
            # Mostly one: another one in its place leaves a file of the same length.
            lambda: [
                Step(revoke(dice.sample(sorted(self._issued), min(len(self._issued), dice.choice((0, 1, 1, 1, 2))))))
            ],
            lambda: self._part(log, dice) if log.stored else (),
        )
        yield from dice.choice(asked)()

    def _loaded(self, number: int, dice: Random) -> Iterator[Step]:
        yield Step(about_point("checkpoint_load", number))
        if dice.random() < _BY_COMMAND:
            yield Step(command("checkpoint-load", str(number), about=number))

    def _range(self, state: Log, dice: Random) -> Iterator[Step]:
        total = len(self.order(state))
        last = dice.randint(0, total)
        first = dice.randint(1, last + 1)
        if dice.random() < 0.2:
            first, last = dice.randint(0, total + 2), dice.randint(0, total + 2)
        for source in dice.sample(("store", "memory"), 2):
            args = {"from_index": first, "to_index": last, "source": source}
            yield Step(Call("apply_incremental", "apply_incremental", args))

    def _scan(self, state: Log, dice: Random) -> Iterator[Step]:
        stored = [self._made[op_id] for op_id in sorted(state.stored)]
        author = dice.choice(stored).draft["key"]
        own = sorted((clock_of(each), each.op_id) for each in stored if each.draft["key"] == author)
        clocks = [clock for clock, _ in own]
        clocks += [clock[:16] + count for clock in clocks for count in ("0" * 8, _LAST_COUNT)]
        first, last = dice.choice(clocks), dice.choice(clocks)
        due = [op_id for clock, op_id in own if first <= clock <= last]
        asked = {"author": derive("m5.public_key", author), "from": first, "to": last}
        yield Step(Observation("scan", {"op_ids": due}, asked))

    def _part(self, state: Log, dice: Random) -> Iterator[Step]:
        op_id = dice.choice(sorted(state.stored))
        yield Step(Observation("get_op", {"has": True, "op": self._made[op_id].raw}, {"op_id": op_id}))
        near = dice.choice((op_id[:2], op_id[:32], op_id[:-2], "", op_id + "00"))
        yield Step(Observation("get_op", {"has": False, "op": None}, {"op_id": near}))

    # Decisions

    def _grants(self, state: Log) -> list[Mapping[str, str]]:
        stored = (self._made[op_id] for op_id in sorted(state.stored))
        return [each.draft["payload"] for each in stored if each.draft["kind"] == "grant"]

    def _places(self, state: Log) -> list[str]:
        # Whether a grant or a revocation holds at itself already, the contract leaves open.
        return [op_id for op_id in self.order(state) if self._made[op_id].draft["kind"] in ("set", "add")]

    def _decided(self, state: Log, dice: Random) -> Iterator[Step]:
        grants, places = self._grants(state), self._places(state)
        if grants and places:
            yield Step(self._decision(state, dice.choice(grants), dice.choice(places)))

    def _decision(self, state: Log, grant: Mapping[str, str], op_id: str) -> Observation:
        asked = {**{name: grant[name] for name in ("subject", "role", "tag")}, "op_id": op_id}
        operations = [self._made[each] for each in sorted(state.stored)]
        due = decision_of(operations, *self.believed(state.belief), asked)
        args = {**asked, "subject": derive("m5.public_key", grant["subject"])}
        return Observation("decide", {"allowed": due}, args, otherwise="over_refusal")

    # How a step is related to what is there

    def features(self, state: Log, what: Call | Observation) -> Iterator[str]:
        """See `attacks.any_history.HistoryModel`."""
        if isinstance(what, Observation):
            if what.method == "decide":
                yield "is allowed" if what.due["allowed"] else "is denied"
            elif what.method == "dump" and what.args["from"] == "latest" and state.points:
                yield "the latest is of use" if self.holds(state) else "the latest is of no use"
            return
        after = next(iter(self.outcomes(state, what, None)), None)
        if what.row == "put_op" and after is not None:
            yield from self._comes(state, after.state, what.about[0].op_id)
        elif what.row == "persist_vc":
            granted = {grant["credential"] for grant in self._grants(state)}
            yield from ["is granted already"] * (what.about.cred_hash in granted)
            yield from ["a checkpoint is older"] * bool(state.points)
        elif what.row == "persist_verified_vc" and what.about in state.belief.credentials:
            yield "verifies" if self._believes(state.belief, what.about) else "verifies not"
            yield from ["was verified before"] * (what.about in state.verified)
        elif what.row == "checkpoint_load" and what.about in dict(state.points):
            prefix, point = tuple(self.order(state)), dict(state.points)[what.about]
            same = prefix[: len(point.prefix)] == point.prefix
            yield from ["its order is another now"] * (not same)
            yield from ["its state is another now"] * (same and self.state_at(state, len(point.prefix)) != point.state)
            yield from ["all is as it was"] * (same and point.belief == state.belief)
        elif what.row == "checkpoint_delete":
            yield from ["is gone"] * (what.about not in dict(state.points))
        elif what.row == "apply_incremental":
            yield "is beyond the end" if after is None or after.value is None else "is there"
            yield from ["begins later"] * (what.args["from_index"] > 1)
        elif not what.method and after is not None:
            ended = {each for each in state.verified if not self._believes(after.state.belief, each)}
            yield from ["ends what was verified"] * bool(ended)

    def _comes(self, state: Log, after: Log, op_id: str) -> Iterator[str]:
        before, order = self.order(state), self.order(after)
        yield from ["is stored already"] * (op_id in state.stored)
        yield from ["waits"] * (op_id not in order)
        yield from ["lets others come"] * (len(order) > len(before) + 1)
        yield from ["comes before others"] * (op_id in order[:-1] and op_id not in before)
        stale = [point for _, point in after.points if tuple(order[: len(point.prefix)]) != point.prefix]
        yield from ["comes into a checkpoint"] * (bool(stale) and order != before)
