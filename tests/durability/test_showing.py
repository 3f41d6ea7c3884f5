"""Facts that the harness reads in the store itself: behind its owner, and none of a store that is not whole."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from holdfast.conformance.durability.subject import Showing
from holdfast.conformance.durability.workload import answers_of, scopes_of
from holdfast.conformance.faults.subject import SubjectError, SubjectPartlyError
from holdfast.specs import load_contract

CONTRACT = load_contract("mesh-delivery")
ROW = {"client_message_id": "c", "request_fingerprint": {"blob": "00"}, "payload": {"blob": "01"}}
WHOLE: Mapping[str, Any] = {
    "exists": True,
    "error": None,
    "integrity": "ok",
    "rows": {"outbox": [{**ROW, "broker_message_id": None}]},
}


class Asked:
    """What an adapter answers, and in which order it was asked."""

    def __init__(self, inspected: Mapping[str, Any], *, refuses: bool = False) -> None:
        self.order: list[str] = []
        self.inspected, self.refuses = inspected, refuses
        spec = CONTRACT.workloads["delivering"]
        scopes = scopes_of(spec, contract=CONTRACT.name, seed="a")
        self.showing = Showing(CONTRACT, spec, scopes, frozenset(), self.value, self.run)

    def value(self, method: str, args: Mapping[str, Any]) -> Any:
        assert args == {}
        self.order.append(method)
        if self.refuses:
            raise SubjectError("no")
        return {"rows": [{"client_message_id": "d", "last_error": "409"}]}

    def run(self, talk: Any) -> Any:
        talk.close()
        self.order.append("inspected")
        return None, self.inspected


def test_the_store_is_read_once_behind_a_question_to_its_owner() -> None:
    asked = Asked(WHOLE)
    assert asked.showing.facts(lambda: True) == {
        "dead d client_message_id": "d",
        "row c request_fingerprint": '={"blob":"00"}',
        "row c payload": '={"blob":"01"}',
        "outcome c broker_message_id": "=null",
    }
    assert asked.order == ["failed", "inspected"]
    asked.showing.begin(turned=True)
    asked.showing.facts(lambda: True)
    assert asked.order[2:] == ["failed", "inspected"]


@pytest.mark.parametrize("broken", [{"exists": False}, {"error": "locked"}, {"integrity": "row 1 missing"}])
def test_a_store_that_is_gone_or_not_whole_shows_nothing(broken: Mapping[str, Any]) -> None:
    with pytest.raises(SubjectPartlyError) as raised:
        Asked({**WHOLE, **broken}).showing.facts(lambda: True)
    assert raised.value.reported == {"dead d client_message_id": "d"}


def test_an_owner_that_shows_nothing_is_asked_once_and_its_store_is_not_read() -> None:
    asked = Asked(WHOLE, refuses=True)
    with pytest.raises(SubjectError):
        asked.showing.facts(lambda: True)
    assert asked.order == ["failed"]


def test_the_broker_that_is_played_knows_the_ids_of_every_operation() -> None:
    spec = CONTRACT.workloads["delivering"]
    scopes = scopes_of(spec, contract=CONTRACT.name, seed="a")
    answers = answers_of(spec, scopes)
    assert {answers[scope.resolve("$taken")]["status"] for scope in scopes.values()} == {200}
    assert {answers[scope.resolve("$rejected")]["status"] for scope in scopes.values()} == {409}
    assert len(answers) == 3 * len(scopes)
