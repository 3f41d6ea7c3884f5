"""Suite tests played in this process: sessions whose worker is a function from call to answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path
from typing import Any

from holdfast.conformance.attacks.bench import Bench, Limits
from holdfast.conformance.cases.record import Judgement, NonConformance, Record, Side
from holdfast.conformance.cases.session import Action
from holdfast.conformance.run.plan import suite_case_id, suite_tests
from holdfast.reference_impl.answers import to_message
from holdfast.reference_impl.session import OpenRequest, StateWanted, SurfaceWanted
from holdfast.specs import Contract, load_contract

# Method and arguments in, the members of the answer out, all but `id`.
Answerer = Callable[[str, Mapping[str, Any]], dict[str, Any]]


class PlayedDriver:
    """Stands in for `Driver` where no process is needed: every call is answered by `make()` of its session."""

    def __init__(self, answer: Answerer) -> None:
        self._answer = answer

    def execute(self, action: Action) -> Sequence[Record]:
        """The records of one action."""
        return [
            Record(
                n,
                action.note,
                worker,
                request,
                self._answer(request["method"], request["args"]) if request["op"] == "call" else {"outcome": "ok"},
                None,
                n,
                n,
            )
            for n, (worker, request) in enumerate(action.requests)
        ]

    @property
    def workdir(self) -> Path:
        """It has none."""
        raise LookupError("no folder")

    def take_time(self) -> None:
        """There is no deadline."""

    def finish(self, judgement: Judgement) -> None:
        """Nothing is left behind."""


def bench_of(contract: str, case: str, make: Callable[[], Answerer], seed: str = "5eed") -> Bench:
    """What a suite test of a contract is given. `make` is called for each session."""
    return bench_on(load_contract(contract), case, lambda _: PlayedDriver(make()), seed)


def bench_on(contract: Contract, case: str, driver: Callable[..., Any], seed: str = "5eed", workers: int = 8) -> Bench:
    """The same for sessions on drivers of one's own."""
    limits = Limits(workers, None)
    return Bench(contract=contract, case=case, seed=seed, make_driver=driver, not_claimed={}, limits=limits)


def judged(bench: Bench, test: Callable[[Bench], None]) -> Judgement:
    """What a test says at this bench."""
    try:
        test(bench)
        judgement = bench.conclude()
    except NonConformance as finding:
        judgement = finding.judgement
    return bench.gravest(judgement).placed(Side.MAIN, None)


def played(
    contract: str, test: str, make: Callable[[], Answerer], seed: str = "5eed"
) -> tuple[Judgement, list[Record]]:
    """What a suite test says of an implementation, and its records. `make` is called for each session."""
    function = {each.__name__: each for each, _ in suite_tests(contract)}[test]
    bench = bench_of(contract, suite_case_id(contract, test), make, seed)
    return judged(bench, function), bench.records


def reference(contract: str) -> Answerer:
    """One session of the reference."""
    entry = import_module(f"holdfast.reference_impl.{contract.replace('-', '_')}.entry")
    # It has no folder, so that no reference may keep anything in one.
    request = OpenRequest(StateWanted.FRESH, SurfaceWanted.ABSENT, Path(), datetime(2026, 1, 1, tzinfo=UTC), {})
    session = entry.implementation().open(request)
    return lambda method, args: to_message(session.call(method, args))
