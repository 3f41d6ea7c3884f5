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
from holdfast.conformance.fitness.sqlite.outcomes import Outcome, came_to, counts, of_attempt
from holdfast.conformance.fitness.sqlite.sheet import Sheet


def atomic(sheet: Sheet) -> None:
    """(e): effect and nonce are consumed in one transaction, which is durable."""
    effect, nonce = sheet.table(Part.EFFECT), sheet.table(Part.NONCE)
    if effect is None:
        return
    commits(sheet, sheet.main)
    if nonce is None:
        sheet.doubt(Code.MISSING_RELATION, "there is no nonce that is consumed in the same transaction", Part.NONCE)
    _arbiter(sheet, effect, Part.EFFECT, KEYS[0], "arbiter")
    if nonce is not None:
        _arbiter(sheet, nonce, Part.NONCE, NONCE, "nonce-arbiter")
    _rolled_back(sheet)
    if sheet.policy.column(KEYS[0]) in effect.columns:
        _raced(sheet)
    killed = sheet.probe("killed")
    left = counts(killed)
    if killed is None or left is None or any(answer.sqlstate for answer in killed.answers):
        sheet.shown(Part.EFFECT, {"killed": Outcome.NOT_SHOWN})
    elif any(left.values()):
        sheet.refute(Code.NOT_ATOMIC, "rows of a process that died before the commit are there", probes=("killed",))


def _arbiter(sheet: Sheet, relation: Relation, which: Part, word: str, name: str) -> None:
    """ON CONFLICT DO NOTHING of a known key: no error, and no row."""
    column = sheet.policy.column(word)
    if column not in relation.columns:
        return  # said elsewhere
    outcome = tried(sheet, name)
    if outcome in (Outcome.NOT_SHOWN,):
        sheet.shown(which, {name: outcome})
    elif outcome is not Outcome.SILENT:
        text = f"INSERT ... ON CONFLICT ({column}) DO NOTHING of a known value: {came_to(sheet.evidence.probe(name))}"
        sheet.refute(Code.ARBITER_UNUSABLE, f"{relation.name}: {text}; {outcome.value}", which, probes=(name,))


def _rolled_back(sheet: Sheet) -> None:
    probe = sheet.probe("rollback")
    inside, after = counts(probe, -3), counts(probe)
    if inside is None or after is None or not all(inside.values()):
        sheet.shown(Part.EFFECT, {"rollback": Outcome.NOT_SHOWN})
    elif any(after.values()):
        sheet.refute(Code.NOT_ATOMIC, "rows of a transaction that was rolled back are there", probes=("rollback",))


def _raced(sheet: Sheet) -> None:
    probe = sheet.probe("race")
    outcome = of_attempt(probe)
    waited = probe is not None and any((answer.sqlstate or "").startswith("SQLITE_BUSY") for answer in probe.answers)
    if outcome in (Outcome.ADMITTED, Outcome.ERASED, Outcome.SILENT) or (outcome is Outcome.REFUSED and not waited):
        text = f"of two sessions with one key, the second one's row: {outcome.value}"
        sheet.refute(Code.RACE_LOST, text, Part.EFFECT, probes=("race",))
    sheet.shown(Part.EFFECT, {"race": outcome})
