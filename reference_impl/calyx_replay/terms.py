"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, unique
from pathlib import PurePosixPath
from typing import Any, TypeAlias

from holdfast.reference_impl.session import OpenError
from holdfast.reference_impl.terms import RefusedError, reasons
from holdfast.reference_impl.values import values_of
from holdfast.servers.pace import scaled
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


@dataclass(frozen=True, slots=True)
class Settings:
    """Loaded values. Paths are relative to the runtime root."""

    protocol_version: str
    max_envelope_bytes: int
    database_path: str
    seen_cache_path: str
    envelopes_path: str
    window: timedelta
    retention: timedelta
    least_retention: timedelta
    prune_interval: timedelta
    busy_timeout: timedelta
    timezone: str


def _seconds(name: str, seconds: int) -> timedelta:
    # Longer than the longest span between two instants of the years 1 to 9999, and still a timedelta.
    most = 10**12
    if seconds > most:
        raise OpenError(f"config {name}: expected at most {most} seconds, got {seconds}")
    return timedelta(seconds=seconds)


def _relative(name: str, text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in text:
        raise OpenError(f"config {name}: expected a path below the runtime root, got {text!r}")
    return text


def load_settings(config: Mapping[str, str]) -> Settings:
    """Read the contract and apply `config`. Raises OpenError for a key or a value that makes no sense."""
    values = values_of(CONTRACT, config)
    window = _seconds("window_seconds", values["window_seconds"])
    return Settings(
        protocol_version=values["protocol_version"],
        max_envelope_bytes=values["max_envelope_bytes"],
        database_path=_relative("database_path", values["database_path"]),
        seen_cache_path=_relative("seen_cache_path", values["seen_cache_path"]),
        envelopes_path=_relative("envelopes_path", values["envelopes_path"]),
        window=window,
        retention=_seconds("retention_hours", values["retention_hours"] * 3600),
        # An envelope from the receiver's future is admissible for twice the window: a wider window needs more.
        least_retention=max(_seconds("least_retention_seconds", values["least_retention_seconds"]), 2 * window),
        prune_interval=_seconds("prune_interval_seconds", values["prune_interval_seconds"]),
        # A wait of this machine, which may be slower than the one that the contract has in mind.
        busy_timeout=_seconds("busy_timeout_seconds", values["busy_timeout_seconds"]) * scaled(1.0),
        timezone=values["timezone"],
    )
