"""m5-log as a pure model: what a log holds, what each call may answer, and what is shown then. See `attacks.model`.

The order, the state and each decision are those of the oracle.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from holdfast.conformance.attacks.model import DONE, FAILED, Call, Model, Observation, Outcome
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.inspection.database import cell
from holdfast.conformance.suites.m5_log.generate import ISSUER, Issued, Made, clock_of, order_of, state_of
from holdfast.conformance.suites.m5_log.log import COMMAND, STATUS, TRUST, status_of, trust_of
from holdfast.vectors.derive import derive

_UNKNOWN, _STALE, _RANGE = "refused CHECKPOINT_UNKNOWN", "refused CHECKPOINT_STALE", "refused RANGE_INVALID"
_LOST = "lost_durability"
_CLAIMS = ("issuer", "role", "scope", "nbf", "exp")
_APPEND, _CREATE = f"{COMMAND} op-append", f"{COMMAND} checkpoint-create"
_FAMILIES = ("ops", "edges", "by_author", "vc_raw", "vc_verified", "checkpoints", "meta")
_LATEST = b"last_checkpoint_id".hex()
# The rows of more operations, and more checkpoints, would fill the evidence.
_MOST_ROWS = 400
# The clock of the first call. Each later one has a later clock, but those that come late.
_FIRST_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Belief:
    """What decides whether a credential verifies: whose key each name has, what is revoked, and what is stored."""

    trusted: tuple[tuple[str, str], ...] = ((ISSUER, ISSUER),)
    revoked: frozenset[str] = frozenset()
    credentials: frozenset[str] = frozenset()

    def with_(self, *hashes: str) -> Belief:
        """The same with these credentials."""
        return replace(self, credentials=self.credentials.union(hashes))


@dataclass(frozen=True, slots=True)
class Point:
    """A checkpoint: the operations in it, the state, and what was believed then."""

    prefix: tuple[str, ...]
    state: str
    belief: Belief


@dataclass(frozen=True, slots=True)
class Log:
    """What a log holds: ids of operations, hashes of credentials that were verified, and checkpoints."""

    stored: frozenset[str] = frozenset()
    belief: Belief = Belief()
    verified: frozenset[str] = frozenset()
    points: tuple[tuple[int, Point], ...] = ()
    highest: int = 0


class LogModel(Model[Log]):
    """The model of m5-log for one session."""

    writing = ("put_op", "persist_vc", "persist_verified_vc", "checkpoint_create", "checkpoint_delete")
    operations = (*writing, "checkpoint_load", "apply_incremental")
    commands = tuple(
        f"{COMMAND} {name}"
        for name in (
            "op-append",
            "checkpoint-create",
            "checkpoint-list",
            "checkpoint-load",
            "replay-from-store",
            "verify-store",
            "dump-state-json",
        )
    )
    rivals = (
        *((row, row) for row in (*writing, _APPEND, _CREATE)),
        ("put_op", "checkpoint_create"),
        ("put_op", _APPEND),
        ("persist_vc", "persist_verified_vc"),
        ("checkpoint_create", "checkpoint_delete"),
        ("checkpoint_create", _CREATE),
    )
    growing = (_APPEND, _CREATE)
    # More than the thousand rows that are many: each operation has three.
    volume = 340
    unavailable = ("STORE_UNAVAILABLE",)
    exclusive = True
    points = ("before_batch", "after_witness")
    store = ("m5/db", "m5/db/CURRENT")
    home = "m5"
    kinds_of_files = ("*.sst", "*.log", "MANIFEST-*", "CURRENT")
    whole = ("verify_store", "whole")
    chosen = "checkpoints"
    first = Log()

    def __init__(self, session: SuiteSession) -> None:
        self._author = f"alice {session.rand('author')}"
        self._file = f"ops-{session.rand('file')}"
        self._made: dict[str, Made] = {}
        self._awaited: Made | None = None
        self._issued: dict[str, Issued] = {}
        self._orders: dict[frozenset[str], list[str]] = {}
        self._states: dict[Any, str] = {}

    def files(self, state: Log) -> Mapping[str, bytes]:
        """See `attacks.model.Model`."""
        return trust(dict(state.belief.trusted)).files

    # Calls

    def needs(self, state: Log, row: str) -> str:
        """See `attacks.model.Model`."""
        name = row.rpartition(" ")[2].replace("-", "_")
        if name in ("checkpoint_delete", "checkpoint_load") and not (state.points and self.holds(state)):
            return "checkpoint_create"
        if name == "persist_verified_vc" and state.belief.credentials == state.verified:
            return "persist_vc"
        return ""

    def holds(self, state: Log) -> bool:
        """Whether the newest checkpoint is of what the order begins with."""
        point = state.points[-1][1]
        return tuple(self.order(state)[: len(point.prefix)]) == point.prefix and point.belief == state.belief

    def call(self, state: Log, row: str, number: int, count: int = 5) -> Call:
        """See `attacks.model.Model`."""
        newest = state.points[-1][0] if state.points else 0
        if row == "put_op":
            made = self.operation(state, number)
            return put(made)
        if row == _APPEND:
            return append(f"{self._file}-{number}", [self.operation(state, number, at) for at in range(count)])
        if row == "persist_vc":
            return persist(self._credential(number, "t"))
        if row == "persist_verified_vc":
            return verify(min(state.belief.credentials - state.verified))
        if row == "checkpoint_create":
            return Call(row, row, {})
        if row == "apply_incremental":
            source = ("store", "memory")[number % 2]
            return Call(row, row, {"from_index": 1, "to_index": len(self.order(state)), "source": source})
        if row.startswith("checkpoint_"):
            return about_point(row, newest)
        name = row.partition(" ")[2]
        words = {"checkpoint-load": [str(newest)], "replay-from-store": ["--from", "latest"]}.get(name, [])
        return command(name, *words, about=newest)

    def refused(self) -> tuple[Call, str]:
        """See `attacks.model.Model`."""
        return Call("put_op", "put_op", {"op": "AA"}), "OP_MALFORMED"

    def operation(self, state: Log, number: int, at: int = 0) -> Made:
        """A new operation: by turns a plain one, one that waits, what it waits for, a late one, and a credential."""
        turn, order = (number + at) % 5, self.order(state)
        draft = {"key": self._author, "ms": _FIRST_MS + 1000 * number, "logical": at, "parents": ()}
        payload: dict[str, Any] = {"key": f"c{number % 3}", "amount": number}
        if turn == 1:
            self._awaited = self._known({**draft, "ms": number, "kind": "add", "payload": payload})
            draft = {**draft, "parents": (*order[-1:], self._awaited.op_id)}
        elif turn == 2 and self._awaited is not None:
            return self._awaited
        elif turn == 3 and order:
            # At the clock of another one, behind two others that are named in the wrong order.
            draft = {**draft, "ms": self._made[order[0]].draft["ms"], "parents": tuple(order[1:3][::-1])}
        elif turn == 4:
            issued = self._credential(number, f"t{at}")
            return self._known({**draft, "kind": "credential", "payload": {"credential": issued.raw}})
        return self._known({**draft, "kind": "add", "payload": payload})

    def _known(self, draft: Mapping[str, Any]) -> Made:
        made = Made.of(draft)
        return self._made.setdefault(made.op_id, made)

    def _credential(self, number: int, tag: str) -> Issued:
        draft = {"issuer": ISSUER, "subject": self._author, "role": f"r{number}", "scope": [tag], "nbf": 1, "exp": 9}
        issued = Issued.of(draft)
        self._issued[issued.cred_hash] = issued
        return issued

    # What is known

    def order(self, state: Log) -> list[str]:
        """The order of what is stored."""
        if state.stored not in self._orders:
            self._orders[state.stored] = order_of([self._made[op_id] for op_id in state.stored])
        return self._orders[state.stored]

    def state_at(self, state: Log, index: int | None = None) -> str:
        """The state behind this number of operations, or behind all."""
        stored, belief = frozenset(self.order(state)[:index]), state.belief
        if (stored, belief) not in self._states:
            operations = [self._made[op_id] for op_id in sorted(stored)]
            self._states[stored, belief] = state_of(operations, *self.believed(belief))
        return self._states[stored, belief]

    def believed(self, belief: Belief) -> tuple[list[Issued], list[str]]:
        """The credentials that verify, and the labels whose keys are trusted."""
        credentials = [self._issued[each] for each in sorted(belief.credentials) if self._believes(belief, each)]
        return credentials, sorted({label for _, label in belief.trusted})

    def _believes(self, belief: Belief, cred_hash: str) -> bool:
        issuer = self._issued[cred_hash].draft["issuer"]
        return dict(belief.trusted).get(issuer) == issuer and cred_hash not in belief.revoked

    # What is due

    def outcomes(self, state: Log, call: Call, seen: Any) -> Iterable[Outcome[Log]]:
        """See `attacks.model.Model`."""
        if not call.method:
            return [Outcome("", replace(state, belief=replace(state.belief, **call.args)))]
        name = call.row.replace("-", "_").rpartition(" ")[2]
        due: Iterator[Outcome[Log]] = getattr(self, f"_{name}")(state, call, seen)
        if call.method != COMMAND:
            return due
        return (replace(each, said=DONE if each.said.startswith("accepted") else FAILED) for each in due)

    def _with(self, state: Log, made: Sequence[Made]) -> Log:
        """The same with these operations. What an operation says of a credential is stored as well."""
        self._made.update((each.op_id, each) for each in made)
        drafts = [each.draft for each in made]
        carried = [
            derive("m5.cred_hash", each["payload"]["credential"]) for each in drafts if each["kind"] == "credential"
        ]
        belief = replace(state.belief, credentials=state.belief.credentials.union(carried))
        return replace(state, stored=state.stored.union(each.op_id for each in made), belief=belief)

    def _put_op(self, state: Log, call: Call, _: Any) -> Iterator[Outcome[Log]]:
        after, (made,) = self._with(state, call.about), call.about
        missing = [parent for parent in made.parents if parent not in state.stored]
        said = {"op_id": made.op_id, "pending": made.op_id not in self.order(after), "missing": missing}
        yield Outcome(_effect(state, after), after, said)

    def _op_append(self, state: Log, call: Call, _: Any) -> Iterator[Outcome[Log]]:
        yield Outcome("accepted", self._with(state, call.about))

    def _persist_vc(self, state: Log, call: Call, _: Any) -> Iterator[Outcome[Log]]:
        issued: Issued = call.about
        self._issued[issued.cred_hash] = issued
        after = replace(state, belief=state.belief.with_(issued.cred_hash))
        yield Outcome(_effect(state, after), after, {"cred_hash": issued.cred_hash})

    def _persist_verified_vc(self, state: Log, call: Call, _: Any) -> Iterator[Outcome[Log]]:
        if call.about not in state.belief.credentials:
            yield Outcome("refused CREDENTIAL_UNKNOWN", state)
        elif not self._believes(state.belief, call.about):
            yield Outcome("refused CREDENTIAL_INVALID", state)
        else:
            after = replace(state, verified=state.verified | {call.about})
            draft = self._issued[call.about].draft
            yield Outcome(_effect(state, after), after, {name: draft[name] for name in _CLAIMS})

    def _checkpoint_create(self, state: Log, call: Call, seen: Any) -> Iterator[Outcome[Log]]:
        order = self.order(state)
        index = call.args.get("topo_index", len(order))
        if index > len(order):
            yield Outcome(_RANGE, state)
            return
        found = state.highest + 1 if seen is None else _newest(seen)
        # Ids increase, and may leave some out.
        if found > state.highest:
            point = Point(tuple(order[:index]), self.state_at(state, index), state.belief)
            after = replace(state, points=(*state.points, (found, point)), highest=found)
            said = None if call.method == COMMAND else {"checkpoint_id": found, "topo_index": index}
            yield Outcome("accepted new", after, said)

    def _checkpoint_delete(self, state: Log, call: Call, _: Any) -> Iterator[Outcome[Log]]:
        if call.about not in dict(state.points):
            yield Outcome(_UNKNOWN, state)
        else:
            yield Outcome("accepted new", replace(state, points=tuple(p for p in state.points if p[0] != call.about)))

    def _checkpoint_load(self, state: Log, call: Call, _: Any) -> Iterator[Outcome[Log]]:
        point = dict(state.points).get(call.about)
        if point is None:
            yield Outcome(_UNKNOWN, state)
            return
        index = len(point.prefix)
        same = tuple(self.order(state)[:index]) == point.prefix and self.state_at(state, index) == point.state
        if same:
            yield Outcome("accepted prior", state, _saying(call, point.state, {"topo_index": index}), _LOST)
        # A credential may be judged otherwise, although nothing came of it.
        if not same or point.belief != state.belief:
            yield Outcome(_STALE, state)

    def _apply_incremental(self, state: Log, call: Call, _: Any) -> Iterator[Outcome[Log]]:
        first, last = call.args["from_index"], call.args["to_index"]
        if not 1 <= first <= last + 1 <= len(self.order(state)) + 1:
            yield Outcome(_RANGE, state)
        else:
            yield Outcome("accepted prior", state, _saying(call, self.state_at(state, last)), _LOST)

    def _checkpoint_list(self, state: Log, _: Call, __: Any) -> Iterator[Outcome[Log]]:
        due = [[str(each)] for each, _ in state.points]
        lists = lambda value: [line.split()[:1] for line in value["output"].splitlines()] == due  # noqa: E731
        yield Outcome("accepted", state, lists, _LOST)

    def _replay_from_store(self, state: Log, call: Call, _: Any) -> Iterator[Outcome[Log]]:
        yield Outcome("accepted", state, _saying(call, self.state_at(state)), _LOST)

    _dump_state_json = _replay_from_store

    def _verify_store(self, state: Log, _: Call, __: Any) -> Iterator[Outcome[Log]]:
        yield Outcome("accepted", state)
        if not all(self._believes(state.belief, each) for each in state.verified):
            # What was verified once and is not now may be told as a problem.
            yield Outcome("refused", state)

    # What is shown

    def observations(self, state: Log) -> Iterator[Observation]:
        """See `attacks.model.Model`."""
        order, stored = self.order(state), sorted(state.stored)
        waiting = sorted(state.stored.difference(order))
        points = {number: len(point.prefix) for number, point in state.points}
        yield Observation("topo_iter", {"op_ids": order})
        yield Observation("checkpoints", {"checkpoints": points, "latest": max(points, default=None)}, {}, _listed)
        if len(stored) <= _MOST_ROWS:
            yield Observation("store", self._rows(state), {}, _read, read=lambda session: session.inspect()["rows"])
        yield Observation("iter_ops", {"op_ids": stored})
        yield Observation("pending", {"op_ids": waiting, "missing": self._missing(state)})
        by_author: dict[str, list[tuple[str, str]]] = {}
        for made in (self._made[op_id] for op_id in stored):
            by_author.setdefault(made.draft["key"], []).append((clock_of(made), made.op_id))
        for author, own in by_author.items():
            asked = {"author": derive("m5.public_key", author), "from": "00" * 12, "to": "ff" * 12}
            yield Observation("scan", {"op_ids": [op_id for _, op_id in sorted(own)]}, asked)
        for origin in ("genesis", "latest"):
            yield Observation("dump", {"state": self.state_at(state)}, {"from": origin})
        sure = all(self._believes(state.belief, each) for each in state.verified)
        report = {"operations": len(stored), "pending": len(waiting), "problems": [], "whole": sure or None}
        yield Observation("verify_store", report, {}, None if sure else _unbelieved)

    def _missing(self, state: Log) -> list[dict[str, Any]]:
        children: dict[str, list[str]] = {}
        for op_id in sorted(state.stored):
            for parent in self._made[op_id].parents:
                if parent not in state.stored:
                    children.setdefault(parent, []).append(op_id)
        return [{"op_id": parent, "children": children[parent]} for parent in sorted(children)]

    def _rows(self, state: Log) -> Mapping[str, Any]:
        made = [self._made[op_id] for op_id in state.stored]
        authors = {each.op_id: derive("m5.public_key", each.draft["key"]) for each in made}
        return {
            "ops": {each.op_id: cell(from_base64url(each.raw)) for each in made},
            "edges": {each.op_id: cell(bytes.fromhex("".join(each.parents))) for each in made},
            "by_author": {authors[each.op_id] + clock_of(each) + each.op_id: cell(b"") for each in made},
            "vc_raw": {each: cell(from_base64url(self._issued[each].raw)) for each in state.belief.credentials},
            "vc_verified": state.verified,
            "checkpoints": {f"{number:016x}" for number, _ in state.points},
            "latest": cell(max(dict(state.points), default=0).to_bytes(8, "big")),
        }


def _read(rows: Any) -> Mapping[str, Any]:
    """What is compared of the rows that the harness read. Where no store was made yet, an empty log is there."""
    found = {family: {row["key"]["blob"]: row["value"] for row in rows.get(family, ())} for family in _FAMILIES}
    keys = {family: {*found[family]} for family in ("vc_verified", "checkpoints")}
    latest = found["meta"].get(_LATEST) if rows else cell(bytes(8))
    return {**{name: found[name] for name in _FAMILIES[:4]}, **keys, "latest": latest}


def _listed(shown: Any) -> Mapping[str, Any]:
    points = {each["checkpoint_id"]: each["topo_index"] for each in shown["checkpoints"]}
    return {"checkpoints": points, "latest": shown["latest"]}


def _unbelieved(shown: Any) -> Mapping[str, Any]:
    """What was verified once and is not now may be told as a problem."""
    told = [each for each in shown["problems"] if each["family"] != "vc_verified"]
    return {**shown, "problems": told, "whole": None}


def put(made: Made) -> Call:
    """An operation that is to be stored."""
    return Call("put_op", "put_op", {"op": made.raw}, (made,))


def append(name: str, operations: Sequence[Made]) -> Call:
    """A file of operations that is to be appended."""
    data = from_base64url(derive("m5.batch", [each.raw for each in operations]))
    return Call(_APPEND, COMMAND, {"arguments": ["op-append", name]}, tuple(operations), {name: data})


def persist(issued: Issued) -> Call:
    """A credential that is to be stored."""
    return Call("persist_vc", "persist_vc", {"credential": issued.raw}, issued)


def verify(cred_hash: str) -> Call:
    """A stored credential that is to be verified."""
    return Call("persist_verified_vc", "persist_verified_vc", {"cred_hash": cred_hash}, cred_hash)


def about_point(method: str, number: int) -> Call:
    """A checkpoint that is to be loaded or deleted."""
    return Call(method, method, {"checkpoint_id": number}, number)


def trust(trusted: Mapping[str, str]) -> Call:
    """Another trust file: whose key each name has."""
    return Call("trust", "", {"trusted": tuple(trusted.items())}, None, {TRUST: trust_of(trusted)})


def revoke(revoked: Sequence[str]) -> Call:
    """Another status file."""
    return Call("revoke", "", {"revoked": frozenset(revoked)}, None, {STATUS: status_of(revoked)})


def command(*words: str, about: Any = None) -> Call:
    """A command of operators."""
    return Call(f"{COMMAND} {words[0]}", COMMAND, {"arguments": [*words]}, about)


def _effect(state: Log, after: Log) -> str:
    return "accepted prior" if after == state else "accepted new"


def _saying(call: Call, state: str, more: Mapping[str, Any] | None = None) -> Any:
    """A state as an operation answers it, or as a command prints it."""
    return {"output": f"{state}\n"} if call.method == COMMAND else {"state": state, **(more or {})}


def _newest(seen: Any) -> int:
    """The id of a new checkpoint, as it was answered or printed, or as the newest one that is shown."""
    if "output" in seen:
        printed = seen["output"].strip()
        return int(printed) if printed.isdecimal() else 0
    if "checkpoints" in seen:
        return max((each["checkpoint_id"] for each in seen["checkpoints"]), default=0)
    return int(seen["checkpoint_id"])
