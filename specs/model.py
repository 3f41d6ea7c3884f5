"""A contract in memory: frozen, typed, nothing computed that the files do not say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from typing import Any

from holdfast.specs.schema import Validator


@unique
class Level(Enum):
    """How binding a clause is (RFC 2119)."""

    MUST = "MUST"
    SHOULD = "SHOULD"


@unique
class Basis(Enum):
    """Where a clause comes from: said by the source, following from it, or pinned where the source is silent."""

    EXPLICIT = "explicit"
    DERIVED = "derived"
    RESOLUTION = "resolution"


@unique
class Proof(Enum):
    """What can prove a clause: a run against an adapter, or the fitness of a live surface."""

    RUN = "run"
    FITNESS = "fitness"


@unique
class Group(Enum):
    """The three groups of methods."""

    OPERATION = "operation"
    OBSERVATION = "observation"
    PROVOCATION = "provocation"


@unique
class Kind(Enum):
    """What a case is about; it decides what a wrong value means."""

    REFUSAL = "refusal"
    BEHAVIOUR = "behaviour"
    DURABILITY = "durability"
    RACE = "race"


@unique
class Observer(Enum):
    """Through which worker the harness looks at the state: one of its own, or the one under test."""

    APART = "apart"
    OWN = "own"


@dataclass(frozen=True, slots=True)
class Parameter:
    """A value of the contract; None means unset (for a horizon: for ever)."""

    name: str
    value: str | int | None
    unit: str | None
    basis: Basis
    meaning: str


@dataclass(frozen=True, slots=True)
class Reason:
    """One member of the closed list of refusal reasons."""

    name: str
    meaning: str
    audit_records: int
    data: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Column:
    """One stored column; `only` lists the values it may hold, if they are few."""

    name: str
    type: str
    null: bool
    only: tuple[str | bool, ...]


@dataclass(frozen=True, slots=True)
class Relation:
    """One stored relation with its keys; `unique` maps a constraint's name to its columns."""

    name: str
    purpose: str
    columns: Mapping[str, Column]
    primary_key: tuple[str, ...]
    unique: Mapping[str, tuple[str, ...]]
    audit: bool
    append_only: bool


@dataclass(frozen=True, slots=True)
class Method:
    """One method with its compiled argument and result validators.

    `reasons` are what an operation may refuse with; `audited` says whether its refusals leave audit records.
    """

    name: str
    group: Group
    title: str
    args_schema: Mapping[str, Any]
    result_schema: Mapping[str, Any] | None
    args: Validator
    result: Validator | None
    refusal_data: Validator | None
    effects: tuple[str, ...]
    reasons: tuple[str, ...]
    audited: bool


@dataclass(frozen=True, slots=True)
class Clause:
    """One testable sentence. `harm` is what happens to a user if it fails."""

    id: str
    level: Level
    basis: Basis
    section: str
    text: str
    harm: str
    proof: Proof
    not_testable: str | None
    digest: str


@dataclass(frozen=True, slots=True)
class Inspection:
    """A store that the harness can look into itself: where it lies in the workdir, and what it is."""

    path: str
    format: str


@dataclass(frozen=True, slots=True)
class Inertness:
    """How the harness sees that a refusal changed nothing: by an observation, or by looking into the store itself.

    `tree` is a folder of the workdir that it lists besides: no refusal may leave a file there, or take one away.
    """

    observe: str | None
    audit: str | None
    audit_list: str | None
    audit_code: str | None
    seen_by: str
    tree: str | None = None

    @property
    def by_harness(self) -> bool:
        """Whether the harness looks itself."""
        return self.seen_by == "harness"


@dataclass(frozen=True, slots=True)
class Twin:
    """The accepted sibling of a negative case: one path of one step differs."""

    step: str
    path: str
    value: Any
    at: str
    expect: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Case:
    """A scripted case. Steps stay as the mappings of the file; `holdfast.conformance.cases` gives them meaning."""

    id: str
    contract: str
    clause: str
    also: tuple[str, ...]
    title: str
    kind: Kind
    surface: str
    config: Mapping[str, str]
    workers: int
    needs: frozenset[str]
    observer: Observer
    values: Mapping[str, Any]
    given: tuple[Mapping[str, Any], ...]
    when: tuple[Mapping[str, Any], ...]
    then: tuple[Mapping[str, Any], ...]
    twin: Twin | None
    clause_digests: Mapping[str, str]
    source: str

    @property
    def clauses(self) -> tuple[str, ...]:
        """Every clause that the case proves, the main one first."""
        return (self.clause, *self.also)


