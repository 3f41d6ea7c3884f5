"""What an honest run can prove, and what keeps the gate closed although no one tampered."""

from __future__ import annotations

import os
from concurrent.futures.process import BrokenProcessPool
from datetime import timedelta
from pathlib import Path
from typing import Any, NoReturn

import pytest
from msgspec import structs

from holdfast.conformance.gate import cases
from holdfast.conformance.gate.decision import (
    Expected,
    Extent,
    FitnessProof,
    GateDecision,
    ReasonCode,
    decide,
)
from holdfast.conformance.verdict import Exit, Verdict, gravest
from holdfast.reports.evidence import (
    AdapterIdentity,
    Artefacts,
    Claimed,
    SeedOrigin,
    Selection,
    read_evidence,
)
from holdfast.specs.model import Contract, Level, Proof

from .conftest import ARTEFACTS, CALM, KIT, NOW, STARTED, Bench, Edit, Lines, forge
from .conftest import NONCE as NONCE_OF_RUN

SECOND = "toy/once/a-second-put-of-a-key-is-refused"
NONCE = "toy/once/a-consumed-nonce-puts-no-other-key"
FILES = Expected(adapter_digest=ARTEFACTS.digest)
HELD = "toy/hard/a-put-killed-before-its-commit-left-nothing"


# What a reason makes of the exit status; with any other, the run is incomplete.
EXITS = {
    ReasonCode.FAIL_OPEN: Exit.FAIL_OPEN,
    ReasonCode.EXCUSED_FAIL_OPEN: Exit.FAIL_OPEN,
    ReasonCode.NON_CONFORMING: Exit.NON_CONFORMING,
    ReasonCode.EXCUSED: Exit.NON_CONFORMING,
    ReasonCode.ADAPTER_FAILED: Exit.ADAPTER,
    ReasonCode.EXPECTATIONS_STALE: Exit.EXPECTATION,
    ReasonCode.CLAIM_DROPPED: Exit.EXPECTATION,
    ReasonCode.KIT_FAULT: Exit.KIT,
}


def codes(decision: GateDecision) -> list[ReasonCode]:
    """The reasons of a decision, whose exit status fits them."""
    found = [reason.code for reason in decision.reasons]
    assert decision.can_proceed == ("NO" if found else "YES")
    due = {EXITS.get(code, Exit.INCOMPLETE) for code in found}
    assert decision.exit is (gravest(due) if due else Exit.OK)
    return found


def adapter(bench: Bench, **changes: Any) -> AdapterIdentity:
    """The adapter of an ordinary header, changed."""
    return structs.replace(bench.header().adapter, **changes)


def with_clause(bench: Bench, name: str, **changes: Any) -> Contract:
    """The contract with a clause that is changed, or a copy of the first one."""
    clauses = bench.contract.clauses
    clause = structs.replace(clauses.get(name, clauses["TOY-01"]), id=name, **changes)
    return structs.replace(bench.contract, clauses={**clauses, name: clause})


def ended(run: Path, status: Exit) -> Path:
    """The same run, whose footer says this exit status."""
    return forge(run, lambda lines: lines[-1].update(exit=int(status)))


def stretched(lines: Lines) -> None:
    next(line for line in lines if line["type"] == "exchange")["received_us"] = 7 * 60 * 1_000_000


EXCUSED, UNSUPPORTED = f"{NONCE} is wrong_reason, excused by issue 17", f"{NONCE} is unsupported, only a SHOULD"
R, WEEK, CORE, LATER = ReasonCode, timedelta(days=7), {"extent": Extent.CORE}, timedelta(microseconds=1)
FOREIGN = Artefacts.of([structs.replace(ARTEFACTS.files[0], sha256="e" * 64)])
FRESH = structs.replace(KIT, digest="sha256:" + "d" * 64)


def older(bench: Bench, **changes: Any) -> dict[str, Any]:
    """A run of a month before as the baseline."""
    return {"baseline": read_evidence(baseline(bench, **changes))}


