"""The session that the adapter talks to: arguments in, answers out. It has no state to keep."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Refused
from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.terms import Profile, Reason, Refusal
from holdfast.specs.schema import Validator


class MalformedError(Exception):
    """The arguments do not fit the method's schema."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call after reading: any bytes, and the profile to judge them by."""

    document: bytes
    profile: Profile


class Service:
    """Implements `session.Session`."""

    # See `session.Session`: no fitness proof is tied to it.
    place = None

    def __init__(self, canonicalisers: Mapping[Profile, Canonicaliser], schema: Validator) -> None:
        """`schema` is that of the arguments, the same for both methods."""
        self._canonicalisers = canonicalisers
        self._schema = schema

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`."""
        if method not in ("canonicalise", "verify"):
            return Fault(f"unknown method {method!r}; known: canonicalise, verify")
        try:
            request = self.read(args)
        except MalformedError as error:
            return Refused(Reason.REQUEST_MALFORMED.value, detail=str(error))
        chosen = self.chosen(request.profile)
        if method == "verify":
            refusal = chosen.verify(request.document)
            return Accepted(Effect.NEW, {}) if refusal is None else _refused(refusal)
        canonical = chosen.canonicalise(request.document)
        if isinstance(canonical, Refusal):
            return _refused(canonical)
        return Accepted(Effect.NEW, {"canonical": spelt(canonical)})

    def read(self, args: Any) -> Request:
        """The request that fits the schema. Raises MalformedError."""
        if not self._schema.is_valid(args):
            raise MalformedError("expected {document: base64url without padding, profile: one of the contract's}")
        return Request(_bytes_of(args["document"]), Profile(args["profile"]))

    def chosen(self, profile: Profile) -> Canonicaliser:
        """The canonicaliser of a profile."""
        return self._canonicalisers[profile]

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`. Nothing here depends on time."""

    def close(self) -> None:
        """See `session.Session`. There is nothing to give back."""


def _refused(refusal: Refusal) -> Refused:
    return Refused(refusal.reason.value, {"offset": refusal.offset}, str(refusal))


def _bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def spelt(data: bytes) -> str:
    """Bytes as base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
