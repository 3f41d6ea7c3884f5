"""The types of faults.yaml: what is done to an implementation while it works, and what it has to keep."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import Annotated, Any

from msgspec import Meta

from holdfast.specs.entry import (
    DISTINCT,
    CaseId,
    ClauseId,
    ContractName,
    Entry,
    Name,
    Placed,
    Text,
    Title,
    ValueName,
    by_hand,
    text,
)


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
    STORE_LOST_RUNNING = "store-lost-running"
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


# Fewer tries than this show nothing.
LEAST_TRIED = 8
# A workload has no more operations than these, but for one long session.
_MOST = 10
WorkloadName = Annotated[str, text("^[a-z][a-z0-9-]*$")]


class Hidden(Entry, frozen=True):
    """What must not be readable below a folder after any crash."""

    below: Text
    texts: Annotated[tuple[Any, ...], Meta(min_length=1, description="Texts, or bytes as {bytes: base64url}.")]


class FaultWorkload(Entry, frozen=True):
    """The work during which a fault strikes. Its steps and facts stay as they are written, like the steps of a case."""

    name: Placed
    title: Title
    facts: Annotated[Mapping[Name, Annotated[Mapping[str, Any], by_hand("fact")]], Meta(min_length=1)]
    operations: Annotated[
        int, Meta(ge=2, le=_MOST, description="How many are asked for, one after the other; few find what many do.")
    ] = 2
    operation: Annotated[Mapping[str, Any] | None, by_hand("operation")] = None
    each: Annotated[
        tuple[Annotated[Mapping[str, Any], by_hand("operation")], ...],
        Meta(description="In place of one operation: each of these once in a first session, and once in a second one."),
    ] = ()
    config: Mapping[Name, str] = {}
    values: Mapping[ValueName, Any] = {}
    hidden: Hidden | None = None
    clock: Annotated[
        str | None,
        text(r"^[+-][0-9]+(?:\.[0-9]{1,6})?[smhd]$"),
        Meta(description="How far from the usual beginning of sessions these begin, such as +400d."),
    ] = None
    answers: Annotated[
        tuple[Annotated[Mapping[str, Any], by_hand("answer")], ...],
        Meta(description="What the broker that holdfast plays says of an id, each time; of any other it says 503."),
    ] = ()
    prepare: Annotated[
        tuple[Annotated[Mapping[str, Any], by_hand("prepare")], ...],
        Meta(description="Asked for once for each operation before anything goes wrong; it is there in every run."),
    ] = ()

    @property
    def steps(self) -> tuple[Mapping[str, Any], ...]:
        """The different operations that are asked for."""
        return self.each or tuple(filter(None, (self.operation,)))

    @property
    def is_long(self) -> bool:
        """Whether it is one long session (see `FaultCase.operations`)."""
        return self.operations > _MOST

    @property
    def asked(self) -> int:
        """How many operations there are, those of a second session and the probe among them."""
        return (2 * len(self.each) if self.each else self.operations) + 1

    def step(self, number: int) -> Mapping[str, Any]:
        """The operation of this number, from 1 on."""
        return self.steps[(number - 1) % len(self.steps)]

    @property
    def provocations(self) -> set[str]:
        """The provocations that it needs."""
        prepared = (step for number in range(1, self.asked) for step in self.prepared(number))
        steps = (*prepared, *self.steps)
        return {step[kind] for step in steps for kind in ("provoke", "command", "job") if kind in step}

    def prepared(self, number: int) -> tuple[Mapping[str, Any], ...]:
        """What is asked for before anything goes wrong, for the operation of this number."""
        return (*self.prepare, *self.step(number).get("prepare", ()))


def method_of(step: Mapping[str, Any]) -> str:
    """The method that an operation of a workload asks for: an operation, or a provocation that runs something."""
    name: str = next(step[kind] for kind in ("call", "command", "job") if kind in step)
    return name


class FaultCase(Entry, frozen=True):
    """A fault that strikes during a workload, and the promise that has to hold."""

    id: CaseId
    contract: Placed
    clause: ClauseId
    title: Title
    layer: FaultLayer
    workload: WorkloadName
    promise: Promise
    also: Annotated[tuple[ClauseId, ...], DISTINCT] = ()
    operations: (
        Annotated[
            int,
            Meta(ge=_MOST + 1, le=400, description="For power-loss: how many operations one long session has."),
        ]
        | None
    ) = None
    least: Annotated[
        int,
        Meta(
            ge=1,
            le=100,
            description="The floor: this number of points, states or variants, or all; fewer are not proven.",
        ),
    ] = LEAST_TRIED

    @property
    def clauses(self) -> tuple[str, ...]:
        """Every clause that it proves, the main one first."""
        return (self.clause, *self.also)

    @property
    def work(self) -> str:
        """The name of its workload, with the number of operations if the fault has its own."""
        return self.workload if self.operations is None else f"{self.workload}-{self.operations}"


class FaultFile(Entry, frozen=True):
    """faults.yaml: what is done to an implementation while it works, and what it has to keep."""

    contract: ContractName
    workloads: Annotated[Mapping[WorkloadName, FaultWorkload], Meta(min_length=1)]
    cases: Annotated[tuple[FaultCase, ...], Meta(min_length=1)]
    values: Mapping[ValueName, Any] = {}
    forms: Mapping[Text, Any] = {}
