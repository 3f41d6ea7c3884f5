"""Sends to a broker, and the answers that are due."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer

MESH = "5b1d8a52-6f0e-4c3b-9a77-2f4c1e0d9b60"
ALICE, BOB = "a" * 64, "b" * 64
# One destination of each kind.
PLACES = {"topic": "alerts", "dm": BOB, "queue": "jobs"}


class Compared:
    """A session that is compared with a model."""

    _bench: Bench
    _session: SuiteSession

    @property
    def _now(self) -> datetime:
        return datetime.fromisoformat(self._session.now)

    def _differs(self, verdict: str, what: str, due: Any, came: Any) -> None:
        self._bench.fail(verdict, f"{what}: {came!r}, {due!r} is due", expected=str(due), received=str(came))

    def _weigh(self, verdict: str, what: str, due: Any, came: Any) -> None:
        """The same, unless it is a wrong answer only, behind which the history goes on."""
        self._bench.weigh(verdict, f"{what}: {came!r}, {due!r} is due", expected=str(due), received=str(came))

    def _must_be(self, came: Any, due: Any, verdict: str, what: str) -> None:
        if came != due:
            self._weigh(verdict, what, due, came)


def made(session: SuiteSession, *topics: str) -> None:
    """The mesh with two members and all destinations, and with more topics."""
    names = {"topics": [PLACES["topic"], *topics], "queues": [PLACES["queue"]]}
    session.provoke("make_mesh", {"mesh_id": MESH, "members": [ALICE, BOB], **names})


def args_of(name: str, kind: str = "topic", **request: Any) -> dict[str, Any]:
    """A send of Alice with this id."""
    usual = {"envelope_version": 1, "destination_kind": kind, "destination_ref": PLACES[kind], "body": "aGVsbG8"}
    return {"mesh_id": MESH, "sender": ALICE, "client_message_id": name, "request": {**usual, **request}}


def must_be_refused(bench: Bench, answer: Answer, request: Any) -> None:
    """Fail the test where a request that has no fingerprint is not refused, for any reason."""
    if answer.outcome != "refused":
        bench.fail("fail_open", f"{request}: has no fingerprint", expected="refused", received=answer.words)
