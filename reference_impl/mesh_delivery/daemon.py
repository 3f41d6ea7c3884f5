"""The daemon: takes a send in, delivers what is due, and acts on what the broker answers (sections 4.1, 4.5, 4.9)."""

from __future__ import annotations

import contextlib
import http.client
import socket
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Indeterminate, Refused
from holdfast.reference_impl.mesh_delivery.counters import Counters
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.reference_impl.mesh_delivery.negotiation import LogRecord
from holdfast.reference_impl.mesh_delivery.outbox import Outbox, OutboxError, Row
from holdfast.reference_impl.mesh_delivery.terms import Digest, Reason, RefusedError, Settings
from holdfast.reference_impl.sqlite import UncertainError
from holdfast.servers.pace import scaled
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.routes import Route
from holdfast.specs.strictjson import canonical, loads

HISTORY_PRUNED = "cm_daemon_dedupe_history_pruned_total"
# How long the broker has for an answer. A round may have several rows, and an operation has 2 s by the protocol.
_ANSWER_S = scaled(0.8)
_LONGEST_WAIT_S = 300
_CREATED, _OK, _CONFLICT = 201, 200, 409
# What no retry of the same bytes can mend.
_PERMANENT = frozenset({400, 401, 403, 404, 413, 422})
_MISMATCH = "request_fingerprint_mismatch"
_CONFLICTS = (_MISMATCH, "sender_mismatch")
_NEW = {"broker_message_id", "client_message_id", "history_id", "duplicate"}
_KNOWN = {*_NEW, "history_available", "first_seen_at"}


@dataclass(frozen=True, slots=True)
class Response:
    """What came over the socket; the status is 0 where nothing whole came."""

    status: int
    body: Any
    why: str = ""


