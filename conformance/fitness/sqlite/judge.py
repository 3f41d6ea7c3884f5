"""The judgement of a surface in SQLite files, from evidence alone. See the package for what counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.endings import Ending, Sense
from holdfast.conformance.fitness.model import Criterion, CriterionResult, Evidence, EvidenceClass, Part
from holdfast.conformance.fitness.policy import KEYS, NONCE, Policy
from holdfast.conformance.fitness.sqlite.catalogue import Column, Relation
from holdfast.conformance.fitness.sqlite.criteria import binding, keys
from holdfast.conformance.fitness.sqlite.criteria.binding import changes_texts
from holdfast.conformance.fitness.sqlite.criteria.keys import (
    sound,
    swallowed,
    tried,
    unreviewed,
)
from holdfast.conformance.fitness.sqlite.files import commits, rights
from holdfast.conformance.fitness.sqlite.judging import Judging
from holdfast.conformance.fitness.sqlite.outcomes import Outcome, came_to, counts, of_addition, of_attempt, of_change
from holdfast.conformance.fitness.sqlite.records import taken_again
from holdfast.conformance.fitness.sqlite.retention import endings, is_endless
from holdfast.conformance.fitness.sqlite.snapshot import AUDIT
from holdfast.conformance.fitness.sqlite.sqltext import Trigger
from holdfast.conformance.fitness.sqlite.tampering import SUFFIX

# (f) and (g): nothing is changed, and the audit outlives a rollback


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


# What proves nothing about a surface in SQLite files, but its reader must know


def notes(evidence: Evidence) -> tuple[str, ...]:
    """What proves nothing, but the reader must know. From the evidence alone, so that every reader has the same."""
    return tuple(_notes(evidence))


def _notes(evidence: Evidence) -> Iterator[str]:
    described = evidence.snapshot.circumstances
    yield f"read and probed with SQLite {described['version']}; the registrar's own library may be another one"
    yield (
        "SQLite has no roles: a user who may write the file can drop its guards, switch checks off "
        "(ignore_check_constraints, writable_schema) or write its pages; give the registrar an account of its own"
    )
    for row in described.get("broken", ()):
        yield (
            f"{row['file']}: the view {row['view']} is broken ({row['error']}): it was left out, and everything else "
            "was judged; drop it or make it anew"
        )
    for name, file in sorted(described["files"].items()):
        mode = evidence.snapshot.structure[f"{name}.journal"][0]["mode"]
        yield f"{name}: {file} on {described['filesystems'][name] or 'an unknown file system'}, journal: {mode}"
    yield "temporary triggers and views, and programs that delete, are in no file: nothing is known of them"


# (h) and (i): what is stored can be read, and stays

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


# (e): one transaction, which is durable


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


_JUDGES: dict[Criterion, Callable[[Judging], None]] = {
    Criterion.SINGLE_USE: keys.single_use,
    Criterion.NONCE: keys.nonce_consumed,
    Criterion.BINDING: binding.binding,
    Criterion.DOMAIN: binding.domain,
    Criterion.ATOMIC: atomic,
    Criterion.APPEND_ONLY: append_only,
    Criterion.AUDIT: audit,
    Criterion.PRIOR_DECISION: prior_decision,
    Criterion.RETENTION: retention,
}


def findings(evidence: Evidence, policy: Policy) -> tuple[CriterionResult, ...]:
    """Each criterion, in their order."""
    return tuple(_judged(Judging(criterion, evidence, policy)) for criterion in Criterion)


def _judged(judging: Judging) -> CriterionResult:
    # Without any evidence there is nothing to read.
    if EvidenceClass.CLONE not in judging.evidence.lost and judging.evidence.probe("integrity") is None:
        judging.unproven(Code.EVIDENCE_MISSING, "the copy was not probed")
    _JUDGES[judging.criterion](judging)
    return _without_echoes(judging.finding())


def _without_echoes(finding: CriterionResult) -> CriterionResult:
    """A failed probe says nothing new where the evidence of its kind is lost altogether."""
    if not any(reason.code == Code.EVIDENCE_MISSING.value for reason in finding.reasons):
        return finding
    kept = tuple(reason for reason in finding.reasons if reason.code != Code.PROBE_FAILED.value)
    return CriterionResult(finding.criterion, finding.standing, kept, finding.rows, finding.probes)
