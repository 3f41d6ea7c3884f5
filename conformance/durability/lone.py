"""The one worker of a session that a fault strikes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from holdfast.conformance.adapter.pool import Exhausted
from holdfast.conformance.adapter.process import Deadlines
from holdfast.conformance.adapter.worker import Worker


class LoneWorker:
    """The one worker of a session; a dead one is not started again. Implements `Workers`."""

    def __init__(self, worker: Worker, deadlines: Deadlines) -> None:
        """The times of the worker are CLOCK_MONOTONIC."""
        self.epoch_ns = 0
        self.deadlines = deadlines
        self._worker: Worker | None = worker

    def get(self, number: int) -> Worker:
        """The worker, after its hello. Raises Exhausted, GreetingError."""
        worker = self.current(number)
        if worker is None or worker.dead is not None:
            why = "" if worker is None or worker.dead is None else f": {worker.dead.detail}"
            raise Exhausted(f"it does not run{why}")
        worker.await_greeting()
        return worker

    def current(self, number: int) -> Worker | None:
        """The worker as it stands."""
        del number
        return self._worker

    def kill(self, number: int) -> None:
        """End it by SIGKILL."""
        self._end(number, Worker.kill)

    def stop(self, number: int) -> None:
        """End it in order."""
        self._end(number, Worker.shut_down)

    def _end(self, number: int, end: Callable[[Worker], None]) -> None:
        worker, self._worker = self.current(number), None
        if worker is not None:
            end(worker)

    def settle(self) -> None:
        """A no-op: there is no budget of dead workers, because the layers end them on purpose."""

    def abandon(self, numbers: Sequence[int], cause: str, *, died: bool) -> None:
        """See `settle`."""
