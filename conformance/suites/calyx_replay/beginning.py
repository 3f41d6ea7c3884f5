"""Begins histories: a session for each, and the values of the contract that it goes by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import timedelta

from holdfast.conformance.cases.request import START
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.calyx_replay.history import WORKERS
from holdfast.conformance.suites.calyx_replay.model import Terms
from holdfast.conformance.suites.calyx_replay.play import Play


def playing(
    bench: Bench,
    kind: type[Play] = Play,
    *,
    remembers: bool = False,
    made: str = START,
    retention_hours: str | None = None,
) -> Callable[[], AbstractContextManager[Play]]:
    """Begins histories, each in a session of its own.

    `remembers` holds the mailbox to the SHOULD of CALYX-ALG-12. It is `made` at this time.
    `retention_hours` is what it is configured to keep.
    """
    values = {name: parameter.value for name, parameter in bench.contract.parameters.items()}
    terms = Terms(
        window=timedelta(seconds=int(values["window_seconds"] or 0)),
        retention=timedelta(hours=int(retention_hours or values["retention_hours"] or 0)),
        least=timedelta(seconds=int(values["least_retention_seconds"] or 0)),
        interval=timedelta(seconds=int(values["prune_interval_seconds"] or 0)),
        remembers=remembers,
    )

    config = {} if retention_hours is None else {"retention_hours": retention_hours}

    @contextmanager
    def begin() -> Iterator[Play]:
        with bench.session(workers=WORKERS, now=made, config=config) as session:
            yield kind(bench, session, terms)

    return begin
