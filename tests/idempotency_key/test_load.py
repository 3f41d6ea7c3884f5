"""The test of load: a request that nobody ended is in progress until its lease is over, and only then stuck."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

import pytest

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.suites.idempotency_key import crashes
from holdfast.conformance.suites.idempotency_key.client import Service
from holdfast.conformance.verdict import Verdict
from holdfast.specs import load_contract
from tests.harness.suite_play import bench_on

LEASE_MS = 30_000


class Busy:
    """Session and service in one: the save of every ninth request fails, and its key is in progress from then on."""

    workers = 1

    def __init__(self, ends_after_ms: float) -> None:
        self._now, self._ends, self._asked = 0, ends_after_ms, 0
        self._since: dict[str, int] = {}
        self._done: set[str] = set()

    def rand(self, label: str) -> str:
        return label.replace(" ", "-")

    def hex64(self, label: str) -> str:
        return hashlib.sha256(label.encode()).hexdigest()

    def observe(self, what: str, args: Mapping[str, Any] | None = None) -> Any:
        if what == "profile":
            profile = {"key_syntax": "opaque", "max_key_length": 200, "lease_s": LEASE_MS / 1000, "settle_s": 1}
            routes = {"create": {"path": "/orders"}}
            return {"profile": profile, "routes": routes, "principals": ["a"], "wires": ["clock"], "faults": []}
        return {"effects": 1} if args else {"tags": {}}

    def provoke(self, what: str, args: Mapping[str, Any]) -> Any:
        self._now += args.get("ms", 0)
        return {"answers": [self._answer(each) for each in args.get("requests", ())]}

    def _answer(self, request: Mapping[str, Any]) -> Mapping[str, Any]:
        (key,), empty = request["keys"], {"headers": [], "marked": False, "size": 0, "lost": "", "body": ""}
        self._asked += 1
        if key not in self._done and (key in self._since or self._asked % 9 == 0):
            is_over = self._now - self._since.setdefault(key, self._now) >= self._ends
            reason, status = ("UNKNOWN", 500) if is_over else ("IN_PROGRESS", 425)
            return {"outcome": "refused", "reason": reason, "status": status, **empty}
        effect = "prior" if key in self._done else "new"
        self._done.add(key)
        return {"outcome": "accepted", "effect": effect, "status": 201, **empty}


class Loaded(Service):
    """A service whose requests are answered by its session at once."""

    def submit(self, request: Mapping[str, Any]) -> Any:
        return self.burst([request])[0]


@pytest.mark.parametrize(("ends_after_ms", "is_stuck"), [(LEASE_MS, False), (float("inf"), True)])
def test_a_key_is_stuck_only_if_its_lease_does_not_end_it(
    ends_after_ms: float, is_stuck: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = bench_on(load_contract("idempotency-key"), "load", lambda _: None, workers=1)

    @contextlib.contextmanager
    def service(*_: object, **__: object) -> Iterator[Service]:
        yield Loaded(bench, cast("SuiteSession", Busy(ends_after_ms)))

    monkeypatch.setattr(crashes, "service", service)
    test: Callable[[Bench], None] = crashes.test_under_load_nothing_is_executed_twice_and_no_key_is_stuck
    with contextlib.suppress(NonConformance):
        test(bench)
    found = bench.gravest(Judgement(Verdict.CONFORMS)).verdict
    assert found is (Verdict.OVER_REFUSAL if is_stuck else Verdict.CONFORMS)
