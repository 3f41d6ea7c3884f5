"""What each answer means against each expectation: the table behind every verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from holdfast.conformance.cases.record import Judgement, Side, gravest_of
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Case, Method, Twin
from holdfast.specs.model import CaseKind, Harming
from holdfast.specs.schema import Validator
from tests.harness.play import TOY, Player, Reply, played, toy_case, verdict_of

SILENCES = ("crash", "hang", "garbage", "eof", "missing")
ENTRY = {"key": "key-1", "nonce": "nonce-1"}
NEW = {"outcome": "accepted", "effect": "new", "value": {"entry": ENTRY}}
PRIOR = {**NEW, "effect": "prior"}
REFUSED = {"outcome": "refused", "reason": "DUPLICATE"}
OTHER = {"outcome": "refused", "reason": "NONCE_CONSUMED"}
UNKNOWN = {"outcome": "indeterminate"}
FAULT = {"outcome": "fault", "detail": "disk on fire"}
UNSUPPORTED = {"outcome": "unsupported", "capability": "put"}
OK = {"outcome": "ok"}

# The toy contract, but a put may also report an earlier result, refusals may carry data, and a shelf may be numbered.
PUT: Method = replace(
    TOY.methods["put"],
    effects=("new", "prior"),
    refusal_data=Validator({"type": "object", "required": ["winner"]}),
)
WIDE = replace(TOY, methods={**TOY.methods, "put": PUT})


def one_call(expect: Mapping[str, Any] | None, kind: CaseKind = CaseKind.BEHAVIOUR, **step: Any) -> Case:
    """A case of one call."""
    call = {"call": "put", "args": ENTRY, **step} | ({} if expect is None else {"expect": expect})
    return toy_case("a-put-key-stands-on-the-shelf", kind=kind, given=(), when=(call,), then=(), values={})


ACCEPT_NEW = {"outcome": "accepted", "effect": "new"}
ACCEPT_PRIOR = {"outcome": "accepted", "effect": "prior"}
REFUSE = {"outcome": "refused", "reason": "DUPLICATE"}
REFUSE_EITHER = {"outcome": "refused", "reason": ["DUPLICATE", "NONCE_CONSUMED"]}
EITHER = {"any": [ACCEPT_PRIOR, REFUSE]}
UNSURE = {"outcome": "indeterminate"}

MADE_UP = {"outcome": "refused", "reason": "MADE_UP"}
MALFORMED_PUT = {"outcome": "refused", "reason": "REQUEST_MALFORMED"}
# What is expected, and what each answer to it comes to.
ANSWERS = (NEW, PRIOR, REFUSED, OTHER, MALFORMED_PUT, UNKNOWN)
TABLE: list[tuple[Mapping[str, Any] | None, str]] = [
    #                 new          prior        refused      other        malformed    unknown
    (None,           "conforms     conforms     over_refusal over_refusal over_refusal indeterminate"),
    (ACCEPT_NEW,     "conforms     over_refusal over_refusal over_refusal over_refusal indeterminate"),
    (ACCEPT_PRIOR,   "fail_open    conforms     over_refusal over_refusal over_refusal indeterminate"),
    (REFUSE,         "fail_open    fail_open    conforms     wrong_reason wrong_reason indeterminate"),
    (REFUSE_EITHER,  "fail_open    fail_open    conforms     conforms     wrong_reason indeterminate"),
    (EITHER,         "fail_open    conforms     conforms     over_refusal over_refusal indeterminate"),
    (UNSURE,         "wrong_reason wrong_reason wrong_reason wrong_reason wrong_reason conforms"),
]  # fmt: skip
MORE: tuple[tuple[Mapping[str, Any], Mapping[str, Any] | str, str], ...] = (
    (REFUSE, {**REFUSED, "detail": "text that is not judged"}, "conforms"),
    (REFUSE, MADE_UP, "no_verdict:garbage"),
    ({**ACCEPT_NEW, "value": {"entry.key": "key-1"}}, NEW, "conforms"),
    ({**ACCEPT_NEW, "value": {"entry.key": "key-2"}}, NEW, "wrong_reason"),
    ({**REFUSE, "data": {"winner": 1}}, {**REFUSED, "data": {"winner": 1}}, "conforms"),
    ({**REFUSE, "data": {"winner": 1}}, {**REFUSED, "data": {"winner": 2}}, "wrong_reason"),
    ({**REFUSE, "data": {"winner": 1}}, {**REFUSED, "data": {"winner": True}}, "wrong_reason"),
    ({**REFUSE, "data": {"winner": 1}}, REFUSED, "wrong_reason"),
    (REFUSE, {**REFUSED, "data": {"loser": 1}}, "no_verdict:garbage"),
    (ACCEPT_NEW, {**NEW, "value": {"entry": {"key": "key-1"}}}, "no_verdict:garbage"),
    (ACCEPT_NEW, {**NEW, "value": {"entry": {**ENTRY, "key": "NOT A KEY"}}}, "no_verdict:garbage"),
    (ACCEPT_NEW, {"outcome": "accepted", "effect": "new"}, "no_verdict:garbage"),
    (REFUSE, "shrug", "no_verdict:missing"),
    # A worker that is to die dies by itself.
    ({"outcome": "died"}, "crash", "conforms"),
    ({"outcome": "died"}, "eof", "conforms"),
    ({"outcome": "died"}, "hang", "no_verdict:hang"),
    ({"outcome": "died"}, NEW, "not_reached"),
)


def audited(answer: Mapping[str, Any]) -> dict[str, Reply]:
    """The replies of an implementation that answers so and leaves its state as it should be."""
    refused = answer["outcome"] == "refused"
    records = [{"audit_id": "1", "code": "X"}] if refused else []
    return {
        "^when.0 call put #": answer,
        "^state ": {"outcome": "ok", "value": {"entry": []}},
        "^audit before": {"outcome": "ok", "value": {"records": []}},
        "^audit after": {"outcome": "ok", "value": {"records": records}},
    }


def verdict(expect: Mapping[str, Any] | None, answer: Mapping[str, Any] | str, case: Case | None = None) -> str:
    """The verdict of one call with that expectation and that answer."""
    replies = audited(answer) if isinstance(answer, Mapping) else {"^when.0 call put #": answer}
    player = Player(replies=replies, contract=WIDE)
    player.used.update(replies)
    return verdict_of(player.play(one_call(expect) if case is None else case))


NAMING = replace(
    TOY,
    methods={**TOY.methods, "put": replace(PUT, refusal_data=Validator({"type": "object"}))},
    reasons={name: replace(reason, data=("field",)) for name, reason in TOY.reasons.items()},
)


@pytest.mark.parametrize(
    ("field", "apart", "due"),
    [
        ("key", "key", "conforms"),
        ("/key", "key", "conforms"),
        ("$.key", "key", "conforms"),
        ("key.inner[0]", "key", "conforms"),
        ("nonce", "key", "wrong_reason"),
        ("ey", "key", "wrong_reason"),
        ("key-1", "key", "wrong_reason"),
        ("", "key", "wrong_reason"),
        ("nonce", None, "conforms"),
        ("winner", None, "wrong_reason"),
        (None, "key", "conforms"),
    ],
)
def test_a_refusal_names_the_field_that_its_twin_changes_or_none(
    field: str | None, apart: str | None, due: str
) -> None:
    twin = None if apart is None else Twin(step="it", change={f"args.{apart}": "key-2"}, expect=ACCEPT_NEW)
    case = replace(one_call(REFUSE, CaseKind.REFUSAL, label="it"), twin=twin)
    player = Player(replies=audited({**REFUSED, "data": {} if field is None else {"field": field}}), contract=NAMING)
    player.used.update(player.replies)
    assert verdict_of(player.play(case)) == due


def test_a_field_is_not_judged_where_its_reason_does_not_carry_it() -> None:
    twin = Twin(step="it", change={"args.key": "key-2"}, expect=ACCEPT_NEW)
    case = replace(one_call(REFUSE, CaseKind.REFUSAL, label="it"), twin=twin)
    replies = audited({**REFUSED, "data": {"winner": 1, "field": "winner"}})
    player = Player(replies=replies, contract=WIDE)
    assert verdict_of(player.play(case)) == "conforms"


def _label(value: object) -> str | None:
    """Test ids must be the same in every process of xdist, so nothing with an address in it."""
    return None if callable(value) or " at 0x" in str(value) else str(value)


@pytest.mark.parametrize(("expect", "due"), TABLE, ids=_label)
def test_an_answer_against_an_expectation(expect: Any, due: str) -> None:
    assert " ".join(verdict(expect, answer) for answer in ANSWERS) == " ".join(due.split())
    for silence in SILENCES:
        assert verdict(expect, silence) == f"no_verdict:{silence}"
    assert verdict(expect, FAULT) == "no_verdict:fault"
    assert verdict(expect, UNSUPPORTED) == verdict(expect, OK) == "no_verdict:garbage"


@pytest.mark.parametrize(("expect", "answer", "due"), MORE, ids=lambda value: str(value)[:60])
def test_what_an_answer_holds_against_an_expectation(expect: Any, answer: Any, due: str) -> None:
    assert verdict(expect, answer) == due


@pytest.mark.parametrize(
    ("kind", "said", "due"),
    [
        (CaseKind.REFUSAL, {}, "fail_open"),
        (CaseKind.RACE, {}, "fail_open"),
        (CaseKind.DURABILITY, {}, "lost_durability"),
        (CaseKind.BEHAVIOUR, {}, "wrong_reason"),
        *((CaseKind.BEHAVIOUR, {"else": each}, each) for each in get_args(Harming)),
    ],
)
def test_a_wrong_value_means_what_the_step_or_the_kind_of_the_case_says_and_an_outcome_says_it_itself(
    kind: CaseKind, said: Any, due: str
) -> None:
    expect = {**ACCEPT_NEW, "value": {"entry.key": "other"}}
    assert verdict(expect, NEW, one_call(expect, kind, **said)) == due
    assert verdict(REFUSE, NEW, one_call(REFUSE, kind, **said)) == "fail_open"


def test_unsupported_counts_only_if_hello_said_so() -> None:
    case = one_call(ACCEPT_NEW)
    replies = {"call put": UNSUPPORTED}
    assert played(case, replies=replies) == "no_verdict:garbage"
    assert played(case, replies=replies, not_claimed={"put": "later"}) == "unsupported"


@pytest.mark.parametrize("request_", ["open worker 0", "clock", "close worker 0"])
def test_a_session_that_cannot_be_held_shows_nothing(request_: str) -> None:
    case = replace(one_call(ACCEPT_NEW), when=({"clock": "+1s"}, *one_call(ACCEPT_NEW).when))
    for answer, due in ((REFUSED, "not_reached"), (FAULT, "no_verdict:fault"), ("hang", "no_verdict:hang")):
        assert played(case, replies={request_: answer}) == due
    # Nor is one supported less than hello said.
    replies = {request_: {"outcome": "unsupported", "capability": "clock"}}
    assert played(case, replies=replies) == "no_verdict:garbage"
    assert played(case, replies=replies, not_claimed={"clock": "system clock only"}) == "unsupported"


AGAIN = toy_case("a-second-put-of-a-key-is-refused")


def test_what_would_be_fail_open_in_a_preparation_is_not_reached() -> None:
    given = ({"call": "put", "args": "$first"}, {"call": "put", "args": "$first", "expect": REFUSE})
    case = replace(AGAIN, given=given)
    assert played(case) == "conforms"
    judgement = Player(replies={"^given.1 call": NEW}).play(case)
    assert verdict_of(judgement) == "not_reached"
    assert "preparation" in judgement.detail


def rows(change: Any) -> Reply:
    """An observation, changed."""

    def reply(honest: Mapping[str, Any]) -> Mapping[str, Any]:
        ((name, found),) = honest["value"].items()
        return {"outcome": "ok", "value": {name: change(found)}}

    return reply


RECORD = {"audit_id": "9", "code": "X"}


@pytest.mark.parametrize(
    ("pattern", "change"),
    [
        ("^state after", lambda _: []),
        ("^state after", lambda found: [*found, {"key": "leak", "nonce": "leak"}]),
        ("^state after", lambda found: [{**found[0], "nonce": "another"}]),
        ("^state before", lambda _: []),
        ("^audit after", lambda _: []),
        ("^audit after", lambda found: [*found, RECORD]),
        ("^audit before", lambda _: [RECORD]),
        ("^audit before", lambda _: [RECORD, RECORD]),
    ],
)
def test_a_refusal_that_changes_more_than_its_audit_leaks(pattern: str, change: Any) -> None:
    judgement = Player(replies={pattern: rows(change)}).play(AGAIN)
    assert verdict_of(judgement) == "state_leak"
    assert judgement.detail.startswith("refused with DUPLICATE")


def test_an_audit_record_that_is_rewritten_leaks() -> None:
    given = (*AGAIN.given, {"call": "put", "args": "$first", "expect": REFUSE})
    assert played(replace(AGAIN, given=given)) == "conforms"
    rewritten = rows(lambda found: [{**found[0], "code": "REWRITTEN"}, *found[1:]])
    assert played(replace(AGAIN, given=given), replies={r"^audit after \[when": rewritten}) == "state_leak"


@pytest.mark.parametrize(("left", "right"), [(True, 1), (0, False)])
def test_an_audit_record_in_which_a_boolean_became_a_number_leaks(left: Any, right: Any) -> None:
    loose = replace(TOY.methods["audit"], result=None)
    contract = replace(TOY, methods={**TOY.methods, "audit": loose})
    replies = {"^audit before": rows(lambda _: [left]), "^audit after": rows(lambda _: [right, RECORD])}
    assert played(AGAIN, replies=replies, contract=contract) == "state_leak"


@pytest.mark.parametrize("audited_", [True, False])
def test_a_method_whose_refusals_are_not_audited_leaves_no_record(audited_: bool) -> None:
    put = replace(TOY.methods["put"], audited=audited_)
    contract = replace(TOY, methods={**TOY.methods, "put": put})
    assert played(AGAIN, contract=contract) == ("conforms" if audited_ else "state_leak")


@pytest.mark.parametrize("reply", [FAULT, "hang", "garbage", {"outcome": "ok", "value": {}}], ids=_label)
@pytest.mark.parametrize("pattern", ["^state before", "^audit before", "^state after", "^audit after"])
def test_a_refusal_that_cannot_be_observed_is_no_refusal(pattern: str, reply: Any) -> None:
    due = {"hang": "hang"}.get(str(reply), "fault" if reply is FAULT else "garbage")
    assert played(AGAIN, replies={pattern: reply}) == f"no_verdict:{due}"


@pytest.mark.parametrize(
    ("answer", "due"), [(REFUSED, "over_refusal"), (OTHER, "over_refusal"), (FAULT, "no_verdict:fault")], ids=str
)
def test_a_twin_that_is_not_accepted_takes_the_proof_from_its_refusal(answer: Any, due: str) -> None:
    judgement = Player(replies={"^when.0 call put #": answer}).play(AGAIN, Side.TWIN)
    assert verdict_of(judgement) == due
    if due == "over_refusal":
        assert "the refusal proves nothing" in judgement.detail


def test_an_observation_that_does_not_see_the_twin_is_blind() -> None:
    def nothing(_: Any) -> Any:
        return {"outcome": "ok", "value": {"entry": []}}

    judgement = Player(replies={"^state ": nothing}).play(AGAIN, Side.TWIN)
    assert verdict_of(judgement) == "not_reached"
    assert "blind" in judgement.detail


def test_a_twin_ends_at_its_step() -> None:
    player = Player()
    assert verdict_of(player.play(AGAIN, Side.TWIN)) == "conforms"
    assert not [record for record in player.records if record.action.startswith("then")]


def test_a_twin_never_changes_the_case_itself() -> None:
    again = {"restart": 0, "label": "again", "config": {"ttl_seconds": "60"}}
    put = {"call": "put", "args": ENTRY, "label": "spend", "expect": {"outcome": "accepted"}}
    twin = Twin("again", {"config.ttl_seconds": "600"}, {"outcome": "accepted"}, "spend")
    case = replace(AGAIN, given=(), when=(again, put), then=(), twin=twin, values={})
    main, twins = Player(), Player()
    assert verdict_of(main.play(case)) == verdict_of(twins.play(case, Side.TWIN)) == "conforms"
    reopened = [
        r.request for r in twins.records if r.request and r.request.get("state") == "existing" and r.worker == 0
    ]
    assert reopened[0]["config"] == {"ttl_seconds": "600"}
    assert again["config"] == {"ttl_seconds": "60"}


def test_a_twin_without_a_surface_is_reopened_without_one() -> None:
    twin = replace(AGAIN.twin, step="open", change={"open.surface": "absent"}, end="again")  # type: ignore[type-var]
    again = {"call": "put", "args": ENTRY, "label": "again", "expect": REFUSE}
    case = replace(AGAIN, given=({"restart": 0},), when=(again,), then=(), twin=twin, values={})
    player = Player()
    player.play(case, Side.TWIN)
    opened = [r.request["surface"] for r in player.records if r.request and r.request["op"] == "open" and r.worker == 0]
    assert opened == ["absent", "absent"]


MALFORMED = toy_case("an-empty-key-is-malformed")
RACE = toy_case("one-of-two-concurrent-puts-wins")
SURVIVES = toy_case("an-acknowledged-put-survives-a-kill")
HELD = toy_case("a-put-killed-before-its-commit-left-nothing")
WAITS = replace(
    HELD,
    kind=CaseKind.RACE,
    given=({"start": "put", "as": "first", "args": ENTRY}, {"unanswered": "first"}),
    when=({"finish": "first", "expect": ACCEPT_NEW},),
    then=(),
)
# It binds what the answer lacks.
ASKS = one_call(ACCEPT_NEW, bind={"n": "value.entry.colour"})
# What comes of a case in which some requests are answered otherwise: of a preparation, of a malformed call, of a race
# by its winners and losers, of what was acknowledged before a kill, of a stop point, and of a call that must wait.
PLAYED: list[tuple[Case, list[tuple[Mapping[str, Reply], str]]]] = [
    (AGAIN, [
        ({}, "conforms"),
        ({"^given.0 ": REFUSED}, "not_reached"),
        ({"^given.0 ": FAULT}, "no_verdict:fault"),
        ({"^given.0 ": "crash"}, "no_verdict:crash"),
        ({"^given.0 ": {**NEW, "value": {}}}, "no_verdict:garbage"),
    ]),
    (ASKS, [({}, "not_reached")]),
    (MALFORMED, [
        ({}, "conforms"),
        ({"^when.0 call put #": NEW}, "fail_open"),
        ({"^when.0 call put #": REFUSED}, "wrong_reason"),
    ]),
    (RACE, [
        ({}, "conforms"),
        ({"race put #0": NEW, "race put #1": NEW}, "fail_open"),
        ({"race put #0": REFUSED, "race put #1": REFUSED}, "over_refusal"),
        ({"race put #1": OTHER}, "wrong_reason"),
        ({"race put #1": FAULT}, "no_verdict:fault"),
        ({"race put #1": "hang"}, "no_verdict:hang"),
        ({"race put #0": "crash"}, "no_verdict:crash"),
        ({"race put #1": UNKNOWN}, "indeterminate"),
        ({"race put #0": UNKNOWN, "race put #1": UNKNOWN}, "indeterminate"),
        ({"race put #1": UNSUPPORTED}, "no_verdict:garbage"),
        ({"race put #1": MADE_UP}, "no_verdict:garbage"),
    ]),
    (SURVIVES, [
        ({}, "conforms"),
        ({"reopen": REFUSED}, "lost_durability"),
        ({"reopen": FAULT}, "no_verdict:fault"),
        ({"reopen": "hang"}, "no_verdict:hang"),
        ({"^then.0": rows(lambda _: [])}, "lost_durability"),
        ({"^then.1 call put #": NEW}, "fail_open"),
        ({"kill": "failed"}, "not_reached"),
    ]),
    (HELD, [
        ({"reached": "failed"}, "not_reached"),
        ({"^then.0": rows(lambda _: []), "^then.1": NEW}, "conforms"),
    ]),
    (replace(WAITS, given=WAITS.given[:1]), [
        ({}, "conforms"),
        ({"finish": REFUSED}, "over_refusal"),
        ({"finish": "crash"}, "no_verdict:crash"),
        ({"finish": MADE_UP}, "no_verdict:garbage"),
    ]),
    (WAITS, [
        ({}, "conforms"),
        # Rightly answered, and too early: that is judged where the answer is, not as a preparation that failed.
        ({"unanswered": "failed"}, "fail_open"),
        # Wrongly answered: whether early or late, the answer says what is wrong.
        ({"unanswered": "failed", "finish": REFUSED}, "over_refusal"),
        ({"unanswered": "failed", "finish": "crash"}, "no_verdict:crash"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("case", "replies", "due"), [(case, *row) for case, rows_ in PLAYED for row in rows_], ids=_label
)
def test_an_answer_otherwise_than_by_the_shelf(case: Case, replies: Mapping[str, Reply], due: str) -> None:
    assert played(case, replies=replies) == due


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ({"call": "put", "args": ENTRY, "malformed": True}, "fit the schema though marked malformed"),
        ({"call": "put", "args": {"key": ""}}, "do not fit the schema of the method"),
        ({"call": "put", "args": {"key": "$nobody", "nonce": "n"}}, "unknown name"),
        ({"observe": "state", "args": {"surprise": 1}}, "do not fit the schema of the method"),
    ],
)
def test_a_case_that_has_no_meaning_is_a_fault_of_the_kit(step: Any, words: str) -> None:
    judgement = Player().play(replace(MALFORMED, given=(), when=(step,), then=(), values={}))
    assert verdict_of(judgement) == "kit_fault"
    assert words in judgement.detail


def test_a_twin_whose_step_is_never_reached_is_a_fault_of_the_kit() -> None:
    twin = replace(AGAIN.twin, end="nowhere")  # type: ignore[type-var]
    assert played(replace(AGAIN, twin=twin, then=()), Side.TWIN, replies={"^when.0 call": NEW}) in {
        "kit_fault",
        "fail_open",
    }


def test_two_winners_with_different_values_are_two_winners() -> None:
    when = {**RACE.when[0], "expect": {**RACE.when[0]["expect"], "one": {**ACCEPT_NEW, "value": {"entry.key": "k-0"}}}}
    entry = {"key": "k-1", "nonce": "n-1"}
    replies = {
        "race put .*#0": {**NEW, "value": {"entry": {**entry, "key": "k-0"}}},
        "race put .*#1": {**NEW, "value": {"entry": entry}},
    }
    assert played(replace(RACE, when=(when,), then=()), replies=replies) == "fail_open"


TOLD = {"outcome": "refused", "reason": "DUPLICATE", "data": {"winner": "$winner.value.entry.nonce"}}


@pytest.mark.parametrize(
    ("replies", "due"),
    [
        ({"#0": NEW, "#1": {**REFUSED, "data": {"winner": "nonce-1"}}}, "conforms"),
        ({"#0": NEW, "#1": {**REFUSED, "data": {"winner": "nonce-2"}}}, "fail_open"),
        ({"#0": NEW, "#1": REFUSED}, "fail_open"),
        # Without a winner there is no answer to compare with, and a loser is still judged as a loser.
        ({"#0": REFUSED, "#1": REFUSED}, "over_refusal"),
        ({"#0": REFUSED, "#1": UNKNOWN}, "indeterminate"),
        ({"#0": REFUSED, "#1": OTHER}, "wrong_reason"),
    ],
    ids=_label,
)
def test_what_a_loser_is_told_is_what_the_winner_was_told(replies: Mapping[str, Any], due: str) -> None:
    when = {**RACE.when[0], "expect": {"one": ACCEPT_NEW, "rest": [TOLD]}}
    case = replace(RACE, when=(when,), then=())
    player = Player(replies={f"race put .*{name}": reply for name, reply in replies.items()}, contract=WIDE)
    assert verdict_of(player.play(case)) == due


def test_a_race_in_which_nothing_overlapped_is_not_reached() -> None:
    assert played(RACE, apart=1000, takes=10) == "not_reached"
    assert played(RACE, apart=10, takes=1000) == "conforms"


def test_two_winners_are_open_whether_they_overlapped_or_not() -> None:
    assert played(RACE, apart=1000, takes=10, replies={"race put": NEW}) == "fail_open"


@pytest.mark.parametrize(
    ("check", "due"),
    [
        ({"equals": 7}, "conforms"),
        ({"equals": 8}, "fail_open"),
        ({"differs": 8}, "conforms"),
        ({"differs": 7}, "fail_open"),
        ({"matches": {"$in": [6, 7]}}, "conforms"),
        ({"matches": {"$in": [6]}}, "fail_open"),
        ({"equals": 8, "else": "state_leak"}, "state_leak"),
    ],
    ids=_label,
)
def test_a_plain_check_compares_values(check: Mapping[str, Any], due: str) -> None:
    case = replace(AGAIN, given=(), when=({"check": "$seven", **check},), then=(), values={"seven": 7})
    assert played(case) == due


def test_a_repeated_call_must_meet_the_expectation_every_time() -> None:
    args = {"key": "key-${i}", "nonce": "nonce-${i}"}
    case = one_call(ACCEPT_NEW, repeat=3, args=args)
    player = Player()
    assert verdict_of(player.play(case)) == "conforms"
    assert [r.request["args"]["key"] for r in player.records if r.request and "args" in r.request] == [
        "key-0", "key-1", "key-2",
    ]  # fmt: skip
    assert played(one_call(ACCEPT_NEW, repeat=2)) == "over_refusal"


def test_the_gravest_finding_of_a_test_is_its_judgement_and_what_was_found_weighs_more_than_what_was_not_proven() -> (
    None
):
    def gravest(*names: str) -> str:
        return gravest_of([Judgement(Verdict(name)) for name in names]).verdict.value

    assert gravest("wrong_reason", "fail_open", "conforms") == "fail_open"
    assert gravest("lost_durability", "over_refusal", "fail_open") == "fail_open"
    assert gravest("wrong_reason", "not_reached") == "wrong_reason"
    assert gravest("state_leak", "no_verdict") == "state_leak"
    assert gravest("fail_open", "kit_fault") == "kit_fault"
    first, second = (Judgement(Verdict.WRONG_REASON, detail=text) for text in ("one", "two"))
    assert gravest_of((first, second)) is first
