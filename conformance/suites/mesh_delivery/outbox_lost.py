"""Every call of a daemon while its outbox is not where it was, and in its place is nothing, or what is no outbox.

The file is moved under running processes. One that has it open may go on with it; any other refuses. Then it is moved
back, so that what was accepted has to be there, and what was refused has changed nothing.
"""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.mesh_delivery.outbox_observations import CONFIG
from holdfast.conformance.suites.mesh_delivery.outbox_overlap import UNAVAILABLE
from holdfast.conformance.suites.mesh_delivery.outbox_runner import SEND, HistoryRunner

_OUTBOX, _AWAY = "mesh-delivery/outbox.db", "away"
_WEEK, _GARBAGE = 168, b"This is no outbox. " * 512
# What is left of a file that was cut begins like this one.
_CUT = b"SQLite format 3\0" + bytes(84)


def _other_database() -> bytes:
    """A database of something else."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "other.db")
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("CREATE TABLE other (name TEXT)")
            connection.commit()
        return path.read_bytes()


class LossRunner(HistoryRunner):
    """A history whose outbox is lost for single calls."""

    def lose(self) -> None:
        """Make every call in both processes: first without a file in the place of the outbox, then with a wrong one."""
        for number, put in enumerate((None, _CUT, _GARBAGE, _other_database())):
            for worker in range(self._workers):
                self._prepare(f"{number}{worker}")
                for ask in self._calls(f"{number}{worker}", worker):
                    with self._lost(put):
                        ask()
                    self._seen.look(self._model)

    def _prepare(self, label: str) -> None:
        """A row that is done, one that is dead, and one that is due."""
        for name, answer in (("done", "first"), ("dead", "conflict")):
            self._call("send", _send(f"{name} {label}"), 0)
            self._deliver((answer,) * len(self._model.rows), 0)
        self._call("send", _send(f"due {label}"), 0)
        self._seen.look(self._model)

    def _calls(self, label: str, worker: int) -> Iterator[Callable[[], object]]:
        done, again = _send(f"done {label}"), _send(f"due {label}")
        other = {**done, "request": {**done["request"], "body": "AQ"}}
        for args in (done, again, other, _send(f"new {label}")):
            yield lambda args=args: self._call("send", args, worker, alone=False)  # type: ignore[misc]
        for name in (f"done {label}", f"dead {label}", "nowhere"):
            requeue = {"client_message_id": name, "new_id": f"{name} again"}
            yield lambda args=requeue: self._call("requeue", args, worker, alone=False)  # type: ignore[misc]
        yield lambda: self._listed(worker)
        yield lambda: self._round_of_a_lost_one(worker)

    @contextmanager
    def _lost(self, put: bytes | None) -> Iterator[None]:
        """Without the outbox, and in its place what is `put` there."""
        session = self._session
        files = [row["path"] for row in session.tree("mesh-delivery") if row["path"].startswith(_OUTBOX)]
        for path in files:
            session.move(path, f"{_AWAY}/{path}")
        if put == _CUT:
            session.copy(f"{_AWAY}/{_OUTBOX}", _OUTBOX)
            session.cut(_OUTBOX, len(_CUT))
        elif put is not None:
            session.place(_OUTBOX, put)
        yield
        for row in session.tree("mesh-delivery"):
            if row["path"].startswith(_OUTBOX):
                if put is None:
                    self._differs("fail_open", "the place of a lost outbox", "nothing", row["path"])
                session.remove(row["path"])
        for path in files:
            session.move(f"{_AWAY}/{path}", path)

    def _listed(self, worker: int) -> None:
        dead = sorted(name for name in self._model.rows if self._model.is_dead(name))
        told = self._session.sample("failed", {}, worker)
        if told is not None and [row["client_message_id"] for row in told["rows"]] != dead:
            self._differs("fail_open", "outbox --failed of a lost outbox", dead, told["rows"])

    def _round_of_a_lost_one(self, worker: int) -> None:
        due, armed = self._model.due(self._now), self._armed(("first",) * len(self._model.rows))
        answer = self._session.call("deliver", {}, worker)
        if answer.reason != UNAVAILABLE:
            due -= self._round(answer, armed, worker)
            if due and not worker:
                self._differs(
                    "fail_open", "a round of a lost outbox", f"a refusal, or {', '.join(sorted(due))}", "none"
                )
        elif names := self._seen.requests(self._model):
            self._differs("fail_open", "the requests of a round that was refused", "none", names)


def _send(name: str) -> dict[str, Any]:
    return {**SEND, "client_message_id": name}


@contextmanager
def losing(bench: Bench) -> Iterator[LossRunner]:
    """Two processes on a fresh outbox."""
    with bench.session(2, config={**CONFIG, "max_age_hours": str(_WEEK)}, hurried=False) as session:
        yield LossRunner(bench, session, _WEEK)
