"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import Any, TypeAlias

from holdfast.reference_impl.answers import Refused
from holdfast.specs.schema import Validator, explain

CONTRACT = "calyx-replay"
# Digits of a digest, small letters without blanks, as they are computed here and never read from outside.
Hex: TypeAlias = str


@unique
class Reason(Enum):
    """The closed list of refusal reasons."""

    REQUEST_MALFORMED = "REQUEST_MALFORMED"
    ENVELOPE_MALFORMED = "ENVELOPE_MALFORMED"
    TIMESTAMP_UNREADABLE = "TIMESTAMP_UNREADABLE"
    SIGNATURE_INVALID = "SIGNATURE_INVALID"
    TIMESTAMP_OUT_OF_WINDOW = "TIMESTAMP_OUT_OF_WINDOW"
    STORE_UNAVAILABLE = "STORE_UNAVAILABLE"
    MSG_ID_BLOCKED = "MSG_ID_BLOCKED"
    REPLAY_UNPROVABLE = "REPLAY_UNPROVABLE"
    REPLAY_DUPLICATE = "REPLAY_DUPLICATE"
    RETENTION_TOO_SHORT = "RETENTION_TOO_SHORT"
    NOTHING_TO_MIGRATE = "NOTHING_TO_MIGRATE"
    MIGRATION_MALFORMED = "MIGRATION_MALFORMED"


@unique
class Purpose(Enum):
    """The purposes of connections on the database; each purpose has its own connection."""

    RECEIVE = "receive"
    PRUNE = "prune"
    MIGRATE = "migrate"
    OBSERVE = "observe"


class RefusedError(Exception):
    """An operation is refused. `data` is what the contract lets the reason carry; the text is for humans."""

    def __init__(self, reason: Reason, detail: str = "", data: Mapping[str, Any] | None = None) -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value)
        self.reason = reason
        self.detail = detail
        self.data = data

    def answer(self) -> Refused:
        """The refusal as the adapter answers it."""
        return Refused(self.reason.value, self.data, self.detail)


def check_args(schema: Validator, args: Any) -> None:
    """Hold the arguments of an operation to its schema. Raises RefusedError."""
    problem = explain(schema, args)
    if problem is not None:
        raise RefusedError(Reason.REQUEST_MALFORMED, problem)
