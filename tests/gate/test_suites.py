"""A suite's verdict is believed only beside the exchanges of a session; of a stateless contract it is judged again."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.attacks.bench import Bench as Suite
from holdfast.conformance.cases.record import CaseResult, Judgement, Record
from holdfast.conformance.gate.cases import inconclusive_suite, is_randomised, judge_suite
from holdfast.conformance.gate.model import GateReason, ReasonCode
from holdfast.conformance.run.engine import Engine
from holdfast.conformance.run.interpret import CONFORMS
from holdfast.conformance.run.plan import PlannedCase, plan_of, suite_case_id, suite_tests
from holdfast.conformance.run.settings import RunSettings
from holdfast.conformance.verdict import Exit, Verdict
from holdfast.reference_impl.mesh_delivery.fingerprint import Fingerprinter
from holdfast.specs import Contract, contract_names, load_contract
from holdfast.specs.loader import read_contract
from tests.gate.conftest import SEED, Bench
from tests.harness.suite_play import played, reference
from tests.hostile.verify import temp_folder

TOY = read_contract(Path(__file__).parents[1] / "toycontract" / "toy")
ENTRY = {"key": "key-1", "nonce": "nonce-1"}
OK = {"outcome": "ok"}
PUT = {"op": "call", "method": "put", "args": ENTRY}
ACCEPTED = {"outcome": "accepted", "effect": "new", "value": {"entry": ENTRY}}
OPEN = {"op": "open", "state": "fresh"}

Told = tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]
# A session in which one put was called, one started and finished, and one started and killed.
TOLD: tuple[Told, ...] = (
    (OPEN, OK),
    (PUT, ACCEPTED),
    (PUT, None),
    (None, ACCEPTED),
    (PUT, None),
    ({"op": "open", "state": "existing"}, OK),
    (PUT, None),
    (None, ACCEPTED),
    ({"op": "close"}, OK),
)


def records(told: tuple[Told, ...] = TOLD) -> list[Record]:
    return [Record(n, "", 0, request, answer, None, n, n) for n, (request, answer) in enumerate(told)]


def changed(at: int, **parts: Any) -> list[Record]:
    made = records()
    made[at] = replace(made[at], **parts)
    return made


def test_a_whole_session_leaves_no_doubt() -> None:
    assert inconclusive_suite(TOY, records(), {}) is None


@pytest.mark.parametrize(
    ("made", "doubt"),
    [
        (list, "0 sessions"),
        (lambda: records(((OPEN, OK), ({"op": "close"}, OK))), "0 answered calls"),
        (lambda: records(TOLD[1:]), "0 sessions"),
        (lambda: records(TOLD[:-1]), "0 sessions"),
        (lambda: changed(0, answer={"outcome": "refused", "reason": "DUPLICATE"}), "0 sessions"),
        (lambda: changed(1, answer={**ACCEPTED, "value": {"entry": {"key": "key-1"}}}), "does not fit the contract"),
        (lambda: changed(1, answer={"outcome": "shrug"}), "does not fit the protocol"),
        (lambda: changed(1, answer={"outcome": "refused", "reason": "MADE_UP"}), "does not fit the contract"),
        (lambda: changed(1, request={**PUT, "method": "take"}), "no such method"),
        (lambda: changed(2, event={"kind": "hang", "detail": ""}), "a silence"),
        (lambda: changed(3, answer={"outcome": "refused", "reason": "MADE_UP"}), "does not fit the contract"),
        (lambda: records((*TOLD[:6], *TOLD[7:])), "asked nothing"),
    ],
)
def test_what_no_conforming_test_leaves_behind_is_doubted(made: Callable[[], list[Record]], doubt: str) -> None:
    assert doubt in str(inconclusive_suite(TOY, made(), {}))


MESH = load_contract("mesh-delivery")
TEST = "test_no_mutated_request_shares_a_fingerprint"
PLANNED = next(case for case in plan_of(MESH) if case.id == suite_case_id("mesh-delivery", TEST))


def honest() -> list[Record]:
    return played("mesh-delivery", TEST, lambda: reference("mesh-delivery"), SEED)[1]


def judged(records: list[Record], seed: str = SEED) -> Judgement:
    return judge_suite(MESH, PLANNED, records, seed=seed, not_claimed={})


def with_answer(records: list[Record], at: int, answer: Mapping[str, Any]) -> list[Record]:
    return [replace(record, answer=answer) if record.n == at else record for record in records]


@pytest.mark.parametrize(
    ("contract", "test"),
    [
        ("jcs", "test_any_document_in_any_disguise_has_one_canonical_form"),
        ("jcs", "test_constructed_defects_of_names_and_surrogates"),
        ("mesh-delivery", TEST),
        ("mesh-delivery", "test_constructed_metas_enter_in_the_form_of_their_construction"),
    ],
)
def test_what_a_suite_test_left_behind_has_its_verdict_again(contract: str, test: str) -> None:
    loaded = load_contract(contract)
    planned = next(case for case in plan_of(loaded) if case.id == suite_case_id(contract, test))
    judgement, records = played(contract, test, lambda: reference(contract), SEED)
    again = judge_suite(loaded, planned, records, seed=SEED, not_claimed={})
    assert judgement == again == Judgement(Verdict.CONFORMS)


def test_a_test_whose_session_takes_its_time_has_its_verdict_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Suite, "session", partialmethod(Suite.session, hurried=False))
    judgement, records = played("mesh-delivery", TEST, lambda: reference("mesh-delivery"), SEED)
    assert judgement == judged(records) == Judgement(Verdict.CONFORMS)


@pytest.fixture
def body_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every body has one hash, so two sends have one fingerprint."""
    monkeypatch.setattr(Fingerprinter, "body_hash", lambda *_: b"0" * 64)


