"""The plan of a contract: every case of it, in order. It is derived from the installed contract, never from a run."""

from __future__ import annotations

import functools
import importlib
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass
from enum import Enum, unique
from types import ModuleType
from typing import Any, TypeAlias

from holdfast.conformance.attacks import ClauseMark, mark_of
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.steps import kinds
from holdfast.specs import Case, Contract, SpecError, load_contract
from holdfast.specs.model import Group, Proof
from holdfast.specs.registry import contracts, installed, unusable

# A session and an attempt, None for the first: a method, its arguments, and the key of the row that it makes.
StoredEffect: TypeAlias = "Callable[[Bench, SuiteSession, str | None], tuple[str, Mapping[str, Any], str]]"
# The module of a suite that runs the sweeps of neighbours.yaml.
_SWEEPS = ".neighbours"


@unique
class Form(Enum):
    """How a case is written: as a script, as a test of the suite, or as a fault that strikes during a workload."""

    SCRIPT = "script"
    SUITE = "suite"
    FAULT = "fault"


ALL_FORMS = frozenset(Form)


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """One case of the plan. `provocations` are the test hooks it needs of an adapter.

    `whole`: it holds the adapter against a model of the whole contract, so a bug in any clause may fail it.
    `roles`: those it is asked of, where its clauses do not say.
    `generated`: what it asks is generated, by sweeps, histories, Hypothesis or a fault layer.
    """

    id: str
    contract: str
    clauses: tuple[str, ...]
    title: str
    form: Form
    provocations: frozenset[str]
    whole: bool = False
    generated: bool = False
    roles: tuple[str, ...] = ()

    @property
    def scripted(self) -> bool:
        """Whether it is a script."""
        return self.form is Form.SCRIPT


def suite_modules(contract: str) -> tuple[ModuleType, ...]:
    """The modules of a contract's suite, if it has one, in the order of the plan.

    Its tests stand in the modules that its package lists as `MODULES`, or else in `suite`; `TESTS` of a module has
    those that share a run. Raises SpecError for a suite of another distribution that cannot be imported.
    """
    # A contract that is not installed has no suite.
    found = contracts().get(contract)
    default = ("suite",) if found is not None and found.suite.part("suite") is not None else ()
    if found is None or not (default or (found.suite.path / "__init__.py").is_file()):
        return ()
    suite, brings = found.suite.name, found.distribution
    try:
        # What it prints is no result of a command.
        with redirect_stdout(sys.stderr):
            listed: tuple[str, ...] = getattr(importlib.import_module(suite), "MODULES", default)
            return tuple(importlib.import_module(f"{suite}.{module}") for module in listed)
    except BaseException as error:
        # An exit, with whatever status, and a skip of pytest are no results either.
        if brings is None or isinstance(error, KeyboardInterrupt | MemoryError):
            raise
        raise SpecError(f"{brings}: {suite} cannot be imported: {type(error).__name__}: {error}") from error


def usable() -> tuple[tuple[str, ...], Mapping[str, str]]:
    """The names of the contracts with a plan; and why those that other distributions bring have none, by name."""
    found, wrong = [], {**unusable()}
    for each in contracts().values():
        try:
            if each.distribution is not None:
                with_plan(each.name)
            found.append(each.name)
        except SpecError as error:
            wrong[each.name] = str(error)
    return tuple(found), wrong


def with_plan(name: str) -> Contract:
    """A contract whose suite can be imported. Raises SpecError, which names the distribution that brings it."""
    brings = installed(name).distribution
    try:
        contract = load_contract(name)
    except SpecError as error:
        if brings is None:
            raise
        raise SpecError(f"{brings}: {error}") from error
    suite_tests(name)
    return contract


def suite_case_id(contract: str, function_name: str) -> str:
    """The plan id of a suite test."""
    return f"{contract}/suite/{function_name.removeprefix('test_').replace('_', '-')}"


