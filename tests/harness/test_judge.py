"""Judging again: the records of a live run give its judgement, and changed records never a better one."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import structs

from holdfast.conformance.cases.record import CaseResult, Record
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.judge import judge_case
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.verdict import Verdict
from holdfast.specs import Case
from holdfast.specs.model import Opening
from tests.harness.play import SEED, TOY, both_sides, toy_case
from tests.hostile.verify import ADAPTERS, HERE, adapter, temp_folder

HELD = "a-put-killed-before-its-commit-left-nothing"


@pytest.fixture(autouse=True)
def toy_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Adapters and engines find the toy contract."""
    monkeypatch.setenv("HOLDFAST_SPECS", str(HERE.parent / "toycontract"))


def live(command: tuple[str, ...], *, slow: float, cases: Sequence[Case]) -> Iterator[CaseResult]:
    """What an adapter shows."""
    with temp_folder() as folder:
        settings = RunSettings(command, ("toy",), seed=SEED, slow=slow, workdir=str(folder))
        with Engine(settings) as engine:
            for case in cases:
                yield engine.run_case(TOY, case)


@pytest.mark.parametrize(
    ("words", "slow"),
    [
        (("honest",), 1.0),
        (("forgets",), 1.0),
        (("leaks",), 1.0),
        (("no_audit",), 1.0),
        (("blind",), 1.0),
        (("accept_all",), 0.2),
        (("refuse_all",), 0.2),
        (("crash_instead_of_refusing",), 1.0),
        (("undeclared_reason",), 1.0),
        (("fault_instead_of_refusing",), 1.0),
        (("claims_little",), 1.0),
    ],
    ids=str,
)
def test_the_records_of_a_live_run_are_judged_as_the_run_was(words: tuple[str, ...], slow: float) -> None:
    lacks = {"hold_at": "no test hooks"} if words[0] == "claims_little" else {}
    for case, result in zip(TOY.cases, live(adapter(*words), slow=slow, cases=TOY.cases), strict=True):
        if not result.main:
            assert result.judgement.verdict.is_incomplete
            continue
        again = judge_case(TOY, case, result.main, result.twin, seed=SEED, not_claimed=lacks)
        assert again == result.judgement, case.id


def test_what_a_case_needs_and_the_adapter_does_not_claim_is_unsupported() -> None:
    needy = structs.replace(toy_case("a-put-key-stands-on-the-shelf"), needs=frozenset({"hold_at"}))
    (lacking,) = live(adapter("claims_little"), slow=1.0, cases=[needy])
    assert lacking.judgement.verdict is Verdict.UNSUPPORTED
    assert "no stop points in production builds" in lacking.judgement.detail
    (able,) = live(adapter("honest"), slow=1.0, cases=[needy])
    assert able.judgement.verdict is Verdict.CONFORMS


def verdict(case: Case, main: Sequence[Record], twin: Sequence[Record], seed: str = SEED) -> Verdict:
    """The verdict of these records."""
    return judge_case(TOY, case, main, twin, seed=seed).verdict


CASES = [case for case in TOY.cases if not case.id.endswith(HELD)]
HONEST = {case.id: both_sides(case) for case in CASES}
SIDES = [(case, side) for case in CASES for side in ("main", "twin") if HONEST[case.id][side == "twin"]]


EVERY_SIDE = pytest.mark.parametrize(
    ("case", "side"), SIDES, ids=[f"{case.id.rsplit('/')[-1]}-{side}" for case, side in SIDES]
)


def with_side(case: Case, side: str, records: Sequence[Record]) -> tuple[Sequence[Record], Sequence[Record]]:
    """Both sides of an honest run, one of them changed."""
    main, twin = HONEST[case.id]
    return (records, twin) if side == "main" else (main, records)


