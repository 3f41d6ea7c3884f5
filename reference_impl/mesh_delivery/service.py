"""The session that the adapter talks to: arguments in, answers out."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from datetime import datetime
from enum import Enum, unique
from importlib import import_module
from typing import TYPE_CHECKING, Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Indeterminate, Ok, Refused
from holdfast.reference_impl.failpoints import Fault as Failure
from holdfast.reference_impl.failpoints import HoldOrAbort, wrap
from holdfast.reference_impl.mesh_delivery.daemon import Daemon
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.reference_impl.mesh_delivery.negotiation import HANDSHAKE, Negotiator
from holdfast.reference_impl.mesh_delivery.outbox import OutboxError
from holdfast.reference_impl.mesh_delivery.terms import Reason, RefusedError, Word
from holdfast.reference_impl.session import OpenError
from holdfast.reference_impl.sqlite import UncertainError
from holdfast.specs.model import Group, Method

if TYPE_CHECKING:
    from holdfast.reference_impl.mesh_delivery.broker_http import Server
    from holdfast.reference_impl.mesh_delivery.broker_service import BrokerService


@unique
class Point(Enum):
    """Places of an attempt to deliver a row."""

    IN_FLIGHT = "in_flight"
    ANSWERED = "answered"


class DeliveryFailpoints(HoldOrAbort[Point]):
    """The failpoints of one daemon, around the one step in which a row is in flight. Only holds are armed."""

    def watch(self, daemon: Daemon) -> None:
        """Put them around the step."""
        wrap(daemon, "answer_to", self.around(Point.IN_FLIGHT, Point.ANSWERED))


class Service:
    """Implements `session.Session`."""

    def __init__(
        self,
        fingerprinter: Fingerprinter,
        negotiator: Negotiator,
        methods: Mapping[str, Method],
        daemon: Daemon | None = None,
        failpoints: DeliveryFailpoints | None = None,
        open_broker: Callable[[datetime], BrokerService] | None = None,
        now: datetime | None = None,
        place: Mapping[str, str] | None = None,
    ) -> None:
        """Without a `daemon` there is no outbox.

        `open_broker` opens the broker at a time, when it is first needed; without one there is none. `place` says
        where its database is.
        """
        self._fingerprinter, self._negotiator = fingerprinter, negotiator
        self._daemon, self._failpoints = daemon, failpoints
        self._methods = methods
        self._open_broker = open_broker
        self._now = now
        self.place = place
        self._broker: BrokerService | None = None
        # One call at a time, whether it comes over the pipe or over a socket.
        self._lock = threading.Lock()
        self._server: Server | None = None

    @property
    def endpoint(self) -> str | None:
        """Where the broker listens; None where it does not."""
        return None if self._server is None else self._server.endpoint

    def listen(self) -> None:
        """Serve the operation that has a route."""
        binding = import_module("holdfast.reference_impl.mesh_delivery.broker_http")
        ((name, route),) = ((each.name, each.route) for each in self._methods.values() if each.route is not None)
        self._server = binding.Server(binding.BrokerHttp(name, route, self.call).application())

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`."""
        with self._lock:
            return self._call(method, args)

    def _call(self, method: str, args: Any) -> Answer:
        known = self._methods.get(method)
        if known is None:
            return Fault(f"unknown method {method!r}; known: {', '.join(self._methods)}")
        if not known.args.is_valid(args):
            if known.group is Group.OPERATION:
                return Refused(Reason.REQUEST_MALFORMED.value, detail="expected what methods.yaml says of a request")
            return Fault(f"expected the arguments that methods.yaml says of {method}")
        if method == "negotiate":
            return self._negotiated(args)
        if method == "daemon_log":
            return Ok({"records": self._negotiator.shown()})
        if known.role == "daemon":
            return self._of_daemon(method, args)
        return self._fingerprint(args) if method == "fingerprint" else self._asked(method, args)

    def _negotiated(self, args: Mapping[str, Any]) -> Answer:
        if args[HANDSHAKE] or not self._broker_socket:
            return self._negotiator.start(args)
        socket = import_module("holdfast.reference_impl.mesh_delivery.daemon_socket")
        answer: Answer = socket.negotiated(self._negotiator, args, self._broker_socket)
        return answer

    @property
    def _broker_socket(self) -> str:
        """The address of the broker's WebSocket; empty if the config names no broker."""
        route = self._methods["accept"].route
        if self._daemon is None or not self._daemon.settings.broker or route is None:
            return ""
        return f"{self._daemon.settings.broker.replace('http', 'ws', 1)}{route.websocket}"

    def _of_daemon(self, method: Word, args: Mapping[str, Any]) -> Answer:
        daemon = self._daemon
        if daemon is None:
            return Fault("expected a session with an outbox; this one was opened without a surface")
        try:
            if method in ("send", "requeue"):
                return (
                    daemon.send(args) if method == "send" else daemon.requeue(args["client_message_id"], args["new_id"])
                )
            if method == "failed":
                return Ok({"rows": daemon.failed()})
            if method == "daemon_counters":
                return Ok({"counters": daemon.counters.shown()})
            if method == "hold_delivery":
                assert self._failpoints is not None
                self._failpoints.arm(Point(args["point"]), Failure.HOLD)
                return Ok()
            return Accepted(Effect.NEW, {"attempts": daemon.deliver()})
        except UncertainError as error:
            return Indeterminate(str(error))
        except OutboxError as error:
            if method == "deliver":
                return Refused(Reason.OUTBOX_UNAVAILABLE.value, detail=str(error))
            return Fault(f"the outbox did not do it: {error}")

    def _fingerprint(self, args: Mapping[str, Any]) -> Answer:
        try:
            return Accepted(Effect.NEW, {"fingerprint": self._fingerprinter.fingerprint(args)})
        except RefusedError as error:
            return Refused(error.reason.value, {"field": error.field.value}, str(error))

    def _asked(self, method: Word, args: Mapping[str, Any]) -> Answer:
        try:
            return self.open_broker().call(method, args)
        except OpenError as error:
            return Fault(str(error))

    def open_broker(self) -> BrokerService:
        """The broker, opened when it is first needed. Raises OpenError."""
        if self._broker is None:
            if self._open_broker is None or self._now is None:
                raise OpenError("expected a session with a database; this one was opened without")
            self._broker = self._open_broker(self._now)
        return self._broker

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`."""
        with self._lock:
            self._now = now
            if self._daemon is not None:
                self._daemon.now = now
            if self._broker is not None:
                self._broker.set_clock(now)

    def close(self) -> None:
        """See `session.Session`."""
        if self._server is not None:
            self._server.close()
        if self._daemon is not None:
            self._daemon.outbox.release()
        if self._broker is not None:
            self._broker.close()
