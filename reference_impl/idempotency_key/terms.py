"""The vocabulary of the contract in Python, and the problems that the service answers with (RFC 9457)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum, unique

from holdfast.reference_impl.values import values_of

CONTRACT = "idempotency-key"
PROBLEM = "application/problem+json"
REPLAYED = "Idempotency-Replayed"


@unique
class Reason(Enum):
    """Why this service refuses, with the status that says so."""

    MALFORMED = 400
    UNAUTHENTICATED = 401
    IN_PROGRESS = 409
    MISMATCH = 422
    UNKNOWN = 500
    UNAVAILABLE = 503

    @property
    def title(self) -> str:
        """What a problem says of it: nothing of the request, nothing that is stored."""
        return _TITLES[self]


_TITLES = {
    Reason.MALFORMED: "The request or its Idempotency-Key is malformed",
    Reason.UNAUTHENTICATED: "The credential is refused",
    Reason.IN_PROGRESS: "A request with this Idempotency-Key is being processed",
    Reason.MISMATCH: "This Idempotency-Key was used with another payload",
    Reason.UNKNOWN: "It is not known whether the request took effect",
    Reason.UNAVAILABLE: "The store of keys is not available; nothing was done",
}


class RefusedError(Exception):
    """A request is refused."""

    def __init__(self, reason: Reason, detail: str = "") -> None:
        super().__init__(detail or reason.title)
        self.reason, self.detail = reason, detail


class StoreError(Exception):
    """The store did not do what was asked, or holds what it should not."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response: what is stored, and what is sent."""

    status: int
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes = b""
    replayed: bool = field(default=False, compare=False)


def problem(reason: Reason, detail: str = "", *, retry_after: int | None = None) -> Answer:
    """The response of a refusal."""
    name = reason.name.lower().replace("_", "-")
    told = {"type": f"urn:holdfast:idempotency:{name}", "title": reason.title, "status": reason.value}
    body = json.dumps({**told, "detail": detail} if detail else told).encode()
    headers = (("Content-Type", PROBLEM),)
    return Answer(reason.value, headers if retry_after is None else (*headers, ("Retry-After", str(retry_after))), body)


@dataclass(frozen=True, slots=True)
class Limits:
    """The numbers of the service."""

    lifetime_ms: int
    lease_ms: int
    longest_key: int


def load_limits() -> Limits:
    """The limits as the contract has them."""
    values = values_of(CONTRACT, {})
    return Limits(1000 * values["lifetime_s"], 1000 * values["lease_s"], values["longest_key"])
