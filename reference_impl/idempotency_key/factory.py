"""The parts that the service is built from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.reference_impl.idempotency_key.app import Application
from holdfast.reference_impl.idempotency_key.broker import Broker, Queue
from holdfast.reference_impl.idempotency_key.databases import Databases
from holdfast.reference_impl.idempotency_key.guard import Fingerprints, Guard
from holdfast.reference_impl.idempotency_key.keys import Keys
from holdfast.reference_impl.idempotency_key.records import Records
from holdfast.reference_impl.idempotency_key.terms import load_limits


@dataclass(frozen=True, slots=True)
class Factory:
    """One class for each part. The defaults are the reference."""

    keys: type[Keys] = Keys
    fingerprints: type[Fingerprints] = Fingerprints
    records: type[Records] = Records
    guard: type[Guard] = Guard
    application: type[Application] = Application
    broker: type[Broker] = Broker
    databases: type[Databases] = Databases

    def build(self, environment: Mapping[str, str], now: Callable[[], int]) -> Application:
        """The service. Raises StoreError where its store cannot be used."""
        limits = load_limits()
        database = self.databases().opened(environment)
        records = self.records(database, lifetime_ms=limits.lifetime_ms, lease_ms=limits.lease_ms)
        guard = self.guard(self.keys(limits.longest_key), self.fingerprints(), records, now)
        if "QUEUE" in environment:
            return self.broker(guard, environment["SINK_URL"], Queue(Path(environment["QUEUE"])))
        return self.application(guard, environment["SINK_URL"])


REFERENCE = Factory()
