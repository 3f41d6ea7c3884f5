"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from enum import Enum, unique
from typing import Any, TypeAlias

from holdfast.reference_impl.terms import RefusedError, reasons
from holdfast.specs.schema import Validator, explain

CONTRACT = "calyx-replay"
Reason = reasons(CONTRACT)
# Digits of a digest, small letters without blanks, as they are computed here and never read from outside.
Hex: TypeAlias = str
# The name of a method.
Word: TypeAlias = str


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
