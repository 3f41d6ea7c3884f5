"""The closed set of answers of adapter protocol v1 (docs/adapter-protocol.md, "Outcomes")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any


@unique
class Effect(Enum):
    """Whether an accepted operation took effect now, or reports a durable earlier result."""

    NEW = "new"
    PRIOR = "prior"


@dataclass(frozen=True, slots=True)
class Accepted:
    """An operation was accepted; `value` fits the method's result schema."""

    effect: Effect
    value: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Refused:
    """An operation was refused for a reason of the contract's closed list; `detail` is for humans only."""

    reason: str
    data: Mapping[str, Any] | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Indeterminate:
    """The implementation cannot know whether the operation took effect."""

    detail: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """An internal error or a request that makes no sense: neither accepted nor refused."""

    detail: str


class Senseless(Fault):
    """The request makes no sense, and nothing failed. Over pipes it is a fault as any other."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Ok:
    """An observation, a provocation or a session request succeeded."""

    value: Mapping[str, Any] | None = None


Answer = Accepted | Refused | Indeterminate | Fault | Ok


def to_message(answer: Answer) -> dict[str, Any]:
    """The members of the answer as they travel, all but `id`."""
    match answer:
        case Accepted(effect, value):
            return {"outcome": "accepted", "effect": effect.value, "value": dict(value)}
        case Refused(reason, data, detail):
            message: dict[str, Any] = {"outcome": "refused", "reason": reason}
            if data is not None:
                message["data"] = dict(data)
            if detail:
                message["detail"] = detail
            return message
        case Indeterminate(detail):
            return {"outcome": "indeterminate", "detail": detail} if detail else {"outcome": "indeterminate"}
        case Fault(detail):
            return {"outcome": "fault", "detail": detail}
        case Ok(value):
            return {"outcome": "ok"} if value is None else {"outcome": "ok", "value": dict(value)}
