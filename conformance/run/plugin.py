"""The pytest plugin: collects the cases of contracts as items and passes their results on.

pytest provides `-k`, `-x` and xdist. Only the controlling process receives `pytest_holdfast_result`, so only it writes
evidence, for any number of workers.
"""

from __future__ import annotations

import gc
import json
from collections.abc import Callable, Generator, Hashable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from holdfast.conformance.cases.record import CaseResult
from holdfast.conformance.run.engine import LOADED, Engine
from holdfast.conformance.run.plan import Form, PlannedCase, plan_of
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Contract, load_contract
from holdfast.specs.registry import name_of

# The order in which several processes run the cases, so that all of them end at about the same time. A fault takes as
# long as many scripts. The faults of one workload share one recording, and each process would have to make its own. So
# the faults of a workload stay together, and each process begins with faults. Each gets its share of what comes early
# in the list, which are the suite tests. Scripts come last: xdist's `worksteal` gives each process an equal part of the
# list, and a process without work takes from the end of another part.

_Item = TypeVar("_Item")


def shared_out(
    items: Sequence[_Item], processes: int, *, workload: Callable[[_Item], Hashable | None], share: int | None = None
) -> list[_Item]:
    """The items in their new order. `workload` names the workload of a fault, and is None for every other item.

    `share` is how many items a process gets at first; an equal part unless it is given.
    """
    groups: dict[Hashable, list[_Item]] = {}
    others: list[_Item] = []
    for item in items:
        name = workload(item)
        (others if name is None else groups.setdefault(name, [])).append(item)
    parts: list[list[_Item]] = [[] for _ in range(processes)]
    for group in sorted(groups.values(), key=len, reverse=True):
        min(parts, key=len).extend(group)
    ordered: list[_Item] = []
    for number, part in enumerate(parts):
        # `worksteal` cuts the list in the same way.
        size = (len(items) - len(ordered)) // (processes - number) if share is None else share
        room = max(0, size - len(part))
        # Each part gets its share of what comes early in the list.
        every = processes - number
        taken = set(sorted(range(len(others)), key=lambda place: place % every > 0)[:room])
        ordered += [*part, *(item for place, item in enumerate(others) if place in taken)]
        others = [item for place, item in enumerate(others) if place not in taken]
    return [*ordered, *others]


_OPTION = "holdfast_settings"
_ATTRIBUTE = "holdfast"


class Hooks:
    """Hooks that this plugin calls."""

    @pytest.hookspec
    def pytest_holdfast_result(self, result: CaseResult) -> None:
        """A case has run. Called in the controlling process, once for each case."""

    @pytest.hookspec(firstresult=True)
    def pytest_holdfast_engine(self) -> Engine | None:
        """An engine that already runs, for use in this process instead of a new one."""

    @pytest.hookspec(firstresult=True)
    def pytest_holdfast_excused(self, result: CaseResult) -> str | None:
        """The issue under which this result is expected, if it is."""


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Declare the hooks."""
    pluginmanager.add_hookspecs(Hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """One option: the settings of the run, as `holdfast verify` writes them."""
    group = parser.getgroup("holdfast")
    group.addoption("--holdfast-settings", dest=_OPTION, metavar="FILE", help="settings of the run, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Without the option the plugin does nothing."""
    path = config.getoption(_OPTION, default=None)
    if path is not None:
        # As in the command line, of which a process of xdist knows nothing.
        gc.set_threshold(100_000)
        settings = msgspec.convert(json.loads(Path(path).read_text(encoding="utf-8")), RunSettings)
        config.pluginmanager.register(_Collecting(config, settings), "holdfast-runner")


