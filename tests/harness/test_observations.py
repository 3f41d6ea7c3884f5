"""Observations that show nothing while nothing can be read, and workers that have no session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from holdfast.specs.model import CaseKind
from tests.harness.play import TOY, Answer, Player, Reply, played, toy_case, verdict_of

ENTRY = {"key": "key-1", "nonce": "nonce-1"}
FAULT = {"outcome": "fault", "detail": "the store cannot be read"}
EMPTY = {"outcome": "ok", "value": {"entry": []}}
REFUSED = {"outcome": "refused", "reason": "DUPLICATE"}
HELD = toy_case("a-put-killed-before-its-commit-left-nothing")
SHELF = toy_case("a-put-key-stands-on-the-shelf", given=(), then=(), values={}, twin=None)
LOOK = {"observe": "state", "expect": {"value": {"entry": {"$count": 0}}}}
# The toy contract, whose test hook takes the store away.
BROKEN = replace(TOY, methods={**TOY.methods, "hold_at": replace(TOY.methods["hold_at"], damages=True)})
BREAK = {"provoke": "hold_at", "args": {"point": "before_commit", "fault": "hold"}}


def beside_a_call(*steps: Mapping[str, Any], look: Mapping[str, Any] = LOOK) -> Any:
    """A case that observes while a call is under way."""
    started = {"start": "put", "as": "first", "args": ENTRY}
    return replace(HELD, given=(), when=(started, look, *steps, {"finish": "first"}), then=())


def test_an_observation_beside_a_call_under_way_may_show_nothing_and_nothing_wrong() -> None:
    case = beside_a_call()
    assert played(case) == "conforms"
    assert played(case, replies={"observe": FAULT}) == "conforms"
    assert played(case, replies={"observe": "hang"}) == "no_verdict:hang"
    half = {"outcome": "ok", "value": {"entry": [ENTRY]}}
    assert played(case, replies={"observe": half}) == "lost_durability"


def test_an_observation_whose_value_is_needed_later_must_show_it() -> None:
    case = beside_a_call(look={"observe": "state", "bind": {"seen": "value.entry"}})
    assert played(case, replies={"observe": FAULT}) == "no_verdict:fault"


def test_after_the_call_an_observation_shows_what_there_is() -> None:
    case = replace(beside_a_call(), then=({"observe": "state"},))
    assert played(case, replies={"^then.0": FAULT}) == "no_verdict:fault"


def test_after_the_caller_was_killed_an_observation_shows_what_there_is() -> None:
    when = ({"start": "put", "as": "first", "args": ENTRY}, {"kill": 0}, {"reopen": 0}, LOOK)
    case = replace(HELD, given=(), when=when, then=())
    assert played(case, replies={"observe": FAULT}) == "no_verdict:fault"


def refused_without_a_store(before: Answer, after: Answer) -> str:
    """The verdict on a refusal after the case took the store away, with these observations around it."""
    call = {"call": "put", "args": ENTRY, "expect": REFUSED}
    case = replace(SHELF, kind=CaseKind.BEHAVIOUR, when=(BREAK, call))
    records = [{"audit_id": "1", "code": "DUPLICATE"}]
    replies: dict[str, Reply] = {
        "^when.1 call put #": REFUSED,
        "^state before": before,
        "^state after": after,
        "^audit before": {"outcome": "ok", "value": {"records": []}},
        "^audit after": {"outcome": "ok", "value": {"records": records}},
    }
    player = Player(replies=replies, contract=BROKEN)
    player.used.update(replies)
    return verdict_of(player.play(case))


@pytest.mark.parametrize(
    ("before", "after", "due"),
    [
        (EMPTY, EMPTY, "conforms"),
        (FAULT, FAULT, "conforms"),
        # It was gone, and it is there: a refusal has made a store.
        (FAULT, EMPTY, "state_leak"),
        (EMPTY, FAULT, "not_reached"),
    ],
)
def test_a_refusal_without_a_store_makes_none(before: Answer, after: Answer, due: str) -> None:
    assert refused_without_a_store(before, after) == due


def test_beside_an_open_commit_a_refusal_is_judged_by_its_answer_where_one_of_two_observations_shows_nothing() -> None:
    started = {"start": "put", "as": "first", "worker": 1, "args": {"key": "key-2", "nonce": "nonce-2"}}
    call = {"call": "put", "args": ENTRY, "expect": REFUSED}
    case = replace(SHELF, kind=CaseKind.BEHAVIOUR, workers=2, when=(started, call, {"finish": "first"}))
    answers: dict[str, Reply] = {"^when.1 call put #": REFUSED, "^audit": {"outcome": "ok", "value": {"records": []}}}
    assert played(case, replies={**answers, "^state before": FAULT, "^state after": EMPTY}) == "conforms"
    assert played(case, replies={**answers, "^state before": EMPTY, "^state after": FAULT}) == "conforms"
    accepted = {"outcome": "accepted", "effect": "new", "value": {"entry": ENTRY}}
    opened: dict[str, Reply] = {"^when.1 call put #": accepted, "^state before": FAULT}
    assert played(case, replies=opened) == "fail_open"


def test_a_question_of_the_case_itself_is_answered_also_without_a_store() -> None:
    case = replace(SHELF, kind=CaseKind.BEHAVIOUR, when=(BREAK, LOOK))
    player = Player(replies={"observe": FAULT}, contract=BROKEN)
    assert verdict_of(player.play(case)) == "no_verdict:fault"


def test_with_a_whole_store_an_observation_around_a_refusal_must_show_it() -> None:
    case = replace(SHELF, kind=CaseKind.BEHAVIOUR, when=({"call": "put", "args": ENTRY, "expect": REFUSED},))
    player = Player(replies={"^state before": FAULT})
    assert verdict_of(player.play(case)) == "no_verdict:fault"


def test_a_worker_that_was_killed_is_neither_closed_nor_given_the_time() -> None:
    case = replace(SHELF, workers=2, when=({"kill": 1}, {"clock": "+1s"}, {"observe": "state"}))
    player = Player()
    assert verdict_of(player.play(case)) == "conforms"
    asked = [(record.request["op"], record.worker) for record in player.records if record.request is not None]
    assert ("close", 0) in asked
    assert ("clock", 0) in asked
    assert ("close", 1) not in asked
    assert ("clock", 1) not in asked


def test_a_worker_that_is_opened_again_after_its_kill_is_closed() -> None:
    case = replace(SHELF, workers=2, when=({"kill": 1}, {"reopen": 1}, {"observe": "state"}))
    player = Player()
    assert verdict_of(player.play(case)) == "conforms"
    assert ("close", 1) in [(record.request["op"], record.worker) for record in player.records if record.request]
