"""The engine of attacks: some order of the calls explains all answers and what is stored, or the test fails."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import pytest

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.checked import CheckedSession
from holdfast.conformance.attacks.explore import Explorer
from holdfast.conformance.attacks.model import Call, Model, Observation, Outcome
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.record import NonConformance
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.verdict import Verdict
from tests.harness.test_histories import bench as of_a_run

STORED = "state"


def said(words: str, value: Any = None) -> Answer:
    outcome, _, rest = words.partition(" ")
    effect, reason = (rest or None, None) if outcome == "accepted" else (None, rest or None)
    return Answer(outcome, effect, reason, value, None)


class Names(Model[frozenset[str]]):
    """A store of names, each of which is put once."""

    first, chosen, unavailable, exclusive = frozenset[str](), STORED, ("STORE_UNAVAILABLE",), False
    points = ("before", "after")

    def __init__(self, session: SuiteSession) -> None:
        del session

    def call(self, state: frozenset[str], row: str, number: int, count: int = 5) -> Call:
        return Call("put", "issue_nonce", {"name": str(number)}, str(number))

    def refused(self) -> tuple[Call, str]:
        return Call("put", "put", {}), "REQUEST_MALFORMED"

    def outcomes(self, state: frozenset[str], call: Call, seen: Any) -> Iterator[Outcome[frozenset[str]]]:
        effect = "accepted prior" if call.about in state else "accepted new"
        yield Outcome(effect, state | {call.about}, {"name": call.about})

    def observations(self, state: frozenset[str]) -> Iterator[Observation]:
        yield Observation(STORED, {"names": sorted(state)})


@dataclass
class Session:
    """Gives the answers that it was told to give, and shows these names."""

    answers: list[Answer]
    names: Sequence[str] = ()
    sent: list[str] = field(default_factory=list)

    def call(self, method: str, args: Mapping[str, Any], _: int) -> Answer:
        self.sent.append(args["name"])
        return self.answers.pop(0)

    def race(self, calls: Sequence[tuple[str, Mapping[str, Any]]]) -> list[Answer]:
        return [self.call(*each, 0) for each in calls]

    def observe(self, *_: object) -> Mapping[str, Any]:
        return {"names": list(self.names)}

    def start(self, *_: object) -> None:
        """No answer comes."""

    hold = reached = begin_again = start


def playing(*answers: Answer, names: Sequence[str] = ()) -> tuple[Bench, CheckedSession[frozenset[str]]]:
    session = cast("SuiteSession", Session(list(answers), names))
    bench = of_a_run()
    return bench, CheckedSession(bench, session, Names(session))


NEW, PRIOR = said("accepted new", {"name": "1"}), said("accepted prior", {"name": "1"})


@pytest.mark.parametrize(
    ("answers", "verdict"),
    [
        ([NEW, NEW], Verdict.FAIL_OPEN),
        ([PRIOR], Verdict.LOST_DURABILITY),
        ([said("accepted new", {"name": "2"})], Verdict.WRONG_REASON),
        ([Answer("refused", None, "REQUEST_MALFORMED", None, {"why": "no name"})], Verdict.OVER_REFUSAL),
    ],
)
def test_an_answer_that_the_model_does_not_have_is_a_finding(answers: list[Answer], verdict: Verdict) -> None:
    bench, play = playing(*answers)
    call = play.make("put")
    try:
        for _ in answers:
            play.ask(call)
        (judged,) = bench.reported()
    except NonConformance as finding:
        judged = finding.judgement
    assert judged.verdict is verdict
    assert str(answers[-1].value or answers[-1].data) in judged.received


def test_a_wrong_value_of_what_was_done_is_not_reported_once_more_as_lost() -> None:
    bench, play = playing(said("accepted new", {"name": "2"}), names=["1"])
    play.ask(play.make("put"))
    play.compare()
    assert [each.verdict for each in bench.reported()] == [Verdict.WRONG_REASON]


def test_of_several_possible_states_what_is_shown_says_which_it_is() -> None:
    _, play = playing(names=["1"])
    play.states.possible = (frozenset(), frozenset("1"))
    play.must_show(Observation(STORED, {"names": []}), "now")
    assert [*play.states.possible] == [frozenset("1")]


@pytest.mark.parametrize(
    ("second", "verdict"),
    [
        (PRIOR, None),
        (NEW, Verdict.FAIL_OPEN),
        # A store that many processes share is available in a race.
        (said("refused STORE_UNAVAILABLE"), Verdict.OVER_REFUSAL),
    ],
)
def test_some_order_of_a_race_explains_all_answers(second: Answer, verdict: Verdict | None) -> None:
    _, play = playing(second, NEW)
    with pytest.raises(NonConformance) if verdict else contextlib.nullcontext() as found:
        play.race([play.make("put")] * 2)
    assert (found.value.judgement.verdict if found else None) is verdict
    assert verdict or play.states.possible == (frozenset("1"),)


@pytest.mark.parametrize("names", [[], ["1"]])
def test_a_call_without_an_answer_may_have_happened_and_what_is_shown_says_so(names: list[str]) -> None:
    _, play = playing(names=names)
    play.compare(play.make("put"))
    assert play.states.possible == (frozenset(names),)


def test_what_neither_happened_nor_was_there_is_a_finding() -> None:
    _, play = playing(names=["2"])
    with pytest.raises(NonConformance) as found:
        play.compare(play.make("put"))
    assert "another names" in found.value.judgement.detail


def test_what_is_killed_at_a_failpoint_behind_which_all_is_written_has_to_be_there() -> None:
    _, play = playing()
    call = play.make("put")
    play.kill_at("before", call)
    with pytest.raises(NonConformance) as found:
        play.kill_at("after", call)
    assert found.value.judgement.verdict is Verdict.LOST_DURABILITY


def test_the_data_of_a_refusal_are_compared_and_may_have_to_lack_a_member() -> None:
    due = Outcome("refused REUSED", None, {"conflict": "sender", "prefix": None})
    told = [{"conflict": "sender"}, {"conflict": "sender", "prefix": "00"}, {}, None]
    answers = [Answer("refused", None, "REUSED", None, data) for data in told]
    assert [due.fits(each) for each in answers] == [True, False, False, False]


def test_a_relation_that_was_not_met_is_not_proven() -> None:
    met = Explorer({("is stored already", "put"), ("is new", "put")}, floor=0.9)
    met.meet([("is new", "put")])
    with pytest.raises(NonConformance) as found:
        met.conclude()
    assert found.value.judgement.verdict is Verdict.NOT_REACHED
    met.meet([("is stored already", "put")])
    assert met.conclude() == "2 of 2 pairs of a situation and an operation were reached"
