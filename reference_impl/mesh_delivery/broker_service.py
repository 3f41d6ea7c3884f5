"""The methods of the role broker: arguments in, answers out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from holdfast.reference_impl.answers import Answer, Fault, Ok
from holdfast.reference_impl.failpoints import Fault as Failure
from holdfast.reference_impl.instants import parse_instant
from holdfast.reference_impl.mesh_delivery.broker import Broker
from holdfast.reference_impl.mesh_delivery.broker_admin import Administrator
from holdfast.reference_impl.mesh_delivery.broker_jobs import Jobs
from holdfast.reference_impl.mesh_delivery.broker_store import UnavailableError, UncertainError
from holdfast.reference_impl.mesh_delivery.failpoints import ARMED_FOR, Failpoints, Point
from holdfast.reference_impl.mesh_delivery.terms import Mode, Word
from holdfast.reference_impl.patience import Patience
from holdfast.servers.postgres.confined import ConfinedServer

FEATURE = "client_message_id_dedupe"
# It says that fingerprints are compared (section 15.1).
FEATURE_VERSION = 2


@dataclass(frozen=True, slots=True)
class BrokerService:
    """One open broker. `database` is the name of its own database, `server` the session's own if it has one."""

    broker: Broker
    jobs: Jobs
    administrator: Administrator
    failpoints: Failpoints
    database: str
    patience: Patience
    server: ConfinedServer | None = None

    def call(self, method: Word, args: Mapping[str, Any]) -> Answer:
        """Answer one call whose arguments fit the schema of the method."""
        self.patience.begin()
        if method == "hold_at":
            self.failpoints.arm(Point(args["point"]), Failure(args["fault"]))
            return Ok()
        try:
            return self.broker.accept(args) if method == "accept" else Ok(self._actions[method](**args))
        except (psycopg.Error, UnavailableError, UncertainError) as error:
            return Fault(f"the database did not do it: {type(error).__name__}")
        finally:
            if method in ARMED_FOR:
                self.failpoints.disarm()

    @property
    def _actions(self) -> Mapping[str, Callable[..., Mapping[str, Any] | None]]:
        admin = self.administrator
        return {
            "broker_state": admin.state,
            "broker_schema": lambda: {"relations": admin.catalogue()},
            "features": lambda: {"supported": self.advertised()},
            "counters": lambda: {"counters": self.broker.counters.shown()},
            "inbox": lambda **named: {"messages": admin.inbox(**named)},
            "make_mesh": lambda mesh_id, members, topics=(), queues=(): admin.make_mesh(
                mesh_id, members=members, topics=topics, queues=queues
            ),
            "delete_mesh": admin.delete_mesh,
            "expire": lambda: self.jobs.expire(self.broker.now),
            "prune": self._prune,
            "check_orphans": lambda: {"orphans": self.jobs.check_orphans()},
            "migrate": admin.migrate,
            "set_flag": admin.set_flag,
            "raw_insert": lambda **named: {"inserted": admin.raw_insert(**named)},
            "remove_message": lambda broker_message_id: admin.remove_message(broker_message_id),
            "refuse_rows": admin.refuse_rows,
            "break_broker": lambda broken: admin.set_reachable(self.database, reachable=not broken),
        }

    def _prune(self, older_than: str) -> dict[str, Any]:
        try:
            self.jobs.prune(parse_instant(older_than))
            return {"done": True}
        except UnavailableError:
            return {"done": False}

    def advertised(self) -> dict[str, Any]:
        """The features of the handshake: only what is enforced."""
        return {FEATURE: self.parameters()} if self.administrator.is_enforced() else {}

    def parameters(self) -> dict[str, Any]:
        """The parameters of the feature."""
        settings = self.broker.settings
        days = {"dedupe_retention_days": settings.dedupe_retention_days}
        return {
            "version": FEATURE_VERSION,
            "mode": settings.mode.value,
            **(days if settings.mode is Mode.RETENTION_SCOPED else {}),
            "request_fingerprint": True,
        }

    def set_clock(self, now: datetime) -> None:
        """Set the frozen clock."""
        self.broker.now = now

    def close(self) -> None:
        """Give back connections. Never raises."""
        self.broker.store.close()
        self.administrator.close()
        if self.server is not None:
            self.server.close()
