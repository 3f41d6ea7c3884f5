"""The types of a contract's files: each is the reader of its entry, and its part of the published schema.

`holdfast.specs.publish` makes the schemas, `holdfast.specs.loader` the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum, unique
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta, field

from holdfast.specs.entry import (
    DISTINCT,
    CaseId,
    ClauseId,
    ContractName,
    Entry,
    FilledMeta,
    Label,
    MemberPath,
    Name,
    Placed,
    PlacedMeta,
    ReasonName,
    RoleName,
    Text,
    Title,
    ValueName,
    Version,
    by_hand,
    text,
)
from holdfast.specs.faults import FaultCase, FaultWorkload
from holdfast.specs.neighbours import NeighbourFile
from holdfast.specs.routes import Route
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
class CaseKind(Enum):
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


class Source(Entry, frozen=True):
    """The document that a contract was written from."""

    document: Text
    sha256: Annotated[str, text("^[0-9a-f]{64}$")]


class Parameter(Entry, frozen=True):
    """A value of the contract; null means unset (for a horizon: for ever)."""

    name: Placed
    value: str | int | None
    basis: Basis
    meaning: Text
    unit: Text | None = None


class Key(Entry, frozen=True):
    """How a key is derived: `tag` names the parameter that holds its domain tag, `fields` what is hashed, in order."""

    tag: Name
    fields: Annotated[tuple[Text, ...], Meta(min_length=1)]


class Reason(Entry, frozen=True):
    """One member of the closed list of refusal reasons."""

    name: Placed
    meaning: Text
    audit_records: Annotated[int, Meta(ge=0)]
    data: tuple[Text, ...] = ()


class Decision(Entry, frozen=True):
    """One step of the order in which a decision is made."""

    when: Text
    reason: ReasonName | None = None
    answer: Text | None = None
    otherwise: ReasonName | None = field(name="or", default=None)


class Transition(Entry, frozen=True):
    """A change of state."""

    on: Text
    before: Text = field(name="from")
    after: Text = field(name="to")


class Column(Entry, frozen=True):
    """One stored column; `only` lists the values it may hold, if they are few."""

    name: Placed
    type: Literal["key", "text", "instant", "boolean", "integer", "bytes"]
    null: bool = False
    only: tuple[str | bool, ...] = ()
    meaning: Text | None = None


class Relation(Entry, frozen=True):
    """One stored relation with its keys; `unique` maps a constraint's name to its columns."""

    name: Placed
    purpose: Text
    columns: Mapping[Name, Column]
    primary_key: Annotated[tuple[Name, ...], Meta(min_length=1)]
    unique: Mapping[Name, Annotated[tuple[Name, ...], Meta(min_length=1)]]
    audit: bool = False
    append_only: bool = False


class Inspection(Entry, frozen=True):
    """A store whose place in the workdir and format the contract fixes: the harness can inspect it itself."""

    path: Annotated[str, text("^[A-Za-z0-9_][A-Za-z0-9._-]*(?:/[A-Za-z0-9_][A-Za-z0-9._-]*)*$")]
    format: Literal["sqlite", "rocksdb"]


class Inertness(Entry, frozen=True):
    """How the harness sees that a refusal changed nothing: by an observation, or by inspecting the store itself.

    `tree` is a folder of the workdir that it lists besides: no refusal may leave a file there, or take one away.
    """

    seen_by: Literal["self-reported", "harness"]
    observe: Name | None = None
    audit: Name | None = None
    audit_list: Name | None = None
    audit_code: Name | None = None
    tree: (
        Annotated[str, Meta(max_length=1024), text("^[A-Za-z0-9_-][A-Za-z0-9_.-]*(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)*$")]
        | None
    ) = None

    @property
    def by_harness(self) -> bool:
        """Whether the harness inspects the store."""
        return self.seen_by == "harness"


