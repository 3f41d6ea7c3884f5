"""The session that the adapter talks to: arguments in, answers out. It has no state to keep."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Refused
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.reference_impl.mesh_delivery.terms import Reason, RefusedError
from holdfast.specs.schema import Validator


class Service:
    """Implements `session.Session`."""

    # See `session.Session`: no fitness proof is tied to it.
    place = None

    def __init__(self, fingerprinter: Fingerprinter, schema: Validator) -> None:
        """`schema` is that of the arguments."""
        self._fingerprinter = fingerprinter
        self._schema = schema

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`."""
        if method != "fingerprint":
            return Fault(f"unknown method {method!r}; known: fingerprint")
        if not self._schema.is_valid(args):
            return Refused(Reason.REQUEST_MALFORMED.value, detail="expected what methods.yaml says of a request")
        try:
            return Accepted(Effect.NEW, {"fingerprint": self._fingerprinter.fingerprint(args)})
        except RefusedError as error:
            return Refused(error.reason.value, {"field": error.field.value}, str(error))

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`. Nothing here depends on time."""

    def close(self) -> None:
        """See `session.Session`. There is nothing to give back."""
