"""The registrar on both stores: what is decided, in which order, and what stays behind."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.reference_impl.answers import Accepted, Effect, Fault, Indeterminate, Ok
from holdfast.reference_impl.rs4a_replay.entry import Rs4aReplay
from holdfast.reference_impl.session import OpenError, OpenRequest, StateWanted, SurfaceWanted
from tests.rs4a_replay.conftest import HASH, NOW, WINDOW, Desk, Opener, submission


def test_a_registration_consumes_key_and_nonce_and_is_inert(desk: Desk) -> None:
    nonce = desk.nonce()
    accepted = desk.accepted("register", submission(nonce))
    assert (accepted.effect, accepted.value["decision"]["state"]) == (Effect.NEW, "COMMITTED")
    (row,) = desk.observe("state")["registration"]
    assert row["inert"] is True
    assert row["decision_id"] == accepted.value["decision"]["decision_id"]
    assert desk.observe("nonce_state", {"nonce": nonce}) == {"state": "consumed"}
    assert desk.codes() == []


def test_an_exact_retry_gets_the_same_decision_from_the_store_also_in_another_session(opener: Opener) -> None:
    first, second = opener(), opener()
    nonce = first.nonce()
    new = first.accepted("register", submission(nonce))
    for desk in (first, second):
        prior = desk.accepted("register", submission(nonce, attempt="try-2"))
        assert (prior.effect, prior.value["decision"]) == (Effect.PRIOR, new.value["decision"])
        assert prior.value["replayed"] is True
    assert first.counts() == (1, 1)


def test_every_refusal_is_inert_and_leaves_one_record(desk: Desk) -> None:
    used, fresh = desk.nonce(), desk.nonce()
    desk.accepted("register", submission(used))
    before, expected = desk.observe("state"), []
    for reason, sent in (
        ("REPLAY_DUPLICATE", submission(fresh)),
        ("REPLAY_DUPLICATE", submission("never-issued-nonce")),
        ("REPLAY_NONCE_CONSUMED", submission(used, target="dot://acme/other")),
        ("NONCE_UNBOUND", submission("never-issued-nonce", target="dot://acme/other")),
        ("NONCE_UNBOUND", submission(fresh, target="dot://acme/other", principal="agent-2")),
        ("REQUEST_STALE", submission(used, issued_at="2025-12-31T23:54:59Z")),
        ("REQUEST_STALE", submission(fresh, issued_at="2026-01-01T00:00:31Z")),
        ("ARTIFACT_MISMATCH", submission(fresh, deployed_artifact_hash="cd" * 32)),
        ("ARTIFACT_MISMATCH", submission(fresh, artifact_hash="cd" * 32)),
        ("REQUEST_MALFORMED", submission(fresh, canonical_target="dot://acme/%")),
        ("REQUEST_MALFORMED", {"request": {}}),
    ):
        expected.append(reason)
        assert desk.reason("register", sent) == reason
        assert desk.observe("state") == before
        assert desk.codes() == expected


def test_the_last_instant_of_the_time_to_live_is_still_fresh(desk: Desk) -> None:
    desk.session.set_clock(NOW + timedelta(seconds=300))
    assert desk.accepted("register", submission(desk.nonce())).effect is Effect.NEW
    desk.session.set_clock(NOW + timedelta(seconds=301))
    assert desk.reason("register", submission(desk.nonce(), target="dot://acme/other")) == "REQUEST_STALE"


def test_the_year_0000_is_long_ago(desk: Desk) -> None:
    ancient = {"not_before": "0000-02-29T00:00:00Z", "not_after": "0000-02-29T01:00:00.500Z"}
    too_long = desk.reason("issue_nonce", {"binding": {"principal": "agent-1"}, "window": ancient})
    assert too_long == "REQUEST_MALFORMED"
    ancient["not_after"] = "0000-02-29T01:00:00.000Z"
    nonce = desk.accepted("issue_nonce", {"binding": {"principal": "agent-1"}, "window": ancient}).value["nonce"]
    (row,) = desk.observe("state")["nonce_issue"]
    assert (row["not_before"], row["not_after"]) == ("0000-02-29T00:00:00Z", "0000-02-29T01:00:00Z")
    assert desk.reason("register", submission(nonce)) == "NONCE_UNBOUND"
    assert desk.reason("register", submission(nonce, issued_at="0000-02-29T00:00:00Z")) == "REQUEST_STALE"
    assert desk.reason("register", submission(nonce, issued_at="0000-02-30T00:00:00Z")) == "REQUEST_MALFORMED"


def test_a_stale_exact_retry_is_refused_and_says_that_the_key_is_blocked(desk: Desk) -> None:
    nonce = desk.nonce()
    desk.accepted("register", submission(nonce))
    desk.session.set_clock(NOW + timedelta(hours=2))
    answer = desk.call("register", submission(nonce))
    assert (getattr(answer, "reason", None), getattr(answer, "data", None)) == (
        "REQUEST_STALE",
        {"replay_blocked": True},
    )


@pytest.mark.parametrize("after", [timedelta(0), timedelta(hours=1)])
def test_a_window_is_closed_at_both_ends(desk: Desk, after: timedelta) -> None:
    nonce = desk.nonce()
    desk.session.set_clock(NOW + after)
    issued_at = (NOW + after).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert desk.accepted("register", submission(nonce, issued_at=issued_at)).effect is Effect.NEW


@pytest.mark.parametrize(
    "args",
    [
        {"binding": {}, "window": WINDOW},
        {"binding": {"principal": "a"}, "window": {**WINDOW, "not_after": "2026-01-01T01:00:01Z"}},
        {"binding": {"principal": "a"}, "window": {**WINDOW, "not_after": "2025-12-31T00:00:00Z"}},
    ],
)
def test_a_nonce_bound_to_nothing_or_for_too_long_is_not_issued(desk: Desk, args: object) -> None:
    assert desk.reason("issue_nonce", args) == "REQUEST_MALFORMED"
    assert desk.observe("state")["nonce_issue"] == []


def test_a_binding_counts_in_its_normal_form(desk: Desk) -> None:
    nonce = desk.nonce(canonical_target="DOT://Acme/x/../thing", artifact_hash=HASH.upper())
    assert desk.accepted("register", submission(nonce)).effect is Effect.NEW


def test_a_failed_verification_leaves_only_compensation_open(desk: Desk) -> None:
    nonce, other, third = desk.nonce(), desk.nonce(), desk.nonce()
    assert desk.call("fail_verify") == Ok()
    failed = desk.accepted("register", submission(nonce))
    assert (failed.effect, failed.value["decision"]["state"]) == (Effect.NEW, "FAILED")
    assert desk.accepted("register", submission(nonce)).value["decision"]["state"] == "FAILED"
    assert desk.reason("register", submission(other)) == "COMPENSATION_ONLY"
    done = desk.accepted("compensate", submission(other))
    assert (done.effect, done.value["decision"]["state"]) == (Effect.NEW, "COMPENSATED")
    assert desk.accepted("compensate", submission(other)).effect is Effect.PRIOR
    assert desk.reason("compensate", submission(third)) == "REPLAY_DUPLICATE"
    assert desk.reason("compensate", submission(nonce)) == "REPLAY_NONCE_CONSUMED"
    assert desk.accepted("register", submission(nonce)).value["decision"]["state"] == "COMPENSATED"
    assert desk.reason("register", submission(other)) == "REPLAY_NONCE_CONSUMED"
    assert desk.counts() == (1, 2)


def test_what_did_not_fail_has_nothing_to_compensate(desk: Desk) -> None:
    desk.accepted("register", submission(desk.nonce()))
    assert desk.reason("compensate", submission(desk.nonce())) == "NOTHING_TO_COMPENSATE"
    elsewhere = submission(desk.nonce(), target="dot://acme/other")
    assert desk.reason("compensate", elsewhere) == "NOTHING_TO_COMPENSATE"


def test_past_a_finite_horizon_a_tombstone_is_made_once_and_the_key_goes_on_blocking(opener: Opener) -> None:
    desk = opener(horizon_seconds="600")
    desk.accepted("register", submission(desk.nonce()))
    desk.session.set_clock(NOW + timedelta(seconds=599))
    assert desk.accepted("maintain", {}).value == {"tombstoned": 0}
    desk.session.set_clock(NOW + timedelta(seconds=600))
    assert desk.accepted("maintain", {}) == Accepted(Effect.NEW, {"tombstoned": 1})
    assert desk.accepted("maintain", {}) == Accepted(Effect.PRIOR, {"tombstoned": 0})
    again = submission(desk.nonce(), issued_at="2026-01-01T00:10:00Z")
    assert desk.reason("register", again) == "REPLAY_DUPLICATE"


def test_without_an_audit_that_can_be_written_nothing_is_admitted(desk: Desk) -> None:
    nonce = desk.nonce()
    desk.call("break_audit", {"broken": True})
    for method, args in (("register", submission(nonce)), ("register", {}), ("maintain", {})):
        assert desk.reason(method, args) == "AUDIT_UNAVAILABLE"
    assert desk.counts() == (0, 0)
    desk.call("break_audit", {"broken": False})
    assert desk.accepted("register", submission(nonce)).effect is Effect.NEW


def test_without_a_surface_nothing_is_admitted_and_nothing_is_made(opener: Opener) -> None:
    desk = opener(surface=SurfaceWanted.ABSENT)
    for method, args in (("register", submission("some-unissued-nonce")), ("maintain", {}), ("resolve_status", {})):
        assert desk.reason(method, args) == "REPLAY_SURFACE_REQUIRED_NOT_PRESENT"
    assert desk.observe("catalogue") == {"objects": []}
    assert desk.observe("gate") == {
        "can_proceed": "NO",
        "gate": "REGISTRATION_HOLD",
        "domain": "REPLAY_DOMAIN_FAIL_CLOSED",
        "surface": "ABSENT",
        "reasons": ["REPLAY_SURFACE_REQUIRED_NOT_PRESENT"],
    }


@pytest.mark.parametrize("how", ["unreachable", "unreadable", "incomplete", "slow"])
def test_a_broken_surface_counts_as_not_present_and_stays_as_it_was(desk: Desk, how: str) -> None:
    nonce = desk.nonce()
    desk.call("break_surface", {"how": how})
    before = desk.observe("state")
    assert desk.reason("register", submission(nonce)) == "REPLAY_SURFACE_REQUIRED_NOT_PRESENT"
    assert desk.observe("gate")["surface"] == "UNKNOWN"
    assert desk.observe("state") == before
    assert desk.codes() == []


def test_the_store_itself_refuses_a_second_row_of_a_key_and_of_a_nonce(desk: Desk) -> None:
    nonce = desk.nonce()
    desk.accepted("register", submission(nonce))
    state = desk.observe("state")
    again = {**state["registration"][0], "decision_id": "decision-2", "replay_key": "cd" * 32}
    assert desk.observe("raw_insert", {"relation": "registration", "row": again}) == {
        "inserted": False,
        "constraint": "logical_request_key_unique",
    }
    spent = {**state["nonce_consume"][0], "consume_id": "consume-2", "logical_request_key": "cd" * 32}
    assert desk.observe("raw_insert", {"relation": "nonce_consume", "row": spent}) == {
        "inserted": False,
        "constraint": "authorization_nonce_unique",
    }
    active = {**again, "logical_request_key": "ef" * 32, "inert": False}
    assert desk.observe("raw_insert", {"relation": "registration", "row": active})["inserted"] is False
    assert desk.observe("state") == state


def test_a_forged_verdict_excuses_no_replay(desk: Desk) -> None:
    nonce = desk.nonce()
    assert desk.observe("register_unvalidated", submission(nonce))["effect"] == "new"
    assert desk.observe("register_unvalidated", submission(nonce))["effect"] == "prior"
    assert desk.observe("register_unvalidated", submission(desk.nonce()))["reason"] == "REPLAY_DUPLICATE"
    moved = submission(nonce, target="dot://acme/other")
    assert desk.observe("register_unvalidated", moved)["reason"] == "REPLAY_NONCE_CONSUMED"


def test_the_validator_works_where_nothing_can_be_opened_and_repeats_itself(desk: Desk) -> None:
    told = desk.observe("validate_isolated", submission("some-unissued-nonce"))
    assert told["store_opened"] is False
    assert told["verdicts"][0] == told["verdicts"][1]
    assert told["verdicts"][0].startswith("VALID")


@pytest.mark.parametrize("point", ["after_nonce_consume", "after_registration", "before_commit"])
@pytest.mark.parametrize("fault", ["abort", "lose_backend"])
def test_a_transaction_that_is_lost_before_its_commit_leaves_nothing(desk: Desk, point: str, fault: str) -> None:
    sent = submission(desk.nonce())
    desk.call("hold_at", {"point": point, "fault": fault})
    answer = desk.call("register", sent)
    # A server that recovers for longer than an operation may take leaves no time for the proof of the rollback.
    proven = fault == "abort" or not isinstance(answer, Indeterminate)
    assert not proven or getattr(answer, "reason", None) == "COMMIT_FAILED"
    desk.recovered()
    assert desk.counts() == (0, 0)
    assert desk.codes() == (["COMMIT_FAILED"] if proven else [])
    assert desk.accepted("register", sent).effect is Effect.NEW


@pytest.mark.parametrize("point", ["before_consume", "after_nonce_consume", "after_registration", "before_commit"])
def test_a_compensation_stops_where_a_registration_does(desk: Desk, point: str) -> None:
    sent, undo = submission(desk.nonce()), submission(desk.nonce(), attempt="try-2")
    desk.observe("fail_verify")
    desk.accepted("register", sent)
    desk.call("hold_at", {"point": point, "fault": "abort"})
    assert desk.reason("compensate", undo) == "COMMIT_FAILED"
    assert desk.counts() == (1, 1)
    # The point was armed for one call, whether it came to it or not.
    desk.call("hold_at", {"point": "after_registration", "fault": "abort"})
    assert desk.reason("compensate", submission("never-issued-at-all")) == "NONCE_UNBOUND"
    assert desk.accepted("compensate", undo).effect is Effect.NEW


@pytest.mark.parametrize(("point", "status"), [("before_commit", "NOT_COMMITTED"), ("after_commit", "COMMITTED")])
def test_a_commit_whose_answer_is_lost_is_resolved_and_not_guessed(desk: Desk, point: str, status: str) -> None:
    sent = submission(desk.nonce())
    key = desk.observe("derive_keys", sent)["logical_request_key"]
    desk.call("hold_at", {"point": point, "fault": "lose_answer"})
    assert isinstance(desk.call("register", sent), Indeterminate)
    assert desk.accepted("resolve_status", {"logical_request_key": key}).value["status"] == status
    assert desk.codes() == [status]
    assert desk.accepted("register", sent).effect is (Effect.PRIOR if status == "COMMITTED" else Effect.NEW)
    assert desk.counts() == (1, 1)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"store": "oracle"}, "expected one of postgres, sqlite"),
        ({"isolation": "chaos"}, "expected one of read_committed"),
        ({"ttl_seconds": "soon"}, "expected a whole number"),
        ({"ttl": "1"}, "no such key"),
        ({"store": "postgres", "dsn": "", "writer_dsn": ""}, "expected a DSN"),
        ({"store": "postgres", "dsn": "pass word=hunter2", "writer_dsn": "x"}, "not a DSN"),
        ({"store": "sqlite", "template": "/nowhere"}, "expected the folder of a provisioned template"),
    ],
)
def test_a_bad_config_says_what_was_expected_and_keeps_secrets(
    config: dict[str, str], said: str, tmp_path: object
) -> None:
    request = OpenRequest(StateWanted.FRESH, SurfaceWanted.READY, tmp_path, NOW, config)  # type: ignore[arg-type]
    with pytest.raises(OpenError, match=said) as caught:
        Rs4aReplay().open(request)
    assert "hunter2" not in str(caught.value)


def test_unknown_methods_and_misfit_observations_are_faults(desk: Desk) -> None:
    assert isinstance(desk.call("no_such_method"), Fault)
    assert isinstance(desk.call("nonce_state", {"nonce": ""}), Fault)
