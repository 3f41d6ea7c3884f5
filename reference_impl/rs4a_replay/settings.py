"""Every value the registrar works with: from the contract, overridden by the session's config, never from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, unique
from typing import Any, TypeVar

from holdfast.reference_impl.rs4a_replay.terms import CONTRACT
from holdfast.reference_impl.session import OpenError
from holdfast.specs import Contract, Relation, kept_terms

_E = TypeVar("_E", bound=Enum)
_T = TypeVar("_T")


@unique
class StoreKind(Enum):
    """Where the surface lives."""

    POSTGRES = "postgres"
    SQLITE = "sqlite"


@unique
class Isolation(Enum):
    """Isolation level of the Phase-3 transaction on PostgreSQL; SQLite has only the strictest."""

    READ_COMMITTED = "read_committed"
    REPEATABLE_READ = "repeatable_read"
    SERIALIZABLE = "serializable"


# Further names in `config`, besides the contract's parameters.
STORE_KEYS = ("store", "dsn", "writer_dsn", "template", "cluster", "writer", "laboratory", "fitness", "surface")

# What `laboratory` must be for sessions to be opened on throw-away clones of the database that `dsn` names.
LABORATORY = "yes"


@dataclass(frozen=True, slots=True)
class KeySpec:
    """How one key is derived: domain tag and field names, in order, as the contract lists them."""

    tag: str
    fields: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Settings:
    """Loaded values. A `horizon` of None is for ever; `audit_records` is how many records each reason leaves."""

    version: str
    ttl: timedelta
    clock_skew: timedelta
    nonce_window: timedelta
    horizon: timedelta | None
    serialization_retries: int
    keys: Mapping[str, KeySpec]
    relations: Mapping[str, Relation]
    audit_records: Mapping[str, int]
    store: StoreKind = StoreKind.POSTGRES
    isolation: Isolation = Isolation.READ_COMMITTED


def _read(name: str, text: Any, kind: Callable[[Any], _T], expected: str) -> _T:
    try:
        return kind(text)
    except ValueError:
        raise OpenError(f"config {name}: expected {expected}, got {text!r}") from None


def _member(name: str, text: Any, kind: type[_E]) -> _E:
    return _read(name, text, kind, f"one of {', '.join(str(member.value) for member in kind)}")


def _parameters(contract: Contract, config: Mapping[str, str]) -> dict[str, Any]:
    values: dict[str, Any] = {name: parameter.value for name, parameter in contract.parameters.items()}
    for name, text in config.items():
        if name in STORE_KEYS:
            continue
        if name not in values:
            raise OpenError(f"config {name}: no such key; known keys: {', '.join((*STORE_KEYS, *values))}")
        values[name] = _read(name, text, str if isinstance(values[name], str) else int, "a whole number")
    return values


def load_settings(config: Mapping[str, str]) -> Settings:
    """Read the contract and apply `config`. Raises OpenError for a key or a value that makes no sense."""
    contract = kept_terms(CONTRACT)
    values = _parameters(contract, config)
    horizon = values["horizon_seconds"]
    return Settings(
        version=contract.version,
        ttl=timedelta(seconds=values["ttl_seconds"]),
        clock_skew=timedelta(seconds=values["clock_skew_seconds"]),
        nonce_window=timedelta(seconds=values["nonce_window_seconds"]),
        horizon=None if horizon is None else timedelta(seconds=horizon),
        serialization_retries=values["serialization_retries"],
        keys={name: KeySpec(values[key.tag], key.fields) for name, key in contract.keys.items()},
        relations=contract.relations,
        audit_records={name: reason.audit_records for name, reason in contract.reasons.items()},
        store=_member("store", config.get("store", StoreKind.POSTGRES), StoreKind),
        isolation=_member("isolation", values["isolation"], Isolation),
    )
