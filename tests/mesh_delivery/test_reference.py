"""The reference of mesh-delivery agrees with fingerprints that were written independently of it, and fails closed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.reference_impl.answers import Accepted, Refused
from holdfast.reference_impl.mesh_delivery import claims
from holdfast.reference_impl.mesh_delivery.broker_admin import Administrator
from holdfast.reference_impl.mesh_delivery.broker_schema import BrokerSchema
from holdfast.reference_impl.mesh_delivery.entry import implementation
from holdfast.reference_impl.mesh_delivery.fingerprint import fingerprints
from holdfast.reference_impl.mesh_delivery.negotiation import Negotiator
from holdfast.reference_impl.mesh_delivery.service import Service
from holdfast.reference_impl.mesh_delivery.terms import Reason, check_reasons
from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.registry import Deferred
from holdfast.reference_impl.terms import TermsError
from holdfast.specs import load_contract
from holdfast.vectors.derive import derive
from holdfast.vectors.fingerprints import Fingerprint, load
from holdfast.vectors.fingerprints.rows import BLOCK_ROWS, row_at
from holdfast.vectors.mesh_delivery import derive as mesh

RECORDS = [record for record in load() if record.contract == "mesh-delivery"]
SERVICE = Service(fingerprints(), Negotiator(), load_contract("mesh-delivery").methods)
REFUSALS = {
    "kind": "UNKNOWN_VALUE",
    "priority": "UNKNOWN_VALUE",
    "dm": "REFERENCE_INVALID",
    "reply": "REFERENCE_INVALID",
    "nul": "NUL_IN_FIELD",
    "meta": "META_INVALID",
}


def _answer(request: Mapping[str, Any]) -> str:
    """The fingerprint, or the reason of a refusal."""
    answer = SERVICE.call("fingerprint", request)
    if isinstance(answer, Accepted):
        return str(answer.value["fingerprint"])
    assert isinstance(answer, Refused), answer
    return answer.reason


def test_nobody_has_a_name_that_the_database_cannot_hold_and_it_is_not_asked() -> None:
    # Nothing listens there.
    nowhere = Administrator("host=127.0.0.1 port=1 dbname=none", BrokerSchema(), Patience(0.1))
    assert nowhere.inbox("7c9e6679-7425-40de-944b-e07fc1f90ae7", "a\0b") == []
    with pytest.raises(psycopg.Error):
        nowhere.inbox("7c9e6679-7425-40de-944b-e07fc1f90ae7", "ab")


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.id)
def test_a_committed_fingerprint_is_reproduced(record: Fingerprint) -> None:
    if record.sha256 is not None:
        assert _answer(record.request) == record.sha256
    else:
        assert _answer(record.request) == REFUSALS[record.id.split("-")[1]]


def test_mutated_requests_have_the_fingerprints_that_are_derived() -> None:
    for index in range(20 * BLOCK_ROWS):
        row = row_at(5, index)
        if row.key == "mesh.fingerprint":
            assert _answer(row.request) == derive(row.key, row.request), row


@given(
    st.fixed_dictionaries(
        {
            "envelope_version": st.integers(1, 10**6),
            "destination_kind": st.sampled_from(["topic", "dm", "queue", "Topic", ""]),
            "destination_ref": st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)
            | st.sampled_from(["ab" * 32, "AB" * 32, "a\0b"]),
            "body": st.just("aGVsbG8"),
        },
        optional={
            "reply_to": st.none() | st.sampled_from(["", "None", "01JBRC2YJJFGZ9TJRA3CP3TKJZ", "a" * 26, "\0"]),
            "priority": st.sampled_from(["now", "next", "low", "NOW", ""]),
            "meta": st.none() | st.sampled_from(["e30", "bnVsbA", "W10", "", "eyJhIjoxfQ", "eyJhIjoxLCJhIjoxfQ"]),
        },
    )
)
def test_reference_and_derivation_agree_on_what_has_a_fingerprint_and_which(request: dict[str, Any]) -> None:
    try:
        expected = mesh.fingerprint(request)
    except ValueError:
        assert _answer(request) in {reason.value for reason in Reason}
    else:
        assert _answer(request) == expected


def test_without_the_extra_http_no_socket_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "find_spec", lambda name: None if name == "uvicorn" else name)
    assert set(Deferred("mesh-delivery").not_claimed) == {"http", "websocket"}
    assert implementation().not_claimed == Deferred("mesh-delivery").not_claimed
    assert Deferred("jcs").not_claimed == {}


def test_the_implementation_claims_everything_of_its_version() -> None:
    assert implementation().not_claimed == {}
    assert implementation().version == load_contract("mesh-delivery").version


def test_reasons_that_the_contract_does_not_have_are_an_error() -> None:
    with pytest.raises(TermsError, match="only in the contract"):
        check_reasons([*(reason.value for reason in Reason), "NEW_REASON"])
