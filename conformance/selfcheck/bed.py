"""An engine whose adapter changes from mutant to mutant, while launcher, folders and janitor stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.conformance.adapter.pool import WorkerPool
from holdfast.conformance.adapter.process import Start
from holdfast.conformance.cases.record import CaseResult
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.run.settings import REFERENCE, RunSettings
from holdfast.servers.forkserver import ForkServer
from holdfast.specs import Contract


class MutantEngine(Engine):
    """Runs the tests of one contract."""

    def __init__(self, settings: RunSettings, contract: Contract) -> None:
        super().__init__(settings)
        self._contract = contract
        self._planned = {planned.id: planned for planned in plan_of(contract)}

    def __enter__(self) -> MutantEngine:
        super().__enter__()
        self._stack.callback(lambda: self.pool.abort())
        return self

    def take(self, adapter: Sequence[str], start: Start) -> None:
        """From now on tests are of this adapter. The one before it ends at once."""
        self.pool.abort()
        self.pool = WorkerPool(replace(self.pool.command, argv=tuple(adapter), start=start), janitor=self._janitor)
        self._greeting = None

    def run(self, case: str) -> CaseResult:
        """Run one case of the plan. Raises StartError if the launcher does not start."""
        return self.run_planned(self._contract, self._planned[case])


def forked_by(forkserver: ForkServer) -> Start:
    """Starts an adapter of the reference as a fork of the fork server."""
    return lambda command, environment: forkserver.start(command[len(REFERENCE) :], environment)
