"""Sends to a broker, and the answers that are due."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import base64url

Args = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Mesh:
    """A mesh and what belongs to it."""

    members: tuple[str, ...]
    topics: tuple[str, ...]
    queues: tuple[str, ...]

    def has(self, kind: str, reference: str) -> bool:
        """Whether a message can go there."""
        return reference in {"topic": self.topics, "dm": self.members, "queue": self.queues}[kind]


MESHES = ("5b1d8a52-6f0e-4c3b-9a77-2f4c1e0d9b60", "7c9e6679-7425-40de-944b-e07fc1f90ae7")
MEMBERS = tuple(f"{digit}" * 64 for digit in "abc")
TOPICS, QUEUES = ("alerts", "Alerts"), ("jobs",)
# Each mesh has a member, a topic and a queue that the other has not.
MADE = {
    MESHES[0]: Mesh((*MEMBERS, "d" * 64), (*TOPICS, "here"), (*QUEUES, "nearby")),
    MESHES[1]: Mesh((*MEMBERS, "e" * 64), (*TOPICS, "there"), (*QUEUES, "far")),
}
BODIES = tuple(base64url(text) for text in (b"", b"hello", b"hello "))
MESH = MESHES[0]
ALICE, BOB = MEMBERS[:2]
# One destination of each kind.
PLACES = {"topic": TOPICS[0], "dm": BOB, "queue": QUEUES[0]}


def made(session: SuiteSession) -> None:
    """The mesh with two members and all destinations."""
    names = {"topics": [PLACES["topic"]], "queues": [PLACES["queue"]]}
    session.provoke("make_mesh", {"mesh_id": MESH, "members": [ALICE, BOB], **names})


def args_of(name: str, kind: str = "topic", **request: Any) -> dict[str, Any]:
    """A send of Alice with this id."""
    usual = {"envelope_version": 1, "destination_kind": kind, "destination_ref": PLACES[kind], "body": "aGVsbG8"}
    return {"mesh_id": MESH, "sender": ALICE, "client_message_id": name, "request": {**usual, **request}}


def must_be_refused(bench: Bench, answer: Answer, request: Any) -> None:
    """Fail the test where a request that has no fingerprint is not refused, for any reason."""
    if answer.outcome != "refused":
        bench.fail("fail_open", f"{request}: has no fingerprint", expected="refused", received=answer.words)
