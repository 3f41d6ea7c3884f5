"""One session: the methods of methods.yaml, bound to the mailbox and its parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.reference_impl import base64url
from holdfast.reference_impl.answers import Answer, Fault, Ok, Senseless
from holdfast.reference_impl.calyx_replay.codec import Codec, EnvelopeError
from holdfast.reference_impl.calyx_replay.failpoints import Failpoints, Point
from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.store import Store
from holdfast.reference_impl.calyx_replay.terms import CONTRACT, Purpose, Word, check_args, load_settings
from holdfast.reference_impl.calyx_replay.timing import Window
from holdfast.reference_impl.commanding import commanded, session_words
from holdfast.reference_impl.failpoints import Fault as Failure
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.sqlite import StoreError
from holdfast.reference_impl.terms import RefusedError
from holdfast.specs import kept_terms
from holdfast.specs.model import Group
from holdfast.specs.schema import explain


class Parts:
    """Everything one mailbox works with."""

    def __init__(self, root: Path, config: Mapping[str, str], *, mutant: str | None = None) -> None:
        """`mutant` is the planted bug of this process, for that of a command line. Raises OpenError."""
        methods, settings = kept_terms(CONTRACT).methods, load_settings(config)
        self.root, self.config, self.mutant, self.settings = root, config, mutant, settings
        self.codec, self.patience, window = Codec(settings), Patience(), Window(settings)
        self.store = Store(Location(root, settings), settings, self.patience)
        self.pruning = Pruning(settings, self.store, methods["prune"].args)
        self.mailbox = Mailbox(self.codec, window, self.store, self.pruning, methods["accept"].args)
        self.migration = Migration(settings, self.codec, self.mailbox, self.store)


class Service:
    """Implements `session.Session` for calyx-replay. A method of the contract is a method here."""

    # See `session.Session`: no fitness proof is tied to it.
    place = None

    def __init__(self, parts: Parts, *, now: datetime, closing: Callable[[], None]) -> None:
        """`closing` is called once, when the session ends."""
        self._parts = parts
        self._now = now
        self._closing = closing
        self._known = kept_terms(CONTRACT).methods
        # A mailbox of a user has no failpoints.
        self._failpoints = Failpoints(parts.root, parts.patience)
        self._failpoints.watch(
            mailbox=parts.mailbox, pruning=parts.pruning, migration=parts.migration, store=parts.store
        )

    def call(self, method: Word, args: Any) -> Answer:
        """See `session.Session`. Operations judge their own arguments; for the rest a misfit is the caller's fault."""
        known = self._known.get(method)
        if known is None:
            return Fault(f"unknown method {method!r}; known: {', '.join(self._known)}")
        bound: Callable[[Any], Answer] = getattr(self, method)
        self._parts.patience.begin()
        if known.group is Group.OPERATION:
            try:
                return bound(args)
            finally:
                self._failpoints.disarm()
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

    # Operations

    def accept(self, args: Any) -> Answer:
        """Receive one envelope."""
        return self._parts.mailbox.accept(args, now=self._now)

    def prune(self, args: Any) -> Answer:
        """Remove old records."""
        return self._parts.pruning.prune(args, now=self._now)

    def migrate(self, args: Any) -> Answer:
        """The migration takes no arguments."""
        try:
            check_args(self._known["migrate"].args, args)
        except RefusedError as error:
            return error.answer()
        return self._parts.migration.migrate(now=self._now)

    # Observations; each raises StoreError

    def replay_key(self, args: Any) -> Answer:
        """The key of an envelope. Its signer and its time are not checked."""
        try:
            envelope = self._parts.codec.decode(base64url.read(args["envelope"]))
        except (EnvelopeError, base64url.SpellingError) as error:
            return Senseless(f"replay_key: {error}")
        return Ok({"replay_key": self._parts.codec.replay_key(envelope)})

    def state(self, _: Any) -> Answer:
        """Every row of replay_state, as stored; a BLOB, which the answer could not hold, as its hexadecimal digits."""
        with self._parts.store.reading(Purpose.OBSERVE) as connection:
            rows = self._parts.store.rows(connection)
        return Ok({"replay_state": [{name: _shown(value) for name, value in row.items()} for row in rows]})

    def deliveries(self, _: Any) -> Answer:
        """The delivered envelopes, in order."""
        with self._parts.store.reading(Purpose.OBSERVE) as connection:
            return Ok({"delivered": list(self._parts.store.deliveries(connection))})

    def connections(self, _: Any) -> Answer:
        """The pragmas of a connection of each purpose, asked on it."""
        found: dict[str, Any] = {}
        for purpose in Purpose:
            with self._parts.store.reading(purpose) as connection:
                found[purpose.value] = self._parts.store.pragmas(connection)
        return Ok(found)

    def pruned(self, _: Any) -> Answer:
        """How many automatic prunes there were."""
        with self._parts.store.reading(Purpose.OBSERVE) as connection:
            return Ok({"automatic": self._parts.store.state(connection).automatic})

    # Provocations

    def command_line(self, args: Any) -> Answer:
        """The operator's command line on this mailbox, as another process. Raises OSError, SubprocessError."""
        arguments, config, mutant = args["arguments"], self._parts.config, self._parts.mutant
        session = session_words(config, mutant, now=self._now)
        return Ok(commanded(["calyx", *arguments, "--root", str(self._parts.root), *session]))

    def hold_at(self, args: Any) -> Answer:
        """Arm one failpoint inside the next operation of this worker."""
        self._failpoints.arm(Point(args["point"]), Failure(args["fault"]))
        return Ok()


def _shown(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value
