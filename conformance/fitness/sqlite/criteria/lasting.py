"""(h) and (i): what is stored can be read, and stays."""

from __future__ import annotations

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.endings import Ending, Sense
from holdfast.conformance.fitness.model import Part
from holdfast.conformance.fitness.sqlite.catalogue import Column, Relation
from holdfast.conformance.fitness.sqlite.criteria.binding import changes_texts
from holdfast.conformance.fitness.sqlite.criteria.keys import (
    tried,
)
from holdfast.conformance.fitness.sqlite.judging import Judging
from holdfast.conformance.fitness.sqlite.outcomes import Outcome
from holdfast.conformance.fitness.sqlite.retention import endings, is_endless

_HARMLESS = ("NO ACTION", "RESTRICT")


def prior_decision(judging: Judging) -> None:
    """(h): the stored decision can be read back."""
    effect = judging.table(Part.EFFECT)
    if effect is None or not judging.columns(effect, Part.EFFECT, ("decision",)):
        return
    column = effect.columns[judging.policy.column("decision")]
    judging.rows.append(column.row)
    if column.affinity in ("NUMERIC", "REAL"):
        judging.refute(
            Code.KEY_TYPE, changes_texts(f"{effect.name}.{column.name}", column), Part.EFFECT, rows=(column.row,)
        )
    if not effect.is_rowid(column):
        if not effect.refuses_null(column):
            by, text = judging.refusal("decision-null"), f"{effect.name}.{column.name} is not declared NOT NULL"
            judging.refute_unless(by, Code.DECISION_NULLABLE, text, Part.EFFECT, (column.row,))
        found = {"decision-null": tried(judging, "decision-null")}
        judging.refused(Part.EFFECT, found, Code.DECISION_NULLABLE, "a row without a decision went in")
    probe = judging.probe("read-back")
    if probe is None or probe.answer is None or probe.answer.sqlstate is not None:
        judging.shown(Part.EFFECT, {"read-back": Outcome.NOT_SHOWN})
    elif len(probe.answer.rows) != 1 or probe.answer.rows[0]["decision"] is None:
        text = f"another session found {len(probe.answer.rows)} decisions of the stored request"
        judging.refute(Code.DECISION_HIDDEN, text, Part.EFFECT, probes=("read-back",))


def retention(judging: Judging) -> None:
    """(i): what is stored stays."""
    for which in (Part.EFFECT, Part.NONCE):
        relation = judging.table(which)
        if relation is not None:
            _cascades(judging, relation, which)
            _housekeeping(judging, relation, which)
            _endings(judging, relation, which)


def _cascades(judging: Judging, relation: Relation, which: Part) -> None:
    for key in judging.main.foreign_keys:
        if relation.name.casefold() not in (key.relation.casefold(), key.parent.casefold()):
            continue
        judging.rows += key.rows
        for event, action in (("DELETE", key.on_delete), ("UPDATE", key.on_update)):
            if action.upper() not in _HARMLESS:
                text = f"a foreign key of {key.relation} to {key.parent} says ON {event} {action}"
                judging.refute(Code.CASCADE, text, which, rows=key.rows)


def _housekeeping(judging: Judging, relation: Relation, which: Part) -> None:
    for each in (trigger for other in judging.main.relations.values() for trigger in other.triggers):
        if each.takes_from(relation.name):
            text = f"the trigger {each.name} on {each.relation} deletes or changes rows of {relation.name}"
            judging.refute(
                Code.HOUSEKEEPING, text, which,
                rows=({"relation": each.relation, "trigger": each.name, "timing": each.timing, "event": each.event},),
            )  # fmt: skip


def _endings(judging: Judging, relation: Relation, which: Part) -> None:
    found = {column.name: (column, said) for column, said in endings(relation)}
    for column, said in found.values():
        _ending(judging, f"{relation.name}.{column.name}", column, said, which)
    until = relation.columns.get(judging.policy.column("retain_until"))
    if until is not None and not is_endless(found.get(until.name, (until, None))[1], judging.policy.horizon):
        text = f"{relation.name}.{until.name} is left to the writer: its default is no time behind the horizon"
        judging.unproven(Code.RETENTION_UNKNOWN, text, which, rows=(until.row,))


def _ending(judging: Judging, name: str, column: Column, said: Ending, which: Part) -> None:
    horizon = judging.policy.horizon
    default = "generated" if column.default is None else f"{column.default} by default"
    if said.sense is Sense.LATER and (horizon is None or (said.length is not None and said.length < horizon)):
        ends = "later" if said.length is None else f"after {said.length.total_seconds() / 86_400:g} days"
        text = f"{name} is {default}: the row ends {ends}; write '9999-12-31' for a row that is kept for ever"
        judging.refute(Code.RETENTION_TTL, text, which, rows=(column.row,))
    elif said.sense is Sense.LATER and said.length is None:
        text = f"{name} is {default}, which is not shown to lie beyond {horizon}"
        judging.unproven(Code.RETENTION_UNKNOWN, text, which, rows=(column.row,))
    elif said.sense in (Sense.INSTANT, Sense.UNCLEAR):
        why = said.why or "that may be read as a time or a span"
        text = (
            f"{name} is {default}, and is not shown to be no end of the row: {why}; write '9999-12-31' for ever, and "
            "CURRENT_TIMESTAMP for the moment in which a row is made"
        )
        judging.unproven(Code.RETENTION_UNKNOWN, text, which, rows=(column.row,))