@EVERY_SIDE
def test_a_transcript_with_a_record_less_or_more_never_conforms(case: Case, side: str) -> None:
    records = HONEST[case.id][side == "twin"]
    for index in range(len(records)):
        for changed in (
            records[:index],
            [*records[:index], *records[index + 1 :]],
            [*records[: index + 1], *records[index:]],
            records[index + 1 :],
        ):
            assert verdict(case, *with_side(case, side, changed)) is not Verdict.CONFORMS
    if side == "twin":
        assert verdict(case, HONEST[case.id][0], []) is Verdict.NOT_REACHED


ANSWERS: tuple[Mapping[str, Any] | None, ...] = (
    None,
    {},
    {"outcome": "ok"},
    {"outcome": "accepted"},
    {"outcome": "accepted", "effect": "new"},
    {"outcome": "accepted", "effect": "new", "value": {}},
    {"outcome": "accepted", "effect": "new", "value": {"entry": {"key": "k", "nonce": "n"}}},
    {"outcome": "accepted", "effect": "prior", "value": {"entry": {"key": "k", "nonce": "n"}}},
    {"outcome": "refused", "reason": "REQUEST_MALFORMED"},
    {"outcome": "refused", "reason": "DUPLICATE"},
    {"outcome": "refused", "reason": "NONCE_CONSUMED"},
    {"outcome": "refused", "reason": "MADE_UP"},
    {"outcome": "refused"},
    {"outcome": "indeterminate"},
    {"outcome": "unsupported", "capability": "put"},
    {"outcome": "fault", "detail": "words"},
    {"outcome": "ok", "value": {"entry": []}},
    {"outcome": "ok", "value": {"records": []}},
    {"outcome": "ok", "value": 7},
    {"outcome": "shrug"},
    {"effect": "new"},
)
EVENTS: tuple[Mapping[str, Any] | None, ...] = (
    None,
    *({"kind": kind, "detail": ""} for kind in ("crash", "hang", "garbage", "eof", "missing", "done", "failed", "odd")),
)


def changed_request(record: Record, data: st.DataObject) -> Record:
    """The same record with another request."""
    request = copy.deepcopy(record.request)
    kind = data.draw(st.sampled_from(["none", "member", "arg", "extra"]))
    if request is None:
        return replace(record, request={"op": "close"})
    if kind == "none":
        return replace(record, request=None)
    made = dict(request)
    if kind == "arg" and isinstance(made.get("args"), dict) and made["args"]:
        made["args"] = {**made["args"], data.draw(st.sampled_from(sorted(made["args"]))): "changed"}
    elif kind == "extra":
        made["surprise"] = 1
    else:
        made[data.draw(st.sampled_from(sorted(made)))] = "changed"
    return replace(record, request=made)


@given(place=st.sampled_from(SIDES), data=st.data())
def test_one_changed_record_never_conforms(place: tuple[Case, str], data: st.DataObject) -> None:
    case, side = place
    records = list(HONEST[case.id][side == "twin"])
    index = data.draw(st.integers(0, len(records) - 1))
    record = records[index]
    what = data.draw(st.sampled_from(["request", "answer", "event", "worker"]))
    if what == "request":
        made = changed_request(record, data)
    elif what == "answer":
        made = replace(record, answer=data.draw(st.sampled_from(ANSWERS)))
        # A value that a step does not inspect is not judged beyond its schema.
        same_outcome = None not in (made.answer, record.answer) and all(
            (made.answer or {}).get(key) == (record.answer or {}).get(key) for key in ("outcome", "effect", "reason")
        )
        assume(not same_outcome)
    elif what == "event":
        made = replace(record, event=data.draw(st.sampled_from(EVENTS)))
    else:
        made = replace(record, worker=record.worker + data.draw(st.integers(1, 3)))
    assume(made != record)
    records[index] = made
    assert verdict(case, *with_side(case, side, records)) is not Verdict.CONFORMS, f"{what} of {record.action}"


