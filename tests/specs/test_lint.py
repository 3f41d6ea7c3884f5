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
from tests.specs.conftest import Change, Spoilt

AGAIN = "a-second-put-of-a-key-is-refused"
SHELF, MALFORMED = "a-put-key-stands-on-the-shelf", "an-empty-key-is-malformed"
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


def drop_case(toy: Spoilt, **changes: str) -> None:
    """The only case of TOY-03 goes, and the clause is changed."""
    toy.once["cases"].remove(toy.case(MALFORMED))
    note_digests(toy)
    toy.clause("TOY-03").update(changes)


def drop_review(toy: Spoilt, words: str) -> None:
    """The case whose id ends so was not reviewed with TOY-01."""
    cases = load_lock(toy.folder, "toy").reviewed["TOY-01"].cases
    reviewed(toy, TOY_01=tuple(case for case in cases if not case.endswith(words)))


def reviewed(toy: Spoilt, **changes: tuple[str, ...]) -> None:
    """Other cases that were reviewed with these clauses; `TOY_01` is the clause TOY-01."""
    lock = load_lock(toy.folder, "toy")
    named = {name.replace("_", "-"): cases for name, cases in changes.items()}
    changed = {name: Review(lock.reviewed[name].text, cases) for name, cases in named.items()}
    write_lock(toy.folder, structs.replace(lock, reviewed={**lock.reviewed, **changed}))


def found(
    toy: Spoilt,
    mutants: Sequence[Mutant] = MUTANTS,
    suite: Mapping[str, tuple[str, ...]] | None = None,
    **declared: Any,
) -> list[str]:
    """What the linter reports."""
    bugs, reviewed = Mutants("toy", mutants=tuple(mutants), **declared), load_lock(toy.folder, "toy").reviewed
    return lint_contract(toy.read(), mutants=bugs, suite_clauses=suite or {}, reviewed=reviewed)


def without(*clauses: str) -> list[Mutant]:
    """The mutants that break none of these clauses."""
    return [mutant for mutant in MUTANTS if not mutant.must_fail.keys() & set(clauses)]


def expect(toy: Spoilt, words: str, expectation: dict[str, Any]) -> None:
    """Change what the first step of `when` of a case expects."""
    toy.case(words)["when"][0]["expect"] = expectation


def beside(toy: Spoilt, first: dict[str, Any]) -> None:
    """A behaviour that refuses behind this step."""
    toy.case(SHELF)["given"] = [first]
    expect(toy, SHELF, REFUSED)


def noted(toy: Spoilt, clause: str, **changes: str) -> None:
    """A clause that was changed, and reviewed then."""
    toy.clause(clause).update(changes)
    note_digests(toy)


def permits(toy: Spoilt) -> None:
    """TOY-01 permits something."""
    noted(toy, "TOY-01", text="A key stands once on the shelf, or it may stand there twice.")


def remedied(toy: Spoilt, **more: Any) -> None:
    """The contract has a remedy."""
    remedy = {"cause": "c", "mends": "m", "tried": {"forgets-1": "toy/once/a-case"}, "clauses": ["TOY-01"]}
    toy.contract["remedies"] = {"again": {**remedy, **more}}


REFUSED = {"outcome": "refused", "reason": "DUPLICATE"}
EITHER = {"outcome": "refused", "reason": ["DUPLICATE", "NONCE_CONSUMED"]}
UNSURE = {"any": [REFUSED, {"outcome": "indeterminate"}]}
UNSEEN = {"not_testable": "there is no way to see it from outside"}
STRAY = Mutant("stray", "Stray", {"TOY-77": "fail_open"})
STRUCK = Mutant("struck", "Struck", {"TOY-01": "fail_open"}, faults={"toy/faults/none": "lost_durability"})
GARBAGE = {"toy/suite/any-garbage-is-malformed": ("TOY-03",)}


def row(change: Change = lambda _: None, said: str = "", **told: Any) -> tuple[Change, str, dict[str, Any]]:
    """What becomes of the toy contract, words of the one problem, if any, and what the linter is told besides."""
    return change, said, told


