"""How an operation travels over HTTP and WebSocket: the route that `methods.yaml` declares for it.

The kit sends requests by it (`holdfast.conformance.adapter.wire`), and the OpenAPI file of a contract is made from it
(`holdfast.specs.binding`). An implementation may have other routes beside these.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Annotated, Any, Literal
from urllib.parse import quote, unquote

from msgspec import Meta

from holdfast.specs.entry import Entry, Name, Text, text

# A status, and after it what stands for an effect or a reason that has none of its own.
_Status = Annotated[int, Meta(ge=200, le=599)]
# The member of a body that names the reason, where a status has several.
ERROR = "error"
# Keys of `statuses` beside effects and reasons: an outcome that is not known, and an observation or a provocation.
INDETERMINATE, OK = "indeterminate", "ok"
# What has the same status on every route. Any other status of 500 and more is a fault, too. So are arguments of an
# observation or a provocation that do not fit its schema: these have no reasons.
UNSUPPORTED, FAULT, NO_ARGUMENTS = 501, 500, 422


class Route(Entry, frozen=True):
    """One route. `{name}` in the path and the values of `headers` take arguments; the others are the JSON body.

    A header holds its argument percent-encoded. Over a WebSocket the headers of `connection` are sent with the
    handshake, and the arguments of the others are members of the frame.

    `statuses` maps each effect and each reason to its status. The body of an accepted request is the result. That of a
    refused one is its data; where several reasons have one status, its member `error` names the reason.

    With `named_reasons` every refusal has that member, so that an empty response of another program is no refusal.

    `paired` is an argument that the body of an answer repeats. It says which of several requests over one WebSocket the
    answer is to.
    """

    method: Literal["POST", "PUT", "PATCH", "DELETE"]
    path: Annotated[str, text("^/[A-Za-z0-9_{}/-]*$")]
    statuses: Mapping[Text, _Status]
    headers: Mapping[Name, Text] = {}
    connection: tuple[Name, ...] = ()
    websocket: Annotated[str, text("^/[A-Za-z0-9_{}/-]*$")] | None = None
    named_reasons: bool = False
    paired: Name | None = None

    def target(self, path: str, args: Mapping[str, Any]) -> str:
        """A path of this route with its arguments."""
        for name, value in args.items():
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
        return path

    def body(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that travel in the body of a request."""
        return self._rest(args, {*self.headers})

    def frame(self, args: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that travel in a frame of a WebSocket."""
        return self._rest(args, {*self.connection})

    def _rest(self, args: Mapping[str, Any], elsewhere: set[str]) -> dict[str, Any]:
        places = elsewhere | {name for name in args if f"{{{name}}}" in self.path}
        return {name: value for name, value in args.items() if name not in places}

    def carries(self, args: Mapping[str, Any]) -> bool:
        """Whether these arguments can travel so: those in headers and in the path are text."""
        elsewhere = {*self.headers, *(name for name in args if f"{{{name}}}" in self.path)}
        return all(isinstance(args.get(name, ""), str) for name in elsewhere)

    def written(self, args: Mapping[str, Any], inside: Collection[str]) -> dict[str, str]:
        """The headers that take the arguments of these names."""
        taken = {header: str(args.get(name, "")) for name, header in self.headers.items() if name in inside}
        return {header: quote(value, safe="") for header, value in taken.items()}

    def read(self, headers: Mapping[str, str]) -> dict[str, str]:
        """The arguments that headers hold."""
        found = {name: headers.get(header) for name, header in self.headers.items()}
        return {name: unquote(value) for name, value in found.items() if value is not None}

    def named(self, status: int) -> tuple[str, ...]:
        """The effects and reasons with this status."""
        return tuple(name for name, each in self.statuses.items() if each == status)

    def names_reason(self, status: int) -> bool:
        """Whether the body of a refusal with this status names its reason."""
        return self.named_reasons or len(self.named(status)) > 1

    def message(self, status: int, body: Any) -> dict[str, Any] | None:
        """The answer of the protocol that a response stands for; None for what is no response of this route."""
        names = self.named(status)
        if not names:
            return _beside(status, body)
        if names == (INDETERMINATE,):
            return {"outcome": "indeterminate"}
        if names == (OK,):
            return {"outcome": "ok"} if body is None else {"outcome": "ok", "value": body}
        if names[0] in ("new", "prior"):
            return {"outcome": "accepted", "effect": names[0], "value": body}
        named = self.names_reason(status)
        if body is None and not named:
            return {"outcome": "refused", "reason": names[0]}
        if not isinstance(body, dict) or (named and body.get(ERROR) not in names):
            return None
        data = {name: value for name, value in body.items() if not named or name != ERROR}
        return {"outcome": "refused", "reason": body[ERROR] if named else names[0], **({"data": data} if data else {})}

    def response(self, message: Mapping[str, Any]) -> tuple[int, Any]:
        """The status and the body that stand for an answer of the protocol."""
        outcome = message["outcome"]
        if outcome in ("accepted", "ok"):
            return self.statuses[message.get("effect", OK)], message.get("value")
        if outcome == "refused":
            reason, data = message["reason"], dict(message.get("data") or {})
            status = self.statuses[reason]
            return status, {ERROR: reason, **data} if self.names_reason(status) else data
        if outcome == INDETERMINATE:
            return self.statuses[INDETERMINATE], {}
        # What a fault was is in the log, and no matter of the other side.
        return (UNSUPPORTED, {"capability": message["capability"]}) if outcome == "unsupported" else (FAULT, {})


def _beside(status: int, body: Any) -> dict[str, Any] | None:
    if status == UNSUPPORTED and isinstance(body, dict) and isinstance(body.get("capability"), str):
        return {"outcome": "unsupported", "capability": body["capability"]}
    is_fault = status >= FAULT or status == NO_ARGUMENTS
    return {"outcome": "fault", "detail": f"status {status}"} if is_fault else None