class Role(Entry, frozen=True):
    """A part of a contract that an implementation may claim alone. Clauses and methods name it.

    Its state is observed as the contract says, unless it says that itself or is `stateless`.
    """

    name: Placed
    title: Text
    inertness: Inertness | None = None
    stateless: Annotated[Text, Meta(description="Why a refusal has nothing that it could change.")] | None = None


# The verdicts that are findings: each does another harm.
Harming = Literal["fail_open", "lost_durability", "state_leak", "wrong_reason", "over_refusal"]


class Clause(Entry, frozen=True):
    """One testable sentence. `harm` is what happens to a user if it fails, `digest` covers what it binds.

    `harm` is of the verdicts in `harm_of`: what happens if the clause fails in another way is in `harm_if`, or is what
    the verdict says of itself (`holdfast.conformance.verdict.harm_of`).
    """

    BINDING: ClassVar = ("id", "level", "basis", "section", "text", "harm", "proof")

    # What a clause binds to though its file may leave it out.
    UNSAID: ClassVar = {"level": "MUST", "basis": "explicit", "proof": "run"}

    id: ClauseId
    section: Text
    text: Text
    harm: Text
    digest: Placed
    level: Level = Level.MUST
    basis: Basis = Basis.EXPLICIT
    proof: Proof = Proof.RUN
    harm_of: Annotated[tuple[Harming, ...], Meta(min_length=1), DISTINCT] = ("fail_open", "state_leak")
    harm_if: Mapping[Harming, Text] = {}
    not_testable: Text | None = None
    # Without one it binds whoever claims the contract.
    roles: Annotated[tuple[RoleName, ...], DISTINCT] = ()


class Remedy(Entry, frozen=True):
    """What usually mends findings of one cause: those with `verdicts` of `clauses`, whose detail fits `detail`.
    `tried` are planted bugs, each with a case that shows this remedy: the reference is that program with the advice
    applied, and has no such finding.
    """

    name: Placed
    cause: Text
    mends: Text
    tried: Annotated[Mapping[Label, CaseId], Meta(min_length=1)]
    verdicts: Annotated[tuple[Harming, ...], DISTINCT] = ()
    clauses: Annotated[tuple[ClauseId, ...], DISTINCT] = ()
    detail: Text | None = None


class Terms(Entry, frozen=True):
    """What contract.yaml says, but for its clauses. Either `inertness` or `stateless` is there."""

    name: ContractName = field(name="contract")
    version: Version
    title: Text
    summary: Text
    source: Source
    parameters: Mapping[Name, Parameter]
    reasons: Mapping[ReasonName, Reason]
    keys: Mapping[Name, Key] = {}
    decision_order: tuple[Decision, ...] = ()
    states: Mapping[str, Text] = {}
    transitions: tuple[Transition, ...] = ()
    relations: Mapping[Name, Relation] = {}
    inspection: Inspection | None = None
    extra: Annotated[Name, Meta(description="The extra of holdfast without which no run of it is whole.")] | None = None
    inertness: Inertness | None = None
    stateless: Annotated[Text, Meta(description="Why a refusal has nothing that it could change.")] | None = None
    roles: Mapping[RoleName, Role] = {}
    remedies: Mapping[Label, Remedy] = {}


class ContractFile(Terms, frozen=True, kw_only=True):
    """contract.yaml: a versioned set of clauses with parameters, reasons, states and stored relations."""

    clauses: Annotated[tuple[Clause, ...], Meta(min_length=1)]


_NO_ARGS = Validator({"type": "object", "additionalProperties": False})


