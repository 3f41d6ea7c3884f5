"""An engine whose adapter changes from mutant to mutant, while launcher, folders and janitor stay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from holdfast.conformance.adapter.pool import WorkerPool
from holdfast.conformance.adapter.process import Start
from holdfast.conformance.cli.target import REFERENCE
from holdfast.conformance.run.engine import CaseResult, Engine
from holdfast.conformance.run.plan import Form, PlannedCase, plan_of, suite_tests
from holdfast.conformance.run.settings import RunSettings
from holdfast.servers.nursery import Nursery
from holdfast.specs import Contract


class Bed(Engine):
    """Runs the tests of one contract."""

    def __init__(self, settings: RunSettings, contract: Contract) -> None:
        super().__init__(settings)
        self._contract = contract
        suite = [each for each in plan_of(contract) if each.form is Form.SUITE]
        functions = (function for function, _ in suite_tests(contract.name))
        self._functions = {planned.id: function for planned, function in zip(suite, functions, strict=True)}
        self._planned = {planned.id: planned for planned in plan_of(contract)}

    def __enter__(self) -> Bed:
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
        planned = self._planned[case]
        if planned.form is Form.SUITE:
            return self.run_suite_test(self._contract, planned, self._functions[case])
        return self._script(planned) if planned.scripted else self._fault(planned)

    def _script(self, planned: PlannedCase) -> CaseResult:
        case = self._contract.case(planned.id)
        assert case is not None
        return self.run_case(self._contract, case)

    def _fault(self, planned: PlannedCase) -> CaseResult:
        fault = self._contract.fault(planned.id)
        assert fault is not None
        return self.run_fault(self._contract, fault)


def forked_by(nursery: Nursery) -> Start:
    """Starts an adapter of the reference as a fork of the nursery."""
    return lambda command, environment: nursery.start(command[len(REFERENCE) :], environment)
