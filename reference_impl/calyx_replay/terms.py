"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from enum import Enum, unique
from typing import Any, TypeAlias

from holdfast.reference_impl.terms import RefusedError
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


def check_args(schema: Validator, args: Any) -> None:
    """Hold the arguments of an operation to its schema. Raises RefusedError."""
    problem = explain(schema, args)
    if problem is not None:
        raise RefusedError(Reason.REQUEST_MALFORMED, problem)
