"""One session: the methods of methods.yaml, on one store."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.reference_impl import base64url
from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Indeterminate, Ok, Senseless
from holdfast.reference_impl.commanding import commanded, session_words
from holdfast.reference_impl.ed25519 import KEY_BYTES
from holdfast.reference_impl.failpoints import Fault as Failure
from holdfast.reference_impl.m5_log import checkpoints
from holdfast.reference_impl.m5_log.credentials import TrustFiles
from holdfast.reference_impl.m5_log.database import read_options_file
from holdfast.reference_impl.m5_log.failpoints import Failpoints, Point
from holdfast.reference_impl.m5_log.location import Location
from holdfast.reference_impl.m5_log.log import Log
from holdfast.reference_impl.m5_log.opening import Opening
from holdfast.reference_impl.m5_log.operations import HLC_BYTES, ID_BYTES, OpCodec
from holdfast.reference_impl.m5_log.replay import Replay, Source
from holdfast.reference_impl.m5_log.state import json_of
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import (
    CONTRACT,
    Family,
    Key,
    Reason,
    StoreError,
    UncertainError,
    load_settings,
)
from holdfast.reference_impl.m5_log.verify import Verify
from holdfast.reference_impl.m5_log.witness import Witness
from holdfast.reference_impl.terms import RefusedError
from holdfast.specs import kept_terms
from holdfast.specs.model import Group, Method
from holdfast.specs.schema import explain
from holdfast.specs.strictjson import canonical

# docs/adapter-protocol.md: a line has at most 1 MiB; the rest is for its other members.
_MOST_BYTES = (1 << 20) - 4096
_TIME = slice(KEY_BYTES, KEY_BYTES + HLC_BYTES)


class Parts:
    """Everything that one store works with."""

    def __init__(
        self, root: Path, config: Mapping[str, str], *, mutant: str | None = None, configured: bool = True
    ) -> None:
        """`configured` says whether there is a store. Raises OpenError."""
        self.root, self.config, self.mutant = root, config, mutant
        settings = load_settings(config)
        location, codec = Location(root, settings, configured=configured), OpCodec(settings)
        witness, trust = Witness(location.witness), TrustFiles(location.trust, location.status)
        self.store = Store(location, Opening(location, settings, witness), witness)
        self.replay = Replay(codec, trust)
        self.log = Log(self.store, codec, trust, self.replay)
        self.verify = Verify(settings, self.store, witness, codec, trust, self.replay)


class Service:
    """Implements `session.Session` for m5-log. No clock is kept, because none is ever asked.

    A method of the contract is a method here. An observation raises RefusedError where the store cannot be asked.
    """

    # See `session.Session`: no fitness proof is tied to it.
    place = None

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._store, self._log, self._replay = parts.store, parts.log, parts.replay
        self._failpoints = Failpoints(parts.root)
        self._failpoints.watch(parts.store)
        self._known = kept_terms(CONTRACT).methods

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`."""
        known = self._known.get(method)
        if known is None:
            return Fault(f"unknown method {method!r}; known: {', '.join(self._known)}")
        bound: Callable[[Any], Any] = getattr(self, method)
        answer = self._operate(known, bound, args) if known.group is Group.OPERATION else self._ask(known, bound, args)
        if isinstance(answer, Ok | Accepted) and len(canonical(answer.value)) > _MOST_BYTES:
            # Of operations only those that change nothing show a state.
            return Fault(f"{method}: the answer is longer than a line may be")
        return answer

    def _ask(self, known: Method, bound: Callable[[Any], Mapping[str, Any] | None], args: Any) -> Answer:
        method = known.name
        problem = explain(known.args, args)
        if problem is not None:
            return Fault(f"{method}: expected arguments that fit its schema: {problem}")
        try:
            return Ok(bound(args))
        except KeyError as error:
            return Senseless(f"{method}: {error}")
        except RefusedError as error:
            # The stored state is unknown. Unknown is not the same as empty.
            return Fault(f"{method}: the store cannot be asked: {error}")

    def _operate(self, known: Method, bound: Callable[[Any], Accepted], args: Any) -> Answer:
        try:
            problem = explain(known.args, args)
            if problem is not None:
                raise RefusedError(Reason.REQUEST_MALFORMED, problem)
            return bound(args)
        except RefusedError as error:
            return error.answer()
        except UncertainError as error:
            return Indeterminate(str(error))
        finally:
            self._failpoints.disarm()

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`. Nothing depends on it."""

    def close(self) -> None:
        """See `session.Session`."""
        self._store.release()

    # Operations

    def put_op(self, args: Any) -> Accepted:
        """Store one operation."""
        declared = args.get("op_id")
        put = self._log.put(bytes_of(args["op"]), None if declared is None else bytes.fromhex(declared))
        value = {"op_id": put.op_id.hex(), "pending": put.pending, "missing": [op_id.hex() for op_id in put.missing]}
        return Accepted(_effect(new=put.new), value)

    def persist_vc(self, args: Any) -> Accepted:
        """Store a credential."""
        cred_hash, new = self._log.persist_vc(bytes_of(args["credential"]))
        return Accepted(_effect(new=new), {"cred_hash": cred_hash.hex()})

    def persist_verified_vc(self, args: Any) -> Accepted:
        """Verify a credential and note what it says."""
        said, new = self._log.persist_verified_vc(bytes.fromhex(args["cred_hash"]))
        value = {"issuer": said.issuer, "role": said.role, "scope": list(said.scope), "nbf": said.nbf, "exp": said.exp}
        return Accepted(_effect(new=new), value)

    def checkpoint_create(self, args: Any) -> Accepted:
        """Store the state."""
        made = self._log.checkpoint_create(args.get("topo_index"))
        return Accepted(Effect.NEW, {"checkpoint_id": made.checkpoint_id, "topo_index": made.topo_index})

    def checkpoint_load(self, args: Any) -> Accepted:
        """The state of a checkpoint."""
        state = self._log.checkpoint_load(args["checkpoint_id"])
        return Accepted(Effect.PRIOR, {"topo_index": state.applied, "state": json_of(state)})

    def checkpoint_delete(self, args: Any) -> Accepted:
        """Remove a checkpoint."""
        self._log.checkpoint_delete(args["checkpoint_id"])
        return Accepted(Effect.NEW, {})

    def apply_incremental(self, args: Any) -> Accepted:
        """The state after a range of operations."""
        with self._store.reading() as opened:
            state = self._replay.incremental(opened, args["from_index"], args["to_index"], Source(args["source"]))
        return Accepted(Effect.PRIOR, {"state": json_of(state)})

    # Observations

    def store(self, _: Any) -> dict[str, Any]:
        """Every row of every family, as stored."""
        with self._store.attested() as database:
            return {family.value: [_row(*row) for row in database.rows(family)] for family in Family}

    def get_op(self, args: Any) -> dict[str, Any]:
        """The bytes of an operation."""
        op_id = bytes.fromhex(args["op_id"])
        with self._store.reading() as opened:
            operation = self._replay.stored(opened.database, op_id)
            if operation is None and op_id in opened.dag:
                raise StoreError(f"an operation has edges and no bytes: {op_id.hex()}")
        return {"has": operation is not None, "op": None if operation is None else base64url.write(operation.raw)}

    def iter_ops(self, _: Any) -> dict[str, Any]:
        """Every op_id, as many as there have to be."""
        with self._store.reading() as opened:
            found = [op_id.hex() for op_id, _ in opened.database.rows(Family.OPS)]
            if found != [op_id.hex() for op_id in sorted(opened.dag.parents)]:
                raise StoreError("ops and edges have different operations")
        return {"op_ids": found}

    def topo_iter(self, _: Any) -> dict[str, Any]:
        """The order."""
        with self._store.reading() as opened:
            # An edge that is not what its author signed must not decide.
            self._log.state(opened)
            return {"op_ids": [op_id.hex() for op_id in opened.dag.order()]}

    def pending(self, _: Any) -> dict[str, Any]:
        """What waits, and for what."""
        with self._store.reading() as opened:
            self._log.state(opened)
            return {
                "op_ids": [op_id.hex() for op_id in opened.dag.pending()],
                "missing": [
                    {"op_id": parent.hex(), "children": [child.hex() for child in children]}
                    for parent, children in opened.dag.awaited().items()
                ],
            }

    def scan(self, args: Any) -> dict[str, Any]:
        """An author's operations between two clocks."""
        author, first, last = (bytes.fromhex(args[name]) for name in ("author", "from", "to"))
        found = []
        with self._store.reading() as opened:
            for key, _ in opened.database.rows(Family.BY_AUTHOR, author + first):
                if not key.startswith(author) or key[_TIME] > last:
                    break
                found.append(key[-ID_BYTES:].hex())
        return {"op_ids": found}

    def decide(self, args: Any) -> dict[str, Any]:
        """One decision. Raises KeyError for an operation that is not in the order."""
        subject, op_id = bytes.fromhex(args["subject"]), bytes.fromhex(args["op_id"])
        with self._store.reading() as opened:
            allowed = self._log.decide(opened, subject, args["role"], args["tag"], op_id)
        return {"allowed": allowed}

    def checkpoints(self, _: Any) -> dict[str, Any]:
        """All checkpoints, and the latest."""
        with self._store.reading() as opened:
            found = [
                checkpoints.decode(checkpoint_id, row) for checkpoint_id, row in checkpoints.listed(opened.database)
            ]
            latest = checkpoints.latest(opened.database)
        listed = [
            {
                "checkpoint_id": each.checkpoint_id,
                "topo_index": each.topo_index,
                "snapshot": base64url.write(each.snapshot),
            }
            for each in found
        ]
        return {"checkpoints": listed, "latest": latest}

    def dump(self, args: Any) -> dict[str, Any]:
        """The state by a replay of the disk."""
        with self._store.reading() as opened:
            if args["from"] == "genesis":
                return {"state": json_of(self._replay.full(opened)), "checkpoint_id": None}
            replayed = self._replay.latest(opened)
        return {"state": json_of(replayed.state), "checkpoint_id": replayed.checkpoint_id}

    def verify_store(self, _: Any) -> dict[str, Any]:
        """What verify-store finds."""
        report = self._parts.verify.run()
        problems = [
            {"family": problem.family, "key": problem.key.hex(), "text": problem.text} for problem in report.problems
        ]
        return {
            "whole": not problems,
            "operations": report.operations,
            "pending": report.pending,
            "problems": problems,
        }

    def options(self, _: Any) -> dict[str, Any]:
        """What RocksDB wrote down when the store was last opened for writing."""
        try:
            database = self._store.location.database
            sections = read_options_file(database)
            logs = [path.stat().st_dev for path in database.glob("*.log")]
            same = bool(logs) and set(logs) == {database.stat().st_dev}
        except (OSError, ValueError) as error:
            raise StoreError(f"the options cannot be read: {error}") from error
        families = {family.value: dict(sections.get(family.value, {})) for family in Family}
        return {"database": dict(sections[""]), "families": families, "same_device": same, "verify_checksums": True}

    def statistics(self, _: Any) -> dict[str, Any]:
        """What RocksDB counted since this session opened it for writing."""
        if self._store.held is None:
            return {"wal_synced": 0, "wal_writes": 0}
        tickers = self._store.held.database.tickers()
        return {"wal_synced": tickers.wal_synced, "wal_writes": tickers.wal_writes}

    # Provocations

    def command_line(self, args: Any) -> Mapping[str, Any]:
        """Run the operators' command line, which needs the lock; a file of op-append lies in the workdir."""
        self._store.release()
        arguments, environment, root = args["arguments"], args.get("environment", {}), self._parts.root
        words = ["m5", *arguments, "--root", str(root), *session_words(self._parts.config, self._parts.mutant)]
        return commanded(words, environment=environment, folder=root, with_errors=False)

    def hold_at(self, args: Any) -> None:
        """Arm one failpoint inside the next commit of this worker."""
        self._failpoints.arm(Point(args["point"]), Failure(args["fault"]))


def _row(key: Key, value: bytes) -> dict[str, str]:
    return {"key": base64url.write(key), "value": base64url.write(value)}


def bytes_of(text: str) -> bytes:
    """The bytes of an argument. Raises RefusedError."""
    try:
        return base64url.read(text)
    except base64url.SpellingError as error:
        raise RefusedError(Reason.REQUEST_MALFORMED, str(error)) from error


def _effect(*, new: bool) -> Effect:
    return Effect.NEW if new else Effect.PRIOR
