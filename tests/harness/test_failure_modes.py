"""What a suite test says where an adapter says that it failed, and which of its inputs it names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from holdfast.conformance.cases.record import Side
from holdfast.conformance.run.judge import judge_case
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from tests.harness.play import SEED, TOY, Player, toy_case
from tests.harness.suite_play import played, reference

BYTES = "test_constructed_defects_of_bytes"
MESH = "test_constructed_metas_with_a_defect_are_refused"


def faulting(contract: str, after: int) -> Callable[[], Any]:
    """Sessions of the reference that answer `fault` from a call on."""

    def make() -> Any:
        answer, calls = reference(contract), 0

        def one(method: str, args: Mapping[str, Any]) -> dict[str, Any]:
            nonlocal calls
            calls += 1
            return {"outcome": "fault", "detail": "disk on fire"} if calls > after else answer(method, args)

        return one

    return make


def test_a_fault_ends_a_suite_test_as_what_it_is() -> None:
    judgement, records = played("jcs", BYTES, faulting("jcs", 3))
    assert (judgement.verdict, judgement.silence) == (Verdict.NO_VERDICT, FailureMode.FAULT)
    assert "disk on fire" in judgement.detail
    assert judgement.side is Side.MAIN
    assert judgement.n is not None
    assert (records[judgement.n].answer or {})["outcome"] == "fault"


def test_a_generated_test_names_the_input_that_was_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fingerprinter, "canonical", lambda _, document: json.dumps(json.loads(document)).encode())
    judgement, records = played("mesh-delivery", MESH, lambda: reference("mesh-delivery"))
    assert judgement.verdict is Verdict.FAIL_OPEN, judgement.detail
    assert judgement.n is not None
    judged = records[judgement.n]
    assert (judged.answer or {})["outcome"] == "accepted"
    first = next(iter((judged.request or {})["args"].values()))
    assert str(first)[:40] in judgement.detail


def test_a_repeated_call_says_which_of_them_it_was() -> None:
    put = {"call": "put", "args": {"key": "key-${i}", "nonce": "nonce-${i}"}, "repeat": 4, "label": "many"}
    case = toy_case("a-put-key-stands-on-the-shelf", given=(), when=(put,), then=())
    player = Player(replies={"3 of 4": {"outcome": "refused", "reason": "DUPLICATE"}})
    judgement = player.play(case)
    assert judgement.verdict is Verdict.OVER_REFUSAL
    assert "call 3 of 4" in judgement.detail
    assert judgement.n is not None
    assert (player.records[judgement.n].request or {})["args"]["key"] == "key-2"


def test_a_side_without_a_worker_left_is_judged_by_the_one_that_met_the_end() -> None:
    case = toy_case("a-second-put-of-a-key-is-refused")
    twin = Player(replies={"when.0 call": "crash"})
    lived = twin.play(case, Side.TWIN)
    judgement = judge_case(TOY, case, (), twin.records, seed=SEED)
    assert judgement == lived
    assert judgement.side is Side.TWIN
