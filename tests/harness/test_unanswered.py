"""`unanswered` on a live worker: a call that is held is found waiting, one that went through is found out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.conformance.run.judge import judge_case
from holdfast.specs.model import CaseKind
from tests.harness.play import SEED, TOY, toy_case, verdict_of
from tests.harness.test_judge import HELD, live
from tests.hostile.verify import HERE

ENTRY = {"key": "key-1", "nonce": "nonce-1"}
ARMED: tuple[Mapping[str, Any], ...] = ({"provoke": "hold_at", "args": {"point": "before_commit", "fault": "hold"}},)
STARTED: tuple[Mapping[str, Any], ...] = ({"start": "put", "as": "first", "args": ENTRY},)
REACHED: tuple[Mapping[str, Any], ...] = ({"reached": "before_commit"},)
WATCHED: tuple[Mapping[str, Any], ...] = ({"unanswered": "first"},)
RELEASED: tuple[Mapping[str, Any], ...] = ({"release": "before_commit"},)


@pytest.mark.parametrize(
    ("steps", "due"),
    [
        ((*ARMED, *STARTED, *REACHED, *WATCHED, *RELEASED), "conforms"),
        ((*STARTED, *WATCHED), "fail_open"),
        ((*ARMED, *STARTED, *REACHED, *RELEASED, *WATCHED), "fail_open"),
    ],
    ids=["held", "never-held", "released"],
)
def test_a_call_is_watched_for_an_answer_that_comes_too_early(
    steps: tuple[Mapping[str, Any], ...], due: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SPECS", str(HERE.parent / "toycontract"))
    finish = {"finish": "first", "expect": {"outcome": "accepted", "effect": "new"}}
    case = replace(toy_case(HELD), kind=CaseKind.RACE, given=steps, when=(finish,), then=())
    (result,) = live(("honest.py",), slow=1.0, cases=[case])
    assert verdict_of(result.judgement) == due
    assert judge_case(TOY, case, result.main, result.twin, seed=SEED) == result.judgement
