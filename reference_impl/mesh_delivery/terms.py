"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import TypeAlias

from holdfast.reference_impl.jcs.terms import Profile
from holdfast.reference_impl.session import OpenError
from holdfast.reference_impl.terms import reasons
from holdfast.reference_impl.values import values_of
from holdfast.specs import kept_terms

CONTRACT = "mesh-delivery"
Reason = reasons(CONTRACT)
# An id that the broker has made: a UUID in small letters. And the 32 bytes of a fingerprint.
Made: TypeAlias = str
Digest: TypeAlias = bytes
# One of a few words of the code's own: a method, a relation, a kind of destination.
Word: TypeAlias = str
# The member of a config with the name of the database that those of sessions are copies of.
TEMPLATE = "template"
# Values of the config `transport` for which the broker listens.
_SOCKETS = ("http", "websocket")


@unique
class Mode(Enum):
    """Whether dedupe records expire."""

    RETENTION_SCOPED = "retention_scoped"
    PERMANENT = "permanent"


@unique
class StartingSchema(Enum):
    """What the database of a fresh session has."""

    V6 = "v6"
    BEFORE_V6 = "pre-v6"


@unique
class Field(Enum):
    """The members of a request that a refusal names."""

    DESTINATION_KIND = "destination_kind"
    DESTINATION_REF = "destination_ref"
    REPLY_TO = "reply_to"
    PRIORITY = "priority"
    META = "meta"


class RefusedError(Exception):
    """The request has no fingerprint. `field` is the member that is wrong."""

    def __init__(self, reason: Enum, field: Field) -> None:
        super().__init__(f"{reason.value} in {field.value}")
        self.reason = reason
        self.field = field


@dataclass(frozen=True, slots=True)
class Terms:
    """The values of the contract."""

    field_order: tuple[str, ...]
    separator: bytes
    destination_kinds: tuple[str, ...]
    priorities: tuple[str, ...]
    default_priority: str
    meta_profile: Profile


@dataclass(frozen=True, slots=True)
class Settings:
    """The values that the config of a session may set. `listens`: the broker does so at a socket, too.

    `broker` is where that of a daemon listens, and `member` whom the daemon acts for; empty if it is not said.
    """

    listens: bool
    broker: str
    member: str
    max_age_hours: int
    mode: Mode
    dedupe_retention_days: int
    inline_bytes: int
    schema: StartingSchema


def read_terms() -> Terms:
    """The values as the contract has them."""
    values = values_of(CONTRACT, {})
    return Terms(
        field_order=tuple(values["field_order"].split()),
        separator=bytes.fromhex(values["separator"]),
        destination_kinds=tuple(values["destination_kinds"].split()),
        priorities=tuple(values["priorities"].split()),
        default_priority=values["default_priority"],
        meta_profile=Profile(values["meta_profile"]),
    )


def read_settings(config: Mapping[str, str]) -> Settings:
    """The contract's values, or those of the config. Raises OpenError for a value that makes no sense."""
    known = kept_terms(CONTRACT).parameters
    values = values_of(CONTRACT, {name: text for name, text in config.items() if name in known})
    try:
        return Settings(
            listens=config.get("transport") in _SOCKETS,
            broker=config.get("broker", ""),
            member=config.get("member", ""),
            max_age_hours=values["max_age_hours"],
            mode=Mode(values["mode"]),
            dedupe_retention_days=values["dedupe_retention_days"],
            inline_bytes=values["inline_bytes"],
            schema=StartingSchema(values["schema"]),
        )
    except ValueError as error:
        raise OpenError(f"config: {error}") from error
