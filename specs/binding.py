"""Adapter protocol v1 over HTTP: a route for each method, and one for each other request (docs/http.md)."""

from __future__ import annotations

from holdfast.specs.model import Contract, Method
from holdfast.specs.routes import INDETERMINATE, OK, Route

# The header of a session. Each worker has one of its own, which its client makes up.
SESSION = "Holdfast-Session"
_BASE = "/holdfast/v1"
# The requests of the protocol beside the calls of methods. Their response has the status 200, its body is the answer.
# `call` is for arguments that cannot travel by the route of their method.
REQUESTS = ("hello", "open", "call", "clock", "close")
# Where a request is not what it must be for any answer: no contract has a route with this status.
NO_REQUEST = 428
# The reason for arguments that do not fit their schema, in every contract that has one.
MALFORMED = "REQUEST_MALFORMED"
_STATUSES = {"new": 201, "prior": 200, OK: 200, INDETERMINATE: 504, MALFORMED: 400}
_UNAVAILABLE, _REFUSED = 503, 409


def path_of(request: str) -> str:
    """The path of a request of the protocol."""
    return f"{_BASE}/{request}"


def route_of(contract: Contract, method: Method) -> Route:
    """How a method travels: as its contract says, or as all do that it says nothing of."""
    if method.route is not None:
        return method.route
    outcomes = [*method.effects, *method.reasons, INDETERMINATE] if method.effects else [OK]
    statuses = {name: _status(name) for name in outcomes}
    return Route(method="POST", path=f"/{contract.name}/{method.name}", statuses=statuses, named_reasons=True)


def _status(name: str) -> int:
    return _STATUSES.get(name, _UNAVAILABLE if name.endswith("_UNAVAILABLE") else _REFUSED)