class Method(Entry, frozen=True):
    """One method. `reasons` are what an operation may refuse with; `audited` says whether a refusal is audited."""

    name: Placed
    group: Annotated[Group, PlacedMeta]
    title: Text
    args: Validator = field(default_factory=lambda: _NO_ARGS)
    result: Validator | None = None
    refusal_data: Annotated[Validator | None, PlacedMeta] = None
    effects: Annotated[tuple[str, ...], PlacedMeta] = ()
    reasons: Annotated[tuple[str, ...], PlacedMeta] = ()
    audited: Annotated[bool, PlacedMeta] = True
    damages: Annotated[bool, PlacedMeta] = False
    waits: Annotated[bool, Meta(description="It waits for others, so it has as long for its answer as a start.")] = (
        False
    )
    route: Annotated[Route | None, PlacedMeta] = None
    stateless: Annotated[Text | None, PlacedMeta] = None
    role: RoleName | None = None
    permits: Annotated[
        Mapping[MemberPath, Annotated[tuple[str | bool | int, ...], Meta(min_length=1)]],
        Meta(description="By path into its value, what permits. Where nothing that permits is due, it fails open."),
    ] = {}
    rows: Annotated[
        Mapping[MemberPath, Literal["fail_open", "state_leak"]],
        Meta(description="Lists of what was done or is kept, with the verdict on one too many. A missing one is lost."),
    ] = {}
    refusals: Annotated[
        tuple[MemberPath, ...],
        Meta(description="Lists or numbers of what was refused or found wrong. Where one is missing, it fails open."),
    ] = ()


class Operation(Method, frozen=True, kw_only=True):
    """A method that may change the state; it is accepted with an effect, or refused with a reason."""

    args: Validator
    refusal_data: Validator | None = None
    effects: Annotated[tuple[Literal["new", "prior"], ...], Meta(min_length=1), DISTINCT]
    reasons: Annotated[tuple[ReasonName, ...], DISTINCT]
    audited: bool = True
    route: Route | None = None
    stateless: Annotated[Text, Meta(description="Why it changes nothing, accepted or refused.")] | None = None


class Observation(Method, frozen=True, kw_only=True):
    """A method that reports the state."""

    result: Validator


class Provocation(Method, frozen=True, kw_only=True):
    """A test hook. `damages` says that nothing may be readable after it, so that an observation may show nothing."""

    damages: bool = False


class MethodFile(Entry, frozen=True):
    """methods.yaml: what an adapter answers."""

    contract: ContractName
    version: Version
    operations: Mapping[Name, Operation]
    definitions: Mapping[str, Mapping[str, Any]] = field(name="$defs", default={})
    observations: Mapping[Name, Observation] = {}
    provocations: Mapping[Name, Provocation] = {}


Step = Annotated[Mapping[str, Any], by_hand("step")]
Expectation = Annotated[Mapping[str, Any], by_hand("expect")]


class Opening(Entry, frozen=True):
    """How a session of a case is opened."""

    surface: Literal["ready", "absent"] = "ready"
    config: Mapping[Name, str] = {}


class Twin(Entry, frozen=True):
    """The accepted sibling of a negative case: one path of one step differs; `at` is the step to be accepted."""

    step: Label
    change: Annotated[Mapping[str, Any], Meta(min_length=1, max_length=1)] = field(name="set")
    expect: Expectation
    end: Label | None = field(name="at", default=None)

    @property
    def path(self) -> str:
        """The path that differs."""
        return next(iter(self.change))

    @property
    def value(self) -> Any:
        """What stands there instead."""
        return self.change[self.path]

    @property
    def at(self) -> str:
        """The step that is to be accepted: the changed one, if no other is named."""
        return self.end or self.step


