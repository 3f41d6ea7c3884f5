"""Begins histories: a session for each, and the values of the contract that it goes by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from holdfast.conformance.cases.request import START
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.calyx_replay.generate import WORKERS
from holdfast.conformance.suites.calyx_replay.runner import HistoryRunner
from holdfast.conformance.suites.calyx_replay.settings import Settings

_USUAL = Settings()


def playing(
    bench: Bench,
    kind: type[HistoryRunner] = HistoryRunner,
    *,
    remembers: bool = False,
    made: str = START,
    settings: Callable[[], Settings] = lambda: _USUAL,
) -> Callable[[], AbstractContextManager[HistoryRunner]]:
    """Begins histories, each in a session of its own.

    `remembers` holds the mailbox to the SHOULD of CALYX-ALG-12. It is `made` at this time, and configured with what
    `settings` are then.
    """

    @contextmanager
    def begin() -> Iterator[HistoryRunner]:
        chosen = settings()
        # On a machine that is busy a history takes longer than a session may; each of its requests has a deadline.
        with bench.session(workers=WORKERS, now=made, config=chosen.config, hurried=False) as session:
            yield kind(bench, session, chosen, remembers=remembers)

    return begin