@unique
class FaultLayer(Enum):
    """What is done to an implementation while it works (docs/crash.md)."""

    POWER_LOSS = "power-loss"
    KILL = "kill"
    KILL_WITHIN_WRITE = "kill-within-a-write"
    CRASH_IN_RECOVERY = "crash-in-recovery"
    FULL_CALLS = "full-calls"
    SHORT_WRITES = "short-writes"
    FAILED_SYNC = "failed-sync"
    STORE_MISSING = "store-missing"
    STORE_TRUNCATED = "store-truncated"
    STORE_CORRUPT = "store-corrupt"
    STORE_FOREIGN = "store-foreign"
    STORE_LOCKED = "store-locked"
    STORE_READ_ONLY = "store-read-only"
    DISK_FULL = "disk-full"
    DAMAGED_BYTES = "damaged-bytes"
    DEPENDENCY_KILLED = "dependency-killed"
    DEPENDENCY_STOPPED = "dependency-stopped"
    CLOCK_BACK = "clock-back"
    CLOCK_FORWARD = "clock-forward"


@unique
class Promise(Enum):
    """How an implementation is judged after a fault.

    Kept: what was acknowledged is there, the rest whole or not at all, nothing else. Refused: the same afterwards, and
    while the store is out of reach nothing is answered as if it had never been. Never wrong: damage may bring an older
    state back, a wrong one never.
    """

    KEPT = "kept"
    REFUSED = "refused"
    NEVER_WRONG = "never-wrong"


@dataclass(frozen=True, slots=True)
class FaultWorkload:
    """The work during which a fault strikes. Its parts stay as the mappings of the file, like the steps of a case.

    `prepare` is asked for once for each operation before, `facts` say by what an operation shows.
    """

    name: str
    title: str
    operations: int
    config: Mapping[str, str]
    values: Mapping[str, Any]
    prepare: tuple[Mapping[str, Any], ...]
    operation: Mapping[str, Any]
    facts: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class FaultCase:
    """A fault that strikes during a workload, and the promise that has to hold."""

    id: str
    contract: str
    clause: str
    also: tuple[str, ...]
    title: str
    layer: FaultLayer
    workload: str
    promise: Promise
    clause_digests: Mapping[str, str]

    @property
    def clauses(self) -> tuple[str, ...]:
        """Every clause that it proves, the main one first."""
        return (self.clause, *self.also)


# Compared by identity: it holds mappings, which have no hash, and what was read once is one contract.
@dataclass(frozen=True, slots=True, eq=False)
class Contract:
    """A versioned set of clauses with parameters, reasons, relations, methods, scripted cases and faults.

    `digest` covers contract.yaml and methods.yaml, `cases_digest` every case file and faults.yaml. Either `inertness`
    says how the state is seen, or `stateless` why there is none.
    """

    name: str
    version: str
    title: str
    parameters: Mapping[str, Parameter]
    reasons: Mapping[str, Reason]
    relations: Mapping[str, Relation]
    methods: Mapping[str, Method]
    clauses: Mapping[str, Clause]
    cases: tuple[Case, ...]
    workloads: Mapping[str, FaultWorkload]
    faults: tuple[FaultCase, ...]
    inspection: Inspection | None
    inertness: Inertness | None
    stateless: str | None
    raw: Mapping[str, Any]
    digest: str
    cases_digest: str

    def case(self, case_id: str) -> Case | None:
        """The scripted case of that id, if there is one."""
        return next((case for case in self.cases if case.id == case_id), None)

    def fault(self, case_id: str) -> FaultCase | None:
        """The fault of that id, if there is one."""
        return next((fault for fault in self.faults if fault.id == case_id), None)
