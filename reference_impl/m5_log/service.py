"""One session: the methods of methods.yaml, bound to the store and its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Indeterminate, Ok, Senseless
from holdfast.reference_impl.failpoints import Fault as Failure
from holdfast.reference_impl.m5_log.checkpoints import Checkpoints
from holdfast.reference_impl.m5_log.command_line import CommandLine
from holdfast.reference_impl.m5_log.failpoints import Failpoints, Point
from holdfast.reference_impl.m5_log.log import Log
from holdfast.reference_impl.m5_log.observing import Observing, from_base64url
from holdfast.reference_impl.m5_log.replay import Replay, Source
from holdfast.reference_impl.m5_log.state import Snapshots
from holdfast.reference_impl.m5_log.store import Store
from holdfast.reference_impl.m5_log.terms import Reason, UncertainError, check_args
from holdfast.reference_impl.m5_log.verify import Verify
from holdfast.reference_impl.terms import RefusedError
from holdfast.specs import Contract
from holdfast.specs.model import Group, Method
from holdfast.specs.schema import explain
from holdfast.specs.strictjson import canonical

# docs/adapter-protocol.md: a line has at most 1 MiB; the rest is for its other members.
_MOST_BYTES = (1 << 20) - 4096


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything one session works with."""

    contract: Contract
    store: Store
    log: Log
    replay: Replay
    checkpoints: Checkpoints
    snapshots: Snapshots
    verify: Verify
    observing: Observing
    failpoints: Failpoints
    command_line: CommandLine


class Service:
    """Implements `session.Session` for m5-log. No clock is kept, because none is ever asked."""

    # See `session.Session`: no fitness proof is tied to it.
    place = None

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        observing = parts.observing
        self._operations: Mapping[str, Callable[[Any], Accepted]] = {
            "put_op": self.put_op,
            "persist_vc": self.persist_vc,
            "persist_verified_vc": self.persist_verified_vc,
            "checkpoint_create": self.checkpoint_create,
            "checkpoint_load": self.checkpoint_load,
            "checkpoint_delete": self.checkpoint_delete,
            "apply_incremental": self.apply_incremental,
        }
        self._others: Mapping[str, Callable[[Any], Mapping[str, Any] | None]] = {
            **observing.methods(),
            "command_line": self.command_line,
            "hold_at": self.hold_at,
        }

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`."""
        known = self._parts.contract.methods.get(method)
        if known is None:
            return Fault(f"unknown method {method!r}; known: {', '.join(self._parts.contract.methods)}")
        answer = self._operate(method, args) if known.group is Group.OPERATION else self._ask(known, args)
        if isinstance(answer, Ok | Accepted) and len(canonical(answer.value)) > _MOST_BYTES:
            # Of operations only those that change nothing show a state.
            return Fault(f"{method}: the answer is longer than a line may be")
        return answer

    def _ask(self, known: Method, args: Any) -> Answer:
        method = known.name
        problem = explain(known.args, args)
        if problem is not None:
            return Fault(f"{method}: expected arguments that fit its schema: {problem}")
        try:
            return Ok(self._others[method](args))
        except KeyError as error:
            return Senseless(f"{method}: {error}")
        except RefusedError as error:
            # The stored state is unknown. Unknown is not the same as empty.
            return Fault(f"{method}: the store cannot be asked: {error}")

    def _operate(self, method: str, args: Any) -> Answer:
        try:
            check_args(self._parts.contract.methods[method].args, args)
            return self._operations[method](args)
        except RefusedError as error:
            return error.answer()
        except UncertainError as error:
            return Indeterminate(str(error))
        finally:
            self._parts.failpoints.disarm()

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`. Nothing depends on it."""

    def close(self) -> None:
        """See `session.Session`."""
        self._parts.store.release()

    # Operations

    def put_op(self, args: Any) -> Accepted:
        """Store one operation."""
        declared = args.get("op_id")
        put = self._parts.log.put(bytes_of(args["op"]), None if declared is None else bytes.fromhex(declared))
        value = {"op_id": put.op_id.hex(), "pending": put.pending, "missing": [op_id.hex() for op_id in put.missing]}
        return Accepted(_effect(new=put.new), value)

    def persist_vc(self, args: Any) -> Accepted:
        """Store a credential."""
        cred_hash, new = self._parts.log.persist_vc(bytes_of(args["credential"]))
        return Accepted(_effect(new=new), {"cred_hash": cred_hash.hex()})

    def persist_verified_vc(self, args: Any) -> Accepted:
        """Verify a credential and note what it says."""
        said, new = self._parts.log.persist_verified_vc(bytes.fromhex(args["cred_hash"]))
        value = {"issuer": said.issuer, "role": said.role, "scope": list(said.scope), "nbf": said.nbf, "exp": said.exp}
        return Accepted(_effect(new=new), value)

    def checkpoint_create(self, args: Any) -> Accepted:
        """Store the state."""
        made = self._parts.log.checkpoint_create(args.get("topo_index"))
        return Accepted(Effect.NEW, {"checkpoint_id": made.checkpoint_id, "topo_index": made.topo_index})

    def checkpoint_load(self, args: Any) -> Accepted:
        """The state of a checkpoint."""
        state = self._parts.log.checkpoint_load(args["checkpoint_id"])
        return Accepted(Effect.PRIOR, {"topo_index": state.applied, "state": self._parts.snapshots.json(state)})

    def checkpoint_delete(self, args: Any) -> Accepted:
        """Remove a checkpoint."""
        self._parts.log.checkpoint_delete(args["checkpoint_id"])
        return Accepted(Effect.NEW, {})

    def apply_incremental(self, args: Any) -> Accepted:
        """The state behind a range of operations."""
        with self._parts.store.reading() as opened:
            state = self._parts.replay.incremental(opened, args["from_index"], args["to_index"], Source(args["source"]))
        return Accepted(Effect.PRIOR, {"state": self._parts.snapshots.json(state)})

    # Provocations

    def command_line(self, args: Any) -> Mapping[str, Any]:
        """Another process needs the lock."""
        self._parts.store.release()
        return self._parts.command_line.run(args["arguments"], args.get("environment", {}))

    def hold_at(self, args: Any) -> None:
        """Arm one failpoint inside the next commit of this worker."""
        self._parts.failpoints.arm(Point(args["point"]), Failure(args["fault"]))


def bytes_of(text: str) -> bytes:
    """The bytes of an argument. Raises RefusedError."""
    try:
        return from_base64url(text)
    except ValueError as error:
        raise RefusedError(Reason.REQUEST_MALFORMED, str(error)) from error


def _effect(*, new: bool) -> Effect:
    return Effect.NEW if new else Effect.PRIOR
