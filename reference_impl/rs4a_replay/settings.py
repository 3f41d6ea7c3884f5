"""Every value the registrar works with: from the contract, overridden by the session's config, never from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, unique

from holdfast.reference_impl.rs4a_replay.terms import CONTRACT
from holdfast.reference_impl.values import one_of, values_of
from holdfast.specs import Relation, kept_terms


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

    @property
    def surface(self) -> Mapping[str, Relation]:
        """The relations that a surface has to have."""
        return {name: relation for name, relation in self.relations.items() if not relation.audit}


def load_settings(config: Mapping[str, str]) -> Settings:
    """Read the contract and apply `config`. Raises OpenError for a key or a value that makes no sense."""
    contract = kept_terms(CONTRACT)
    values = values_of(CONTRACT, config, STORE_KEYS)
    horizon = values["horizon_seconds"]
    return Settings(
        ttl=timedelta(seconds=values["ttl_seconds"]),
        clock_skew=timedelta(seconds=values["clock_skew_seconds"]),
        nonce_window=timedelta(seconds=values["nonce_window_seconds"]),
        horizon=None if horizon is None else timedelta(seconds=horizon),
        serialization_retries=values["serialization_retries"],
        keys={name: KeySpec(values[key.tag], key.fields) for name, key in contract.keys.items()},
        relations=contract.relations,
        audit_records={name: reason.audit_records for name, reason in contract.reasons.items()},
        store=StoreKind(
            one_of("store", config.get("store", StoreKind.POSTGRES.value), [each.value for each in StoreKind])
        ),
        isolation=Isolation(one_of("isolation", values["isolation"], [each.value for each in Isolation])),
    )
