"""What a process that runs cases hands to the one that writes the evidence."""

from __future__ import annotations

import execnet

from holdfast.conformance.cases.record import CaseResult, Judgement, Record, Side
from holdfast.conformance.cases.values import Literal
from holdfast.conformance.run.plugin import result_of_text, text_of_result
from holdfast.conformance.verdict import FailureMode, Verdict


def test_a_result_arrives_whole_though_an_exchange_holds_what_an_adapter_answered() -> None:
    asked = {"op": "call", "args": {"decision": Literal({"id": "a", "lone": "\ud800", "deep": [Literal(b=1.5)]})}}
    judgement = Judgement(Verdict.NO_VERDICT, FailureMode.HANG, "no answer", side=Side.TWIN, n=3)
    record = Record(0, "register", 1, asked, {"outcome": "ok"}, {"kind": "done", "detail": ""}, 10, 20)
    result = CaseResult("c/a/b", ("C-1",), judgement, (record,), (), 1.5, ((1, "crash"),), ((0, "text"),))
    carried = execnet.loads(execnet.dumps(text_of_result(result)))
    assert result_of_text(carried) == result
