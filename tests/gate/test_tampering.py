"""Tampering with a run: damage breaks the chain; a forger who mends it meets the installed contract and the judge."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from holdfast.conformance.gate.decision import GateDecision, ReasonCode
from holdfast.conformance.verdict import Exit

from .alterations import believed_at
from .conftest import NOW, Bench, Json, Lines, forge

SECOND = "toy/once/a-second-put-of-a-key-is-refused"


def held(decision: GateDecision, code: ReasonCode, *, exit_status: Exit = Exit.INCOMPLETE) -> str:
    """The text of that reason, on a decision that holds with that exit status."""
    assert decision.can_proceed == "NO"
    assert decision.exit is exit_status, [str(reason) for reason in decision.reasons]
    return next(reason.text for reason in decision.reasons if reason.code is code)


def of(lines: Lines, kind: str, case: str = SECOND) -> list[Json]:
    return [line for line in lines if line["type"] == kind and line.get("case") == case]


def put_answer(lines: Lines) -> Json:
    """The exchange of the put that must be refused."""
    return next(
        line
        for line in of(lines, "exchange")
        if line["side"] == "main" and (line["answer"] or {}).get("outcome") in {"refused", "accepted"}
        and line["action"].startswith("when.")
    )  # fmt: skip


# Damage: the chain as it was


def test_an_edited_line_holds_and_is_named(bench: Bench) -> None:
    edit = bench.damaged(lambda lines: [*lines[:5], lines[5].replace(b'"worker":0', b'"worker":1'), *lines[6:]])
    assert "line 6 was changed" in held(edit, ReasonCode.DAMAGED)


def test_a_fail_open_in_damaged_evidence_still_is_10(bench: Bench) -> None:
    path = bench.run(flaw="accepts duplicates")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[1:]))
    held(bench.decide(path), ReasonCode.FAIL_OPEN, exit_status=Exit.FAIL_OPEN)


# Forgery: the chain computed anew


def test_an_untouched_run_survives_the_forgers_tools(bench: Bench) -> None:
    assert bench.forged(lambda lines: lines).can_proceed == "YES"


@pytest.mark.parametrize("member", ["digest", "cases_digest", "version"])
def test_a_swapped_digest_or_version_of_the_contract_holds(bench: Bench, member: str) -> None:
    other = "9.9.9" if member == "version" else "sha256:" + "e" * 64
    decision = bench.forged(lambda lines: lines[0]["contracts"][0].update({member: other}))
    assert "than what is installed" in held(decision, ReasonCode.OTHER_CONTRACT)


def test_a_digest_of_the_installed_contract_does_not_help_an_old_plan(bench: Bench) -> None:
    """The run was made when the contract had one case less, and its header was brought up to date."""
    younger = bench.contract
    older = structs.replace(younger, cases=younger.cases[:-1])
    path = Bench(older, bench.folder).run()
    decision = bench.decide(path)
    assert "1 cases are not in the run's plan" in held(decision, ReasonCode.OTHER_PLAN)
    assert held(decision, ReasonCode.MISSING_RESULTS)


def test_a_shortened_plan_is_known_to_be_short_by_the_installed_contract(bench: Bench) -> None:
    def shorten(lines: Lines) -> Lines:
        lines[0]["plan"].remove(SECOND)
        return [line for line in lines if line.get("case") != SECOND]

    # The case that failed is gone from plan, exchanges and verdicts; footer and chain are in perfect order.
    decision = bench.forged(shorten, flaw="accepts duplicates")
    assert SECOND in held(decision, ReasonCode.OTHER_PLAN, exit_status=Exit.FAIL_OPEN)
    honest = bench.forged(shorten)
    assert SECOND in held(honest, ReasonCode.OTHER_PLAN)
    assert SECOND in held(honest, ReasonCode.MISSING_RESULTS)


def test_a_plan_without_any_case_holds(bench: Bench) -> None:
    def empty(lines: Lines) -> Lines:
        lines[0]["plan"] = []
        return [lines[0], lines[-1]]

    decision = bench.forged(empty)
    assert "not one of 7 cases" in held(decision, ReasonCode.ZERO_CASES)
    held(decision, ReasonCode.OTHER_PLAN)


@pytest.mark.parametrize("member", ["detail", "expected", "received", "advice", "silence", "excused"])
def test_a_case_that_conforms_has_no_words_and_no_excuse_beside_it(bench: Bench, member: str) -> None:
    value = "crash" if member == "silence" else "all is well"
    decision = bench.forged(lambda lines: of(lines, "verdict")[0].update({member: value}))
    held(decision, ReasonCode.JUDGED_OTHERWISE)


def test_a_local_action_that_tells_something_does_not_fit_the_case(bench: Bench) -> None:
    def tell(lines: Lines) -> None:
        line = next(line for line in lines if (line.get("event") or {}).get("kind") == "done")
        line["event"]["detail"] = "and all was well"

    held(bench.forged(tell), ReasonCode.JUDGED_OTHERWISE)


def test_a_run_that_does_not_say_what_ran_holds(bench: Bench) -> None:
    decision = bench.forged(lambda lines: [line for line in lines if line["type"] != "artefacts"])
    assert "which files ran" in held(decision, ReasonCode.DAMAGED)


TABLE: Json = {
    "type": "vectors", "stream": "1", "seed": 0, "count": 0, "block_rows": 1, "root": None, "profile": "core",
    "sdk": {"name": "", "language": "", "library": "", "version": ""}, "missing": 0, "restarts": 0, "table": [],
    "counterexamples": [],
}  # fmt: skip


def test_results_of_documents_in_a_run_of_cases_hold(bench: Bench) -> None:
    held(bench.forged(lambda lines: [*lines[:-2], {**TABLE}, *lines[-2:]]), ReasonCode.EXTRA_RESULTS)


@pytest.mark.parametrize(
    ("verdict", "code", "status"),
    [("conforms", ReasonCode.NOT_IN_RUN, Exit.INCOMPLETE), ("fail_open", ReasonCode.FAIL_OPEN, Exit.FAIL_OPEN)],
)
@pytest.mark.parametrize("origin", ["chosen", "fresh"])
def test_a_run_of_documents_is_named_as_one_and_never_opens_the_gate(
    bench: Bench, verdict: str, code: ReasonCode, status: Exit, origin: str
) -> None:
    def documents(lines: Lines) -> Lines:
        header = {**lines[0], "plan": ["vectors/core/P1"], "seed_origin": origin, "nonce": None}
        line = {**of(lines, "verdict")[0], "case": "vectors/core/P1", "verdict": verdict, "side": None, "n": None}
        return [header, {**TABLE}, line, *lines[-2:]]

    decision = bench.forged(documents)
    (reason,) = decision.reasons
    assert (decision.can_proceed, reason.code, decision.exit) == ("NO", code, status)
    assert "`holdfast vectors verify`" in reason.text


def test_an_edited_verdict_is_contradicted_by_its_exchanges(bench: Bench) -> None:
    def whitewash(lines: Lines) -> None:
        for line in lines:
            if line["type"] == "verdict":
                line.update(verdict="conforms", detail="", expected="", received="")
        lines[-1]["exit"] = 0

    decision = bench.forged(whitewash, flaw="accepts duplicates")
    text = held(decision, ReasonCode.JUDGED_OTHERWISE, exit_status=Exit.FAIL_OPEN)
    assert "recorded is conforms, its exchanges show fail_open" in text


def test_a_milder_verdict_is_contradicted_too(bench: Bench) -> None:
    def soften(lines: Lines) -> None:
        for line in lines:
            if line["type"] == "verdict" and line["verdict"] == "fail_open":
                line["verdict"] = "not_reached"

    decision = bench.forged(soften, flaw="accepts duplicates")
    held(decision, ReasonCode.JUDGED_OTHERWISE, exit_status=Exit.FAIL_OPEN)


def test_a_verdict_without_its_exchanges_is_not_believed(bench: Bench) -> None:
    decision = bench.forged(lambda lines: [x for x in lines if x["type"] != "exchange" or x["case"] != SECOND])
    assert "its exchanges show not_reached" in held(decision, ReasonCode.JUDGED_OTHERWISE)


def test_a_refusal_without_its_twin_is_not_believed(bench: Bench) -> None:
    decision = bench.forged(
        lambda lines: [x for x in lines if x["type"] != "exchange" or x["case"] != SECOND or x["side"] != "twin"]
    )
    assert "the twin side was not run" in held(decision, ReasonCode.JUDGED_OTHERWISE)


def test_exchanges_of_another_seed_do_not_fit_the_case(bench: Bench) -> None:
    decision = bench.forged(lambda lines: lines[0].update(seed="another"))
    assert "do not fit the case" in held(decision, ReasonCode.JUDGED_OTHERWISE)


def test_an_exchange_edited_without_care_contradicts_what_was_observed(bench: Bench) -> None:
    """The forger turns the accepted second put into a refusal; the observation after it shows the second effect."""

    def refuse(lines: Lines) -> None:
        put_answer(lines)["answer"] = {"outcome": "refused", "reason": "DUPLICATE"}
        for line in of(lines, "verdict"):
            line["verdict"] = "conforms"

    decision = bench.forged(refuse, flaw="accepts duplicates")
    held(decision, ReasonCode.JUDGED_OTHERWISE, exit_status=Exit.FAIL_OPEN)


def test_a_forger_who_makes_up_every_exchange_makes_up_a_run(bench: Bench) -> None:
    """The limit of a hash chain, on purpose in a test: it detects damage, not forgery.

    All lines of the case are replaced by those of an honest run with the same seed, the chain is computed anew:
    nothing in the file says otherwise. A signature of the whole file, which is not the kit's affair, shows that.
    """
    honest: Lines = []
    forge(bench.run(name="honest.jsonl"), lambda lines: honest.extend(lines))
    made_up = forge(bench.run(flaw="accepts duplicates"), lambda lines: [lines[0], *honest[1:]])
    assert bench.decide(made_up).can_proceed == "YES"


@pytest.mark.parametrize(
    "nonsense",
    [{}, {"outcome": 7}, {"outcome": "refused"}, {"outcome": "accepted"}, {"outcome": "ok", "value": {"entry": 3}}],
)
def test_an_answer_that_no_adapter_can_give_holds_and_never_crashes_the_gate(bench: Bench, nonsense: Json) -> None:
    def garble(lines: Lines) -> None:
        for line in lines:
            if line["type"] == "exchange" and line["answer"] is not None:
                line["answer"] = nonsense

    assert held(bench.forged(garble), ReasonCode.JUDGED_OTHERWISE)


def test_a_missing_result_holds(bench: Bench) -> None:
    decision = bench.forged(lambda lines: [line for line in lines if line.get("case") != SECOND])
    assert SECOND in held(decision, ReasonCode.MISSING_RESULTS)


@pytest.mark.parametrize(
    "line",
    [
        {"type": "log", "worker": 0, "text": "all is well"},
        {"type": "restart", "worker": 0, "cause": "crash: never", "count": 1},
    ],
)
def test_logs_and_restarts_are_believed_as_the_documentation_says(bench: Bench, line: Json) -> None:
    decision = bench.forged(lambda lines: [*lines[:-2], line, *lines[-2:]])
    assert decision.can_proceed == "YES"
    assert believed_at(line["type"]) is not None


def test_how_a_file_came_to_be_counted_is_believed_and_the_file_is_not(bench: Bench) -> None:
    assert bench.forged(lambda lines: lines[-2]["files"][0].update(source="named")).can_proceed == "YES"
    assert believed_at("artefacts.files.*.source") is not believed_at("artefacts.files.*.path")
    held(bench.forged(lambda lines: lines[-2]["files"][0].update(sha256="e" * 64)), ReasonCode.DAMAGED)


def test_a_result_that_nobody_planned_holds(bench: Bench) -> None:
    def invent(lines: Lines) -> None:
        lines.insert(-2, {**of(lines, "verdict")[0], "case": "toy/once/invented"})

    assert "toy/once/invented" in held(bench.forged(invent), ReasonCode.EXTRA_RESULTS)


def test_a_run_dated_anew_cannot_be_younger_than_now(bench: Bench) -> None:
    def redate(lines: Lines) -> None:
        lines[0]["started"] = (NOW + timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
        lines[-1]["finished"] = (NOW + timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")

    held(bench.forged(redate), ReasonCode.FUTURE)


def test_an_excuse_written_into_the_evidence_does_not_excuse_a_fail_open(bench: Bench) -> None:
    def excuse(lines: Lines) -> None:
        for line in lines:
            if line["type"] == "verdict" and line["verdict"] == "fail_open":
                line["excused"] = "issue 17"

    decision = bench.forged(excuse, flaw="accepts duplicates")
    held(decision, ReasonCode.EXCUSED_FAIL_OPEN, exit_status=Exit.FAIL_OPEN)


@pytest.mark.parametrize("change", [{"n": 0}, {"side": "twin"}, {"side": None, "n": None}, {"n": 10**6}])
def test_a_verdict_of_another_exchange_is_contradicted(change: dict[str, Any], bench: Bench) -> None:
    def move(lines: Lines) -> None:
        line = next(line for line in lines if line["type"] == "verdict" and line["verdict"] == "fail_open")
        assert (line["side"], line["n"] is not None) == ("main", True)
        line.update(change)

    decision = bench.forged(move, flaw="accepts duplicates")
    held(decision, ReasonCode.JUDGED_OTHERWISE, exit_status=Exit.FAIL_OPEN)