def lenient(bench: Bench) -> dict[str, Any]:
    """The contract, whose second clause is only a SHOULD."""
    return {"contract": with_clause(bench, "TOY-02", level=Level.SHOULD)}


def unsupported(bench: Bench) -> Path:
    return bench.run(forced={NONCE: Verdict.UNSUPPORTED})


HERE = structs.replace(KIT, libraries={"jsonschema-rs": "0.61.2", "msgspec": "0.22.0"})


def with_libraries(bench: Bench) -> Path:
    return bench.run(kit=structs.replace(KIT, libraries={"jsonschema-rs": "0.60.3", "msgspec": "0.22.0"}))


def excused(bench: Bench) -> Path:
    return bench.run(flaw="confuses reasons", excused={NONCE: "issue 17"})


# What stands in the way of a run: the run, what the gate is told besides, and its reasons, with what they name. Where
# nothing stands in its way, these words are the notes of the decision.
ROWS: dict[str, Any] = {
    "nothing": (Bench.run, {}, []),
    "a failure that is open": (lambda b: b.run(flaw="accepts duplicates"), {}, [R.FAIL_OPEN], SECOND),
    **{
        f"a case that ends with {verdict.value}": (
            lambda b, verdict=verdict: b.run(forced={SECOND: verdict}),
            {},
            [R.NOT_PROVEN],
            SECOND,
        )
        for verdict in (Verdict.NO_VERDICT, Verdict.NOT_REACHED, Verdict.INDETERMINATE, Verdict.UNSUPPORTED)
    },
    # Whichever option it was: the evidence says to what it came, not by which words.
    "a narrowed run, though every result is there": (
        lambda b: b.run(selection=Selection(("toy",), "once or hard")),
        {},
        [R.NARROWED],
        "narrowed to 'once or hard'; run again without narrowing (of verify -k, --clause, --case,",
    ),
    "another version of the kit": (
        lambda b: b.run(kit=structs.replace(KIT, version="0.0.9")),
        {},
        [R.OTHER_KIT],
        "0.0.9, installed is holdfast 0.1.0",
    ),
    "a kit of other files": (Bench.run, {"kit": FRESH}, [R.OTHER_KIT]),
    "another version of a library": (
        with_libraries,
        {"kit": HERE},
        [],
        "the run had other libraries: jsonschema-rs 0.60.3 (here 0.61.2); its exchanges were judged again with those "
        "of here",
    ),
    "another version of a library where the same is asked for": (
        with_libraries,
        {"kit": HERE, "expected": Expected(same_libraries=True)},
        [R.OTHER_KIT],
        "holdfast report constraints",
    ),
    "a contract that was not run": (
        Bench.run,
        lambda b: {"contract": structs.replace(b.contract, name="tay")},
        [R.NOT_IN_RUN, R.JUDGED_OTHERWISE],
    ),
    **{
        f"what only a live surface proves, {extent.value}": (
            Bench.run,
            lambda b, extent=extent: {"contract": with_clause(b, "TOY-06", proof=Proof.FITNESS), "extent": extent},
            [R.FITNESS_MISSING],
            "no fitness proof was given",
        )
        for extent in (Extent.FULL, Extent.CORE)
    },
    "nothing, as a baseline has the same claims": (Bench.run, older, []),
    "a contract that is claimed no longer": (
        Bench.run,
        lambda b: older(b, adapter=adapter(b, claims=(*b.header().adapter.claims, Claimed("jcs", "1.0.0", {})))),
        [R.CLAIM_DROPPED],
        "jcs",
    ),
    "a capability that is claimed no longer": (
        lambda b: b.run(adapter=adapter(b, claims=(Claimed("toy", "0.1.0", {"concurrency": "not any more"}),))),
        older,
        [R.CLAIM_DROPPED],
        "concurrency",
    ),
    "a wrong reason": (lambda b: b.run(flaw="confuses reasons"), {}, [R.NON_CONFORMING]),
    "a fault of the kit": (lambda b: b.run(forced={SECOND: Verdict.KIT_FAULT}), {}, [R.KIT_FAULT]),
    "the graver of two": (
        lambda b: b.run(flaw="accepts duplicates", selection=Selection(("toy",), "once")),
        {},
        [R.FAIL_OPEN, R.NARROWED],
    ),
    "an excuse for silence": (
        lambda b: b.run(forced={SECOND: Verdict.NO_VERDICT}, excused={SECOND: "issue 17"}),
        {},
        [R.NOT_PROVEN],
    ),
    "an excuse for a MUST": (excused, {}, [R.EXCUSED], NONCE),
    "nothing, as excuses are allowed": (excused, {"expected": Expected(allow_excused=True)}, [], EXCUSED),
    "nothing, as what is excused is a SHOULD": (excused, lenient, [], EXCUSED),
    "nothing, as what is unsupported is a SHOULD": (unsupported, lenient, [], UNSUPPORTED),
    "nothing, as that ends well": (lambda b: ended(unsupported(b), Exit.OK), lenient, [], UNSUPPORTED),
    "an unsupported MUST that ends well": (lambda b: ended(unsupported(b), Exit.OK), {}, [R.NOT_PROVEN]),
    "a contract without cases": (
        Bench.run,
        lambda b: {"contract": structs.replace(b.contract, cases=(), clauses={})},
        [R.OTHER_PLAN, R.ZERO_CASES],
    ),
    "a MUST that no case covers": (Bench.run, lambda b: {"contract": with_clause(b, "TOY-06")}, [R.CLAUSES_UNCOVERED]),
    "nothing, as a MUST cannot be tested": (
        Bench.run,
        lambda b: {"contract": with_clause(b, "TOY-06", not_testable="it cannot be observed")},
        [],
        "toy: 1 clauses cannot be tested, so nothing proves them (TOY-06)",
    ),
    "nothing, of the core": (
        lambda b: b.run(forced={HELD: Verdict.UNSUPPORTED}),
        CORE,
        [],
        "toy/core: 1 cases need provocations and are left out; of them 1 unsupported",
    ),
    "an end that says it is incomplete": (lambda b: ended(b.run(), Exit.INCOMPLETE), {}, [R.NOT_PROVEN]),
    "an end better than its verdicts": (
        lambda b: ended(b.run(flaw="confuses reasons"), Exit.OK),
        {},
        [R.DAMAGED, R.NON_CONFORMING],
    ),
    "a fault of the kit at its end": (lambda b: ended(b.run(), Exit.KIT), {}, [R.KIT_FAULT]),
    "an adapter that failed at its end": (lambda b: ended(b.run(), Exit.ADAPTER), {}, [R.ADAPTER_FAILED]),
    "expectations that are old": (lambda b: ended(b.run(), Exit.EXPECTATION), {}, [R.EXPECTATIONS_STALE]),
    "of the core, a loss": (
        lambda b: b.run(forced={HELD: Verdict.LOST_DURABILITY}),
        CORE,
        [R.FAIL_OPEN, R.JUDGED_OTHERWISE],
    ),
    "of the core, an over-refusal": (
        lambda b: b.run(forced={HELD: Verdict.OVER_REFUSAL}),
        CORE,
        [R.JUDGED_OTHERWISE, R.NON_CONFORMING],
    ),
    "of the core, a wrong reason": (
        lambda b: b.run(forced={HELD: Verdict.WRONG_REASON}),
        CORE,
        [R.JUDGED_OTHERWISE, R.NON_CONFORMING],
    ),
    "nothing, at its last moment": (Bench.run, {"now": STARTED + WEEK}, []),
    "its age": (Bench.run, {"now": STARTED + WEEK + LATER}, [R.STALE]),
    "its age, of which less is allowed": (Bench.run, {"max_age": timedelta(minutes=59)}, [R.STALE]),
    "nothing, though the clocks differ": (Bench.run, {"now": STARTED - timedelta(minutes=3)}, []),
    "the future": (Bench.run, {"now": STARTED - timedelta(minutes=5)}, [R.FUTURE]),
    "an end before its beginning": (lambda b: b.run(started=STARTED + timedelta(minutes=2)), {}, [R.DAMAGED]),
    "nothing, as it began then": (Bench.run, {"expected": Expected(not_before=STARTED)}, []),
    "an early beginning": (Bench.run, {"expected": Expected(not_before=STARTED + LATER)}, [R.TOO_EARLY]),
    "nothing, as its commit is that": (
        lambda b: b.run(adapter=adapter(b, commit="c0ffee")),
        {"expected": Expected(commit="c0ffee")},
        [],
    ),
    "another commit": (
        lambda b: b.run(adapter=adapter(b, commit="c0ffee")),
        {"expected": Expected(commit="c0ffe")},
        [R.OTHER_COMMIT],
    ),
    "no commit": (Bench.run, {"expected": Expected(commit="c0ffee")}, [R.OTHER_COMMIT]),
    "nothing, as its files are those": (Bench.run, {"expected": FILES}, []),
    "other files": (lambda b: b.run(artefacts=FOREIGN), {"expected": FILES}, [R.OTHER_ADAPTER]),
    "no files": (lambda b: b.run(artefacts=Artefacts.of([])), {"expected": FILES}, [R.OTHER_ADAPTER]),
    "a change meanwhile": (
        lambda b: b.run(artefacts=structs.replace(ARTEFACTS, changed=("shelf",))),
        {},
        [R.ADAPTER_CHANGED],
    ),
    "a chosen seed": (lambda b: b.run(seed_origin=SeedOrigin.CHOSEN, nonce=None), {}, [R.SEED_CHOSEN]),
    "nothing, as a seed may be chosen": (
        lambda b: b.run(seed_origin=SeedOrigin.CHOSEN, nonce=None),
        {"expected": Expected(allow_seed=True)},
        [],
    ),
    "a seed of no nonce": (lambda b: b.run(nonce=None), {}, [R.DAMAGED]),
    "a seed of another nonce": (lambda b: b.run(nonce="another"), {}, [R.DAMAGED]),
    "a fresh seed with a nonce": (lambda b: b.run(seed_origin=SeedOrigin.FRESH), {}, [R.DAMAGED]),
    "nothing, as its nonce is that": (Bench.run, {"expected": Expected(nonce=NONCE_OF_RUN)}, []),
    "another nonce": (Bench.run, {"expected": Expected(nonce="another")}, [R.OTHER_NONCE]),
    "no nonce": (
        lambda b: b.run(seed_origin=SeedOrigin.FRESH, nonce=None),
        {"expected": Expected(nonce=NONCE_OF_RUN)},
        [R.OTHER_NONCE],
    ),
    "a nonce beside a chosen seed": (
        lambda b: forge(b.run(), lambda lines: lines[0].update(seed="chosen", seed_origin="chosen")),
        {"expected": Expected(nonce=NONCE_OF_RUN)},
        [R.SEED_CHOSEN, R.OTHER_NONCE, R.JUDGED_OTHERWISE],
    ),
    "an exchange that took longer": (lambda b: forge(b.run(), stretched), {}, [R.DAMAGED]),
    "a contract that nobody selected": (
        lambda b: b.run(contracts=(*b.header().contracts, structs.replace(b.header().contracts[0], contract="jcs"))),
        {},
        [R.DAMAGED],
    ),
    "a selection without its contract": (lambda b: b.run(selection=Selection(("toy", "jcs"), None)), {}, [R.DAMAGED]),
    "a case of no contract": (lambda b: b.run(plan=(*b.header().plan, "jcs/any/thing")), {}, [R.DAMAGED]),
    "no claim": (lambda b: b.run(adapter=adapter(b, claims=())), {}, [R.NOT_CLAIMED]),
    "an older claim": (
        lambda b: b.run(adapter=adapter(b, claims=(Claimed("toy", "0.0.9", {}),))),
        {},
        [R.NOT_CLAIMED],
    ),
}


