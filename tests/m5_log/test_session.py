"""The reference behind the adapter: fresh and existing sessions, failpoints, answers."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Indeterminate, Ok, Refused
from holdfast.reference_impl.m5_log.entry import implementation
from holdfast.reference_impl.session import OpenError, OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.vectors.m5_log import derive
from tests.m5_log.logs import draft, id_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def opened(workdir: Path, state: StateWanted, surface: SurfaceWanted = SurfaceWanted.READY, **config: Any) -> Session:
    return implementation().open(OpenRequest(state, surface, workdir, NOW, config))


@pytest.fixture
def session(tmp_path: Path) -> Iterator[Session]:
    made = opened(tmp_path, StateWanted.FRESH)
    yield made
    made.close()


def value(answer: Answer) -> Any:
    assert isinstance(answer, Ok), answer
    return answer.value


def put(session: Session, ms: int = 1) -> Answer:
    return session.call("put_op", {"op": derive.op(draft(ms))})


def test_an_operation_is_new_and_then_prior(session: Session) -> None:
    expected = {"op_id": id_of(draft(1)), "pending": False, "missing": []}
    assert put(session) == Accepted(Effect.NEW, expected)
    assert put(session) == Accepted(Effect.PRIOR, expected)


def test_another_session_sees_what_is_there(session: Session, tmp_path: Path) -> None:
    put(session)
    other = opened(tmp_path, StateWanted.EXISTING)
    assert value(other.call("store", {})) == value(session.call("store", {}))
    assert value(other.call("topo_iter", {})) == {"op_ids": [id_of(draft(1))]}
    answer = put(other, 2)
    assert isinstance(answer, Refused)
    assert answer.reason == "STORE_UNAVAILABLE"
    other.close()


def test_a_fresh_session_is_empty_and_an_existing_one_makes_nothing(tmp_path: Path) -> None:
    session = opened(tmp_path, StateWanted.EXISTING)
    assert isinstance(put(session), Refused)
    assert isinstance(session.call("store", {}), Fault)
    session.close()
    for _ in range(2):
        session = opened(tmp_path, StateWanted.FRESH)
        assert value(session.call("iter_ops", {})) == {"op_ids": []}
        put(session)
        session.close()
    session = opened(tmp_path, StateWanted.FRESH, SurfaceWanted.ABSENT)
    assert isinstance(put(session), Refused)
    assert isinstance(session.call("iter_ops", {}), Fault)
    assert list(tmp_path.iterdir()) == []


def test_arguments_that_do_not_fit_are_refused_and_those_of_observations_are_a_fault(session: Session) -> None:
    for args in ({}, {"op": 1}, {"op": "*"}, {"op": "AB"}, {"op": "AA", "more": 1}):
        answer = session.call("put_op", args)
        assert isinstance(answer, Refused)
        assert answer.reason == "REQUEST_MALFORMED"
    assert isinstance(session.call("get_op", {}), Fault)
    assert isinstance(session.call("nothing", {}), Fault)


def test_an_operation_that_fails_before_its_batch_is_refused_and_done_afterwards(session: Session) -> None:
    session.call("hold_at", {"point": "before_batch", "fault": "abort"})
    answer = put(session)
    assert isinstance(answer, Refused)
    assert answer.reason == "STORE_UNAVAILABLE"
    assert value(session.call("iter_ops", {})) == {"op_ids": []}
    assert isinstance(put(session), Accepted)


@pytest.mark.parametrize("point", ["after_batch", "after_witness"])
def test_an_operation_that_fails_behind_its_batch_is_uncertain_and_prior_afterwards(
    session: Session, point: str
) -> None:
    session.call("hold_at", {"point": point, "fault": "abort"})
    assert isinstance(put(session), Indeterminate)
    answer = put(session)
    assert isinstance(answer, Accepted)
    assert answer.effect is Effect.PRIOR
    assert value(session.call("verify_store", {}))["whole"]


def test_the_options_are_those_that_the_contract_wants(session: Session) -> None:
    put(session)
    found = value(session.call("options", {}))
    database = found["database"]
    assert (database["paranoid_checks"], database["use_fsync"], database["create_if_missing"]) == (
        "true",
        "true",
        "false",
    )
    assert {family["checksum"] for family in found["families"].values()} == {"kXXH3"}
    assert len(found["families"]) == 8
    assert found["same_device"]
    before = value(session.call("statistics", {}))
    put(session, 2)
    after = value(session.call("statistics", {}))
    assert after["wal_synced"] - before["wal_synced"] == after["wal_writes"] - before["wal_writes"] == 1


def test_a_config_that_makes_no_sense_opens_nothing(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"database_path": "../db"},
        {"database_path": "db"},
        {"max_parents": "x"},
        {"a": "1"},
    ]
    for config in wrong:
        with pytest.raises(OpenError):
            opened(tmp_path, StateWanted.FRESH, **config)


def test_a_parameter_may_be_set_by_the_session(tmp_path: Path) -> None:
    session = opened(tmp_path, StateWanted.FRESH, max_op_bytes="10", store="none")
    answer = put(session)
    assert isinstance(answer, Refused)
    assert answer.reason == "OP_MALFORMED"
    session.close()


def test_an_answer_that_is_longer_than_a_line_is_a_fault(session: Session) -> None:
    for ms in range(20):
        each = {**draft(ms), "payload": {"key": f"k{ms}", "value": "x" * 60_000}}
        assert isinstance(session.call("put_op", {"op": derive.op(each)}), Accepted)
    assert isinstance(session.call("store", {}), Fault)
    assert len(value(session.call("topo_iter", {}))["op_ids"]) == 20