@given(place=st.sampled_from(SIDES), data=st.data())
def test_what_is_free_text_or_a_time_is_not_judged(place: tuple[Case, str], data: st.DataObject) -> None:
    case, side = place
    assume(case.kind.value != "race")
    records = list(HONEST[case.id][side == "twin"])
    index = data.draw(st.integers(0, len(records) - 1))
    record = records[index]
    answer = record.answer
    if answer is not None and answer["outcome"] == "refused":
        answer = {**answer, "detail": data.draw(st.text(max_size=20))}
    times = data.draw(st.tuples(st.integers(), st.none() | st.integers()))
    made = replace(record, answer=answer, sent_us=times[0], received_us=times[1])
    records[index] = made
    assert verdict(case, *with_side(case, side, records)) is Verdict.CONFORMS


def test_judging_changes_nothing_that_it_was_given() -> None:
    for case in CASES:
        main, twin = HONEST[case.id]
        before = copy.deepcopy((main, twin, case.values, case.when))
        verdict(case, main, twin)
        assert (main, twin, case.values, case.when) == before


def test_a_kit_that_fails_says_that_it_did(tmp_path: Path) -> None:
    """A request that breaks the protocol is the kit's own fault, not a failure mode of the adapter."""
    case = toy_case("a-put-key-stands-on-the-shelf", opening=Opening(config={"Not A Name": "x"}))
    (result,) = live(adapter("honest"), slow=1.0, cases=[case])
    assert result.judgement.verdict is Verdict.KIT_FAULT
    assert "breaks the protocol" in result.judgement.detail


def altered(folder: Path, methods: str) -> tuple[str, ...]:
    """An honest adapter with other methods."""
    lines = ("import sys", f"sys.path.insert(0, {str(ADAPTERS)!r})", "from pathlib import Path")
    body = indent(dedent(methods), "    ")
    text = "\n".join((*lines, "from honest import Adapter", "class Altered(Adapter):", body, "Altered().run()"))
    (folder / "adapter.py").write_text(text, encoding="utf-8")
    return (sys.executable, str(folder / "adapter.py"))


def test_what_a_worker_says_later_widens_no_excuse(tmp_path: Path) -> None:
    """An adapter that lists more under `not_claimed` each time it is started is held to what it said first."""
    wriggler = altered(
        tmp_path,
        f"""
        def hello(self, request):
            said, told = super().hello(request), Path({str(tmp_path / "told")!r})
            if told.exists():
                said['claims'][0]['not_claimed'] = {{'put': 'on second thought'}}
            told.touch()
            return said
        def put(self, args):
            return {{'outcome': 'unsupported', 'capability': 'put'}}
        """,
    )
    cases = [toy_case("a-put-key-stands-on-the-shelf"), toy_case("a-second-put-of-a-key-is-refused")]
    results = list(live(wriggler, slow=1.0, cases=cases))
    assert [result.judgement.verdict for result in results] == [Verdict.NO_VERDICT, Verdict.NO_VERDICT]


def test_answers_of_fault_do_not_spend_the_budget_of_dead_workers(tmp_path: Path) -> None:
    faulty = altered(tmp_path, "def put(self, args):\n    return {'outcome': 'fault', 'detail': 'out of order'}\n")
    results = list(live(faulty, slow=1.0, cases=CASES))
    assert {result.judgement.verdict for result in results} == {Verdict.NO_VERDICT}
    assert not [result for result in results if result.restarts]


@pytest.mark.parametrize("seed", ["a", "b", "c", "d", "e", "f"])
def test_the_last_death_is_what_is_said_of_a_case_whichever_side_met_it(seed: str, tmp_path: Path) -> None:
    """The seed decides which side goes first; a side for which no worker is left does not hide what ended the other."""
    case = toy_case("a-second-put-of-a-key-is-refused")
    with temp_folder() as folder:
        settings = RunSettings(adapter("crash_on_call"), ("toy",), seed=seed, slow=1.0, workdir=str(folder))
        with Engine(settings) as engine:
            engine.greet()
            for _ in range(2):
                engine.pool.abandon([], "the test says so", died=True)
            result = engine.run_case(TOY, case)
            assert (result.judgement.verdict, str(result.judgement.silence)) == (
                Verdict.NO_VERDICT,
                "FailureMode.CRASH",
            )
            assert engine.run_case(TOY, case).judgement.verdict is Verdict.NOT_REACHED