class Daemon:
    """One method for each guard. Times are those of the session, in seconds since 1970."""

    def __init__(
        self,
        outbox: Outbox,
        fingerprinter: Fingerprinter,
        *,
        route: Route,
        settings: Settings,
        log: list[LogRecord],
        now: datetime,
    ) -> None:
        """`route` is that of the broker's operation `accept`."""
        self.outbox = outbox
        self.fingerprinter = fingerprinter
        self.route = route
        self.settings = settings
        self.log = log
        self.now = now
        self.counters = Counters()

    @property
    def seconds(self) -> int:
        """The time of the session."""
        return int(self.now.timestamp())

    # Taking in

    def send(self, args: Mapping[str, Any]) -> Answer:
        """POST /v1/send: the row is durable before the answer."""
        try:
            fingerprint = self.fingerprint_of(args["request"])
        except RefusedError as error:
            return Refused(error.reason.value, {"field": f"request.{error.field.value}"}, str(error))
        name = args.get("client_message_id") or self.new_name()
        try:
            row, is_new = self.outbox.insert(name, fingerprint, self.payload(args), self.seconds)
        except OutboxError as error:
            return Refused(Reason.OUTBOX_UNAVAILABLE.value, detail=str(error))
        except UncertainError as error:
            return Indeterminate(str(error))
        if not is_new and not self.is_same(row, fingerprint, args):
            return Refused(Reason.IDEMPOTENCY_KEY_REUSED.value, {"client_message_id": name})
        return Accepted(Effect.NEW if is_new else Effect.PRIOR, {"client_message_id": row.client_message_id})

    def fingerprint_of(self, request: Mapping[str, Any]) -> bytes:
        """What is stored and never computed again. Raises RefusedError."""
        return self.fingerprinter.digest(self.fingerprinter.joined(self.fingerprinter.fields(request)))

    def new_name(self) -> str:
        """A client_message_id for a caller who brings none."""
        return str(uuid4())

    def payload(self, args: Mapping[str, Any]) -> bytes:
        """The bytes that every attempt sends. The id is not among them, so that it can be rotated."""
        return canonical({name: args[name] for name in ("mesh_id", "request")})

    def is_same(self, row: Row, fingerprint: Digest, args: Mapping[str, Any]) -> bool:
        """Whether the row that has the id is of the same send to the same mesh."""
        return loads(row.payload)["mesh_id"] == args["mesh_id"] and row.request_fingerprint == fingerprint

    # Delivering

    def deliver(self) -> int:
        """Try each row that is due once; how many were sent.

        Raises OutboxError where nothing was done, UncertainError where a part may be.
        """
        due = self.outbox.take_due(self.seconds)
        try:
            return sum(map(self.deliver_one, due))
        except OutboxError as error:
            raise UncertainError(str(error)) from error

    def deliver_one(self, row: Row) -> bool:
        """Whether the row was sent, or is too old for that. Raises OutboxError, UncertainError."""
        if self.is_too_old(row):
            self.bury(row, f"older than {self.settings.max_age_hours} hours")
            return False
        self.act(row, self.answer_to(row))
        return True

    def is_too_old(self, row: Row) -> bool:
        """Whether the broker may have forgotten the id: counted from the day when it was taken in."""
        return self.seconds - row.enqueued_at >= self.settings.max_age_hours * 3600

    def answer_to(self, row: Row) -> Response:
        """The row is in flight: what comes of it."""
        return self.exchange(row)

    def exchange(self, row: Row) -> Response:
        """One attempt: the stored bytes, and the answer as far as one came."""
        place = urlsplit(self.settings.broker)
        connection = http.client.HTTPConnection(place.hostname or "", place.port, timeout=_ANSWER_S)
        try:
            with self.deadline(connection):
                connection.request(self.route.method, self.route.path, row.payload, self.headers(row))
                return self.whole(connection.getresponse())
        except (OSError, http.client.HTTPException, StrictJsonError) as error:
            return Response(0, None, type(error).__name__)
        finally:
            connection.close()

    @contextlib.contextmanager
    def deadline(self, connection: http.client.HTTPConnection) -> Iterator[None]:
        """End what comes byte by byte, too: the time-out of a connection is that of each read. Raises OSError."""
        connection.connect()
        ends = threading.Timer(_ANSWER_S, _end, (connection.sock,))
        ends.start()
        try:
            yield
        finally:
            ends.cancel()

    def whole(self, response: http.client.HTTPResponse) -> Response:
        """An answer that came whole. Raises OSError, HTTPException, StrictJsonError."""
        data = response.read()
        return Response(response.status, loads(data) if data else None)

    def headers(self, row: Row) -> dict[str, str]:
        """The id, and whom the daemon acts for."""
        return {
            "Content-Type": "application/json",
            self.route.headers["sender"]: self.settings.member,
            self.route.headers["client_message_id"]: quote(row.client_message_id, safe=""),
        }

    def act(self, row: Row, response: Response) -> None:
        """What an answer makes of a row. What is not known fails closed: the row is tried again."""
        body = response.body if isinstance(response.body, dict) else {}
        if response.status == _CREATED and self.is_first(row, body):
            self.close(row, body)
        elif response.status == _OK and self.is_retry(row, body):
            self.close(row, body)
            self.note_history(row, body)
        elif response.status == _CONFLICT and self.is_conflict(row, body):
            self.bury(row, f"409 {body['conflict']}")
        elif response.status in _PERMANENT:
            self.bury(row, f"{response.status}")
        else:
            self.put_off(row, response.why or f"answer {response.status}")

    def is_first(self, row: Row, body: Mapping[str, Any]) -> bool:
        """The whole answer to a first send, of this row."""
        return body.keys() == _NEW and self.is_of(row, body) and body["duplicate"] is False

    def is_retry(self, row: Row, body: Mapping[str, Any]) -> bool:
        """The whole answer to a retry, of this row."""
        whole = body.keys() == _KNOWN and isinstance(body["history_available"], bool)
        return whole and self.is_of(row, body) and body["duplicate"] is True

    def is_of(self, row: Row, body: Mapping[str, Any]) -> bool:
        """Whether the answer names this row and a message."""
        named = body["client_message_id"] == row.client_message_id
        return named and isinstance(body["broker_message_id"], str) and bool(body["broker_message_id"])

    def is_conflict(self, row: Row, body: Mapping[str, Any]) -> bool:
        """Whether it is this row's id that is taken."""
        return body.get("client_message_id") == row.client_message_id and body.get("conflict") in _CONFLICTS

    def close(self, row: Row, body: Mapping[str, Any]) -> None:
        """The message is with the broker."""
        done = {"status": "done", "delivered_at": self.seconds, "broker_message_id": body["broker_message_id"]}
        self.outbox.settle_row(row, {"attempts": row.attempts + 1, "last_error": None, **done})

    def note_history(self, row: Row, body: Mapping[str, Any]) -> None:
        """A retry that was collapsed: loud only where the history is gone."""
        if body["history_available"]:
            self.tell("INFO", f"{row.client_message_id} was with the broker already")
        else:
            self.tell("WARN", f"{row.client_message_id} was with the broker already, and its history is gone")
            self.counters.add(HISTORY_PRUNED)

    def bury(self, row: Row, why: str) -> None:
        """Nothing is tried again until an operator says so."""
        tried = {} if why.startswith("older") else {"attempts": row.attempts + 1}
        self.outbox.settle_row(row, {"status": "dead", "last_error": why, **tried})
        self.tell("ERROR", f"{row.client_message_id} is dead: {why}")

    def put_off(self, row: Row, why: str) -> None:
        """Try again later, and later each time."""
        attempts = row.attempts + 1
        again = self.seconds + min(_LONGEST_WAIT_S, 2 ** min(attempts, 16))
        waiting = {"status": "pending", "attempts": attempts, "next_attempt_at": again}
        self.outbox.settle_row(row, {**waiting, "last_error": why})

    def tell(self, level: str, text: str) -> None:
        """Log a line."""
        self.log.append(LogRecord(level, text))

    # The operator

    def requeue(self, name: str, new: str) -> Answer:
        """`outbox requeue --new-id`."""
        try:
            problem = self.outbox.rotate(name, new, self.seconds)
        except OutboxError as error:
            return Refused(Reason.OUTBOX_UNAVAILABLE.value, detail=str(error))
        except UncertainError as error:
            return Indeterminate(str(error))
        if problem is not None:
            return Refused(problem.value)
        return Accepted(Effect.NEW, {"client_message_id": new})

    def failed(self) -> list[dict[str, str | None]]:
        """`outbox --failed`. Raises OutboxError."""
        return [
            {"client_message_id": row.client_message_id, "last_error": row.last_error} for row in self.outbox.dead()
        ]


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
