"""Running a Spark action while watching its tasks through Spark's status tracker."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import SparkSession

T = TypeVar("T")
# Often enough for a bar that moves, seldom enough to cost nothing.
_POLL_S = 0.2
_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Snapshot:
    """How far an action is: tasks done, running and failed, of `total` known so far."""

    title: str
    done: int
    running: int
    failed: int
    total: int


# Shows progress. Called from the thread that asked for the action.
Listener = Callable[[Snapshot], None]


def silent(snapshot: Snapshot) -> None:
    """Show nothing."""


def watched(spark: SparkSession, title: str, action: Callable[[], T], listener: Listener = silent) -> T:
    """What `action` returns or raises, run in a thread of its own while `listener` gets reports of its tasks.

    Anything that interrupts the caller cancels the jobs of the action before it goes on.
    """
    from pyspark import InheritableThread

    context = spark.sparkContext
    group = f"holdfast-{os.getpid()}-{next(_numbers)}"
    results: list[T] = []
    failures: list[BaseException] = []

    def act() -> None:
        try:
            context.setJobGroup(group, title, interruptOnCancel=True)
            results.append(action())
        except BaseException as error:
            failures.append(error)

    thread = InheritableThread(target=act, name=title, daemon=True)
    thread.start()
    try:
        while thread.is_alive():
            thread.join(_POLL_S)
            listener(_snapshot(context, group, title))
    except BaseException:
        context.cancelJobGroup(group)
        raise
    if failures:
        raise failures[0]
    return results[0]


def _snapshot(context: SparkContext, group: str, title: str) -> Snapshot:
    tracker = context.statusTracker()
    done = running = failed = total = 0
    for job in tracker.getJobIdsForGroup(group):
        information = tracker.getJobInfo(job)
        for number in () if information is None else information.stageIds:
            stage = tracker.getStageInfo(number)
            if stage is not None:
                done += stage.numCompletedTasks
                running += stage.numActiveTasks
                failed += stage.numFailedTasks
                total += stage.numTasks
    return Snapshot(title, done, running, failed, total)
