"""Long histories that a contract's model draws: any calls in any order, with ends, kills and repetitions between them.

A history that differs from the model is made short before it is reported. What the contract declares as related, such
as a late operation and a checkpoint that is older, has to be met: a run that met too little has shown nothing.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import CheckedSession
from holdfast.conformance.attacks.explore import Explorer
from holdfast.conformance.attacks.histories import walk_histories
from holdfast.conformance.attacks.model import Call, Model, Observation, S
from holdfast.conformance.attacks.session import SuiteSession

S_co = TypeVar("S_co", covariant=True)

# How long after a call the process is killed, in seconds: within it, or after it.
_MOMENTS = (0.0, 0.001, 0.003, 0.006, 0.01)
# So much of the relations that a contract declares has to be met.
_FLOOR = 0.9
# How many shorter histories are tried. Each takes as long as a test of another kind.
_TRIALS = 10
_AT, _HELD = "kill at ", "held at "


Asked = Call | Observation | Callable[[Any], Call | Observation | None] | None


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what is called or observed, and how. A function has the state then, and may find nothing to ask.

    Without a call a process ends (`restart`, `kill`), the clock goes by a span or to an instant (`+1h`), or everything
    is compared. A call may be made `again`, or be cut short by a `kill` at any moment or at a failpoint (`kill at
    POINT`). With another call `beside` it both are made at once, or the other while it is held (`held at POINT`); it
    may be `later` for that.
    """

    what: Asked = None
    how: str = ""
    worker: int = 0
    beside: Asked = None
    later: str = ""

    def __str__(self) -> str:
        both = " beside ".join(str(each) for each in (self.what, self.beside) if isinstance(each, Call | Observation))
        return f"{self.how} {both}".strip()[:120]


class Now(Protocol[S_co]):
    """What a history depends on."""

    @property
    def state(self) -> S_co:
        """The state before the next step."""


class HistoryModel(Model[S]):
    """A model that draws histories."""

    # The features with which each run has to meet a row.
    relations: ClassVar[Mapping[str, Sequence[str]]]
    workers: ClassVar[int] = 1
    # Whether everything is compared after each step.
    inspecting: ClassVar[bool] = False

    @abstractmethod
    def history(self, now: Now[S], dice: Random, number: int) -> Iterator[Step]:
        """The steps of the history with this number."""

    @abstractmethod
    def features(self, state: S, what: Call | Observation) -> Iterable[str]:
        """How a step is related to what is there."""


class HistoryPlayer(Generic[S]):
    """One history under way. `histories.HistoryRunner` says what its methods are."""

    def __init__(
        self, bench: Bench, session: SuiteSession, model: HistoryModel[S], met: Explorer | None = None
    ) -> None:
        self._checked = CheckedSession(bench, session, model)
        self._model, self._met = model, met

    @property
    def state(self) -> S:
        """A state that the store may be in."""
        return self._checked.state

    def steps(self, dice: Random, number: int) -> Iterator[Step]:
        """What the model draws."""
        return self._model.history(self, dice, number)

    def step(self, step: Step) -> None:
        """Do it, and check what comes."""
        checked, session = self._checked, self._checked.session
        what, other = (each(checked.state) if callable(each) else each for each in (step.what, step.beside))
        if what is None and step.what is not None:
            return
        if what is not None and self._met is not None:
            row = what.row if isinstance(what, Call) else what.method
            self._met.meet((feature, row) for feature in self._model.features(checked.state, what))
        if isinstance(what, Observation):
            checked.must_show(what, step.how or "now")
        elif what is None:
            if step.how[:1].isdigit() or step.how[:1] in ("+", "-"):
                session.clock(step.how)
                return
            if step.how:
                checked.end(step.how, step.worker)
            checked.compare()
        elif not what.method:
            checked.change(what)
        elif step.how == "again":
            checked.ask_again(what)
        elif step.how == "kill":
            checked.start(what)
            time.sleep(Random(str(what)).choice(_MOMENTS))  # noqa: S311 - nothing is kept secret with it
            checked.end("kill", what.worker)
            checked.compare(what)
            checked.ask(what)
        elif step.how.startswith(_AT):
            checked.kill_at(step.how.removeprefix(_AT), what)
        elif isinstance(other, Call) and step.how.startswith(_HELD):
            point = step.how.removeprefix(_HELD)
            if self._model.passes(checked.state, what, point):
                checked.overlap(point, what, other, later=step.later)
            else:
                checked.ask(what)
        elif isinstance(other, Call):
            checked.race([what, other])
        else:
            checked.ask(what)
        if self._model.inspecting or other is not None:
            checked.compare()

    def compare(self) -> None:
        """Check what is stored at the end."""
        self._checked.compare()


def any_history(
    bench: Bench,
    kind: type[HistoryModel[S]],
    count: int,
    trials: int = _TRIALS,
    config: Mapping[str, str] | None = None,
) -> None:
    """This number of histories, or fewer if one differs. At most `trials` shorter ones are tried.

    With a `config` of their own they need not meet what is related.
    """
    owed = [(feature, row) for row, features in kind.relations.items() for feature in features]
    met = Explorer(owed, floor=_FLOOR if config is None else 0)

    @contextmanager
    def begin() -> Iterator[HistoryPlayer[S]]:
        with bench.session(kind.workers, config or kind.config, hurried=kind.hurried) as session:
            yield HistoryPlayer(bench, session, kind(session), met)

    walk_histories(bench, count=count, begin=begin, walk=HistoryPlayer.steps, trials=trials)
    if owed:
        bench.note(met.conclude())
