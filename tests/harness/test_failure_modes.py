"""What a suite test says where an adapter says that it failed, and which of its inputs it names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

import execnet
import pytest

from holdfast.conformance.cases.record import CaseResult, Judgement, NonConformance, Record, Side
from holdfast.conformance.cases.values import Literal
from holdfast.conformance.run.judge import judge_case
from holdfast.conformance.run.plugin import result_of_text, text_of_result
from holdfast.conformance.verdict import FailureMode, Verdict
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from tests.harness.play import SEED, TOY, Player, toy_case
from tests.harness.suite_play import bench_of, played, reference

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


# What `Bench.must_be` says of an answer that is not the one that is due.


def refused(reason: str) -> dict[str, Any]:
    return {"outcome": "refused", "reason": reason}


@pytest.mark.parametrize(
    ("answer", "due", "verdict"),
    [
        (refused("FORK"), "refused FORK", "conforms"),
        (refused("FORK"), "refused", "conforms"),
        (refused("FORK"), "refused STALE", "wrong_reason"),
        ({"outcome": "accepted", "effect": "new"}, "refused STALE", "fail_open"),
        ({"outcome": "accepted", "effect": "prior"}, "accepted new", "fail_open"),
        (refused("FORK"), "accepted new", "over_refusal"),
        # It says neither that it was done nor that it was not.
        ({"outcome": "indeterminate"}, "refused STALE", "indeterminate"),
        ({"outcome": "indeterminate"}, "accepted new", "indeterminate"),
    ],
)
def test_an_answer_that_is_not_due_has_the_verdict_of_its_outcome(
    answer: dict[str, Any], due: str, verdict: str
) -> None:
    words = " ".join(str(part) for part in answer.values())
    bench, last = bench_of("m5-log", "must-be", lambda: lambda *_: answer), Judgement(Verdict.CONFORMS)
    try:
        bench.must_be(words, due, "a call")
    except NonConformance as finding:
        last = finding.judgement
    assert bench.gravest(last).verdict.value == verdict


# What a process that runs cases hands to the one that writes the evidence.


def test_a_result_arrives_whole_though_an_exchange_holds_what_an_adapter_answered() -> None:
    asked = {"op": "call", "args": {"decision": Literal({"id": "a", "lone": "\ud800", "deep": [Literal(b=1.5)]})}}
    judgement = Judgement(Verdict.NO_VERDICT, FailureMode.HANG, "no answer", side=Side.TWIN, n=3)
    record = Record(0, "register", 1, asked, {"outcome": "ok"}, {"kind": "done", "detail": ""}, 10, 20)
    result = CaseResult("c/a/b", ("C-1",), judgement, (record,), (), 1.5, ((1, "crash"),), ((0, "text"),))
    carried = execnet.loads(execnet.dumps(text_of_result(result)))
    assert result_of_text(carried) == result
