"""Finds the relations of a file that can be the parts of a surface, by their columns and never by their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.model import Candidate, Criterion, Part, Reason, RelationName, Standing, Surface
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE, Policy
from holdfast.conformance.fitness.sqlite.catalogue import Relation, database
from holdfast.conformance.fitness.sqlite.live import MAIN
from holdfast.conformance.fitness.sqlite.snapshot import take

# An audit lies in another file, which cannot be found from here: the caller has to name it.
_SEARCHED = (Part.EFFECT, Part.NONCE)
_COLUMNS = {Part.EFFECT: (*KEYS, *BINDINGS), Part.NONCE: (NONCE, KEYS[0])}
_CRITERION = {Part.EFFECT: Criterion.SINGLE_USE, Part.NONCE: Criterion.NONCE}


def search(path: Path, policy: Policy) -> tuple[Candidate, ...]:
    """Every relation as the effect and as the nonce, and why it is not. Raises FitnessError."""
    snapshot = take(path, Surface("", {}, None), policy)
    return tuple(
        Candidate(RelationName(MAIN, relation.name), which, tuple(_reasons(relation, which, policy)))
        for relation in database(snapshot).relations.values()
        for which in _SEARCHED
    )


def _reasons(relation: Relation, which: Part, policy: Policy) -> Iterator[Reason]:
    def reason(code: Code, text: str) -> Reason:
        return Reason(_CRITERION[which], Standing.REFUTED, code.value, text, which, (relation.row,))

    if not relation.is_table:
        yield reason(Code.NOT_A_TABLE, f"{relation.name} is a {relation.kind}, not a table")
    gone = [policy.column(word) for word in _COLUMNS[which] if policy.column(word) not in relation.columns]
    if gone:
        yield reason(Code.MISSING_COLUMNS, f"{relation.name} has no column {', '.join(gone)}")
    elif which is Part.NONCE and not relation.unique_on(policy.column(NONCE)):
        yield reason(Code.KEY_NOT_UNIQUE, f"{relation.name} has no unique index on {policy.column(NONCE)} alone")


def choose(candidates: Sequence[Candidate], *, named: Mapping[Part, RelationName]) -> dict[Part, RelationName]:
    """The candidate of each part that has exactly one and is not named. Raises FitnessError if a part has several."""
    found: dict[Part, RelationName] = {}
    for which in _SEARCHED:
        fitting = [each.relation for each in candidates if each.part is which and not each.reasons]
        fitting = [each for each in fitting if each not in named.values() and each not in found.values()]
        if which in named or not fitting:
            continue
        if len(fitting) > 1:
            names = ", ".join(each.name for each in fitting)
            raise FitnessError(f"several tables could be the {which.value}: {names}; name one with --{which.value}")
        found[which] = fitting[0]
    return found
