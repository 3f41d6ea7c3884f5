"""What a contract says of its operations, as the engine of attacks reads it: a pure model, one for each contract.

A state is a value that can be compared. It says what is stored as far as that was answered; the model says which calls
can be made in it, which answers the clauses allow, and what every observation has to show. What a clause permits is an
outcome of its own, so that every choice of a sound implementation is in the model.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Generic, TypeVar

from holdfast.conformance.attacks import named
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer

S = TypeVar("S")

# What a command of operators is said to be: it exited with 0, or with another status.
DONE, FAILED = "done", "failed"
# How many characters are shown of what was due, and of what came.
SHOWN = 600


@dataclass(frozen=True, slots=True)
class Call:
    """One call. `row` is its operation, or a command of operators, as in matrix.yaml.

    `files` have to lie in the workdir before it. `about` is what the model knows of what it names. `named` is how a
    finding names it, by default by its row and its arguments. `worker` is the one that is asked.
    """

    row: str
    method: str
    args: Mapping[str, Any]
    about: Any = None
    files: Mapping[str, bytes] = field(default_factory=dict)
    named: str = ""
    worker: int = 0

    def __str__(self) -> str:
        return self.named or f"{self.row} {self.args}"[:200]


@dataclass(frozen=True, slots=True)
class Outcome(Generic[S]):
    """An answer that the clauses allow, and the state after it.

    `said` are its words (`accepted new`, `refused REASON`), or `DONE` or `FAILED`. `value` are the members that it has
    to have, or the data of a refusal, with None for those that it must not have; None where it is free, a function
    where it has to fit. `otherwise` is the verdict on another value, unless the method declares a graver one.
    """

    said: str
    state: S
    value: Any = None
    otherwise: str = "wrong_reason"

    @property
    def is_done(self) -> bool:
        """Whether it is the answer of what was done."""
        return self.said == DONE or self.said.startswith("accepted")

    def fits(self, answer: Answer) -> bool:
        """Whether the answer is this one."""
        return self.said == said(answer) and self.says(answer.data if answer.outcome == "refused" else answer.value)

    def says(self, value: Any) -> bool:
        """Whether a value is as it has to be."""
        if self.value is None:
            return True
        if callable(self.value):
            return bool(self.value(value))
        return bool(all((value or {}).get(name) == due for name, due in self.value.items()))


@dataclass(frozen=True, slots=True)
class Observation:
    """What an observation has to show. `due` is compared with what `part` takes of it, by default the same members.

    `otherwise` is the verdict on anything else, unless the method declares a graver one; or a function, which has what
    was taken. With `read` the harness itself looks, in place of a worker. `worker` is the one that has to be asked.
    """

    method: str
    due: Mapping[str, Any]
    args: Mapping[str, Any] = field(default_factory=dict)
    part: Callable[[Any], Mapping[str, Any]] | None = None
    otherwise: str | Callable[[Mapping[str, Any]], str] = "lost_durability"
    read: Callable[[SuiteSession], Any] | None = None
    worker: int | None = None

    def __str__(self) -> str:
        return f"{self.method} {dict(self.args) or ''}".strip()

    def of(self, shown: Any) -> Mapping[str, Any]:
        """What is compared of a value that was shown."""
        return {name: shown.get(name) for name in self.due} if self.part is None else self.part(shown)


class Model(ABC, Generic[S]):
    """The model of a contract, for one session. Its class says what there is to attack."""

    # The config of its sessions, and whether they have a deadline of their own.
    config: Mapping[str, str] = MappingProxyType({})
    hurried: bool = True
    # What can be asked; `writing` are the operations that write, the first of which needs nothing.
    operations: Sequence[str]
    commands: Sequence[str]
    writing: Sequence[str]
    # What meets in the same rows.
    rivals: Sequence[tuple[str, str]]
    # The operations that do as much as they are told to, by `count` of `call`; one of them brings a volume.
    growing: Sequence[str]
    volume: int
    # What is said where nothing may have been done; whether one process at a time can ask, and else whether one of two
    # at once may be put off.
    unavailable: Sequence[str]
    exclusive: bool
    busy: bool = False
    # Failpoints of a write: before anything is written, and after all is.
    points: Sequence[str]
    # The failpoints of each row that can be held, and what may come beside it meanwhile.
    stops: Mapping[str, Sequence[str]]
    beside: Sequence[str]
    # The verdict on what is told as known and is new.
    untold: str = "lost_durability"
    # The folder of the store, and the file in it without which it is none; and the folder of all that belongs to it.
    store: tuple[str, str]
    home: str
    # Patterns of the names of its files that hold rows, or say which do.
    kinds_of_files: Sequence[str]
    # The observation that checks a store, and the member by which it says that it is whole.
    whole: tuple[str, str]
    # The observation that shows what an implementation chose, such as an id.
    chosen: str
    # The state of a fresh store.
    first: S

    @abstractmethod
    def __init__(self, session: SuiteSession) -> None:
        """What a session is asked has names of its own."""

    def files(self, state: S) -> Mapping[str, bytes]:
        """What lies beside a store in this state."""
        del state
        return {}

    def needs(self, state: S, row: str) -> str:
        """A row that has to be asked before this one can be done; empty where it can."""
        del state, row
        return ""

    def passes(self, state: S, call: Call, point: str) -> bool:
        """Whether a call comes to a failpoint."""
        del state, call, point
        return True

    def holding(self, point: str) -> tuple[str, Mapping[str, Any]]:
        """The provocation that holds a call at a failpoint, and its arguments."""
        return "hold_at", {"point": point, "fault": "hold"}

    def before(self, call: Call) -> None:
        """What has to be arranged before a call."""

    def after(self, call: Call, answer: Answer | None) -> None:
        """What came of a call beside its answer, once that is there or the call is held."""

    def held(self, state: S, call: Call) -> S:
        """The state that may be shown while a call is held."""
        self.after(call, None)
        return state

    def learned(self, state: S) -> S:
        """The state once everything agrees with what is shown: what that leaves open of a state that leaves it open."""
        return state

    def ended(self, state: S, worker: int) -> S:
        """The state once the process of a worker has ended."""
        del worker
        return state

    def choosing(self, call: Call) -> Mapping[str, Any]:
        """The arguments of `chosen` that show what this call chose."""
        del call
        return {}

    def call(self, state: S, row: str, number: int, count: int = 5) -> Call:
        """The call with this number in its session: what it brings is new, and it is due to be done."""
        raise NotImplementedError

    def refused(self) -> tuple[Call, str]:
        """A write that is refused before it begins, and the reason."""
        raise NotImplementedError

    @abstractmethod
    def outcomes(self, state: S, call: Call, seen: Any) -> Iterable[Outcome[S]]:
        """All that the clauses allow. `seen` is the answer's value or, if none came, what is shown of choices."""

    @abstractmethod
    def observations(self, state: S) -> Iterable[Observation]:
        """What has to be shown, the most telling first."""


def said(answer: Answer) -> str:
    """What an answer says, in words."""
    if answer.outcome != "ok":
        return answer.words
    return FAILED if (answer.value or {}).get("status") else DONE


def received(answer: Answer) -> str:
    """What came, as a finding shows it."""
    return f"{said(answer)} {answer.value or answer.data or ''}".strip()[:SHOWN]


def is_done(answer: Answer) -> bool:
    """Whether an operation was accepted, or a command exited with 0."""
    return answer.outcome == "accepted" or said(answer) == DONE


Kind = type[Model[S]]
Attack = Callable[[Bench, Kind[Any]], None]


def attacked(
    module: str, kind: Kind[Any], **rows: tuple[Attack, Sequence[str], Sequence[str]]
) -> Mapping[str, Callable[[Bench], None]]:
    """Suite tests of a module, by their names: an attack on a contract, the clauses, and the provocations it needs."""

    return {
        name: named(module, name, attack, (kind,), *clauses, provocations=tuple(needs), whole=True, written=True)
        for name, (attack, clauses, needs) in rows.items()
    }
