"""Suites ask for answers that cannot be looked up: the committed vectors are public, so each run generates its own."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import count
from typing import Any

import pytest

from holdfast.conformance.cases.record import Judgement, NonConformance, Record
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.run.plan import suite_case_id
from holdfast.conformance.suites.jcs import suite
from holdfast.conformance.verdict import Verdict
from holdfast.specs import load_contract
from holdfast.vectors.jcs.clauses import reasons_of
from holdfast.vectors.record import load
from tests.conftest import thinned
from tests.harness.suite_play import Answerer, PlayedDriver, bench_of, bench_on, played, reference

DRAWN = (
    ("jcs", "test_any_document_in_any_disguise_has_one_canonical_form"),
    ("jcs", "test_constructed_documents_and_their_canonical_forms_have_one_form"),
    ("jcs", "test_constructed_documents_in_i_json_strict"),
    ("jcs", "test_constructed_documents_in_safe_int"),
    ("jcs", "test_constructed_documents_in_verify_mode"),
    ("jcs", "test_constructed_defects_of_bytes"),
    ("jcs", "test_constructed_defects_of_grammar"),
    ("jcs", "test_constructed_defects_of_names_and_surrogates"),
    ("jcs", "test_constructed_numbers_out_of_range"),
    ("mesh-delivery", "test_no_mutated_request_shares_a_fingerprint"),
    ("mesh-delivery", "test_constructed_metas_enter_in_the_form_of_their_construction"),
    ("mesh-delivery", "test_constructed_metas_with_a_defect_are_refused"),
    ("mesh-delivery", "test_large_fields_count_whole"),
)


def asked(records: list[Record]) -> set[str]:
    """Every call of a test."""
    requests = [record.request for record in records if record.request and record.request["op"] == "call"]
    return {json.dumps(request, sort_keys=True) for request in requests}


@pytest.mark.parametrize(("contract", "test"), thinned(DRAWN))
def test_another_seed_asks_other_questions_and_the_reference_answers_them(contract: str, test: str) -> None:
    found = []
    for seed in ("one", "two"):
        judgement, records = played(contract, test, lambda: reference(contract), seed)
        assert judgement.verdict is Verdict.CONFORMS, judgement.detail
        found.append(asked(records))
    # Every seed generates literals, empty containers and similar values.
    assert len(found[0] & found[1]) < 0.2 * len(found[0])
    assert asked(played(contract, test, lambda: reference(contract), "one")[1]) == found[0], "a seed fixes a run"


def looked_up(contract: str, test: str) -> Answerer:
    """Right about everything that one run asked; anything else is accepted as it came, or refused as no JSON."""
    known = {}
    for record in played(contract, test, lambda: reference(contract), "published")[1]:
        if record.request and record.request["op"] == "call":
            known[json.dumps(record.request["args"], sort_keys=True), record.request["method"]] = record.answer

    def answer(method: str, args: Mapping[str, Any]) -> dict[str, Any]:
        found = known.get((json.dumps(args, sort_keys=True), method))
        if found is not None:
            return dict(found)
        value: dict[str, Any] = {"canonical": args["document"]} if method == "canonicalise" else {}
        return {
            "outcome": "accepted",
            "effect": "new",
            "value": value or ({"fingerprint": "0"} if "body" in args else {}),
        }

    return answer


VERIFIED = ("jcs", "test_constructed_documents_in_verify_mode")


@pytest.mark.parametrize(("contract", "test"), thinned([each for each in DRAWN[::-1] if each != VERIFIED]))
def test_an_implementation_that_looks_answers_up_is_found_out(contract: str, test: str) -> None:
    answerer = looked_up(contract, test)
    assert played(contract, test, lambda: answerer, "published")[0].verdict is Verdict.CONFORMS
    assert played(contract, test, lambda: answerer, "5eed")[0].verdict is not Verdict.CONFORMS


def test_a_verifier_that_agrees_in_strict_profiles_only_is_found_out() -> None:
    honest = reference("jcs")

    def answer(method: str, args: Mapping[str, Any]) -> dict[str, Any]:
        found = honest(method, args)
        strict = method == "verify" and args["profile"] != "core"
        return {"outcome": "accepted", "effect": "new", "value": {}} if strict and "reason" in found else found

    assert played(*VERIFIED, lambda: answer)[0].verdict is Verdict.FAIL_OPEN


def refuses_with(reason: str, *marks: bytes) -> Answerer:
    """The reference, which refuses for this reason what begins with one of these."""
    honest = reference("jcs")

    def answer(method: str, args: Mapping[str, Any]) -> dict[str, Any]:
        found = honest(method, args)
        begins = from_base64url(args["document"]).startswith(marks)
        return {**found, "reason": reason} if "reason" in found and begins else found

    return answer


UTF_16, NULS = (b"\xff\xfe", b"\xfe\xff"), (b"\0", b"[\0", b"{\0", b'"\0')
BYTES = ("test_committed_vectors_of_bytes", "test_constructed_defects_of_bytes")


@pytest.mark.parametrize("test", [*BYTES, "test_committed_vectors_in_verify_mode"])
@pytest.mark.parametrize(("reason", "marks"), [("SYNTAX", UTF_16), ("INVALID_UTF8", NULS)])
def test_a_document_in_utf_16_or_utf_32_has_the_reasons_of_its_clause(
    test: str, reason: str, marks: tuple[bytes, ...]
) -> None:
    judgement = played("jcs", test, lambda: refuses_with(reason, *marks))[0]
    assert judgement.verdict is Verdict.CONFORMS, judgement.detail


def test_a_case_permits_the_reasons_that_a_vector_of_its_clause_permits() -> None:
    found = set()
    for case in load_contract("jcs").cases:
        for step in case.when if case.clause.startswith("JCS-UTF8") else ():
            if (due := step.get("expect", {}).get("reason")) is not None:
                permitted = (due,) if isinstance(due, str) else tuple(due)
                assert reasons_of(case.clause, permitted[0]) == permitted, case.id
                found.add(permitted)
    assert ("INVALID_UTF8", "SYNTAX") in found


@pytest.mark.parametrize("test", BYTES)
@pytest.mark.parametrize(
    ("reason", "marks"), [("BYTE_ORDER_MARK", UTF_16), ("SYNTAX", (b"\xef\xbb\xbf",)), ("SYNTAX", (b'"', b"[", b"{"))]
)
def test_no_other_document_and_no_other_reason_is_left_to_the_implementation(
    test: str, reason: str, marks: tuple[bytes, ...]
) -> None:
    assert played("jcs", test, lambda: refuses_with(reason, *marks))[0].verdict is Verdict.WRONG_REASON


def test_a_canonicaliser_that_is_right_about_short_documents_only_is_found_out() -> None:
    honest = reference("jcs")

    def answer(method: str, args: Mapping[str, Any]) -> dict[str, Any]:
        long = method == "canonicalise" and len(args["document"]) > 64 * 1024
        return (
            {"outcome": "accepted", "effect": "new", "value": {"canonical": args["document"]}}
            if long
            else honest(method, args)
        )

    test = "test_constructed_documents_and_their_canonical_forms_have_one_form"
    assert played("jcs", test, lambda: answer)[0].verdict is Verdict.WRONG_REASON


def test_the_evidence_shows_what_was_sent_when_a_test_changes_its_arguments_behind_a_call() -> None:
    refusal = {"outcome": "refused", "reason": "NONCE_UNBOUND"}
    bench = bench_of("rs4a-replay", suite_case_id("rs4a-replay", "test_any_history"), lambda: lambda *_: refusal)
    args = {"request": {"authorization_nonce": "first"}, "trusted_attested": {"artifact_hash": "0"}}
    with bench.session() as session:
        session.call("register", args)
        args["request"]["authorization_nonce"] = "second"
        session.call("register", args)
    sent = [record.request["args"] for record in bench.records if record.request and record.request["op"] == "call"]
    assert [one["request"]["authorization_nonce"] for one in sent] == ["first", "second"]


def judged_in(right: int, later: dict[str, Any] | None, german: dict[str, Any] | None) -> Judgement:
    """The verdict on the reference, whose usual process says `later` after so many calls; in German it says `german`.

    None stands for what the reference says.
    """
    honest = reference("jcs")
    counted = count()

    def driver(variables: Mapping[str, str]) -> Any:
        def answer(method: str, args: Mapping[str, Any]) -> dict[str, Any]:
            if variables:
                other = german if variables.get("LANG", "").startswith("de") else None
            else:
                other = later if next(counted) >= right else None
            return honest(method, args) if other is None else other

        return PlayedDriver(answer)

    bench = bench_on(load_contract("jcs"), "jcs/suite/answers-do-not-depend-on-locale-and-zone", driver)
    try:
        suite.test_answers_do_not_depend_on_locale_and_zone(bench)
        return bench.conclude()
    except NonConformance as finding:
        return finding.judgement


REFUSES: dict[str, Any] = {"outcome": "refused", "reason": "SYNTAX"}
ACCEPTS: dict[str, Any] = {"outcome": "accepted", "effect": "new", "value": {"canonical": "MA"}}


@pytest.mark.parametrize(
    ("right", "later", "german", "verdict", "place"),
    [
        (500, None, None, Verdict.CONFORMS, ""),
        (100, REFUSES, None, Verdict.OVER_REFUSAL, "process"),
        (500, None, REFUSES, Verdict.OVER_REFUSAL, "locale"),
    ],
)
def test_what_changes_with_the_number_of_calls_is_not_laid_to_the_locale(
    right: int, later: dict[str, Any] | None, german: dict[str, Any] | None, verdict: Verdict, place: str
) -> None:
    judgement = judged_in(right, later, german)
    assert judgement.verdict is verdict, judgement.detail
    assert place in judgement.detail.partition(" has another answer in ")[2]


def test_an_acceptance_elsewhere_of_what_is_refused_is_open() -> None:
    refused_first = next(at for at, record in enumerate(load("jcs")[::3]) if record.canonical is None)
    assert judged_in(refused_first, ACCEPTS, None).verdict is Verdict.FAIL_OPEN