@pytest.mark.parametrize("what", ROWS)
def test_what_stands_in_the_way_of_a_run_is(what: str, bench: Bench) -> None:
    run, told, due, *words = ROWS[what]
    decision = bench.decide(run(bench), **(told(bench) if callable(told) else told))
    assert list(dict.fromkeys(codes(decision))) == due
    if due:
        assert all(word in str([(reason.text, reason.cases) for reason in decision.reasons]) for word in words)
    else:
        assert decision.notes == tuple(words)
        assert decision.left_out == ((HELD,) if told == CORE else ())


def test_an_excused_fail_open_never_opens_the_gate(bench: Bench) -> None:
    open_before = bench.decide(bench.run(flaw="accepts duplicates"))
    excused = dict.fromkeys(open_before.reasons[0].cases, "issue 17")
    path = bench.run(flaw="accepts duplicates", excused=excused)
    decision = bench.decide(path, expected=Expected(allow_excused=True))
    assert codes(decision) == [ReasonCode.EXCUSED_FAIL_OPEN]


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


def test_a_requirement_of_nothing_proves_nothing(bench: Bench) -> None:
    decision = decide(read_evidence(bench.run()), [], now=NOW, kit=KIT)
    assert codes(decision) == [ReasonCode.NOTHING_REQUIRED]


