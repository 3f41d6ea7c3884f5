"""Linting contracts: checks that `load_contract` omits, because they need the whole contract or the mutants.

Each check returns problems as text; none of them stops at the first.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from holdfast.specs.consistency import leaves_of, step_facts
from holdfast.specs.faults import FaultCase
from holdfast.specs.lock import Review, Reviewed
from holdfast.specs.model import Basis, Case, CaseKind, Contract, Level, Proof
from holdfast.specs.mutants import Mutants

# Words of a clause that leave something open, and two reasons for one refusal.
_PERMITS = re.compile(
    r"\b(may|optional|optionally|either|need not|at liberty|not demanded)\b|\b[A-Z]+_[A-Z_]+ or (with )?[A-Z]+_[A-Z_]+"
)


def lint_contract(
    contract: Contract, *, mutants: Mutants, suite_clauses: Mapping[str, tuple[str, ...]], reviewed: Reviewed
) -> list[str]:
    """Every problem of a contract with its cases and mutants.

    `suite_clauses` maps the plan id of each suite test to the clauses it proves; `reviewed` is that of its lock.
    """
    return [
        *_coverage(contract, suite_clauses),
        *_refusals(contract),
        *_reviews(contract, reviewed),
        *_mutants(contract, mutants),
        *_choices(contract, mutants),
        *_teeth(contract, mutants),
        *_remedies(contract, mutants),
        *_named(contract, mutants, suite_clauses),
        *unswept(contract),
    ]


def _remedies(contract: Contract, mutants: Mutants) -> Iterable[str]:
    """Advice was tried: the planted bugs that it names are there, and so are its clauses."""
    planted = {mutant.name for mutant in mutants.mutants}
    for remedy in contract.remedies.values():
        for name in sorted({*remedy.tried} - planted | {*remedy.clauses} - contract.clauses.keys()):
            yield f"remedy {remedy.name}: names {name}, which is no planted bug and no clause"
        if not remedy.clauses and remedy.detail is None:
            yield f"remedy {remedy.name}: says neither by clauses nor by a detail what it mends"
        if not remedy.verdicts:
            yield f"remedy {remedy.name}: says no verdict of what it mends; write `verdicts: [fail_open]`"


def _coverage(contract: Contract, suite_clauses: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    covered = {clause for case in contract.cases for clause in case.clauses}
    covered |= {clause for fault in contract.faults for clause in fault.clauses}
    covered |= {clause for clauses in suite_clauses.values() for clause in clauses}
    for clause in contract.clauses.values():
        if clause.not_testable is not None and clause.id in covered:
            yield f"clause {clause.id}: listed as not testable, yet a case covers it; drop one of the two"
        if clause.proof is Proof.RUN and clause.not_testable is None and clause.id not in covered:
            yield f"clause {clause.id}: no case and no suite test covers it; write one, or say `not_testable: why`"


def _refusals(contract: Contract) -> Iterable[str]:
    for case in contract.cases:
        refused = any(_expects_refusal(step) for step in (*case.when, *case.then))
        if case.kind is CaseKind.REFUSAL and case.twin is None:
            yield f"case {case.id}: a refusal without a twin proves nothing; add the accepted sibling"
        if case.kind is CaseKind.REFUSAL and not refused:
            yield f"case {case.id}: is of kind refusal, but no step of `when` or `then` expects one"
        if case.twin is not None and case.twin.expect.get("outcome") != "accepted":
            yield f"case {case.id}: its twin must expect `outcome: accepted`"
        # A refusal that is checked beside other things still needs something accepted in the same case.
        if case.kind is not CaseKind.REFUSAL and refused and case.twin is None and not _accepts_something(case):
            yield f"case {case.id}: expects a refusal and nothing accepted; make it kind refusal, with a twin"


def _expects_refusal(step: Mapping[str, object]) -> bool:
    if step.get("malformed"):
        return True
    expect = step.get("expect")
    if not isinstance(expect, Mapping):
        return False
    options = expect.get("any", [expect])
    return isinstance(options, list) and any(option.get("outcome") == "refused" for option in options)


def _accepts_something(case: Case) -> bool:
    for step in (*case.given, *case.when, *case.then):
        if step_facts("accepts").keys() & step.keys():
            expect = step.get("expect", {"outcome": "accepted"})
            if "one" in expect or (not step.get("malformed") and expect.get("outcome") == "accepted"):
                return True
    return False


def proving(contract: Contract) -> dict[str, list[str]]:
    """The cases and faults that prove each clause; none of a clause that only suite tests prove."""
    written: list[Case | FaultCase] = [*contract.cases, *contract.faults]
    found: dict[str, list[str]] = {}
    for case in written:
        for name in case.clauses:
            found.setdefault(name, []).append(case.id)
    return found


def reviewed_now(contract: Contract) -> dict[str, Review]:
    """The cases that prove each clause, with the digest of its text: what a lock says after a review."""
    return {name: Review(contract.clauses[name].digest, tuple(ids)) for name, ids in proving(contract).items()}


def _reviews(contract: Contract, reviewed: Reviewed) -> Iterable[str]:
    proven = proving(contract)
    for name in {**proven, **reviewed}:
        noted, clause, cases = reviewed.get(name), contract.clauses.get(name), proven.get(name, [])
        for case in cases:
            if noted is None or case not in noted.cases:
                yield f"case {case}: was not reviewed with clause {name}; run `holdfast lint specs --update`"
            elif clause is not None and noted.text != clause.digest:
                yield (
                    f"case {case}: was written for another text of clause {name}; "
                    "review it, then run `holdfast lint specs --update`"
                )
        for case in set(() if noted is None else noted.cases) - {*cases}:
            yield f"case {case}: is reviewed with clause {name}, which it does not prove"


def _mutants(contract: Contract, declared: Mutants) -> Iterable[str]:
    faults = {fault.id for fault in contract.faults}
    for name, count in Counter(mutant.name for mutant in declared.mutants).items():
        if count > 1:
            yield f"mutant {name}: stands there {count} times"
    for mutant in declared.mutants:
        for clause_id in mutant.must_fail:
            clause = contract.clauses.get(clause_id)
            if clause is not None and clause.proof is not Proof.RUN:
                yield f"mutant {mutant.name}: breaks clause {clause_id}, which no run proves"
        for fault_id in mutant.faults.keys() - faults:
            yield f"mutant {mutant.name}: has the fault {fault_id}, which does not exist"
    for clause_id in declared.unbreakable:
        if declared.breaking(clause_id):
            yield f"clause {clause_id}: is called unbreakable in mutants.yaml, yet a mutant breaks it"


def _choices(contract: Contract, declared: Mutants) -> Iterable[str]:
    """Each clause that permits something has a variant that does it, or a reason why there is none."""
    texts = {clause.id: " ".join(clause.text.split()) for clause in contract.clauses.values()}
    for choice in declared.choices:
        if choice.permitted not in texts.get(choice.clauses[0], ""):
            yield f"choice {choice.name}: {choice.permitted!r} does not stand in clause {choice.clauses[0]}"
    open_, chosen = declared.no_choice.keys(), {choice.clauses[0] for choice in declared.choices}
    for clause_id, text in texts.items():
        permits = _PERMITS.search(text)
        if permits and clause_id not in open_ | chosen:
            yield (
                f"clause {clause_id}: permits something ({permits.group()!r}), and no choice of mutants.yaml makes it; "
                "add a variant of the reference, or say under `no_choice` why there is none"
            )
    for clause_id in open_ & chosen:
        yield f"clause {clause_id}: stands under `no_choice`, and has a choice"


def _teeth(contract: Contract, declared: Mutants) -> Iterable[str]:
    guarded = {clause for mutant in declared.mutants for clause in mutant.must_fail} | declared.unbreakable.keys()
    for clause in contract.clauses.values():
        needs = clause.proof is Proof.RUN and clause.basis is Basis.EXPLICIT and clause.level is Level.MUST
        if needs and clause.id not in guarded and clause.not_testable is None:
            yield f"clause {clause.id}: no mutant breaks it; plant one, or say under `unbreakable` why none can"
    for case in contract.cases:
        if case.kind is not CaseKind.REFUSAL and not guarded & set(case.clauses):
            yield f"case {case.id}: is no refusal with a twin and no mutant breaks its clauses; nothing shows its teeth"
    for fault in contract.faults:
        if not guarded & set(fault.clauses):
            yield f"fault {fault.id}: no mutant breaks its clauses; nothing shows its teeth"


def _named(contract: Contract, declared: Mutants, suite_clauses: Mapping[str, tuple[str, ...]]) -> Iterable[str]:
    """Every clause that is named is there."""
    named: list[tuple[str, Iterable[str]]] = [
        *((f"suite test {test}: proves", names) for test, names in suite_clauses.items()),
        *((f"mutant {mutant.name}: breaks", mutant.must_fail) for mutant in declared.mutants),
        *((f"choice {choice.name}: names", choice.clauses) for choice in declared.choices),
        ("unbreakable of mutants.yaml: names", declared.unbreakable),
        ("no_choice of mutants.yaml: names", declared.no_choice),
    ]
    for who, clauses in named:
        yield from (f"{who} clause {name}, which does not exist" for name in clauses if name not in contract.clauses)


def unswept(contract: Contract) -> Iterable[str]:
    """The leaves that no sweep varies and for which no reason is given."""
    if contract.neighbours is None:
        return
    swept = {name for sweep in contract.neighbours.sweeps.values() for name in sweep.leaves}
    for name, place in leaves_of(contract).items():
        if place.leaf is None:
            yield f"leaf {name}: says not what it is; give its schema in methods.yaml an x-leaf"
        elif name not in swept and name not in contract.neighbours.unswept:
            yield f"leaf {name}: no sweep of neighbours.yaml varies it; write one, or say under `unswept` why not"
        elif name in swept and name in contract.neighbours.unswept:
            yield f"leaf {name}: a sweep varies it, yet `unswept` says why not; drop one of the two"