@pytest.mark.usefixtures("body_dropped")
def test_a_suite_test_that_failed_fails_again() -> None:
    judgement, records = played("mesh-delivery", TEST, lambda: reference("mesh-delivery"), SEED)
    assert judgement.verdict is Verdict.FAIL_OPEN
    assert judged(records) == judgement


def test_an_answer_that_was_changed_afterwards_is_judged_like_any_other() -> None:
    records = honest()
    other = with_answer(records, 5, records[20].answer or {})
    assert judged(other[:21]).verdict is Verdict.FAIL_OPEN
    assert judged(other).verdict is Verdict.KIT_FAULT, "the test ends at the collision, so the rest belongs to nothing"


@pytest.mark.parametrize(
    ("edit", "verdict"),
    [
        (lambda records: records[:-1], Verdict.NO_VERDICT),
        (lambda records: records[:1], Verdict.NO_VERDICT),
        (lambda records: [*records, records[-1]], Verdict.KIT_FAULT),
        (lambda records: [*records[:4], *records[5:]], Verdict.KIT_FAULT),
        (lambda records: with_answer(records, 4, {"outcome": "refused"}), Verdict.KIT_FAULT),
        (lambda records: records[:0], Verdict.NO_VERDICT),
    ],
)
def test_records_that_are_not_those_of_the_test_never_conform(
    edit: Callable[[list[Record]], list[Record]], verdict: Verdict
) -> None:
    assert judged(edit(honest())).verdict is verdict


def test_the_records_of_another_seed_are_foreign() -> None:
    assert judged(honest(), seed="another").verdict is Verdict.KIT_FAULT


