"""The criteria (a) to (i) of a surface in SQLite files, judged from evidence alone. See the package for what counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.endings import Ending, Sense
from holdfast.conformance.fitness.model import Criterion, Evidence, EvidenceClass, Finding, Part
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE, Policy
from holdfast.conformance.fitness.sqlite.catalogue import Column, Relation
from holdfast.conformance.fitness.sqlite.files import commits, rights
from holdfast.conformance.fitness.sqlite.keys import nonce_consumed, single_use, sound, swallowed, tried, unreviewed
from holdfast.conformance.fitness.sqlite.outcomes import Outcome, came_to, counts, of_addition, of_attempt, of_change
from holdfast.conformance.fitness.sqlite.probes import other_operations
from holdfast.conformance.fitness.sqlite.records import taken_again
from holdfast.conformance.fitness.sqlite.retention import endings, is_endless
from holdfast.conformance.fitness.sqlite.sheet import Sheet
from holdfast.conformance.fitness.sqlite.snapshot import AUDIT
from holdfast.conformance.fitness.sqlite.sqltext import Trigger, values_of
from holdfast.conformance.fitness.sqlite.tampering import SUFFIX

_HARMLESS = ("NO ACTION", "RESTRICT")


def findings(evidence: Evidence, policy: Policy) -> tuple[Finding, ...]:
    """Each criterion, in their order."""
    return tuple(_judged(Sheet(criterion, evidence, policy)) for criterion in Criterion)


def _judged(sheet: Sheet) -> Finding:
    # Without any evidence there is nothing to read.
    if EvidenceClass.CLONE not in sheet.evidence.lost and sheet.evidence.probe("integrity") is None:
        sheet.doubt(Code.EVIDENCE_MISSING, "the copy was not probed")
    _JUDGES[sheet.criterion](sheet)
    return _without_echoes(sheet.finding())


def _without_echoes(finding: Finding) -> Finding:
    """That a probe failed says nothing new where the evidence of its kind is lost altogether."""
    if not any(reason.code == Code.EVIDENCE_MISSING.value for reason in finding.reasons):
        return finding
    kept = tuple(reason for reason in finding.reasons if reason.code != Code.PROBE_FAILED.value)
    return Finding(finding.criterion, finding.standing, kept, finding.rows, finding.probes)


# (c) and (d): what is bound, and to which domain.


def _bindings(sheet: Sheet) -> None:
    effect = sheet.table(Part.EFFECT)
    if effect is None:
        return
    there = sheet.columns(effect, Part.EFFECT, BINDINGS, besides=(KEYS[0], NONCE))
    for word in there:
        column = effect.columns[sheet.policy.column(word)]
        name = f"{effect.name}.{column.name}"
        sheet.rows.append(column.row)
        if not effect.refuses_null(column):
            sheet.refute(Code.BINDING_NULLABLE, f"{name} is not NOT NULL", Part.EFFECT, rows=(column.row,))
        if column.generated:
            sheet.refute(Code.BINDING_GENERATED, f"{name} is generated", Part.EFFECT, rows=(column.row,))
        if column.affinity not in ("TEXT", "BLOB"):
            sheet.refute(Code.KEY_TYPE, _changes(name, column), Part.EFFECT, rows=(column.row,))
        if column.default is not None and column.default.upper() != "NULL":
            text = f"{name} has the default {column.default}"
            sheet.refute(Code.BINDING_DEFAULT, text, Part.EFFECT, rows=(column.row,))
        if not effect.conditions(column.name):
            text = f"no CHECK asks anything of {name} whatever the other columns hold, so it may be empty in other rows"
            sheet.doubt(Code.BINDING_MAY_BE_EMPTY, text, Part.EFFECT, rows=(effect.row,))
        for stem, code, text in (
            ("without", Code.BINDING_NULLABLE, f"a row without {word} went in"),
            ("omitted", Code.BINDING_DEFAULT, f"a row that does not name {word} went in"),
            ("empty", Code.BINDING_MAY_BE_EMPTY, f"a row with an empty {word} went in"),
            (
                "empty-blob",
                Code.BINDING_MAY_BE_EMPTY,
                f"a row with an empty BLOB as {word} went in; make the table STRICT, or ask for its typeof() as well",
            ),
        ):
            sheet.refused(Part.EFFECT, {f"{stem}-{word}": tried(sheet, f"{stem}-{word}")}, code, text)


def _changes(name: str, column: Column) -> str:
    return f"{name} is of the type {column.type}, which makes numbers of texts that look so: what was bound is not kept"


def _domain(sheet: Sheet) -> None:
    effect = sheet.table(Part.EFFECT)
    if effect is None:
        return
    column = sheet.policy.column("operation")
    texts = [" ".join(token.text for token in check.body) for check in effect.checks]
    shown = [{"relation": effect.name, "check": text} for text in texts]
    if column not in effect.columns:
        said = f"; its constraints speak of: {'; '.join(texts)}" if texts else ""
        sheet.refute(Code.WRONG_DOMAIN, f"{effect.name} has no column {column}{said}", Part.EFFECT, rows=shown)
        return
    sheet.rows += [row for row, check in zip(shown, effect.checks, strict=True) if check.mentions(column)]
    _admits_its_own(sheet, effect)
    if sheet.policy.domain_evidence is not None:
        return  # declared, and printed with everything else that a policy declares
    found = {name: tried(sheet, name) for name, said in other_operations() if said not in sheet.policy.operations}
    sheet.refused(Part.EFFECT, found, Code.DOMAIN_UNRESTRICTED, "another operation went in")
    stated = [values for part in effect.conditions(column) if (values := values_of(part, column)) is not None]
    if not stated:
        text = f"no CHECK of {effect.name} says {column} = or IN and nothing else, so others than those tried may go in"
        sheet.doubt(Code.DOMAIN_UNCLEAR, text, Part.EFFECT, rows=shown)
    elif all(set(values) - set(sheet.policy.operations) for values in stated):
        text = f"{effect.name} takes {', '.join(stated[0])}; the surface is for {', '.join(sheet.policy.operations)}"
        sheet.refute(Code.DOMAIN_UNRESTRICTED, text, Part.EFFECT, rows=shown)
    for name, outcome in found.items():
        probe = sheet.evidence.probe(name)
        if outcome is Outcome.REFUSED and probe and probe.answers[-2].sqlstate != "SQLITE_CONSTRAINT_CHECK":
            text = f"another operation was refused, but by no CHECK: {came_to(probe)}"
            sheet.doubt(Code.DOMAIN_UNCLEAR, text, Part.EFFECT, probes=(name,))


def _admits_its_own(sheet: Sheet, effect: Relation) -> None:
    """A surface that takes no registration is one of another domain."""
    for place, operation in enumerate(sheet.policy.operations):
        name = f"operation-{place + 1}"
        outcome = tried(sheet, name)
        if outcome in (Outcome.REFUSED, Outcome.SILENT, Outcome.ERASED):
            text = f"{effect.name} does not take the operation {operation}: {came_to(sheet.evidence.probe(name))}"
            sheet.refute(Code.WRONG_DOMAIN, text, Part.EFFECT, probes=(name,))
        sheet.shown(Part.EFFECT, {name: outcome})


# (e): one transaction, which is durable.


def _atomic(sheet: Sheet) -> None:
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


# (f) and (g): nobody else writes, and nothing is changed.


def _append_only(sheet: Sheet) -> None:
    for which in (Part.EFFECT, Part.NONCE):
        relation = sheet.table(which)
        if relation is not None:
            _guarded(sheet, relation, which)
    rights(sheet, sheet.main, sheet.beside(), None)


def _guarded(sheet: Sheet, relation: Relation, which: Part) -> None:
    guards = [each for each in relation.triggers if each.event in ("UPDATE", "DELETE")]
    for each in guards:
        sheet.rows.append({"relation": relation.name, "trigger": each.name, "timing": each.timing, "event": each.event})
    if not relation.triggers:
        sheet.refute(Code.NO_TRIGGERS, f"no trigger guards {relation.name}", which, rows=(relation.row,))
    else:
        firing = [each for each in guards if each.unconditional and each.timing != "INSTEAD"]
        guarded = {each.event for each in firing}
        _read_by_somebody(sheet, relation, which, firing)
        gone = [event for event in ("UPDATE", "DELETE") if event not in guarded]
        if gone:
            text = f"{relation.name}: no trigger without a condition guards every {' and '.join(gone)}"
            sheet.refute(Code.GUARD_MISSING, text, which, rows=(relation.row,))
    for verb in ("update", "delete", "truncate", "upsert", "replace"):
        _unchanged(sheet, which, f"writer-{verb}{SUFFIX[which]}")


def _read_by_somebody(sheet: Sheet, relation: Relation, which: Part, firing: list[Trigger]) -> None:
    """A guard with conditions of its own may let other rows go than the one that was tried."""
    for event in dict.fromkeys(each.event for each in firing):
        guards = [each for each in firing if each.event == event]
        if not any(each.only_raises or each.name in sheet.policy.reviewed for each in guards):
            names = ", ".join(each.name for each in guards)
            text = f"{relation.name}: {names} does more than SELECT RAISE(ABORT, text), so it may let other rows go"
            sheet.doubt(
                Code.GUARD_UNREVIEWED, f"{text}; read it, then name it in the policy (`reviewed`)", which,
                rows=(relation.row,),
            )  # fmt: skip


def _unchanged(sheet: Sheet, which: Part, name: str) -> None:
    probe = sheet.probe(name)
    if probe is None and not _can_run_into(sheet.relation(which), name):
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
        text = f"{sheet.named(which)}: {name.split('-')[1].upper()} of a stored row: {outcome.value}{hint}"
        sheet.refute(Code.CHANGE_ADMITTED, text, which, probes=(name,))
    elif outcome is Outcome.SILENT:
        text = f"{sheet.named(which)}: {name} changed nothing and gave no error, which reads as done"
        sheet.doubt(Code.SILENTLY_IGNORED, text, which, probes=(name,))
    sheet.shown(which, {name: outcome})


def _can_run_into(relation: Relation | None, name: str) -> bool:
    """Whether there is something unique that an upsert, or a REPLACE, of this relation runs into."""
    if relation is None or not ("upsert" in name or "replace" in name):
        return True
    return any(index.unique for index in relation.indexes) or ("replace" in name and not relation.without_rowid)


def _audit(sheet: Sheet) -> None:
    if Part.AUDIT not in sheet.evidence.surface.parts:
        sheet.doubt(Code.MISSING_RELATION, "no audit is named: --audit FILE:table", Part.AUDIT)
        return
    audit = sheet.table(Part.AUDIT)
    if audit is None:
        return
    file = sheet.audit_file
    if file is None or file.file["is_main"]:
        text = "the audit lies in the file of the effect: one write lock covers both, so no record can be written "
        more = "outside the transaction of which it speaks while that is open"
        sheet.refute(Code.AUDIT_NOT_SEPARATE, text + more, Part.AUDIT, rows=(audit.row,))
    else:
        commits(sheet, file)
        rights(sheet, file, sheet.beside(AUDIT), Part.AUDIT)
        _survived(sheet)
    taken_again(sheet, audit)
    swallowed(sheet, audit, Part.AUDIT)
    unreviewed(sheet, audit, Part.AUDIT)
    _guarded(sheet, audit, Part.AUDIT)


def _survived(sheet: Sheet) -> None:
    probe = sheet.probe("audit-survives")
    effect, record = counts(probe, -2), counts(probe)
    if effect is None or record is None:
        sheet.shown(Part.AUDIT, {"audit-survives": Outcome.NOT_SHOWN})
    elif record[Part.AUDIT.value] != 1:
        text = f"the record of a transaction that was rolled back is not there: {came_to(probe)}"
        sheet.refute(Code.AUDIT_LOST, text, Part.AUDIT, probes=("audit-survives",))
    elif effect[Part.EFFECT.value]:
        sheet.refute(Code.NOT_ATOMIC, "the effect was not rolled back", Part.EFFECT, probes=("audit-survives",))
    sound(sheet, f"integrity-{AUDIT}", Part.AUDIT)


# (h) and (i): what is stored can be read, and stays.


def _decision(sheet: Sheet) -> None:
    effect = sheet.table(Part.EFFECT)
    if effect is None or not sheet.columns(effect, Part.EFFECT, ("decision",)):
        return
    column = effect.columns[sheet.policy.column("decision")]
    sheet.rows.append(column.row)
    if column.affinity in ("NUMERIC", "REAL"):
        sheet.refute(Code.KEY_TYPE, _changes(f"{effect.name}.{column.name}", column), Part.EFFECT, rows=(column.row,))
    if not effect.is_rowid(column):
        if not effect.refuses_null(column):
            text = f"{effect.name}.{column.name} is not NOT NULL"
            sheet.refute(Code.DECISION_NULLABLE, text, Part.EFFECT, rows=(column.row,))
        found = {"decision-null": tried(sheet, "decision-null")}
        sheet.refused(Part.EFFECT, found, Code.DECISION_NULLABLE, "a row without a decision went in")
    probe = sheet.probe("read-back")
    if probe is None or probe.answer is None or probe.answer.sqlstate is not None:
        sheet.shown(Part.EFFECT, {"read-back": Outcome.NOT_SHOWN})
    elif len(probe.answer.rows) != 1 or probe.answer.rows[0]["decision"] is None:
        text = f"another session found {len(probe.answer.rows)} decisions of the stored request"
        sheet.refute(Code.DECISION_HIDDEN, text, Part.EFFECT, probes=("read-back",))


def _retention(sheet: Sheet) -> None:
    for which in (Part.EFFECT, Part.NONCE):
        relation = sheet.table(which)
        if relation is not None:
            _cascades(sheet, relation, which)
            _housekeeping(sheet, relation, which)
            _endings(sheet, relation, which)


def _cascades(sheet: Sheet, relation: Relation, which: Part) -> None:
    for key in sheet.main.foreign_keys:
        if relation.name.casefold() not in (key.relation.casefold(), key.parent.casefold()):
            continue
        sheet.rows += key.rows
        for event, action in (("DELETE", key.on_delete), ("UPDATE", key.on_update)):
            if action.upper() not in _HARMLESS:
                text = f"a foreign key of {key.relation} to {key.parent} says ON {event} {action}"
                sheet.refute(Code.CASCADE, text, which, rows=key.rows)


def _housekeeping(sheet: Sheet, relation: Relation, which: Part) -> None:
    for each in (trigger for other in sheet.main.relations.values() for trigger in other.triggers):
        if each.takes_from(relation.name):
            text = f"the trigger {each.name} on {each.relation} deletes or changes rows of {relation.name}"
            sheet.refute(
                Code.HOUSEKEEPING, text, which,
                rows=({"relation": each.relation, "trigger": each.name, "timing": each.timing, "event": each.event},),
            )  # fmt: skip


def _endings(sheet: Sheet, relation: Relation, which: Part) -> None:
    found = {column.name: (column, said) for column, said in endings(relation)}
    for column, said in found.values():
        _ending(sheet, f"{relation.name}.{column.name}", column, said, which)
    until = relation.columns.get(sheet.policy.column("retain_until"))
    if until is not None and not is_endless(found.get(until.name, (until, None))[1], sheet.policy.horizon):
        text = f"{relation.name}.{until.name} is left to whoever writes: its default is no time behind the horizon"
        sheet.doubt(Code.RETENTION_UNKNOWN, text, which, rows=(until.row,))


def _ending(sheet: Sheet, name: str, column: Column, said: Ending, which: Part) -> None:
    horizon = sheet.policy.horizon
    default = "generated" if column.default is None else f"{column.default} by default"
    if said.sense is Sense.LATER and (horizon is None or (said.length is not None and said.length < horizon)):
        ends = "later" if said.length is None else f"after {said.length.total_seconds() / 86_400:g} days"
        text = f"{name} is {default}: the row ends {ends}; write '9999-12-31' for a row that is kept for ever"
        sheet.refute(Code.RETENTION_TTL, text, which, rows=(column.row,))
    elif said.sense is Sense.LATER and said.length is None:
        text = f"{name} is {default}, which is not shown to lie beyond {horizon}"
        sheet.doubt(Code.RETENTION_UNKNOWN, text, which, rows=(column.row,))
    elif said.sense in (Sense.INSTANT, Sense.UNCLEAR):
        why = said.why or "that may be read as a time or a span"
        text = (
            f"{name} is {default}, and is not shown to be no end of the row: {why}; write '9999-12-31' for ever, and "
            "CURRENT_TIMESTAMP for the moment in which a row is made"
        )
        sheet.doubt(Code.RETENTION_UNKNOWN, text, which, rows=(column.row,))


_JUDGES: dict[Criterion, Callable[[Sheet], None]] = {
    Criterion.SINGLE_USE: single_use,
    Criterion.NONCE: nonce_consumed,
    Criterion.BINDING: _bindings,
    Criterion.DOMAIN: _domain,
    Criterion.ATOMIC: _atomic,
    Criterion.APPEND_ONLY: _append_only,
    Criterion.AUDIT: _audit,
    Criterion.PRIOR_DECISION: _decision,
    Criterion.RETENTION: _retention,
}


def notes(evidence: Evidence) -> tuple[str, ...]:
    """What proves nothing and has to be known. From the evidence alone, so that everybody has the same."""
    return tuple(_notes(evidence))


def _notes(evidence: Evidence) -> Iterator[str]:
    told = evidence.snapshot.circumstances
    yield f"read and probed with SQLite {told['version']}; the registrar's own library may be another one"
    yield (
        "SQLite has no roles: whoever may write the file can drop its guards, switch checks off "
        "(ignore_check_constraints, writable_schema) or write its pages; give the registrar an account of its own"
    )
    for row in told.get("broken", ()):
        yield (
            f"{row['file']}: the view {row['view']} is broken ({row['error']}): it was left out, and everything else "
            "was judged; drop it or make it anew"
        )
    for name, file in sorted(told["files"].items()):
        mode = evidence.snapshot.structure[f"{name}.journal"][0]["mode"]
        yield f"{name}: {file} on {told['filesystems'][name] or 'an unknown file system'}, journal: {mode}"
    yield "temporary triggers and views, and programs that delete, are in no file: nothing is known of them"