# Baselines


def baseline(bench: Bench, **changes: Any) -> Path:
    return bench.run(name="old.jsonl", started=STARTED - timedelta(days=30), **changes)


def test_a_baseline_that_is_damaged_or_not_older_is_no_baseline(bench: Bench) -> None:
    old = baseline(bench)
    old.write_bytes(b"".join(old.read_bytes().splitlines(keepends=True)[:-1]))
    path = bench.run()
    assert codes(bench.decide(path, baseline=read_evidence(old))) == [ReasonCode.BASELINE_UNUSABLE]
    assert codes(bench.decide(path, baseline=read_evidence(path))) == [ReasonCode.BASELINE_UNUSABLE]


# A long run is judged by several processes: the reasons do not depend on them, and one that dies opens nothing.


def _several(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(cases, "_MANY", 1)
    patch.setattr(cases, "processors", lambda: 3)


@pytest.mark.parametrize(
    ("flaw", "edit"),
    [
        (None, list.copy),
        ("accepts duplicates", list.copy),
        ("confuses reasons", list.copy),
        ("accepts duplicates", CALM),
    ],
)
def test_several_processes_give_the_reasons_of_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, flaw: str | None, edit: Edit
) -> None:
    path = forge(bench.run(flaw=flaw), edit)
    one = bench.decide(path)
    assert any(reason.code is ReasonCode.JUDGED_OTHERWISE for reason in one.reasons) == (edit is CALM)
    _several(monkeypatch)
    assert bench.decide(path) == one


def test_a_judging_process_that_dies_opens_no_gate(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.run()
    _several(monkeypatch)

    def dies(*_asked: object, **_more: object) -> NoReturn:
        os._exit(0)

    monkeypatch.setattr(cases, "judge_case", dies)
    with pytest.raises(BrokenProcessPool):
        bench.decide(path)


def test_exchanges_that_the_judge_cannot_read_hold_the_gate(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    path = bench.run()
    assert bench.decide(path).can_proceed == "YES"

    def fails(*_asked: object, **_more: object) -> NoReturn:
        raise KeyError("what no adapter says")

    monkeypatch.setattr(cases, "judge_case", fails)
    decision = bench.decide(path)
    assert {reason.code for reason in decision.reasons} == {ReasonCode.JUDGED_OTHERWISE}
    assert all("they cannot be judged (KeyError" in reason.text for reason in decision.reasons)