TWICE, THRICE = (Choice(word, f"it may stand there {word}", ("TOY-01",)) for word in ("twice", "thrice"))
NARROW = "no shelf is so wide"
NO_BUG = {"TOY-02": "nothing in the reference holds it alone"}
ROWS = {
    "nothing": row(),
    "an uncovered clause": row(drop_case, "clause TOY-03; no case and no suite test covers it"),
    "no clause of a suite test": row(drop_case, suite=GARBAGE),
    "no clause that is not testable": row(lambda t: drop_case(t, **UNSEEN)),
    "no clause of a live surface": row(lambda t: drop_case(t, proof="fitness"), mutants=without("TOY-03")),
    "what is covered": row(
        lambda t: t.clause("TOY-03").update(UNSEEN), "clause TOY-03; listed as not testable, yet a case covers it"
    ),
    "no twin": row(lambda t: t.case(AGAIN).pop("twin"), f"{AGAIN}; a refusal without a twin proves nothing"),
    "no refusal": row(
        lambda t: expect(t, AGAIN, {"outcome": "accepted"}), f"{AGAIN}; no step of `when` or `then` expects one"
    ),
    "no one of two reasons": row(lambda t: expect(t, AGAIN, EITHER)),
    "no one of two outcomes": row(lambda t: expect(t, AGAIN, UNSURE)),
    "no malformed call": row(lambda t: t.case(MALFORMED)["when"][0].pop("expect")),
    "a refused twin": row(
        lambda t: t.case(AGAIN)["twin"].update(expect=REFUSED), f"{AGAIN}; its twin must expect `outcome: accepted`"
    ),
    "only a refusal": row(lambda t: expect(t, SHELF, REFUSED), f"{SHELF}; expects a refusal and nothing accepted"),
    "no refusal behind a preparation": row(lambda t: beside(t, {"call": "put", "args": "$first"})),
    "no refusal behind an acceptance": row(lambda t: beside(t, {"call": "put", "expect": {"outcome": "accepted"}})),
    "no review": row(lambda t: drop_review(t, AGAIN), f"{AGAIN}; was not reviewed with clause TOY-01; --update"),
    "a review of nothing proven": row(
        lambda t: reviewed(t, TOY_05=(*load_lock(t.folder, "toy").reviewed["TOY-05"].cases, AGAIN)),
        f"{AGAIN}; is reviewed with clause TOY-05, which it does not prove",
    ),
    "no other digest": row(lambda t: t.clause("TOY-02").update(UNSEEN), "listed as not testable"),
    "a mutant of no clause": row(said="mutant stray; TOY-77, which does not exist", mutants=[*MUTANTS, STRAY]),
    "a mutant of no run": row(lambda t: drop_case(t, proof="fitness"), "mutant forgets-3; TOY-03, which no run proves"),
    "a mutant twice": row(said="mutant forgets-1; 2 times", mutants=[*MUTANTS, MUTANTS[0]]),
    "a fault of no case": row(said="mutant struck; toy/faults/none", mutants=[*MUTANTS, STRUCK]),
    "a must of no mutant": row(said="clause TOY-02; no mutant breaks it", mutants=without("TOY-02")),
    "no mere should": row(lambda t: noted(t, "TOY-02", level="SHOULD"), mutants=without("TOY-02")),
    "nothing derived": row(lambda t: noted(t, "TOY-02", basis="derived"), mutants=without("TOY-02")),
    "nothing unbreakable": row(mutants=without("TOY-02"), unbreakable=NO_BUG),
    "what a mutant breaks": row(said="clause TOY-02; a mutant breaks it", unbreakable=NO_BUG),
    "what is not there": row(said="clause TOY-77; does not exist", unbreakable={"TOY-77": "says the test"}),
    "no teeth": row(
        lambda t: noted(t, "TOY-05", basis="derived"),
        "one-of-two-concurrent-puts-wins; nothing shows its teeth",
        mutants=without("TOY-05"),
    ),
    "a remedy of no verdict": row(remedied, "remedy again; no verdict"),
    "no remedy of a verdict": row(lambda t: remedied(t, verdicts=["fail_open"])),
    "what a clause permits": row(permits, "clause TOY-01; permits something ('may')"),
    "no variant of it": row(permits, choices=(TWICE,)),
    "no reason for none": row(permits, no_choice={"TOY-01": NARROW}),
    "what it does not permit": row(permits, "choice thrice; does not stand", choices=(TWICE, THRICE)),
    "a choice of no clause": row(
        permits, "choice twice; TOY-99", choices=(structs.replace(TWICE, clauses=("TOY-01", "TOY-99")),)
    ),
    "a choice and a reason": row(permits, "clause TOY-01; no_choice", choices=(TWICE,), no_choice={"TOY-01": NARROW}),
    "a reason of no clause": row(
        permits, "no_choice; TOY-99, which does not exist", choices=(TWICE,), no_choice={"TOY-99": NARROW}
    ),
    "a test of no clause": row(said="suite test toy/suite/x; TOY-66", suite={"toy/suite/x": ("TOY-01", "TOY-66")}),
}


@pytest.mark.parametrize("what", ROWS)
def test_the_linter_finds(what: str, clean: Spoilt) -> None:
    change, said, told = ROWS[what]
    change(clean)
    problems = found(clean, **told)
    assert len(problems) == bool(said), problems
    assert all(words in problem for problem in problems for words in said.split("; ")), problems


def test_a_case_written_for_another_text_is_found_until_it_is_reviewed(clean: Spoilt) -> None:
    clean.clause("TOY-02")["text"] += " Not even once."
    (problem,) = found(clean)
    assert "a-consumed-nonce-puts-no-other-key: was written for another text of clause TOY-02" in problem
    note_digests(clean)
    assert found(clean) == []


@pytest.mark.parametrize("member", ["level", "basis", "section", "harm", "proof"])
def test_everything_that_a_clause_binds_is_in_its_digest(clean: Spoilt, member: str) -> None:
    other = {"level": "SHOULD", "basis": "derived", "section": "7", "harm": "Other harm.", "proof": "fitness"}
    clean.clause("TOY-02")[member] = other[member]
    assert any("written for another text of clause TOY-02" in problem for problem in found(clean))


def test_every_problem_is_found_at_once(clean: Spoilt) -> None:
    clean.case(AGAIN).pop("twin")
    drop_review(clean, SHELF)
    assert len(found(clean, without("TOY-02"))) == 3


@pytest.mark.parametrize("text", ["", "{}", '{"contract": "shelf"}', '{"contract": 3}'])
def test_a_lock_that_is_damaged_or_of_another_contract_is_refused(clean: Spoilt, text: str) -> None:
    (clean.folder / "lock.json").write_text(text)
    with pytest.raises(SpecError, match="expected"):
        load_lock(clean.folder, "toy")
