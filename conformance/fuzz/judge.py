"""What a response over HTTP shows: accepted, refused, or a failure. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique
from typing import Any

from holdfast.conformance.cases.expect import broken
from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.fuzz.exchange import CANARY, JSON, NO_JSON, FuzzRequest, Response
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.specs import Method
from holdfast.specs.routes import ERROR, Route

_REDIRECTION, _REFUSED, _SERVER = 300, 400, 500
# Of a request line that no server knows (RFC 9110 15.6.2, 15.6.6).
_UNKNOWN = frozenset({501, 505})


@unique
class Shown(Enum):
    """What became of a request."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    OPEN = "open"


@dataclass(frozen=True, slots=True)
class Due:
    """What has to become of a request.

    `what` says for people what was sent. `refused`: it may not be accepted. `named`: a refusal names a reason of the
    method. `silent`: the server may close the connection in the place of a response. `strange`: its method is none.
    `harmless`: any answer will do, as long as nothing is done.
    """

    what: str
    refused: bool = False
    named: bool = False
    silent: bool = False
    strange: bool = False
    harmless: bool = False


def finding(
    verdict: Verdict,
    why: str,
    expected: str,
    request: FuzzRequest,
    response: Response,
    silence: FailureMode | None = None,
) -> NonConformance:
    """What a response shows that it may not, with the command that sends its request again."""
    again = f"Again, in an open session: {request.curl(response.url)}"
    return NonConformance(Judgement(verdict, silence, why, expected, response.shown, again, n=response.n))


def shown_by(method: Method, route: Route, request: FuzzRequest, response: Response, due: Due) -> Shown:
    """What a response shows. Raises NonConformance if it is no response to such a request."""

    def found(verdict: Verdict, why: str, expected: str, silence: FailureMode | None = None) -> NonConformance:
        return finding(verdict, f"{due.what}: {why}", expected, request, response, silence)

    told = (response.body.decode("utf-8", "replace"), *(value for _, value in response.headers))
    if any(CANARY in each for each in told):
        raise found(
            Verdict.STATE_LEAK, "the response repeats a secret of the request", "nothing of Authorization, Cookie"
        )
    if response.status == 0:
        if due.silent:
            return Shown.REFUSED
        raise found(Verdict.NO_VERDICT, "no response", "a response", FailureMode.EOF)
    if due.harmless and response.status < _SERVER:
        return Shown.REFUSED
    message = _message(route, response)
    outcome = None if message is None else message["outcome"]
    if response.status >= _SERVER and outcome in (None, "fault", "unsupported"):
        if due.strange and response.status in _UNKNOWN:
            return Shown.REFUSED
        raise found(Verdict.NO_VERDICT, "a request makes the server fail", "a status below 500", FailureMode.FAULT)
    if outcome == "indeterminate":
        return Shown.OPEN
    kind = response.header("Content-Type").partition(";")[0].strip().lower()
    if outcome in ("accepted", "ok", "refused") and response.body and kind != JSON:
        raise found(Verdict.WRONG_REASON, f"the response is sent as {kind or 'nothing'}", JSON)
    said = response.said()
    reason = said.get(ERROR) if isinstance(said, dict) else None
    if outcome is None and response.status >= _REFUSED and isinstance(reason, str) and reason in route.statuses:
        raise found(Verdict.WRONG_REASON, f"{reason} has the status {response.status}", f"{route.statuses[reason]}")
    if outcome in ("accepted", "ok") or response.status < _REDIRECTION:
        if due.refused:
            raise found(Verdict.FAIL_OPEN, "accepted", "a refusal")
        problem = "it is no answer of this route" if message is None else broken(method, message, {})
        if problem is not None:
            raise found(Verdict.NO_VERDICT, problem, "an answer as the contract has it", FailureMode.GARBAGE)
        return Shown.ACCEPTED
    if outcome == "refused":
        problem = broken(method, message or {}, {})
        if problem is not None:
            raise found(Verdict.WRONG_REASON, problem, "a reason of the method")
    elif due.named and response.status >= _REFUSED:
        raise found(Verdict.WRONG_REASON, "the refusal names no reason of the method", ", ".join(method.reasons))
    return Shown.REFUSED


def effect_of(route: Route, response: Response) -> str | None:
    """The effect of an accepted request."""
    message = _message(route, response) or {}
    return message.get("effect")


def _message(route: Route, response: Response) -> dict[str, Any] | None:
    said = response.said()
    if said is NO_JSON:
        return None
    return route.message(response.status, said)
