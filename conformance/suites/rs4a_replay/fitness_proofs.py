"""Files that look like a fitness proof, where a registrar might look for one. None of them proves its surface."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from holdfast.conformance.cases.values import shift
from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.rs4a_replay.requests import issue, must_be, request, shown
from holdfast.conformance.suites.session import SuiteSession

# What documents, commands and habits call such a file.
_NAMES = ("fitness.json", "proof.json", "fitness-proof.json", "fitness/proof.json", ".fitness", "FIT")
_CLOSED = {"can_proceed": "NO", "gate": "REGISTRATION_HOLD", "domain": "REPLAY_DOMAIN_FAIL_CLOSED"}


@clause("RS4A-GATE-4", "RS4A-GATE-2")
def test_no_file_opens_the_gate_that_is_no_proof_of_this_surface(bench: Bench) -> None:
    """Nothing, an empty object, half a proof, one of another surface, version, time or seal; here and at a start."""
    with bench.session() as session:
        must_be(bench, "a registration", _registered(bench, session), "accepted new")
        for what, content in _files(session):
            for name in _NAMES:
                session.place(name, content)
            _stays_closed(bench, session, what)
            session.restart()
            _stays_closed(bench, session, f"{what}, behind a restart")
        must_be(bench, "a second registration", _registered(bench, session), "refused REPLAY_DUPLICATE")


def _registered(bench: Bench, session: SuiteSession) -> str:
    return shown(session.call("register", request(session, "proven", nonce=issue(bench, session))))


def _stays_closed(bench: Bench, session: SuiteSession, what: str) -> None:
    gate = session.observe("gate")
    if not (_CLOSED.items() <= gate.items() and gate["surface"] == "PRESENT_UNPROVEN"):
        bench.fail("fail_open", f"the gate beside {what}", expected=f"{_CLOSED}, unproven", received=repr(gate))


def _files(session: SuiteSession) -> Iterator[tuple[str, bytes]]:
    proof = _proof(session.now)
    whole = json.dumps(proof).encode()
    yield "an empty file", b""
    yield "an empty object", b"{}"
    yield "half a proof", whole[: len(whole) // 2]
    yield "a proof of another surface", whole
    yield "a proof of another version", json.dumps({**proof, "schema": 2}).encode()
    yield "a proof that is a year old", json.dumps(_proof(shift(session.now, "-365d"))).encode()
    yield "a proof from the future", json.dumps(_proof(shift(session.now, "+365d"))).encode()
    yield "a proof with another seal", json.dumps({**proof, "seal": f"sha256:{'0' * 64}"}).encode()


def _proof(made: str) -> Mapping[str, Any]:
    """A document as `holdfast fitness` writes it, of a surface that is judged FIT and is another one."""
    proven = [{"criterion": letter, "standing": "PROVEN", "reasons": []} for letter in "abcdefghi"]
    proof = {
        "schema": 1,
        "contract": {"name": "rs4a-replay", "version": "0.2.0"},
        "made": made,
        "target": "postgresql://db.example/registrar",
        "server": {"name": "7391234567890123456/registrar", "replica": False, "facts": {}},
        "surface": {"name": "other.consumed_request", "parts": {}, "writer": "registrar"},
        "judgement": {"status": "FIT", "findings": proven, "notes": []},
        "verdict": "FIT",
        "status": "FIT",
        "fit": True,
        "digest": hashlib.sha256(b"another surface").hexdigest(),
    }
    return {**proof, "seal": f"sha256:{hashlib.sha256(json.dumps(proof).encode()).hexdigest()}"}
