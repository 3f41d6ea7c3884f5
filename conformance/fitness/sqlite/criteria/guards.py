"""(f) and (g): nothing is changed, and the audit outlives a rollback."""

from __future__ import annotations

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Part
from holdfast.conformance.fitness.sqlite.catalogue import Relation
from holdfast.conformance.fitness.sqlite.criteria.keys import (
    sound,
    swallowed,
    unreviewed,
)
from holdfast.conformance.fitness.sqlite.files import commits, rights
from holdfast.conformance.fitness.sqlite.judging import Judging
from holdfast.conformance.fitness.sqlite.outcomes import Outcome, came_to, counts, of_addition, of_change
from holdfast.conformance.fitness.sqlite.records import taken_again
from holdfast.conformance.fitness.sqlite.snapshot import AUDIT
from holdfast.conformance.fitness.sqlite.sqltext import Trigger
from holdfast.conformance.fitness.sqlite.tampering import SUFFIX


def append_only(judging: Judging) -> None:
    """(f): no other program writes, and nothing is changed."""
    for which in (Part.EFFECT, Part.NONCE):
        relation = judging.table(which)
        if relation is not None:
            _guarded(judging, relation, which)
    rights(judging, judging.main, judging.beside(), None)


def _guarded(judging: Judging, relation: Relation, which: Part) -> None:
    guards = [each for each in relation.triggers if each.event in ("UPDATE", "DELETE")]
    for each in guards:
        judging.rows.append(
            {"relation": relation.name, "trigger": each.name, "timing": each.timing, "event": each.event}
        )
    verbs = {"UPDATE": ("update",), "DELETE": ("delete", "truncate")}
    by = {event: judging.refusal(*(f"writer-{verb}{SUFFIX[which]}" for verb in verbs[event])) for event in verbs}
    if not relation.triggers:
        all_by = "; ".join(by.values()) if all(by.values()) else ""
        text = f"no trigger guards {relation.name}"
        judging.refute_unless(all_by, Code.NO_TRIGGERS, text, which, (relation.row,), doubt=Code.GUARD_UNREVIEWED)
    else:
        firing = [each for each in guards if each.unconditional and each.timing != "INSTEAD"]
        _read_by_somebody(judging, relation, which, firing)
        vouched = {each.event for each in guards if each.name in judging.policy.reviewed and by[each.event]}
        shown = {each.event for each in firing} | vouched
        for event in (event for event in verbs if event not in shown):
            text, doubt = f"{relation.name}: no trigger without a condition guards every {event}", Code.GUARD_UNREVIEWED
            judging.refute_unless(by[event], Code.GUARD_MISSING, text, which, (relation.row,), doubt=doubt)
    for verb in ("update", "delete", "truncate", "upsert", "replace"):
        _unchanged(judging, which, f"writer-{verb}{SUFFIX[which]}")


def _read_by_somebody(judging: Judging, relation: Relation, which: Part, firing: list[Trigger]) -> None:
    """A guard with conditions of its own may let other rows go than the one that was tried."""
    for event in dict.fromkeys(each.event for each in firing):
        guards = [each for each in firing if each.event == event]
        if not any(each.only_raises or each.name in judging.policy.reviewed for each in guards):
            names = ", ".join(each.name for each in guards)
            text = f"{relation.name}: {names} does more than SELECT RAISE(ABORT, text), so it may let other rows go"
            judging.unproven(
                Code.GUARD_UNREVIEWED, f"{text}; read it, then name it in the policy (`reviewed`)", which,
                rows=(relation.row,),
            )  # fmt: skip


def _unchanged(judging: Judging, which: Part, name: str) -> None:
    probe = judging.probe(name)
    if probe is None and not _can_run_into(judging.relation(which), name):
        return
    adds = "upsert" in name or "replace" in name
    outcome = of_addition(probe) if adds else of_change(probe)
    if outcome in (Outcome.ADMITTED, Outcome.ERASED):
        hint = (
            "; without recursive_triggers=on REPLACE fires no DELETE trigger: declare it in the policy "
            "(`sqlite_connection`) if every connection of the registrar sets it, or let the schema refuse"
            if "replace" in name
            else ""
        )
        text = f"{judging.named(which)}: {name.split('-')[1].upper()} of a stored row: {outcome.value}{hint}"
        judging.refute(Code.CHANGE_ADMITTED, text, which, probes=(name,))
    elif outcome is Outcome.SILENT:
        text = f"{judging.named(which)}: {name} changed nothing and gave no error, which reads as done"
        judging.unproven(Code.SILENTLY_IGNORED, text, which, probes=(name,))
    judging.shown(which, {name: outcome})


def _can_run_into(relation: Relation | None, name: str) -> bool:
    """Whether there is something unique that an upsert, or a REPLACE, of this relation runs into."""
    if relation is None or not ("upsert" in name or "replace" in name):
        return True
    return any(index.unique for index in relation.indexes) or ("replace" in name and not relation.without_rowid)


def audit(judging: Judging) -> None:
    """(g): the audit outlives the transaction that it speaks of."""
    if Part.AUDIT not in judging.evidence.surface.parts:
        judging.unproven(Code.MISSING_RELATION, "no audit is named: --audit FILE:table", Part.AUDIT)
        return
    audit = judging.table(Part.AUDIT)
    if audit is None:
        return
    file = judging.audit_file
    if file is None or file.file["is_main"]:
        text = "the audit lies in the file of the effect: one write lock covers both, so no record can be written "
        more = "outside the transaction of which it speaks while that is open"
        judging.refute(Code.AUDIT_NOT_SEPARATE, text + more, Part.AUDIT, rows=(audit.row,))
    else:
        commits(judging, file)
        rights(judging, file, judging.beside(AUDIT), Part.AUDIT)
        _survived(judging)
    taken_again(judging, audit)
    swallowed(judging, audit, Part.AUDIT)
    unreviewed(judging, audit, Part.AUDIT)
    _guarded(judging, audit, Part.AUDIT)


def _survived(judging: Judging) -> None:
    probe = judging.probe("audit-survives")
    effect, record = counts(probe, -2), counts(probe)
    if effect is None or record is None:
        judging.shown(Part.AUDIT, {"audit-survives": Outcome.NOT_SHOWN})
    elif record[Part.AUDIT.value] != 1:
        text = f"the record of a transaction that was rolled back is not there: {came_to(probe)}"
        judging.refute(Code.AUDIT_LOST, text, Part.AUDIT, probes=("audit-survives",))
    elif effect[Part.EFFECT.value]:
        judging.refute(Code.NOT_ATOMIC, "the effect was not rolled back", Part.EFFECT, probes=("audit-survives",))
    sound(judging, f"integrity-{AUDIT}", Part.AUDIT)
