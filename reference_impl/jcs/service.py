"""The session that the adapter talks to: arguments in, answers out. It has no state to keep."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Refused
from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.terms import Profile, Reason, Refusal
from holdfast.specs.schema import Validator


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
        if not self._schema.is_valid(args):
            detail = "expected {document: base64url without padding, profile: one of the contract's}"
            return Refused(Reason.REQUEST_MALFORMED.value, detail=detail)
        text, chosen = args["document"], self._canonicalisers[Profile(args["profile"])]
        document = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        if method == "verify":
            refusal = chosen.verify(document)
            return Accepted(Effect.NEW, {}) if refusal is None else _refused(refusal)
        canonical = chosen.canonicalise(document)
        if isinstance(canonical, Refusal):
            return _refused(canonical)
        return Accepted(Effect.NEW, {"canonical": base64.urlsafe_b64encode(canonical).rstrip(b"=").decode("ascii")})

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`. Nothing here depends on time."""

    def close(self) -> None:
        """See `session.Session`. There is nothing to give back."""


def _refused(refusal: Refusal) -> Refused:
    return Refused(refusal.reason.value, {"offset": refusal.offset}, str(refusal))
