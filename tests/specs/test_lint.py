"""The linter: each rule with something it finds and something it leaves alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from msgspec import structs

from holdfast.conformance.cli.lint import update_digests
from holdfast.specs.errors import SpecError
from holdfast.specs.lint import lint_contract
from holdfast.specs.lock import Review, load_lock, write_lock
from holdfast.specs.mutants import Choice, Mutant, Mutants
from tests.specs.conftest import Spoilt

AGAIN = "a-second-put-of-a-key-is-refused"
SHELF = "a-put-key-stands-on-the-shelf"
CLAUSES = ("TOY-01", "TOY-02", "TOY-03", "TOY-04", "TOY-05")
MUTANTS = tuple(Mutant(f"forgets-{name[-1]}", "Forgets", {name: "fail_open"}) for name in CLAUSES)


@pytest.fixture
def clean(toy: Spoilt) -> Spoilt:
    """The toy contract with mutants and reviews, in which the linter finds nothing."""
    note_digests(toy)
    return toy


def note_digests(toy: Spoilt) -> None:
    """What `holdfast lint specs --update` does."""
    update_digests(toy.read(), toy.folder)


def drop_case(toy: Spoilt) -> None:
    """The only case of TOY-03 goes."""
    toy.once["cases"].remove(toy.case("an-empty-key-is-malformed"))
    note_digests(toy)


def drop_review(toy: Spoilt, words: str) -> None:
    """The case whose id ends so was not reviewed with TOY-01."""
    cases = load_lock(toy.folder).reviewed["TOY-01"].cases
    reviewed(toy, TOY_01=tuple(case for case in cases if not case.endswith(words)))


def reviewed(toy: Spoilt, **changes: tuple[str, ...]) -> None:
    """Other cases that were reviewed with these clauses; `TOY_01` is the clause TOY-01."""
    lock = load_lock(toy.folder)
    named = {name.replace("_", "-"): cases for name, cases in changes.items()}
    changed = {name: Review(lock.reviewed[name].text, cases) for name, cases in named.items()}
    write_lock(toy.folder, structs.replace(lock, reviewed={**lock.reviewed, **changed}))


def found(
    toy: Spoilt,
    mutants: Sequence[Mutant] = MUTANTS,
    suite: Mapping[str, tuple[str, ...]] | None = None,
    unbreakable: dict[str, str] | None = None,
) -> list[str]:
    """What the linter reports."""
    declared = Mutants("toy", unbreakable=unbreakable or {}, mutants=tuple(mutants))
    reviewed = load_lock(toy.folder).reviewed
    return lint_contract(toy.read(), mutants=declared, suite_clauses=suite or {}, reviewed=reviewed)


def without(*clauses: str) -> list[Mutant]:
    """The mutants that break none of these clauses."""
    return [mutant for mutant in MUTANTS if not mutant.must_fail.keys() & set(clauses)]


def one(problems: list[str], *words: str) -> None:
    """Exactly one problem, with these words."""
    assert len(problems) == 1, problems
    missing = [word for word in words if word not in problems[0]]
    assert not missing, problems


def test_nothing_is_found_where_nothing_is_wrong(clean: Spoilt) -> None:
    assert found(clean) == []


def test_a_clause_that_nothing_covers_is_found(clean: Spoilt) -> None:
    drop_case(clean)
    one(found(clean), "clause TOY-03", "no case and no suite test covers it")


def test_a_suite_test_covers_a_clause_as_well(clean: Spoilt) -> None:
    drop_case(clean)
    assert found(clean, suite={"toy/suite/any-garbage-is-malformed": ("TOY-03",)}) == []


def test_a_clause_that_is_not_testable_needs_no_case(clean: Spoilt) -> None:
    drop_case(clean)
    clean.clause("TOY-03")["not_testable"] = "there is no way to see it from outside"
    assert found(clean) == []


def test_a_clause_that_only_a_live_surface_proves_needs_no_case(clean: Spoilt) -> None:
    drop_case(clean)
    clean.clause("TOY-03").update(proof="fitness")
    assert found(clean, without("TOY-03")) == []


def test_a_clause_that_is_not_testable_and_covered_is_found(clean: Spoilt) -> None:
    clean.clause("TOY-03")["not_testable"] = "there is no way to see it from outside"
    one(found(clean), "clause TOY-03", "listed as not testable, yet a case covers it")


def test_a_refusal_without_a_twin_is_found(clean: Spoilt) -> None:
    clean.case(AGAIN).pop("twin")
    one(found(clean), AGAIN, "a refusal without a twin proves nothing")


def expect(case: dict[str, Any], expectation: dict[str, Any]) -> None:
    """Change what the first step of `when` expects."""
    case["when"][0]["expect"] = expectation


def test_a_refusal_that_expects_none_is_found(clean: Spoilt) -> None:
    expect(clean.case(AGAIN), {"outcome": "accepted"})
    one(found(clean), AGAIN, "no step of `when` or `then` expects one")


@pytest.mark.parametrize(
    "expectation",
    [
        {"outcome": "refused", "reason": ["DUPLICATE", "NONCE_CONSUMED"]},
        {"any": [{"outcome": "refused", "reason": "DUPLICATE"}, {"outcome": "indeterminate"}]},
    ],
)
def test_a_refusal_may_be_one_of_several_answers(clean: Spoilt, expectation: dict[str, Any]) -> None:
    expect(clean.case(AGAIN), expectation)
    assert found(clean) == []


def test_a_malformed_call_counts_as_a_refusal(clean: Spoilt) -> None:
    clean.case("an-empty-key-is-malformed")["when"][0].pop("expect")
    assert found(clean) == []


def test_a_twin_that_is_not_to_be_accepted_is_found(clean: Spoilt) -> None:
    clean.case(AGAIN)["twin"]["expect"] = {"outcome": "refused", "reason": "DUPLICATE"}
    one(found(clean), AGAIN, "its twin must expect `outcome: accepted`")


def test_a_behaviour_that_only_refuses_is_found(clean: Spoilt) -> None:
    case = clean.case(SHELF)
    expect(case, {"outcome": "refused", "reason": "DUPLICATE"})
    one(found(clean), SHELF, "expects a refusal and nothing accepted")


@pytest.mark.parametrize(
    "first", [{"call": "put", "args": "$first"}, {"call": "put", "expect": {"outcome": "accepted"}}]
)
def test_a_behaviour_that_refuses_beside_an_acceptance_is_left_alone(clean: Spoilt, first: dict[str, Any]) -> None:
    case = clean.case(SHELF)
    case["given"] = [first]
    expect(case, {"outcome": "refused", "reason": "DUPLICATE"})
    assert found(clean) == []


def test_a_case_that_was_not_reviewed_with_its_clause_is_found(clean: Spoilt) -> None:
    drop_review(clean, AGAIN)
    one(found(clean), AGAIN, "was not reviewed with clause TOY-01", "--update")


def test_a_case_written_for_another_text_is_found_until_it_is_reviewed(clean: Spoilt) -> None:
    clean.clause("TOY-02")["text"] += " Not even once."
    one(found(clean), "a-consumed-nonce-puts-no-other-key", "was written for another text of clause TOY-02")
    note_digests(clean)
    assert found(clean) == []


@pytest.mark.parametrize("member", ["level", "basis", "section", "harm", "proof"])
def test_everything_that_a_clause_binds_is_in_its_digest(clean: Spoilt, member: str) -> None:
    other = {"level": "SHOULD", "basis": "derived", "section": "7", "harm": "Other harm.", "proof": "fitness"}
    clean.clause("TOY-02")[member] = other[member]
    assert any("written for another text of clause TOY-02" in problem for problem in found(clean))


def test_what_does_not_bind_is_not_in_the_digest(clean: Spoilt) -> None:
    clean.clause("TOY-02")["not_testable"] = "says the test"
    one(found(clean), "listed as not testable")


def test_a_review_with_a_clause_that_is_not_proven_is_found(clean: Spoilt) -> None:
    cases = load_lock(clean.folder).reviewed["TOY-05"].cases
    reviewed(clean, TOY_05=(*cases, AGAIN))
    one(found(clean), AGAIN, "is reviewed with clause TOY-05, which it does not prove")


def test_a_mutant_of_a_clause_that_does_not_exist_is_found(clean: Spoilt) -> None:
    stray = Mutant("stray", "Stray", {"TOY-77": "fail_open"})
    one(found(clean, [*MUTANTS, stray]), "mutant stray", "TOY-77, which does not exist")


def test_a_mutant_of_a_clause_that_no_run_proves_is_found(clean: Spoilt) -> None:
    clean.clause("TOY-03").update(proof="fitness")
    drop_case(clean)
    one(found(clean), "mutant forgets-3", "TOY-03, which no run proves")


def test_a_remedy_that_names_no_verdict_is_found(clean: Spoilt) -> None:
    remedy = {"cause": "c", "mends": "m", "tried": {"forgets-1": "toy/once/a-case"}, "clauses": ["TOY-01"]}
    clean.contract["remedies"] = {"again": remedy}
    one(found(clean), "remedy again", "no verdict")
    clean.contract["remedies"] = {"again": {**remedy, "verdicts": ["fail_open"]}}
    assert found(clean) == []


def test_a_mutant_that_stands_there_twice_is_found(clean: Spoilt) -> None:
    one(found(clean, [*MUTANTS, MUTANTS[0]]), "mutant forgets-1", "2 times")


def test_a_fault_of_a_mutant_that_does_not_exist_is_found(clean: Spoilt) -> None:
    struck = Mutant("struck", "Struck", {"TOY-01": "fail_open"}, faults={"toy/faults/none": "lost_durability"})
    one(found(clean, [*MUTANTS, struck]), "mutant struck", "toy/faults/none")


def test_an_explicit_must_that_no_mutant_breaks_is_found(clean: Spoilt) -> None:
    one(found(clean, without("TOY-02")), "clause TOY-02", "no mutant breaks it")


@pytest.mark.parametrize("changes", [{"level": "SHOULD"}, {"basis": "derived"}])
def test_other_clauses_need_no_mutant(clean: Spoilt, changes: dict[str, str]) -> None:
    clean.clause("TOY-02").update(changes)
    note_digests(clean)
    assert found(clean, without("TOY-02")) == []


def test_a_clause_that_no_bug_can_break_needs_no_mutant(clean: Spoilt) -> None:
    said = {"TOY-02": "nothing in the reference holds it alone"}
    assert found(clean, without("TOY-02"), unbreakable=said) == []


@pytest.mark.parametrize(("clause", "problem"), [("TOY-02", "a mutant breaks it"), ("TOY-77", "does not exist")])
def test_a_wrong_word_about_what_no_bug_can_break_is_found(clean: Spoilt, clause: str, problem: str) -> None:
    one(found(clean, unbreakable={clause: "says the test"}), f"clause {clause}", problem)


def test_a_case_without_twin_and_mutant_has_no_teeth(clean: Spoilt) -> None:
    clean.clause("TOY-05").update(basis="derived")
    note_digests(clean)
    one(found(clean, without("TOY-05")), "one-of-two-concurrent-puts-wins", "nothing shows its teeth")


def test_a_suite_test_of_a_clause_that_does_not_exist_is_found(clean: Spoilt) -> None:
    one(found(clean, suite={"toy/suite/x": ("TOY-01", "TOY-66")}), "suite test toy/suite/x", "TOY-66")


def test_every_problem_is_found_at_once(clean: Spoilt) -> None:
    clean.case(AGAIN).pop("twin")
    drop_review(clean, SHELF)
    assert len(found(clean, without("TOY-02"))) == 3


def permitted(toy: Spoilt, *choices: Choice, **no_choice: str) -> list[str]:
    """What the linter says where TOY-01 permits something."""
    toy.clause("TOY-01")["text"] = "A key stands once on the shelf, or it may stand there twice."
    note_digests(toy)
    declared = Mutants("toy", mutants=MUTANTS, choices=choices, no_choice=no_choice)
    return lint_contract(toy.read(), mutants=declared, suite_clauses={}, reviewed=load_lock(toy.folder).reviewed)


def test_what_a_clause_permits_has_a_variant_or_a_reason(clean: Spoilt) -> None:
    one(permitted(clean), "clause TOY-01", "permits something ('may')")
    assert permitted(clean, Choice("twice", "it may stand there twice", ("TOY-01",))) == []
    assert permitted(clean, **{"TOY-01": "no shelf is so wide"}) == []


def test_a_choice_quotes_the_clause_that_permits_it(clean: Spoilt) -> None:
    one(permitted(clean, Choice("thrice", "it may stand there thrice", ("TOY-01",))), "choice thrice", "does not stand")
    twice = Choice("twice", "it may stand there twice", ("TOY-01", "TOY-99"))
    one(permitted(clean, twice), "choice twice", "TOY-99")


def test_a_reason_for_no_choice_is_of_a_clause_that_has_none(clean: Spoilt) -> None:
    twice = Choice("twice", "it may stand there twice", ("TOY-01",))
    one(permitted(clean, twice, **{"TOY-01": "no shelf is so wide"}), "clause TOY-01", "no_choice")


@pytest.mark.parametrize("text", ["", "{}", '{"contract": "shelf"}', '{"contract": 3}'])
def test_a_lock_that_is_damaged_or_of_another_contract_is_refused(clean: Spoilt, text: str) -> None:
    (clean.folder / "lock.json").write_text(text)
    with pytest.raises(SpecError, match="expected"):
        load_lock(clean.folder)