@functools.cache
def suite_tests(contract: str) -> tuple[tuple[Callable[..., Any], ClauseMark], ...]:
    """The suite's tests with their marks, in the order in which they stand in its modules."""
    return tuple(found for module in suite_modules(contract) for found in _tests_of(module))


def preflight_of(contract: str) -> Callable[[Bench], None]:
    """What is asked of a server before anything is judged: the `preflight` of its suite, or a session alone."""
    found: Callable[[Bench], None] | None = _of_suite(contract, "preflight")
    return _a_session if found is None else found


def stored_effect_of(contract: str) -> StoredEffect | None:
    """How a suite makes a request whose row shows which store a run used: its `stored_effect`."""
    found: StoredEffect | None = _of_suite(contract, "stored_effect")
    return found


def _of_suite(contract: str, name: str) -> Any:
    found = (getattr(module, name, None) for module in suite_modules(contract))
    return next((each for each in found if each is not None), None)


def _a_session(bench: Bench) -> None:
    with bench.session():
        pass


def _tests_of(module: ModuleType) -> list[tuple[Callable[..., Any], ClauseMark]]:
    found: list[tuple[Callable[..., Any], ClauseMark]] = []
    for name, function in {**getattr(module, "TESTS", {}), **vars(module)}.items():
        if name.startswith("test_") and inspect.isfunction(function) and function.__module__ == module.__name__:
            mark = mark_of(function)
            if mark is None:
                raise SpecError(f"{module.__name__}.{name}: a suite test names its clauses; mark it with @clause(…)")
            found.append((function, mark))
    return found


def methods_of(contract: Contract, case: Case) -> frozenset[str]:
    """The methods that a scripted case calls by their name, or needs."""
    steps = (*case.given, *case.when, *case.then)
    calling = [name for name, kind in kinds().items() if "method" in kind.facts]
    named = {step[name] for step in steps for name in calling if isinstance(step.get(name), str)}
    return frozenset(name for name in named | case.needs if name in contract.methods)


def unclaimed(contract: Contract, lacking: Collection[str]) -> tuple[str, ...]:
    """The methods that an adapter lacks although it claims their role: what they promise is not proven."""
    return tuple(
        method.name for method in contract.methods.values() if method.name in lacking and method.role not in lacking
    )


def plan_of(contract: Contract) -> tuple[PlannedCase, ...]:
    """Every case of the contract: the scripted ones in file order, then the suite's tests, then the faults."""
    hooks = frozenset(name for name, method in contract.methods.items() if method.group is Group.PROVOCATION)
    scripted = [
        PlannedCase(
            case.id,
            contract.name,
            case.clauses,
            case.title,
            Form.SCRIPT,
            hooks & methods_of(contract, case),
            roles=case.roles,
        )
        for case in contract.cases
    ]
    suite = [
        PlannedCase(
            suite_case_id(contract.name, function.__name__),
            contract.name,
            mark.clauses,
            function.__name__.removeprefix("test_").replace("_", " "),
            Form.SUITE,
            frozenset(mark.provocations),
            mark.whole,
            (mark.whole and not mark.written) or mark.drawn or function.__module__.endswith(_SWEEPS),
            mark.roles,
        )
        for function, mark in suite_tests(contract.name)
    ]
    faults = [
        PlannedCase(
            fault.id,
            contract.name,
            fault.clauses,
            fault.title,
            Form.FAULT,
            frozenset(contract.work_of(fault).provocations),
            generated=True,
        )
        for fault in contract.faults
    ]
    return (*scripted, *suite, *faults)


def uncovered(contract: Contract, plan: Iterable[PlannedCase]) -> tuple[str, ...]:
    """Clauses with `proof: run` that no case of the plan covers and that are not listed as not testable."""
    covered = {clause for case in plan for clause in case.clauses}
    return tuple(
        clause.id
        for clause in contract.clauses.values()
        if clause.proof is Proof.RUN and clause.not_testable is None and clause.id not in covered
    )
