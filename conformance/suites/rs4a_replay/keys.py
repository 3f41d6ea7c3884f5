"""rs4a-replay: registrations whose keys are nearly the keys of a request."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.digests import SHARED, near
from holdfast.conformance.suites.rs4a_replay.requests import issue, must_be, request, shown
from holdfast.vectors.derive import derive

# What a stored registration has of its request.
_STORED = (
    "authorization_nonce",
    "operation",
    "canonical_target",
    "run_id",
    "deployed_artifact_hash",
    "owner_or_approval_binding",
    "protocol_version",
    "attempt_id",
)


@clause("RS4A-ID-2", "RS4A-ID-5", provocations=("raw_insert",))
def test_a_registration_with_nearly_its_keys_is_another_one(bench: Bench) -> None:
    """Rows whose keys share digits at the beginning or at the end; then the request comes, and comes again."""
    with bench.session() as session:
        for number, shared in enumerate(SHARED):
            args = request(session, f"near-{number}", nonce=issue(bench, session))
            other = request(session, f"beside-{number}", nonce=issue(bench, session))["request"]
            keys = {name: derive(f"rs4a.{name}", args) for name in ("logical_request_key", "replay_key")}
            row = {name: other[name] for name in _STORED}
            row |= {name: near(key)[shared] for name, key in keys.items()}
            row |= {"decision_id": f"beside-{number}", "inert": True, "committed_at": session.now}
            if not session.provoke("raw_insert", {"relation": "registration", "row": row})["inserted"]:
                bench.fail("over_refusal", f"a row that shares {shared}", expected="inserted", received="refused")
            for due in ("accepted new", "accepted prior"):
                got = shown(session.call("register", args))
                must_be(bench, f"a request of whose keys {shared} are on record", got, due)
