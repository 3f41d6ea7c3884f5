"""One session: the methods of methods.yaml, bound to the mailbox and its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Answer, Fault, Ok, Senseless
from holdfast.reference_impl.calyx_replay.codec import Codec, EnvelopeError, from_base64url
from holdfast.reference_impl.calyx_replay.command_line import CommandLine
from holdfast.reference_impl.calyx_replay.failpoints import Failpoints, Point
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.settings import Settings
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import Purpose, check_args
from holdfast.reference_impl.failpoints import Fault as Failure
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.sqlite import StoreError
from holdfast.reference_impl.terms import RefusedError
from holdfast.specs import Contract
from holdfast.specs.model import Group
from holdfast.specs.schema import explain


@dataclass(frozen=True, slots=True)
class Parts:
    """Everything one mailbox works with."""

    contract: Contract
    settings: Settings
    codec: Codec
    store: Store
    pruning: Pruning
    mailbox: Mailbox
    migration: Migration
    failpoints: Failpoints
    patience: Patience
    command_line: CommandLine

    def watch(self) -> None:
        """Put the failpoints around the steps of a mailbox for tests. A mailbox of a user has none."""
        self.failpoints.watch(mailbox=self.mailbox, pruning=self.pruning, migration=self.migration, store=self.store)


class Service:
    """Implements `session.Session` for calyx-replay."""

    # See `session.Session`: no fitness proof is tied to it.
    place = None

    def __init__(self, parts: Parts, *, now: datetime, closing: Callable[[], None]) -> None:
        """`closing` is called once, when the session ends."""
        self._parts = parts
        self._now = now
        self._closing = closing
        self._methods: Mapping[str, Callable[[Any], Answer]] = {
            "accept": lambda args: parts.mailbox.accept(args, now=self._now),
            "prune": lambda args: parts.pruning.prune(args, now=self._now),
            "migrate": lambda args: self.migrate(args),
            "replay_key": lambda args: self.replay_key(args["envelope"]),
            "state": lambda _: self.state(),
            "deliveries": lambda _: self.deliveries(),
            "connections": lambda _: self.connections(),
            "pruned": lambda _: self.pruned(),
            "command_line": lambda args: Ok(parts.command_line.run(args["arguments"], now=self._now)),
            "hold_at": lambda args: self.hold_at(Point(args["point"]), Failure(args["fault"])),
        }

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`. Operations judge their own arguments; for the rest a misfit is the caller's fault."""
        if method not in self._methods:
            return Fault(f"unknown method {method!r}; known: {', '.join(self._methods)}")
        known, bound = self._parts.contract.methods[method], self._methods[method]
        self._parts.patience.begin()
        if known.group is Group.OPERATION:
            try:
                return bound(args)
            finally:
                self._parts.failpoints.disarm()
        problem = explain(known.args, args)
        if problem is not None:
            return Fault(f"{method}: expected arguments that fit its schema: {problem}")
        try:
            return bound(args)
        except StoreError as error:
            # The stored state is unknown. Unknown is not the same as empty.
            return Fault(f"{method}: the store cannot be asked: {error}")

    def begin(self) -> None:
        """The mailbox starts: prune if it is due."""
        self._parts.pruning.automatic(now=self._now)

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`."""
        self._now = now

    def close(self) -> None:
        """See `session.Session`."""
        self._parts.store.close()
        self._closing()

    def migrate(self, args: Any) -> Answer:
        """The migration takes no arguments."""
        try:
            check_args(self._parts.contract.methods["migrate"].args, args)
        except RefusedError as error:
            return error.answer()
        return self._parts.migration.migrate(now=self._now)

    # Observations; each raises StoreError

    def replay_key(self, text: str) -> Answer:
        """The key of an envelope. Its signer and its time are not checked."""
        try:
            envelope = self._parts.codec.decode(from_base64url(text))
        except EnvelopeError as error:
            return Senseless(f"replay_key: {error}")
        return Ok({"replay_key": self._parts.codec.replay_key(envelope)})

    def state(self) -> Answer:
        """Every row of replay_state, as stored; a BLOB, which the answer could not hold, as its hexadecimal digits."""
        with self._parts.store.reading(Purpose.OBSERVE) as connection:
            rows = self._parts.store.rows(connection)
        return Ok({"replay_state": [{name: _shown(value) for name, value in row.items()} for row in rows]})

    def deliveries(self) -> Answer:
        """The delivered envelopes, in order."""
        with self._parts.store.reading(Purpose.OBSERVE) as connection:
            return Ok({"delivered": list(self._parts.store.deliveries(connection))})

    def connections(self) -> Answer:
        """The pragmas of a connection of each purpose, asked on it."""
        found: dict[str, Any] = {}
        for purpose in Purpose:
            with self._parts.store.reading(purpose) as connection:
                found[purpose.value] = self._parts.store.pragmas(connection)
        return Ok(found)

    def pruned(self) -> Answer:
        """How many automatic prunes there were."""
        with self._parts.store.reading(Purpose.OBSERVE) as connection:
            return Ok({"automatic": self._parts.store.state(connection).automatic})

    # Provocations

    def hold_at(self, point: Point, fault: Failure) -> Answer:
        """Arm one failpoint inside the next operation of this worker."""
        self._parts.failpoints.arm(point, fault)
        return Ok()


def _shown(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
