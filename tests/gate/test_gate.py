"""What an honest run can prove, and what keeps the gate closed although no one tampered."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from holdfast.conformance.gate.decision import (
    Expected,
    Extent,
    FitnessProof,
    GateDecision,
    ReasonCode,
    Requirement,
    decide,
    parse_requirement,
)
from holdfast.conformance.verdict import Exit, Verdict
from holdfast.reports.evidence import Artefacts, Claimed, KitIdentity, SeedOrigin, Selection, read_evidence
from holdfast.specs import SpecError, load_contract
from holdfast.specs.model import Level, Proof

from .conftest import ARTEFACTS, KIT, NOW, STARTED, Bench, Edit, Lines, forge
from .conftest import NONCE as NONCE_OF_RUN

SECOND = "toy/once/a-second-put-of-a-key-is-refused"
NONCE = "toy/once/a-consumed-nonce-puts-no-other-key"
HELD = "toy/hard/a-put-killed-before-its-commit-left-nothing"


def codes(decision: GateDecision) -> list[ReasonCode]:
    assert decision.can_proceed == ("NO" if decision.reasons else "YES")
    assert (decision.exit is Exit.OK) == (decision.can_proceed == "YES")
    return [reason.code for reason in decision.reasons]


def ending(status: Exit) -> Edit:
    """Lets the footer of a run say this exit status."""

    def edit(lines: Lines) -> None:
        lines[-1]["exit"] = int(status)

    return edit


def test_a_whole_conforming_run_opens_the_gate(bench: Bench) -> None:
    decision = bench.decide(bench.run())
    assert (decision.can_proceed, decision.exit, decision.reasons) == ("YES", Exit.OK, ())


def test_a_fail_open_holds_with_10(bench: Bench) -> None:
    decision = bench.decide(bench.run(flaw="accepts duplicates"))
    assert codes(decision) == [ReasonCode.FAIL_OPEN]
    assert decision.exit is Exit.FAIL_OPEN
    assert SECOND in decision.reasons[0].cases


def test_a_wrong_reason_alone_holds_with_11(bench: Bench) -> None:
    decision = bench.decide(bench.run(flaw="confuses reasons"))
    assert codes(decision) == [ReasonCode.NON_CONFORMING]
    assert decision.exit is Exit.NON_CONFORMING


@pytest.mark.parametrize(
    "verdict", [Verdict.NO_VERDICT, Verdict.NOT_REACHED, Verdict.INDETERMINATE, Verdict.UNSUPPORTED]
)
def test_a_case_that_proved_nothing_holds_with_12(bench: Bench, verdict: Verdict) -> None:
    decision = bench.decide(bench.run(forced={SECOND: verdict}))
    assert codes(decision) == [ReasonCode.NOT_PROVEN]
    assert decision.exit is Exit.INCOMPLETE
    assert decision.reasons[0].cases == (SECOND,)


def test_a_fault_of_the_kit_holds_with_20(bench: Bench) -> None:
    decision = bench.decide(bench.run(forced={SECOND: Verdict.KIT_FAULT}, flaw="accepts duplicates"))
    assert decision.exit is Exit.KIT
    assert codes(decision)[0] is ReasonCode.KIT_FAULT


def test_the_gravest_reason_stands_first_and_gives_the_exit(bench: Bench) -> None:
    path = bench.run(flaw="accepts duplicates", selection=Selection(("toy",), "once"))
    decision = bench.decide(path)
    assert codes(decision) == [ReasonCode.FAIL_OPEN, ReasonCode.NARROWED]
    assert decision.exit is Exit.FAIL_OPEN


def test_an_unsupported_should_is_only_noted(bench: Bench) -> None:
    clause = bench.contract.clauses["TOY-02"]
    lenient = structs.replace(
        bench.contract, clauses={**bench.contract.clauses, "TOY-02": structs.replace(clause, level=Level.SHOULD)}
    )
    decision = bench.decide(bench.run(forced={NONCE: Verdict.UNSUPPORTED}), contract=lenient)
    assert decision.can_proceed == "YES"
    assert decision.notes == (f"{NONCE} is unsupported, only a SHOULD",)


@pytest.mark.parametrize("ended", [Exit.OK, Exit.INCOMPLETE])
def test_a_run_ends_well_or_incomplete_beside_an_unsupported_should(bench: Bench, ended: Exit) -> None:
    clause = bench.contract.clauses["TOY-02"]
    lenient = structs.replace(
        bench.contract, clauses={**bench.contract.clauses, "TOY-02": structs.replace(clause, level=Level.SHOULD)}
    )
    path = forge(bench.run(forced={NONCE: Verdict.UNSUPPORTED}), ending(ended))
    assert bench.decide(path, contract=lenient).can_proceed == "YES"
    assert codes(bench.decide(path)) == [ReasonCode.NOT_PROVEN]


def test_a_run_that_calls_itself_incomplete_is_not_proven_and_not_damaged(bench: Bench) -> None:
    decision = bench.decide(forge(bench.run(), ending(Exit.INCOMPLETE)))
    assert codes(decision) == [ReasonCode.NOT_PROVEN]
    assert decision.exit is Exit.INCOMPLETE


def test_a_run_that_ends_better_than_its_verdicts_is_damaged(bench: Bench) -> None:
    decision = bench.decide(forge(bench.run(flaw="confuses reasons"), ending(Exit.OK)))
    assert codes(decision) == [ReasonCode.DAMAGED, ReasonCode.NON_CONFORMING]


def test_an_excused_must_holds_with_11_unless_that_is_allowed(bench: Bench) -> None:
    path = bench.run(flaw="confuses reasons", excused={NONCE: "issue 17"})
    held = bench.decide(path)
    assert codes(held) == [ReasonCode.EXCUSED]
    assert (held.exit, held.reasons[0].cases) == (Exit.NON_CONFORMING, (NONCE,))
    decision = bench.decide(path, expected=Expected(allow_excused=True))
    assert decision.can_proceed == "YES"
    assert decision.notes == (f"{NONCE} is wrong_reason, excused by issue 17",)


def test_an_excused_should_is_only_noted(bench: Bench) -> None:
    clause = bench.contract.clauses["TOY-02"]
    lenient = structs.replace(
        bench.contract, clauses={**bench.contract.clauses, "TOY-02": structs.replace(clause, level=Level.SHOULD)}
    )
    path = bench.run(flaw="confuses reasons", excused={NONCE: "issue 17"})
    decision = bench.decide(path, contract=lenient)
    assert decision.can_proceed == "YES"
    assert decision.notes == (f"{NONCE} is wrong_reason, excused by issue 17",)


def test_an_excused_fail_open_never_opens_the_gate(bench: Bench) -> None:
    open_before = bench.decide(bench.run(flaw="accepts duplicates"))
    excused = dict.fromkeys(open_before.reasons[0].cases, "issue 17")
    path = bench.run(flaw="accepts duplicates", excused=excused)
    decision = bench.decide(path, expected=Expected(allow_excused=True))
    assert codes(decision) == [ReasonCode.EXCUSED_FAIL_OPEN]
    assert decision.exit is Exit.FAIL_OPEN


def test_an_excuse_for_silence_proves_nothing(bench: Bench) -> None:
    decision = bench.decide(bench.run(forced={SECOND: Verdict.NO_VERDICT}, excused={SECOND: "issue 17"}))
    assert codes(decision) == [ReasonCode.NOT_PROVEN]


def test_core_leaves_out_what_needs_provocations_and_says_so(bench: Bench) -> None:
    path = bench.run(forced={HELD: Verdict.UNSUPPORTED})
    assert codes(bench.decide(path)) == [ReasonCode.NOT_PROVEN]
    decision = bench.decide(path, extent=Extent.CORE)
    assert decision.can_proceed == "YES"
    assert decision.left_out == (HELD,)
    assert decision.notes == ("toy/core: 1 cases need provocations and are left out",)


@pytest.mark.parametrize("verdict", [Verdict.OVER_REFUSAL, Verdict.WRONG_REASON])
def test_core_is_held_by_what_it_left_out_and_was_found_wrong(bench: Bench, verdict: Verdict) -> None:
    decision = bench.decide(bench.run(forced={HELD: verdict}), extent=Extent.CORE)
    assert ReasonCode.NON_CONFORMING in codes(decision)
    assert decision.can_proceed == "NO"


def test_core_does_not_overlook_a_fail_open_that_was_seen(bench: Bench) -> None:
    decision = bench.decide(bench.run(forced={HELD: Verdict.LOST_DURABILITY}), extent=Extent.CORE)
    assert ReasonCode.FAIL_OPEN in codes(decision)
    assert decision.exit is Exit.FAIL_OPEN


def test_an_old_run_is_held(bench: Bench) -> None:
    path = bench.run()
    assert bench.decide(path, now=STARTED + timedelta(days=7)).can_proceed == "YES"
    decision = bench.decide(path, now=STARTED + timedelta(days=7, seconds=1))
    assert codes(decision) == [ReasonCode.STALE]
    assert "7.0 days old, at most 7.0 days" in decision.reasons[0].text
    assert decision.exit is Exit.INCOMPLETE
    assert codes(bench.decide(path, max_age=timedelta(minutes=59))) == [ReasonCode.STALE]


def test_a_run_from_the_future_is_held(bench: Bench) -> None:
    path = bench.run()
    assert codes(bench.decide(path, now=STARTED - timedelta(minutes=5))) == [ReasonCode.FUTURE]
    assert bench.decide(path, now=STARTED - timedelta(minutes=3)).can_proceed == "YES"


def test_a_run_that_ended_before_it_began_is_held(bench: Bench) -> None:
    decision = bench.decide(bench.run(started=STARTED + timedelta(minutes=2)))
    assert codes(decision) == [ReasonCode.DAMAGED]


def test_a_run_that_started_too_early_is_held(bench: Bench) -> None:
    path = bench.run()
    assert bench.decide(path, expected=Expected(not_before=STARTED)).can_proceed == "YES"
    decision = bench.decide(path, expected=Expected(not_before=STARTED + timedelta(microseconds=1)))
    assert codes(decision) == [ReasonCode.TOO_EARLY]


def test_a_run_of_another_commit_or_of_none_is_held(bench: Bench) -> None:
    path = bench.run(adapter=structs.replace(bench.header().adapter, commit="c0ffee"))
    assert bench.decide(path, expected=Expected(commit="c0ffee")).can_proceed == "YES"
    for decision in (
        bench.decide(path, expected=Expected(commit="c0ffe")),
        bench.decide(bench.run(), expected=Expected(commit="c0ffee")),
    ):
        assert codes(decision) == [ReasonCode.OTHER_COMMIT]


def test_a_run_of_other_files_or_of_none_is_held(bench: Bench) -> None:
    expected = Expected(adapter_digest=ARTEFACTS.digest)
    assert bench.decide(bench.run(), expected=expected).can_proceed == "YES"
    other = Artefacts.of([structs.replace(ARTEFACTS.files[0], sha256="e" * 64)])
    for found in (other, Artefacts.of([])):
        assert codes(bench.decide(bench.run(artefacts=found), expected=expected)) == [ReasonCode.OTHER_ADAPTER]


def test_an_adapter_that_changed_meanwhile_is_held(bench: Bench) -> None:
    decision = bench.decide(bench.run(artefacts=structs.replace(ARTEFACTS, changed=("shelf",))))
    assert codes(decision) == [ReasonCode.ADAPTER_CHANGED]


def test_a_seed_that_was_chosen_is_held_unless_that_is_allowed(bench: Bench) -> None:
    path = bench.run(seed_origin=SeedOrigin.CHOSEN, nonce=None)
    assert codes(bench.decide(path)) == [ReasonCode.SEED_CHOSEN]
    assert bench.decide(path, expected=Expected(allow_seed=True)).can_proceed == "YES"


@pytest.mark.parametrize(
    ("origin", "nonce"),
    [
        (SeedOrigin.NONCE, None),
        (SeedOrigin.NONCE, "another"),
        (SeedOrigin.FRESH, NONCE_OF_RUN),
    ],
)
def test_a_seed_that_does_not_follow_from_what_is_said_of_it_is_damage(
    bench: Bench, origin: SeedOrigin, nonce: str | None
) -> None:
    assert codes(bench.decide(bench.run(seed_origin=origin, nonce=nonce))) == [ReasonCode.DAMAGED]


def test_a_run_for_another_nonce_is_held(bench: Bench) -> None:
    expected = Expected(nonce=NONCE_OF_RUN)
    assert bench.decide(bench.run(), expected=expected).can_proceed == "YES"
    assert codes(bench.decide(bench.run(), expected=Expected(nonce="another"))) == [ReasonCode.OTHER_NONCE]
    without = bench.run(seed_origin=SeedOrigin.FRESH, nonce=None)
    assert codes(bench.decide(without, expected=expected)) == [ReasonCode.OTHER_NONCE]


def test_a_nonce_beside_a_chosen_seed_binds_nothing(bench: Bench) -> None:
    decision = bench.forged(
        lambda lines: lines[0].update(seed="chosen", seed_origin="chosen"),
        expected=Expected(nonce=NONCE_OF_RUN),
    )
    assert {ReasonCode.SEED_CHOSEN, ReasonCode.OTHER_NONCE} <= set(codes(decision))


def test_exchanges_that_take_longer_than_the_run_are_held(bench: Bench) -> None:
    def stretch(lines: Lines) -> None:
        line = next(line for line in lines if line["type"] == "exchange")
        line["received_us"] = 7 * 60 * 1_000_000

    assert codes(bench.forged(stretch)) == [ReasonCode.DAMAGED]


def test_a_header_whose_parts_do_not_belong_together_is_held(bench: Bench) -> None:
    more = (*bench.header().contracts, structs.replace(bench.header().contracts[0], contract="jcs"))
    assert codes(bench.decide(bench.run(contracts=more))) == [ReasonCode.DAMAGED]
    assert codes(bench.decide(bench.run(selection=Selection(("toy", "jcs"), None)))) == [ReasonCode.DAMAGED]
    foreign = (*bench.header().plan, "jcs/any/thing")
    assert ReasonCode.DAMAGED in codes(bench.decide(bench.run(plan=foreign)))


def test_a_narrowed_run_is_held_though_every_result_is_there(bench: Bench) -> None:
    decision = bench.decide(bench.run(selection=Selection(("toy",), "once or hard")))
    assert codes(decision) == [ReasonCode.NARROWED]
    text = decision.reasons[0].text
    # Whichever option it was: the evidence says to what it came, not by which words.
    assert (
        "narrowed to 'once or hard'; run again without narrowing (-k, --clause, --case, --no-faults, --quick)" in text
    )


def test_another_kit_is_held(bench: Bench) -> None:
    other = bench.decide(bench.run(kit=KitIdentity("holdfast", "0.0.9", KIT.digest)))
    assert codes(other) == [ReasonCode.OTHER_KIT]
    assert "0.0.9, installed is holdfast 0.1.0" in other.reasons[0].text
    assert codes(bench.decide(bench.run(), kit=structs.replace(KIT, digest="sha256:" + "d" * 64))) == [
        ReasonCode.OTHER_KIT
    ]


def test_a_contract_that_was_not_run_is_held(bench: Bench) -> None:
    other = structs.replace(bench.contract, name="tay")
    assert ReasonCode.NOT_IN_RUN in codes(bench.decide(bench.run(), contract=other))


def test_an_adapter_that_does_not_claim_the_contract_is_held(bench: Bench) -> None:
    silent = structs.replace(bench.header().adapter, claims=())
    assert codes(bench.decide(bench.run(adapter=silent))) == [ReasonCode.NOT_CLAIMED]
    older = structs.replace(bench.header().adapter, claims=(Claimed("toy", "0.0.9", {}),))
    assert codes(bench.decide(bench.run(adapter=older))) == [ReasonCode.NOT_CLAIMED]


def test_a_contract_without_cases_proves_nothing(bench: Bench) -> None:
    empty = structs.replace(bench.contract, cases=(), clauses={})
    decision = bench.decide(bench.run(), contract=empty)
    assert ReasonCode.ZERO_CASES in codes(decision)


def test_a_must_that_no_case_covers_is_held(bench: Bench) -> None:
    more = structs.replace(bench.contract.clauses["TOY-01"], id="TOY-06")
    wider = structs.replace(bench.contract, clauses={**bench.contract.clauses, "TOY-06": more})
    assert codes(bench.decide(bench.run(), contract=wider)) == [ReasonCode.CLAUSES_UNCOVERED]
    untestable = structs.replace(
        wider, clauses={**wider.clauses, "TOY-06": structs.replace(more, not_testable="it cannot be observed")}
    )
    decision = bench.decide(bench.run(), contract=untestable)
    assert decision.can_proceed == "YES"
    assert "TOY-06" in decision.notes[0]


def test_what_only_a_live_surface_proves_is_held_without_a_fitness_proof(bench: Bench) -> None:
    live = structs.replace(bench.contract.clauses["TOY-01"], id="TOY-06", proof=Proof.FITNESS)
    contract = structs.replace(bench.contract, clauses={**bench.contract.clauses, "TOY-06": live})
    for extent in Extent:
        decision = bench.decide(bench.run(), contract=contract, extent=extent)
        assert codes(decision) == [ReasonCode.FITNESS_MISSING]
        assert decision.exit is Exit.INCOMPLETE
        assert "no fitness proof was given" in decision.reasons[0].text


@pytest.mark.parametrize("text", ["", "{}", '{"schema": 1}'])
def test_a_fitness_file_that_is_no_proof_holds(bench: Bench, tmp_path: Path, text: str) -> None:
    path = tmp_path / "fitness.json"
    path.write_text(text)
    for name in (path, tmp_path / "none.json"):
        decision = bench.decide(bench.run(), fitness=FitnessProof(str(name), "prod"))
        assert codes(decision) == [ReasonCode.FITNESS_UNVERIFIED]
        assert decision.exit is Exit.INCOMPLETE
        assert str(name) in decision.reasons[0].text
        assert "surface prod" in decision.reasons[0].text


def test_the_registrar_contract_is_never_opened_by_a_run_alone(bench: Bench) -> None:
    for extent in Extent:
        decision = bench.decide(bench.run(), contract=load_contract("rs4a-replay"), extent=extent)
        assert ReasonCode.FITNESS_MISSING in codes(decision)


@pytest.mark.parametrize(
    ("status", "code", "exit_status"),
    [
        (20, ReasonCode.KIT_FAULT, Exit.KIT),
        (13, ReasonCode.ADAPTER_FAILED, Exit.ADAPTER),
        (14, ReasonCode.EXPECTATIONS_STALE, Exit.EXPECTATION),
    ],
)
def test_how_a_run_ended_is_not_forgotten(bench: Bench, status: int, code: ReasonCode, exit_status: Exit) -> None:
    decision = bench.forged(lambda lines: lines[-1].update(exit=status))
    assert codes(decision) == [code]
    assert decision.exit is exit_status


def test_a_requirement_of_nothing_proves_nothing(bench: Bench) -> None:
    decision = decide(read_evidence(bench.run()), [], now=NOW, kit=KIT)
    assert codes(decision) == [ReasonCode.NOTHING_REQUIRED]


def test_a_requirement_is_a_contract_or_its_core() -> None:
    assert parse_requirement("rs4a-replay") == Requirement(load_contract("rs4a-replay"), Extent.FULL)
    assert parse_requirement("rs4a-replay/core").extent is Extent.CORE
    with pytest.raises(SpecError, match="unknown contract 'nonsense'"):
        parse_requirement("nonsense")
    with pytest.raises(SpecError, match="expected CONTRACT or CONTRACT/core"):
        parse_requirement("rs4a-replay/all")


# Baselines


def baseline(bench: Bench, **changes: Any) -> Path:
    return bench.run(name="old.jsonl", started=STARTED - timedelta(days=30), **changes)


def test_a_baseline_with_the_same_claims_changes_nothing(bench: Bench) -> None:
    before = read_evidence(baseline(bench))
    assert bench.decide(bench.run(), baseline=before).can_proceed == "YES"


def test_a_contract_that_is_claimed_no_longer_is_14(bench: Bench) -> None:
    claims = (*bench.header().adapter.claims, Claimed("jcs", "1.0.0", {}))
    before = read_evidence(baseline(bench, adapter=structs.replace(bench.header().adapter, claims=claims)))
    decision = bench.decide(bench.run(), baseline=before)
    assert codes(decision) == [ReasonCode.CLAIM_DROPPED]
    assert decision.exit is Exit.EXPECTATION


def test_a_capability_that_is_claimed_no_longer_is_14(bench: Bench) -> None:
    claims = (Claimed("toy", "0.1.0", {"concurrency": "not any more"}),)
    path = bench.run(adapter=structs.replace(bench.header().adapter, claims=claims))
    decision = bench.decide(path, baseline=read_evidence(baseline(bench)))
    assert codes(decision) == [ReasonCode.CLAIM_DROPPED]
    assert "concurrency" in decision.reasons[0].text


def test_a_baseline_that_is_damaged_or_not_older_is_no_baseline(bench: Bench) -> None:
    old = baseline(bench)
    old.write_bytes(b"".join(old.read_bytes().splitlines(keepends=True)[:-1]))
    path = bench.run()
    assert codes(bench.decide(path, baseline=read_evidence(old))) == [ReasonCode.BASELINE_UNUSABLE]
    assert codes(bench.decide(path, baseline=read_evidence(path))) == [ReasonCode.BASELINE_UNUSABLE]
