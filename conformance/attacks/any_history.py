"""Long histories that a contract's model draws: any calls in any order, with ends, kills and repetitions between them.

A history that differs from the model is made short before it is reported. What the contract declares as related, such
as a late operation and a checkpoint that is older, has to be met: a run that met too little has shown nothing.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random
from typing import ClassVar, Generic, Protocol, TypeVar

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


@dataclass(frozen=True, slots=True)
class Step:
    """One step: what is called or observed, and how. Without either the process ends, or everything is compared."""

    what: Call | Observation | None = None
    how: str = ""

    def __str__(self) -> str:
        return f"{self.how} {self.what or ''}".strip()[:120]


class Now(Protocol[S_co]):
    """What a history depends on."""

    @property
    def state(self) -> S_co:
        """The state before the next step."""


class HistoryModel(Model[S]):
    """A model that draws histories."""

    # The features with which each run has to meet a row.
    relations: ClassVar[Mapping[str, Sequence[str]]]

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
        checked, session, what = self._checked, self._checked.session, step.what
        if what is not None and self._met is not None:
            row = what.row if isinstance(what, Call) else what.method
            self._met.meet((feature, row) for feature in self._model.features(checked.state, what))
        if isinstance(what, Observation):
            checked.must_show(what, step.how or "now")
        elif what is None:
            if step.how == "restart":
                session.restart()
            checked.compare()
        elif not what.method:
            checked.change(what)
        elif step.how == "again":
            checked.ask_again(what)
        elif step.how == "kill":
            checked.start(what)
            time.sleep(Random(str(what)).choice(_MOMENTS))  # noqa: S311 - nothing is kept secret with it
            session.begin_again("kill")
            checked.compare(what)
            checked.ask(what)
        else:
            checked.ask(what)

    def compare(self) -> None:
        """Check what is stored at the end."""
        self._checked.compare()


def any_history(bench: Bench, kind: type[HistoryModel[S]], count: int) -> None:
    """This number of histories, or fewer if one differs."""
    owed = ((feature, row) for row, features in kind.relations.items() for feature in features)
    met = Explorer(owed, floor=_FLOOR)

    @contextmanager
    def begin() -> Iterator[HistoryPlayer[S]]:
        with bench.session() as session:
            yield HistoryPlayer(bench, session, kind(session), met)

    walk_histories(bench, count=count, begin=begin, walk=HistoryPlayer.steps, trials=_TRIALS)
    bench.note(met.conclude())
