"""The gravest finding of a test is its verdict, and what permits where nothing may is of the fail-open class."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.conformance.cases.match import gravity, of_rows
from holdfast.conformance.verdict import Verdict, harm_of
from holdfast.specs import contract_names, load_contract
from holdfast.specs.model import CaseKind
from tests.harness.play import TOY, Player, played, toy_case

SECOND = toy_case("a-second-put-of-a-key-is-refused")
TWICE: Mapping[str, Any] = {"outcome": "ok", "value": {"entry": [{"key": "a", "nonce": "b"}] * 2}}
OTHER_REASON: Mapping[str, Any] = {"outcome": "refused", "reason": "NONCE_CONSUMED"}
AUDITED: Mapping[str, Any] = {"outcome": "ok", "value": {"records": [{"audit_id": "1", "code": "NONCE_CONSUMED"}]}}


# The gravest finding


def test_a_second_effect_behind_a_wrong_reason_fails_open() -> None:
    replies = {r"^when\.0 call": OTHER_REASON, r"audit after": AUDITED, r"^then\.0 observe": TWICE}
    assert played(SECOND, replies=replies) == "fail_open"


def test_a_refusal_for_a_wrong_reason_that_leaves_something_behind_is_a_leak() -> None:
    assert played(SECOND, replies={r"^when\.0 call": OTHER_REASON, r"state after": TWICE}) == "state_leak"


@pytest.mark.parametrize("behind", ["hang", "crash", {"outcome": "indeterminate"}, {"outcome": "fault"}])
def test_what_ends_a_case_behind_a_mild_finding_does_not_hide_it(behind: Any) -> None:
    replies = {r"^when\.0 call": OTHER_REASON, r"audit after": AUDITED, r"^then\.0 observe": behind}
    player = Player(replies=replies)
    judgement = player.play(SECOND)
    judged = next(record for record in player.records if record.n == judgement.n)
    assert (judgement.verdict, judged.answer) == (Verdict.WRONG_REASON, OTHER_REASON)


def test_an_over_refusal_never_becomes_an_effect_too_many() -> None:
    # The put that was refused did not happen, so that the next one is new and no second one.
    step = SECOND.given[0]
    case = replace(SECOND, given=(), when=({**step, "expect": {"outcome": "accepted", "effect": "new"}}, *SECOND.when))
    assert played(case, replies={r"^when\.0 call": OTHER_REASON}) == "over_refusal"


def test_what_came_with_a_wrong_answer_is_not_asked_with() -> None:
    put, state = toy_case("a-put-key-stands-on-the-shelf").when[0], toy_case("a-put-key-stands-on-the-shelf").then[0]
    other = {"outcome": "accepted", "effect": "new", "value": {"entry": {"key": "other", "nonce": "nonce-9"}}}
    bound = {**put, "bind": {"was": "value.entry"}}
    asked = {**state, "expect": {"value": {"entry": {"$not": {"$contains": {"key": "$was.key"}}}}}}
    case = replace(toy_case("a-put-key-stands-on-the-shelf"), when=(bound,), then=(asked,))
    player = Player(replies={r"^when\.0 call": other})
    assert player.play(case).verdict is Verdict.WRONG_REASON
    assert not any("then.0" in record.action for record in player.records)


# What permits, and rows


@pytest.mark.parametrize("kind", list(CaseKind))
def test_what_permits_where_nothing_may_fails_open_whatever_the_case_is_about(kind: CaseKind) -> None:
    state = replace(TOY.methods["state"], permits={"open": (True,)}, result=None, rows={})
    contract = replace(TOY, methods={**TOY.methods, "state": state})
    said: Any = {"outcome": "ok", "value": {"open": True}}
    asked = {"observe": "state", "expect": {"value": {"open": False}}, "else": "wrong_reason"}
    case = replace(toy_case("a-put-key-stands-on-the-shelf"), kind=kind, when=(asked,), then=())
    assert played(case, contract=contract, replies={r"^when\.0": said}) == "fail_open"
    refused = {"outcome": "ok", "value": {"open": False}}
    due = {**asked, "expect": {"value": {"open": True}}}
    assert played(replace(case, when=(due,)), contract=contract, replies={r"^when\.0": refused}) == "wrong_reason"


@pytest.mark.parametrize(
    ("expected", "value", "verdict"),
    [
        ({"allowed": False}, {"allowed": True}, Verdict.FAIL_OPEN),
        ({"": {"allowed": False}}, {"allowed": True}, Verdict.FAIL_OPEN),
        ({"allowed": {"$in": [False]}}, {"allowed": True}, Verdict.FAIL_OPEN),
        ({"allowed": True}, {"allowed": False}, None),
        ({"allowed": True, "other": 1}, {"allowed": True, "other": 2}, None),
        ({"allowed": False}, {"allowed": 1}, None),
        ({"rows": {"$count": 1}}, {"rows": [1, 2]}, Verdict.STATE_LEAK),
        ({"rows.a": 1}, {"rows": {"a": 2}}, Verdict.STATE_LEAK),
        ({"rows": {"$count": 1}}, {"rows": []}, Verdict.LOST_DURABILITY),
        ({"rows": [1, 2]}, {"rows": [1, 3]}, None),
        ({"refused": 2}, {"refused": 1}, Verdict.FAIL_OPEN),
        ({"text": '{"refused":["a"]}'}, {"text": '{"refused":[]}'}, Verdict.FAIL_OPEN),
        ({"refused": []}, {"refused": ["a"]}, None),
        ({"rows": {"$not": {"$contains": {"a": 1}}}}, {"rows": [{"a": 1}]}, Verdict.STATE_LEAK),
    ],
)
def test_what_a_wrong_value_means_is_declared_by_its_method(expected: Any, value: Any, verdict: Verdict | None) -> None:
    assert (
        gravity(
            expected,
            value,
            permits={"allowed": (True,)},
            rows={"rows": "state_leak"},
            refusals=("refused", "text.refused"),
        )
        is verdict
    )


def test_rows_with_a_key_are_compared_by_it() -> None:
    due, other = [{"id": 1, "text": "a"}], [{"id": 2, "text": "a"}]
    assert of_rows(due, [{"id": 1, "text": "b"}], key=("id",)) is None
    assert of_rows(due, other, key=("id",)) is Verdict.FAIL_OPEN
    assert of_rows(due, [], key=("id",), surplus=Verdict.STATE_LEAK) is Verdict.LOST_DURABILITY


# Harm

CLAUSES = [clause for name in contract_names() for clause in load_contract(name).clauses.values()]
FINDINGS = [verdict for verdict in Verdict if verdict.is_open or verdict.is_mild]


@pytest.mark.parametrize("verdict", FINDINGS)
def test_a_harm_is_that_of_what_happened(verdict: Verdict) -> None:
    for clause in CLAUSES:
        if verdict.value not in clause.harm_of:
            assert harm_of(clause, verdict) != clause.harm
        assert harm_of(clause, verdict)


def test_no_refusal_of_what_is_right_is_said_to_make_an_effect() -> None:
    effect = re.compile(r"twice|second effect|\bagain\b|doubl|executed|pays? for two|gets? in|lets? a|accepted")
    said = {clause.id: harm_of(clause, Verdict.OVER_REFUSAL) for clause in CLAUSES}
    assert [name for name, harm in said.items() if effect.search(harm)] == []


def test_a_stuck_key_a_lost_message_and_a_burnt_nonce_have_harms_of_their_own() -> None:
    clauses = {clause.id: clause for clause in CLAUSES}
    stuck = harm_of(clauses["IK-CRASH-1"], Verdict.OVER_REFUSAL)
    lost = harm_of(clauses["MESH-4.7-T8"], Verdict.LOST_DURABILITY)
    letter = harm_of(clauses["CALYX-KEY-1"], Verdict.OVER_REFUSAL)
    burnt = harm_of(clauses["RS4A-S4-1"], Verdict.STATE_LEAK)
    generic = {harm_of(clauses["IK-KEY-3"], verdict) for verdict in FINDINGS}
    assert not {stuck, lost, letter, burnt} & generic
    assert len({stuck, lost, letter, burnt}) == 4


def test_what_was_not_proven_is_reported_as_possible_only() -> None:
    clause = CLAUSES[0]
    said = harm_of(clause, Verdict.NO_VERDICT)
    assert said != clause.harm
    assert clause.harm in said
    assert harm_of(clause, Verdict.CONFORMS) == ""
