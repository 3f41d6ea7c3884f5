"""Bugs of a daemon that show in a long outage, when a send comes again, and with odd ids and large answers."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar
from urllib.parse import quote, quote_plus

from holdfast.reference_impl.mesh_delivery.daemon import Daemon, Response
from holdfast.reference_impl.mesh_delivery.negotiation import Negotiator
from holdfast.reference_impl.mesh_delivery.outbox import Outbox, OutboxError, Row
from holdfast.reference_impl.planting import Change, part

_T = TypeVar("_T")
_BUFFER = 4096
_WEEK_S = 7 * 24 * 3600


class TenTries(Daemon):
    """Gives a row up after ten attempts, however young it is."""

    tries: int = 10

    def put_off(self, row: Row, why: str) -> None:
        if row.attempts + 1 >= self.tries:
            self.bury(row, why)
        else:
            super().put_off(row, why)


class SixtyFourTries(TenTries):
    """The same after 64 attempts."""

    tries = 64


class BelievesRetryAfter(Daemon):
    """Waits for as long as the broker says."""

    pause = 0

    def whole(self, response: http.client.HTTPResponse) -> Response:
        self.pause = int(response.getheader("Retry-After") or 0)
        return super().whole(response)

    def put_off(self, row: Row, why: str) -> None:
        super().put_off(row, why)
        if self.pause:
            self.outbox.settle_row(row, {"next_attempt_at": self.seconds + self.pause})


class NamesFolded(Daemon):
    """Compares the id of an answer without its case and the blanks around it."""

    def act(self, row: Row, response: Response) -> None:
        body = response.body
        if isinstance(body, dict) and isinstance(name := body.get("client_message_id"), str):
            same = name.strip().casefold() == row.client_message_id.strip().casefold()
            response = Response(response.status, {**body, "client_message_id": row.client_message_id if same else name})
        super().act(row, response)


class AnyMessage(Daemon):
    """An answer that names no message is one."""

    def is_of(self, row: Row, body: Mapping[str, Any]) -> bool:
        return bool(body["client_message_id"] == row.client_message_id) and isinstance(body["broker_message_id"], str)


class WaitsForEachByte(Daemon):
    """Waits a second for each read, and so for as long as bytes come."""

    @contextlib.contextmanager
    def deadline(self, connection: http.client.HTTPConnection) -> Iterator[None]:
        del connection
        yield


class PauseOverflows(Daemon):
    """Doubles the pause in 32 bits with a sign."""

    def put_off(self, row: Row, why: str) -> None:
        super().put_off(row, why)
        seconds = (1 << min(row.attempts + 1, 62)) & 0xFFFFFFFF
        if seconds == 0 or seconds >= 1 << 31:
            self.outbox.settle_row(row, {"next_attempt_at": self.seconds})


class RenewsItsAge(Outbox):
    """A send that comes again makes its row as young as a new one."""

    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        row, is_new = super().insert(name, fingerprint, payload, now)
        if not is_new:
            self.settle_row(row, {"enqueued_at": now})
        return row, is_new


class MadeDue(Outbox):
    """A send that comes again makes its row due."""

    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        row, is_new = super().insert(name, fingerprint, payload, now)
        if not is_new:
            self.settle_row(row, {"next_attempt_at": now})
        return row, is_new


class Sweeps(Outbox):
    """Deletes what was delivered a week ago, and takes the send for a new one then."""

    def take_due(self, now: int) -> list[Row]:
        with self.transaction() as connection:
            connection.execute("DELETE FROM outbox WHERE status = 'done' AND delivered_at < ?", (now - _WEEK_S,))
        return super().take_due(now)


class SweepsTheDead(Outbox):
    """Deletes what is dead once its send is a quarter of a year old."""

    def take_due(self, now: int) -> list[Row]:
        with self.transaction() as connection:
            connection.execute("DELETE FROM outbox WHERE status = 'dead' AND enqueued_at < ?", (now - 13 * _WEEK_S,))
        return super().take_due(now)


class DeliveredWhenTaken(Daemon):
    """Writes as the time of delivery when the send was taken in."""

    def close(self, row: Row, body: Mapping[str, Any]) -> None:
        super().close(row, body)
        self.outbox.settle_row(row, {"delivered_at": row.enqueued_at})


class FirstError(Outbox):
    """Keeps the error of the first attempt."""

    def settle_row(self, row: Row, changes: Mapping[str, str | bytes | int | None]) -> None:
        kept = {"last_error": row.last_error} if row.last_error and changes.get("last_error") else {}
        super().settle_row(row, {**changes, **kept})


class CountsRounds(Daemon):
    """Counts and logs of a round one row whose history is gone."""

    told: int | None = None

    def note_history(self, row: Row, body: Mapping[str, Any]) -> None:
        if body["history_available"] or self.told != self.seconds:
            super().note_history(row, body)
        if not body["history_available"]:
            self.told = self.seconds


class ComesLater(Outbox):
    """A send or a requeue that was refused without the outbox is done before the next send."""

    waiting: tuple[Callable[[], object], ...] = ()

    def insert(self, name: str, fingerprint: bytes, payload: bytes, now: int) -> tuple[Row, bool]:
        for late in self.waiting:
            late()
            self.waiting = self.waiting[1:]
        return self.tried(lambda: Outbox.insert(self, name, fingerprint, payload, now))

    def rotate(self, name: str, new: str, now: int) -> str | None:
        return self.tried(lambda: Outbox.rotate(self, name, new, now))

    def tried(self, call: Callable[[], _T]) -> _T:
        try:
            return call()
        except OutboxError:
            self.waiting = (*self.waiting, call)
            raise


class AsAForm(Daemon):
    """Encodes the id as a field of a form: a blank becomes a plus."""

    def headers(self, row: Row) -> dict[str, str]:
        return {**super().headers(row), self.route.headers["client_message_id"]: quote_plus(row.client_message_id)}


class PercentAsItIs(Daemon):
    """Leaves percent signs in the id as they are."""

    def headers(self, row: Row) -> dict[str, str]:
        encoded = quote(row.client_message_id, safe="%")
        return {**super().headers(row), self.route.headers["client_message_id"]: encoded}


class ShortAnswers(Daemon):
    """Reads an answer into a buffer of a page."""

    def exchange(self, row: Row) -> Response:
        response = super().exchange(row)
        if len(json.dumps(response.body)) > _BUFFER:
            return Response(0, None, "the answer ended early")
        return response


class ShortLines(Negotiator):
    """Cuts what it logs."""

    most: int = _BUFFER

    def warn(self, text: str, payload: str | None = None) -> None:
        super().warn(text, payload and payload[: self.most])


class LongLines(ShortLines):
    """Cuts it at 64 KiB."""

    most = 1 << 16


BUGS: Mapping[str, Change] = {
    "dead-after-ten-attempts": part(daemon=TenTries),
    "dead-after-64-attempts": part(daemon=SixtyFourTries),
    "retry-after-believed": part(daemon=BelievesRetryAfter),
    "answer-named-in-any-case": part(daemon=NamesFolded),
    "answer-about-no-message": part(daemon=AnyMessage),
    "waits-for-each-byte": part(daemon=WaitsForEachByte),
    "pause-overflows": part(daemon=PauseOverflows),
    "resend-renews-the-age": part(outbox=RenewsItsAge),
    "resend-makes-due": part(outbox=MadeDue),
    "delivered-rows-swept": part(outbox=Sweeps),
    "dead-rows-swept": part(outbox=SweepsTheDead),
    "delivered-when-taken": part(daemon=DeliveredWhenTaken),
    "first-error-kept": part(outbox=FirstError),
    "gone-told-once-a-round": part(daemon=CountsRounds),
    "refused-calls-come-later": part(outbox=ComesLater),
    "id-encoded-as-a-form": part(daemon=AsAForm),
    "percent-not-encoded": part(daemon=PercentAsItIs),
    "long-answer-cut": part(daemon=ShortAnswers),
    "logged-handshake-cut": part(negotiator=ShortLines),
    "long-handshake-cut": part(negotiator=LongLines),
}