@pytest.mark.usefixtures("body_dropped")
@pytest.mark.parametrize(("excused", "verdict"), [(None, "conforms"), ("https://example.org/1", "wrong_reason")])
def test_the_gate_holds_a_suite_verdict_against_its_exchanges(
    tmp_path: Path, excused: str | None, verdict: str
) -> None:
    _, records = played("mesh-delivery", TEST, lambda: reference("mesh-delivery"), SEED)
    # Closed in order, so that only the answers decide.
    close = Record(len(records), "close worker 0", 0, {"op": "close"}, OK, None, len(records), len(records))
    found = CaseResult(PLANNED.id, PLANNED.clauses, Judgement(Verdict(verdict)), (*records, close), (), 0.1)
    assert [each.cases for each in told_of(MESH, tmp_path, found, excused=excused)] == [(PLANNED.id,)]


# Of a contract with a state, with the files and processes that its tests are about


HX = load_contract("hx-sync")
KEYS = "test_objects_of_all_types_in_two_stores_have_keys_and_nonces_of_their_own"
IMPORTS = "test_any_set_in_any_order_comes_to_the_state_of_the_model"


def planned_of(contract: str, test: str) -> PlannedCase:
    """The plan's entry of a suite test."""
    return next(case for case in plan_of(load_contract(contract)) if case.id == suite_case_id(contract, test))


def ran(test: str, mutant: str | None = None) -> CaseResult:
    """What a suite test shows of the reference of hx-sync, in processes of its own."""
    words = (sys.executable, "-P", "-m", "holdfast.reference_impl")
    planted = () if mutant is None else ("--mutant", mutant)
    with temp_folder() as folder:
        settings = RunSettings(
            (*words, "adapter", *planted),
            ("hx-sync",),
            SEED,
            launcher=(*words, "launch", *planted),
            config={"store": "none"},
            workdir=str(folder),
        )
        with Engine(settings) as engine:
            function = {each.__name__: each for each, _ in suite_tests("hx-sync")}[test]
            return engine.run_suite_test(HX, planned_of("hx-sync", test), function)


def told_of(contract: Contract, folder: Path, result: CaseResult, *, excused: str | None = None) -> list[GateReason]:
    """What the gate says of the verdict of a run of this one result."""
    bench = Bench(contract, folder)
    decision = bench.decide(bench.one(result, excused=excused))
    return [each for each in decision.reasons if each.code is ReasonCode.JUDGED_OTHERWISE]


def test_a_failed_suite_test_that_is_told_to_conform_holds_the_gate(tmp_path: Path) -> None:
    result = ran(KEYS, "key-of-type")
    assert result.judgement.verdict is Verdict.FAIL_OPEN, result.judgement.detail
    assert judge_suite(HX, planned_of("hx-sync", KEYS), result.main, seed=SEED, not_claimed={}) == result.judgement
    assert told_of(HX, tmp_path, result) == []
    (reason,) = told_of(HX, tmp_path, replace(result, judgement=CONFORMS))
    assert (reason.cases, reason.exit) == ((result.case,), Exit.FAIL_OPEN), reason.text


def test_a_suite_test_that_conforms_is_judged_alike_again(tmp_path: Path) -> None:
    result = ran(IMPORTS)
    assert result.judgement.verdict is Verdict.CONFORMS, result.judgement.detail
    assert told_of(HX, tmp_path, result) == []
    # The record of the last inspection of a state differs, and so does the verdict.
    last = next(record for record in reversed(result.main) if record.action == "observe status")
    assert last.answer is not None
    value = {**last.answer["value"], "events": last.answer["value"]["events"] + 1}
    changed = with_answer(list(result.main), last.n, {**last.answer, "value": value})
    (reason,) = told_of(HX, tmp_path, replace(result, main=tuple(changed)))
    assert "state_leak" in reason.text or "do not fit" in reason.text, reason.text


def test_only_what_hypothesis_draws_is_not_judged_again() -> None:
    drawn = {
        function.__name__
        for contract in contract_names()
        for function, _ in suite_tests(contract)
        if is_randomised(load_contract(contract), planned_of(contract, function.__name__))
    }
    told = {
        function.__name__
        for contract in contract_names()
        for function, _ in suite_tests(contract)
        if "given(" in inspect.getsource(function)
    }
    assert drawn == told
    assert len(drawn) < 7