class Runner:
    """The engine of this process, and the way from a report to a result."""

    def __init__(self, config: pytest.Config, settings: RunSettings) -> None:
        self._config = config
        self._settings = settings
        self._own: Engine | None = None

    @property
    def engine(self) -> Engine:
        """The engine, started when the first case needs it."""
        if self._own is None:
            self._own = Engine(self._settings).__enter__()
        return self._own

    def run(self, contract: Contract, planned: PlannedCase) -> CaseResult:
        """Run a case."""
        return self.engine.run_planned(contract, planned)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> Generator[None, Any, Any]:
        """Attach the result, as JSON so that xdist can carry it."""
        report: Any = yield
        if isinstance(item, CaseItem) and call.when == "call" and item.result is not None:
            setattr(report, _ATTRIBUTE, text_of_result(item.result))
            excuse = self._config.hook.pytest_holdfast_excused(result=item.result)
            if excuse is not None and report.failed:
                report.outcome = "skipped"
                report.wasxfail = f"expected: {excuse}"
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """In the controlling process every report passes through here."""
        if hasattr(self._config, "workerinput"):
            return
        data = getattr(report, _ATTRIBUTE, None)
        if report.when == "call" and data is not None:
            self._config.hook.pytest_holdfast_result(result=result_of_text(data))

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """End the session, after every process of xdist and before each of them takes its leave."""
        done = yield
        self.finish(session)
        return done

    def finish(self, session: pytest.Session) -> None:  # noqa: ARG002
        """A process of xdist hands over the files of its adapter; it has an engine of its own."""
        output = getattr(self._config, "workeroutput", None)
        if output is not None and self._own is not None:
            output[LOADED] = sorted(self._own.pool.loaded())

    def pytest_unconfigure(self) -> None:
        """End what this process started."""
        if self._own is not None:
            self._own.__exit__(None, None, None)


class _Collecting(Runner):
    """The runner of `holdfast verify`, whose files are contracts."""

    @property
    def engine(self) -> Engine:
        """The engine of `holdfast verify`, or its own in a process of xdist."""
        given: Engine | None = self._config.hook.pytest_holdfast_engine()
        return super().engine if given is None else given

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """A contract.yaml stands for all cases of its contract."""
        if file_path.name != "contract.yaml":
            return None
        file: ContractFile = ContractFile.from_parent(parent, path=file_path)
        file.runner = self
        return file

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Keep the cases that are asked for; here, because under xdist only the workers collect."""
        if self._settings.cases is not None:
            items[:] = [item for item in items if item.name in self._settings.cases]
        processes = getattr(config, "workerinput", {}).get("workercount", 1)
        if processes > 1:
            # A suite test takes as long as many scripts.
            suites_first = sorted(
                items, key=lambda item: not isinstance(item, CaseItem) or item.planned.form is not Form.SUITE
            )
            items[:] = shared_out(suites_first, processes, workload=workload_of)


class ContractFile(pytest.File):
    """All cases of one contract, in the order of its plan."""

    runner: Runner

    def collect(self) -> Iterator[pytest.Item]:
        """One item for each case of the plan."""
        contract = load_contract(name_of(self.path.parent))
        for planned in plan_of(contract):
            item: CaseItem = CaseItem.from_parent(self, name=planned.id)
            item.planned, item.contract, item.runner = planned, contract, self.runner
            item.extra_keyword_matches.update(planned.clauses)
            yield item


def workload_of(item: pytest.Item) -> tuple[str, str] | None:
    """The work of a fault; None for other cases."""
    fault = item.contract.fault(item.planned.id) if isinstance(item, CaseItem) else None
    return None if fault is None else (fault.contract, fault.work)


class CaseFailure(Exception):  # noqa: N818 - what pytest shows of a case that does not conform
    """A case did not conform."""


class NotProven(CaseFailure):
    """There is no verdict: Allure shows an error, not a failure."""

    __module__ = "builtins"


class CaseItem(pytest.Item):
    """One case as pytest sees it."""

    planned: PlannedCase
    contract: Contract
    runner: Runner
    result: CaseResult | None = None

    def runtest(self) -> None:
        """Run it; anything but `conforms` is a failure to pytest, but for what the adapter is not asked for."""
        self.result = self.runner.run(self.contract, self.planned)
        verdict = self.result.judgement.verdict
        if verdict is not Verdict.CONFORMS and not (verdict is Verdict.UNSUPPORTED and self.is_of_another_role()):
            raise CaseFailure(verdict.value)

    def is_of_another_role(self) -> bool:
        """Whether the case is of a role that the adapter does not claim."""
        lacks = self.runner.engine.not_claimed(self.contract)
        return not self.contract.roles_of(self.planned.clauses, self.planned.roles).isdisjoint(lacks)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> str:  # noqa: ARG002
        """One line: the report of a case is made from the evidence."""
        return excinfo.exconly()

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The place of the case."""
        return self.path, None, self.planned.id


def text_of_result(result: CaseResult) -> str:
    """A result as JSON text: xdist carries no type of its own, and an exchange may hold one."""
    # Not as JSON of msgspec's: an answer may hold half of a surrogate pair.
    return json.dumps(msgspec.to_builtins(result))


def result_of_text(text: str) -> CaseResult:
    """A result back from its JSON text."""
    return msgspec.convert(json.loads(text), CaseResult)
