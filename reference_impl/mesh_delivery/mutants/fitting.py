"""Bugs that take what is not as the contract has it, and refusals that leave something behind."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.reference_impl.answers import Answer, Refused
from holdfast.reference_impl.mesh_delivery.daemon import Daemon
from holdfast.reference_impl.mesh_delivery.negotiation import Fault, Negotiator
from holdfast.reference_impl.mesh_delivery.service import Service
from holdfast.reference_impl.mesh_delivery.terms import Reason
from holdfast.reference_impl.planting import Change, part

_OPERATIONS = ("fingerprint", "accept", "send", "requeue", "deliver", "negotiate")
_OF_THE_DAEMON = ("send", "requeue", "deliver")
_HEX, _BYTES = ("mesh_id", "sender", "claimed_fingerprint"), ("body", "meta", "handshake")


class MadeToFit(Service):
    """Members that are not known are left out, and what remains is made to fit."""

    def _call(self, method: str, args: Any) -> Answer:
        if method in _OPERATIONS and isinstance(args, Mapping):
            args = _fitted(args, self._methods[method].args.schema, self._methods["fingerprint"].args.schema)
        return super()._call(method, args)


def _fitted(args: Mapping[str, Any], schema: Any, request: Any) -> dict[str, Any]:
    known = _properties(schema)
    found = {name: _value(name, value) for name, value in args.items() if name in known}
    if isinstance(found.get("request"), Mapping):
        found["request"] = _fitted(found["request"], request, request)
    return found


def _properties(schema: Any) -> Mapping[str, Any]:
    if "properties" in schema:
        return dict(schema["properties"])
    return dict(schema["$defs"][schema["$ref"].rpartition("/")[2]]["properties"]) if "$ref" in schema else {}


def _value(name: str, value: Any) -> Any:
    if name == "envelope_version" and isinstance(value, str) and value.strip().isdigit():
        return int(value)
    if name in _BYTES and isinstance(value, str):
        return _decoded(value)
    if name in _HEX and isinstance(value, str):
        return value.strip().lower()
    if name in ("client_message_id", "new_id") and isinstance(value, int | float):
        return str(value)
    return value


def _decoded(text: str) -> str:
    text = "".join(text.split()).rstrip("=").replace("+", "-").replace("/", "_")
    try:
        raw = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        return text
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


class IdsTrimmed(Daemon):
    """Blanks around the id that an operator names are taken off."""

    def requeue(self, name: str, new: str) -> Answer:
        return super().requeue(name.strip().lower(), new.strip() or new)


class FeatureInAnyCase(Negotiator):
    def faults(self, supported: Mapping[str, Any], required: Sequence[str]) -> list[Fault]:
        names = {name.lower(): name for name in supported}
        return super().faults(supported, [names.get(name.strip().lower(), name) for name in required])


class RefusedIsKept(Daemon):
    """A send that is refused is kept all the same, as dead, so that an operator sees it."""

    def send(self, args: Mapping[str, Any]) -> Answer:
        answer = super().send(args)
        if isinstance(answer, Refused) and answer.reason != Reason.OUTBOX_UNAVAILABLE.value:
            row, is_new = self.outbox.insert(self.new_name(), bytes(32), b"{}", self.seconds)
            if is_new:
                self.outbox.settle_row(row, {"status": "dead", "last_error": answer.reason})
        return answer


class MalformedIsCounted(Service):
    """A call of the daemon that is malformed leaves a note in the outbox."""

    def _call(self, method: str, args: Any) -> Answer:
        answer = super()._call(method, args)
        malformed = Reason.REQUEST_MALFORMED.value
        is_noted = isinstance(answer, Refused) and answer.reason == malformed and method in _OF_THE_DAEMON
        if is_noted and self._daemon is not None:
            outbox = self._daemon.outbox
            row, _ = outbox.insert(self._daemon.new_name(), bytes(32), b"{}", self._daemon.seconds)
            outbox.settle_row(row, {"status": "dead", "last_error": malformed})
        return answer


class ShowsTheField(Daemon):
    """The refusal of another send says which id and field the row has that is there."""

    def send(self, args: Mapping[str, Any]) -> Answer:
        answer = super().send(args)
        if isinstance(answer, Refused) and answer.reason == Reason.IDEMPOTENCY_KEY_REUSED.value:
            return Refused(answer.reason, {**(answer.data or {}), "field": "request.body"})
        return answer


BUGS: Mapping[str, Change] = {
    "members-made-to-fit": part(service=MadeToFit),
    "requeue-trims-the-id": part(daemon=IdsTrimmed),
    "feature-in-any-case": part(negotiator=FeatureInAnyCase),
    "refused-send-is-kept": part(daemon=RefusedIsKept),
    "malformed-calls-noted": part(service=MalformedIsCounted),
    "refusal-shows-the-row": part(daemon=ShowsTheField),
}
