"""(e): one transaction, which is durable."""

from __future__ import annotations

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Part
from holdfast.conformance.fitness.policy import KEYS, NONCE
from holdfast.conformance.fitness.sqlite.catalogue import Relation
from holdfast.conformance.fitness.sqlite.criteria.keys import (
    tried,
)
from holdfast.conformance.fitness.sqlite.files import commits
from holdfast.conformance.fitness.sqlite.judging import Judging
from holdfast.conformance.fitness.sqlite.outcomes import Outcome, came_to, counts, of_attempt


def atomic(judging: Judging) -> None:
    """(e): effect and nonce are consumed in one transaction, which is durable."""
    effect, nonce = judging.table(Part.EFFECT), judging.table(Part.NONCE)
    if effect is None:
        return
    commits(judging, judging.main)
    if nonce is None:
        judging.unproven(
            Code.MISSING_RELATION, "there is no nonce that is consumed in the same transaction", Part.NONCE
        )
    _arbiter(judging, effect, Part.EFFECT, KEYS[0], "arbiter")
    if nonce is not None:
        _arbiter(judging, nonce, Part.NONCE, NONCE, "nonce-arbiter")
    _rolled_back(judging)
    if judging.policy.column(KEYS[0]) in effect.columns:
        _raced(judging)
    killed = judging.probe("killed")
    left = counts(killed)
    if killed is None or left is None or any(answer.sqlstate for answer in killed.answers):
        judging.shown(Part.EFFECT, {"killed": Outcome.NOT_SHOWN})
    elif any(left.values()):
        judging.refute(Code.NOT_ATOMIC, "rows of a process that died before the commit are there", probes=("killed",))


def _arbiter(judging: Judging, relation: Relation, which: Part, word: str, name: str) -> None:
    """ON CONFLICT DO NOTHING of a known key: no error, and no row."""
    column = judging.policy.column(word)
    if column not in relation.columns:
        return  # said elsewhere
    outcome = tried(judging, name)
    if outcome in (Outcome.NOT_SHOWN,):
        judging.shown(which, {name: outcome})
    elif outcome is not Outcome.SILENT:
        text = f"INSERT ... ON CONFLICT ({column}) DO NOTHING of a known value: {came_to(judging.evidence.probe(name))}"
        judging.refute(Code.ARBITER_UNUSABLE, f"{relation.name}: {text}; {outcome.value}", which, probes=(name,))


def _rolled_back(judging: Judging) -> None:
    probe = judging.probe("rollback")
    inside, after = counts(probe, -3), counts(probe)
    if inside is None or after is None or not all(inside.values()):
        judging.shown(Part.EFFECT, {"rollback": Outcome.NOT_SHOWN})
    elif any(after.values()):
        judging.refute(Code.NOT_ATOMIC, "rows of a transaction that was rolled back are there", probes=("rollback",))


def _raced(judging: Judging) -> None:
    probe = judging.probe("race")
    outcome = of_attempt(probe)
    waited = probe is not None and any((answer.sqlstate or "").startswith("SQLITE_BUSY") for answer in probe.answers)
    if outcome in (Outcome.ADMITTED, Outcome.ERASED, Outcome.SILENT) or (outcome is Outcome.REFUSED and not waited):
        text = f"of two sessions with one key, the second one's row: {outcome.value}"
        judging.refute(Code.RACE_LOST, text, Part.EFFECT, probes=("race",))
    judging.shown(Part.EFFECT, {"race": outcome})