class Case(Entry, frozen=True):
    """A scripted case. Its steps stay as they are written; `holdfast.conformance` gives them meaning.

    Without `clause` it proves the clause whose id ends with the topic of its own. Without `kind` it is a refusal if it
    has a twin, else about behaviour.
    """

    id: CaseId
    contract: Placed
    source: Placed
    clause: Annotated[ClauseId, FilledMeta]
    title: Title
    kind: Annotated[CaseKind, FilledMeta]
    when: Annotated[tuple[Step, ...], Meta(min_length=1)]
    also: Annotated[tuple[ClauseId, ...], DISTINCT] = ()
    # Without one it is asked of an adapter that claims every role of its clauses.
    roles: Annotated[tuple[RoleName, ...], DISTINCT] = ()
    opening: Opening = field(name="open", default=Opening())
    workers: Annotated[int, Meta(ge=1, le=64)] = 1
    needs: Annotated[frozenset[Name], DISTINCT] = frozenset()
    observer: Observer = Observer.APART
    values: Mapping[ValueName, Any] = {}
    given: tuple[Step, ...] = ()
    then: tuple[Step, ...] = ()
    twin: Twin | None = None

    @property
    def clauses(self) -> tuple[str, ...]:
        """Every clause that the case proves, the main one first."""
        return (self.clause, *self.also)

    @property
    def surface(self) -> str:
        """Whether the store is there when the session is opened."""
        return self.opening.surface

    @property
    def config(self) -> Mapping[str, str]:
        """What the session is opened with."""
        return self.opening.config


class CaseFile(Entry, frozen=True):
    """cases/*.yaml: scripted cases. `values` are those of each case that does not say its own."""

    contract: ContractName
    cases: Annotated[tuple[Case, ...], Meta(min_length=1)]
    values: Mapping[ValueName, Any] = {}
    forms: Mapping[Text, Any] = {}


class FormFile(Entry, frozen=True):
    """forms.yaml: what entries of several files of the contract have in common (`holdfast.specs.short`)."""

    contract: ContractName
    forms: Annotated[Mapping[Text, Any], Meta(min_length=1)]


# Compared by identity: what was read once is one contract.
class Contract(Terms, frozen=True, kw_only=True, eq=False):
    """All of a contract's files: its terms, clauses, methods, scripted cases, near misses and faults.

    `digest` covers methods.yaml, and contract.yaml but for what reports alone say (remedies, `harm_of`, `harm_if`);
    `cases_digest` covers every case file, neighbours.yaml and faults.yaml.
    """

    clauses: Mapping[str, Clause]
    methods: Mapping[str, Method]
    cases: tuple[Case, ...]
    workloads: Mapping[str, FaultWorkload]
    faults: tuple[FaultCase, ...]
    neighbours: NeighbourFile | None
    digest: str
    cases_digest: str

    @property
    def routes(self) -> Mapping[str, Route]:
        """The routes of the operations that have one, by their names."""
        return {method.name: method.route for method in self.methods.values() if method.route is not None}

    def inertness_of(self, method: Method) -> Inertness | None:
        """How it is observed that a refusal by `method` changes nothing; None where it has nothing to change."""
        if method.stateless is not None:
            return None
        role = None if method.role is None else self.roles[method.role]
        if role is None:
            return self.inertness
        return None if role.stateless is not None else role.inertness or self.inertness

    def roles_of(self, clauses: Iterable[str], named: Iterable[str] = ()) -> frozenset[str]:
        """The roles that an implementation must have for a case: those it names, or else those of its clauses."""
        return frozenset(named) or frozenset(
            role for name in clauses if name in self.clauses for role in self.clauses[name].roles
        )

    def lacks(self, not_claimed: Mapping[str, str]) -> Mapping[str, str]:
        """What an adapter lacks: what it says, and every method of a role that it does not claim."""
        without = {name: not_claimed[name] for name in self.roles if name in not_claimed}
        methods = {method.name: without[method.role] for method in self.methods.values() if method.role in without}
        return {**methods, **not_claimed}

    def case(self, case_id: str) -> Case | None:
        """The scripted case of that id, if there is one."""
        return next((case for case in self.cases if case.id == case_id), None)

    def fault(self, case_id: str) -> FaultCase | None:
        """The fault of that id, if there is one."""
        return next((fault for fault in self.faults if fault.id == case_id), None)

    def work_of(self, fault: FaultCase) -> FaultWorkload:
        """The workload of a fault, with the fault's own number of operations if it has one."""
        load = self.workloads[fault.workload]
        return load if fault.operations is None else msgspec.structs.replace(load, operations=fault.operations)
