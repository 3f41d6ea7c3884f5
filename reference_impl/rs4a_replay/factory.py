"""The parts that a session is built from. A mutant is a factory with one part changed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.authority import Authority
from holdfast.reference_impl.rs4a_replay.custody import Custody
from holdfast.reference_impl.rs4a_replay.ddl import PostgresDialect, SqliteDialect
from holdfast.reference_impl.rs4a_replay.keys import Keys
from holdfast.reference_impl.rs4a_replay.reading import Reader
from holdfast.reference_impl.rs4a_replay.registrar import Registrar
from holdfast.reference_impl.rs4a_replay.service import Service
from holdfast.reference_impl.rs4a_replay.settings import Settings, load_settings
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteAudit, SqliteStore
from holdfast.reference_impl.rs4a_replay.surface import SurfaceJudge
from holdfast.reference_impl.rs4a_replay.validator import Validator
from holdfast.reference_impl.rs4a_replay.verifier import Verifier

if TYPE_CHECKING:
    from holdfast.reference_impl.rs4a_replay.fitness import FitnessGuard
    from holdfast.reference_impl.rs4a_replay.postgres_store import PostgresAudit, PostgresStore
    from holdfast.servers.postgres.confined import ConfinedServer


def _as_loaded(settings: Settings) -> Settings:
    return settings


@dataclass(frozen=True, slots=True)
class Factory:
    """One class for each part, and a function that may change the loaded settings. The defaults are the reference.

    None stands for the class of the reference where that is loaded with the store alone (`opening`).
    """

    keys: type[Keys] = Keys
    reader: type[Reader] = Reader
    validator: type[Validator] = Validator
    verifier: type[Verifier] = Verifier
    registrar: type[Registrar] = Registrar
    authority: type[Authority] = Authority
    custody: type[Custody] = Custody
    judge: type[SurfaceJudge] = SurfaceJudge
    postgres_dialect: type[PostgresDialect] = PostgresDialect
    sqlite_store: type[SqliteStore] = SqliteStore
    sqlite_audit: type[SqliteAudit] = SqliteAudit
    sqlite_dialect: type[SqliteDialect] = SqliteDialect
    patience: type[Patience] = Patience
    service: type[Service] = Service
    fitness: type[FitnessGuard] | None = None
    postgres_store: type[PostgresStore] | None = None
    postgres_audit: type[PostgresAudit] | None = None
    confined_server: type[ConfinedServer] | None = None
    loaded: Callable[[Settings], Settings] = field(default=_as_loaded)

    def settings(self, config: Mapping[str, str]) -> Settings:
        """The settings for a session's config. Raises OpenError."""
        return self.loaded(load_settings(config))


REFERENCE = Factory()
