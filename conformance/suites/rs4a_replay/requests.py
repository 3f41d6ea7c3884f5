"""Requests of rs4a-replay as suites make them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.conformance.cases.values import shift
from holdfast.conformance.session import Answer
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.session import SuiteSession


def request(session: SuiteSession, label: str, *, nonce: str, age_s: float = 0, **members: str) -> dict[str, Any]:
    """A submission; `label` decides target and owner, and so the logical key."""
    artifact = session.hex64("artifact")
    body = {
        "protocol_version": "rs4a/0.2",
        "operation": "register_dot",
        "canonical_target": f"dot://acme/{label}-{session.rand('target')}",
        "owner_or_approval_binding": f"owner-{session.rand('owner')}",
        "principal": f"agent-{session.rand('principal')}",
        "run_id": f"run-{session.rand('run')}",
        "deployed_artifact_hash": artifact,
        "authorization_nonce": nonce,
        "attempt_id": f"try-{session.rand('attempt')}",
        "issued_at": shift(session.now, f"{-age_s:+f}s") if age_s else session.now,
        **members,
    }
    return {"request": body, "trusted_attested": {"artifact_hash": artifact}}


def issue(bench: Bench, session: SuiteSession, *, worker: int = 0, binding: Mapping[str, str] | None = None) -> str:
    """A fresh nonce, bound to the principal unless the call says otherwise, with the longest window."""
    longest = f"+{bench.contract.parameters['nonce_window_seconds'].value}s"
    window = {"not_before": session.now, "not_after": shift(session.now, longest)}
    bound = binding or {"principal": f"agent-{session.rand('principal')}"}
    answer = session.call("issue_nonce", {"binding": bound, "window": window}, worker)
    if answer.outcome != "accepted":
        bench.fail("not_reached", "no nonce was issued, so nothing can be shown", received=shown(answer))
    return str(answer.value["nonce"])


def shown(answer: Answer) -> str:
    """An answer in a word or two."""
    return " ".join(str(part) for part in (answer.outcome, answer.effect, answer.reason) if part is not None)
