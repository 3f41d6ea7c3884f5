"""Criteria (c) to (i) of a surface in SQLite files, from evidence alone. See the package for what counts."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.endings import Ending, Sense
from holdfast.conformance.fitness.model import Criterion, CriterionResult, Evidence, Part, Row
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE, Policy
from holdfast.conformance.fitness.sqlite.bench import refused
from holdfast.conformance.fitness.sqlite.catalogue import Column, Database, Relation, database
from holdfast.conformance.fitness.sqlite.judging import Judging, Outcome, came_to, counts
from holdfast.conformance.fitness.sqlite.keys import nonce_consumed, single_use, sound, taken_as_written
from holdfast.conformance.fitness.sqlite.live import MAIN
from holdfast.conformance.fitness.sqlite.probes import OTHER_OPERATIONS, SUFFIX, own
from holdfast.conformance.fitness.sqlite.retention import endings, is_endless
from holdfast.conformance.fitness.sqlite.snapshot import AUDIT
from holdfast.conformance.fitness.sqlite.sqltext import values_of

# (c) and (d): what is bound, and to which domain

_NOT_KEPT = ": what was bound is not kept"


def binding(judging: Judging) -> None:
    """(c): what a request is bound to stands in columns that may not be empty."""
    effect = judging.table(Part.EFFECT)
    if effect is None:
        return
    there = judging.columns(effect, Part.EFFECT, BINDINGS, besides=(KEYS[0], NONCE))
    for word, column in there:
        judging.rows.append(column.row)
        judging.not_null(effect, Part.EFFECT, column, Code.BINDING_NULLABLE, f"without-{word}")
        default = column.default is not None and column.default.upper() != "NULL"
        judging.flaws(
            effect,
            Part.EFFECT,
            column,
            (column.generated, Code.BINDING_GENERATED, "is generated"),
            (column.changes_texts, Code.KEY_TYPE, column.changes_texts + _NOT_KEPT),
            (default, Code.BINDING_DEFAULT, f"has the default {column.default}"),
        )
        typed = "; make the table STRICT, or ask for its typeof() as well"
        for stem, code, what in (
            ("without", Code.BINDING_NULLABLE, f"without {word}"),
            ("omitted", Code.BINDING_DEFAULT, f"that does not name {word}"),
            ("empty", Code.BINDING_MAY_BE_EMPTY, f"with an empty {word}"),
            ("empty-blob", Code.BINDING_MAY_BE_EMPTY, f"with an empty BLOB as {word}"),
        ):
            text = f"a row {what} went in{typed if stem == 'empty-blob' else ''}"
            judging.refused(Part.EFFECT, code, text, f"{stem}-{word}")
    if together := ", ".join(column.name for _, column in there if not effect.conditions(column.name)):
        text = f"no CHECK of {effect.name} holds for {together} regardless of other columns, so other rows may be empty"
        judging.unproven(Code.BINDING_MAY_BE_EMPTY, text, Part.EFFECT, rows=(effect.row,))


def domain(judging: Judging) -> None:
    """(d): the surface takes registrations and nothing else."""
    effect = judging.table(Part.EFFECT)
    if effect is None:
        return
    column, operations = judging.policy.column("operation"), judging.policy.operations
    texts = [" ".join(token.text for token in check.body) for check in effect.checks]
    shown = [{"relation": effect.name, "check": text} for text in texts]
    if column not in effect.columns:
        said = f"; its constraints speak of: {'; '.join(texts)}" if texts else ""
        judging.refute(Code.WRONG_DOMAIN, f"{effect.name} has no column {column}{said}", Part.EFFECT, rows=shown)
        return
    judging.rows += [row for row, check in zip(shown, effect.checks, strict=True) if check.mentions(column)]
    # A surface that takes no registration is one of another domain.
    for place, operation in enumerate(operations):
        text = f"{effect.name} does not take the operation {operation}"
        judging.admitted(Code.WRONG_DOMAIN, text, f"operation-{place + 1}")
    if judging.policy.domain_evidence is not None:
        return  # declared, and printed with everything else that a policy declares
    names = [name for name, said in OTHER_OPERATIONS.items() if said not in operations]
    judging.refused(Part.EFFECT, Code.DOMAIN_UNRESTRICTED, "another operation went in", *names)
    stated = [values for part in effect.conditions(column) if (values := values_of(part, column)) is not None]
    if not stated:
        text = f"no CHECK of {effect.name} says {column} = or IN and nothing else, so others than those tried may go in"
        judging.unproven(Code.DOMAIN_UNCLEAR, text, Part.EFFECT, rows=shown)
    elif all(set(values) - set(operations) for values in stated):
        text = f"{effect.name} takes {', '.join(stated[0])}; the surface is for {', '.join(operations)}"
        judging.refute(Code.DOMAIN_UNRESTRICTED, text, Part.EFFECT, rows=shown)
    for name in names:
        probe = judging.probe(name)
        if (
            probe
            and judging.outcome(name) is Outcome.REFUSED
            and probe.answers[-2].sqlstate != "SQLITE_CONSTRAINT_CHECK"
        ):
            text = f"another operation was refused, but by no CHECK: {came_to(probe)}"
            judging.unproven(Code.DOMAIN_UNCLEAR, text, Part.EFFECT, probes=(name,))


# (e): one transaction, which is durable

# Nothing written here survives a power cut.
_VOLATILE = ("tmpfs", "ramfs")
# There another system keeps the promise of locks and syncs; SQLite's own documentation warns of it.
_REMOTE = ("nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "vboxsf", "fuse")
_DURABLE = ("full", "extra")
_JOURNALS = ("delete", "truncate", "persist", "wal")


def atomic(judging: Judging) -> None:
    """(e): effect and nonce are consumed in one transaction, which is durable."""
    effect, nonce = judging.table(Part.EFFECT), judging.table(Part.NONCE)
    if effect is None:
        return
    _commits(judging, judging.files[MAIN])
    if nonce is None:
        text = "there is no nonce that is consumed in the same transaction"
        judging.unproven(Code.MISSING_RELATION, text, Part.NONCE)
    _arbiter(judging, effect, Part.EFFECT, KEYS[0], "arbiter")
    if nonce is not None:
        _arbiter(judging, nonce, Part.NONCE, NONCE, "nonce-arbiter")
    rollback = judging.probe("rollback")
    inside, after = counts(rollback, -3), counts(rollback)
    if inside is None or after is None or not all(inside.values()):
        judging.not_shown(Part.EFFECT, "rollback")
    elif any(after.values()):
        judging.refute(Code.NOT_ATOMIC, "rows of a transaction that was rolled back are there", probes=("rollback",))
    if judging.policy.column(KEYS[0]) in effect.columns:
        _raced(judging)
    killed = judging.probe("killed")
    left = counts(killed)
    if killed is None or left is None or any(answer.sqlstate for answer in killed.answers):
        judging.not_shown(Part.EFFECT, "killed")
    elif any(left.values()):
        judging.refute(Code.NOT_ATOMIC, "rows of a process that died before the commit are there", probes=("killed",))


def _commits(judging: Judging, found: Database) -> None:
    """Whether what was acknowledged is there after a power cut, and one lock is one lock."""
    row, declared = found.file, judging.policy.sqlite_connection
    judging.rows.append(row)
    if row["links"] != 1:
        text = f"the file has {row['links']} names, and each has a log of its own: sessions may not see each other"
        judging.refute(Code.FILE_LINKED, text, rows=(row,))
    kind = str(row["filesystem"])
    if kind in _VOLATILE:
        judging.refute(Code.NOT_DURABLE, f"the file lies on {kind}, which keeps nothing", rows=(row,))
    elif not kind or kind.split(".")[0] in _REMOTE:
        text = f"locks and syncs of the file system ({kind or 'unknown'}) cannot be relied upon"
        judging.unproven(Code.FILE_SYSTEM_UNPROVEN, text, rows=(row,))
    synchronous, journal = declared.get("synchronous"), declared.get("journal_mode")
    if synchronous is None:
        text = (
            "whether a commit waits for the disk (synchronous) belongs to each connection, and no policy says what the "
            "registrar's connections set (`sqlite_connection`)"
        )
        judging.unproven(Code.CONNECTION_UNDECLARED, text)
    elif synchronous not in _DURABLE:
        text = f"the registrar's connections set synchronous={synchronous}: an acknowledged commit may be lost"
        judging.refute(Code.ASYNC_COMMIT, text)
    if journal is not None and journal not in _JOURNALS:
        text = f"the registrar's connections set journal_mode={journal}: a crash leaves half a transaction"
        judging.refute(Code.NOT_DURABLE, text)
    elif journal is None and not found.wal:
        text = "the file is not in WAL mode, so each connection chooses its journal, and no policy says which"
        judging.unproven(Code.CONNECTION_UNDECLARED, text)


def _arbiter(judging: Judging, relation: Relation, which: Part, word: str, name: str) -> None:
    """ON CONFLICT DO NOTHING of a known key: no error, and no row."""
    column = judging.policy.column(word)
    if column not in relation.columns:
        return  # said elsewhere
    outcome = judging.outcome(name)
    if outcome is Outcome.NOT_SHOWN:
        judging.not_shown(which, name)
    elif outcome is not Outcome.SILENT:
        text = f"INSERT ... ON CONFLICT ({column}) DO NOTHING of a known value: {came_to(judging.evidence.probe(name))}"
        judging.refute(Code.ARBITER_UNUSABLE, f"{relation.name}: {text}; {outcome.value}", which, probes=(name,))


def _raced(judging: Judging) -> None:
    probe, outcome = judging.probe("race"), judging.outcome("race")
    waited = probe is not None and any((answer.sqlstate or "").startswith("SQLITE_BUSY") for answer in probe.answers)
    if outcome in (Outcome.ADMITTED, Outcome.ERASED, Outcome.SILENT) or (outcome is Outcome.REFUSED and not waited):
        text = f"of two sessions with one key, the second one's row: {outcome.value}"
        judging.refute(Code.RACE_LOST, text, Part.EFFECT, probes=("race",))
    judging.shown(Part.EFFECT, "race")


# (f) and (g): nothing is changed, and the audit outlives a rollback

_OTHERS = stat.S_IWGRP | stat.S_IWOTH
ROOT = 0
_VERBS = {"UPDATE": ("update",), "DELETE": ("delete", "truncate")}
# A default that gives each row a value of its own.
_MADE_UP = re.compile(r"\brandomblob\s*\(", re.IGNORECASE)


def append_only(judging: Judging) -> None:
    """(f): no other program writes, and nothing is changed."""
    for which in (Part.EFFECT, Part.NONCE):
        relation = judging.table(which)
        if relation is not None:
            _guarded(judging, relation, which)
    _rights(judging, MAIN, None)


def _rights(judging: Judging, name: str, which: Part | None) -> None:
    """Whether only the declared writer can write the file, as far as owner and mode show: of the file, of what lies
    beside it, and of its folders."""
    found, writer = judging.files[name], judging.policy.sqlite_writer_uid
    beside = [row for row in judging.evidence.snapshot.circumstances["beside"] if row["file"] == name]
    places: list[tuple[str, Row]] = [
        ("the file", found.file),
        *((f"the {row['what'].removeprefix('-')} beside the file", row) for row in beside),
        *((f"{'a' if row['height'] else 'the'} folder {'above' if row['height'] else 'of'} the file", row)
          for row in found.folders),
    ]  # fmt: skip
    judging.rows += [found.file, *found.folders[:1]]
    for what, row in places:
        mode, above = int(str(row["mode"]), 8), row.get("height", 0) > 0
        # A folder may be shared (sticky) only if the file does not lie in it.
        if mode & _OTHERS and not (above and mode & stat.S_ISVTX):
            text = f"{what} may be written by others than its owner (mode {row['mode']})"
            judging.refute(Code.OTHERS_MAY_WRITE, text, which, rows=(row,))
    if writer is None:
        text = "SQLite knows no roles, and no policy says which user writes the file (`sqlite_writer_uid`)"
        judging.unproven(Code.WRITER_UNPROVEN, text, which)
        return
    if writer == ROOT:
        text = "the writer is root, who may write every file: nothing about this one shows who does"
        judging.refute(Code.WRITER_ATTRIBUTES, text, which)
    for what, row in places:
        # Folders above may belong to root.
        if row["owner"] != writer and not (row["owner"] == ROOT and row.get("height", 0) > 0):
            text = f"{what} belongs to the user {row['owner']}, not to {writer}"
            judging.refute(Code.OTHERS_MAY_WRITE, text, which, rows=(row,))


def _guarded(judging: Judging, relation: Relation, which: Part) -> None:
    guards = [each for each in relation.triggers if each.event in _VERBS]
    judging.rows += [each.row for each in guards]
    by = {event: judging.refusal(*(f"writer-{verb}{SUFFIX[which]}" for verb in _VERBS[event])) for event in _VERBS}
    if not relation.triggers:
        all_by = "; ".join(by.values()) if all(by.values()) else ""
        text = f"no trigger guards {relation.name}"
        judging.refute_unless(all_by, Code.NO_TRIGGERS, text, which, (relation.row,), doubt=Code.GUARD_UNREVIEWED)
    else:
        reviewed, shown = judging.policy.reviewed, set[str]()
        firing = [each for each in guards if each.unconditional and each.timing != "INSTEAD"]
        for event in dict.fromkeys(each.event for each in firing):
            shown.add(event)
            own_guards = [each for each in firing if each.event == event]
            if not any(each.only_raises or each.name in reviewed for each in own_guards):
                # A guard with conditions of its own may let other rows go than the one that was tried.
                text = (
                    f"{relation.name}: {', '.join(each.name for each in own_guards)} does more than SELECT RAISE(ABORT,"
                    " text), so it may let other rows go; read it, then name it in the policy (`reviewed`)"
                )
                judging.unproven(Code.GUARD_UNREVIEWED, text, which, rows=(relation.row,))
        shown |= {each.event for each in guards if each.name in reviewed and by[each.event]}
        for event in (event for event in _VERBS if event not in shown):
            text, doubt = f"{relation.name}: no trigger without a condition guards every {event}", Code.GUARD_UNREVIEWED
            judging.refute_unless(by[event], Code.GUARD_MISSING, text, which, (relation.row,), doubt=doubt)
    unique = any(index.unique for index in relation.indexes)
    runs_into = {"upsert": unique, "replace": unique or not relation.without_rowid}
    for verb in ("update", "delete", "truncate", "upsert", "replace"):
        name = f"writer-{verb}{SUFFIX[which]}"
        if judging.probe(name) is not None or runs_into.get(verb, True):
            _unchanged(judging, which, verb, name, adds=verb in runs_into)


def _unchanged(judging: Judging, which: Part, verb: str, name: str, *, adds: bool) -> None:
    """An upsert or REPLACE that adds a row leaves the stored one alone, which is as good as a refusal."""
    outcome = judging.outcome(name, counted=Outcome.REFUSED if adds else Outcome.ADMITTED)
    if outcome in (Outcome.ADMITTED, Outcome.ERASED):
        hint = (
            "; without recursive_triggers=on REPLACE fires no DELETE trigger: declare it in the policy "
            "(`sqlite_connection`) if every connection of the registrar sets it, or let the schema refuse"
            if verb == "replace"
            else ""
        )
        text = f"{judging.named(which)}: {verb.upper()} of a stored row: {outcome.value}{hint}"
        judging.refute(Code.CHANGE_ADMITTED, text, which, probes=(name,))
    elif outcome is Outcome.SILENT:
        text = f"{judging.named(which)}: {name} changed nothing and gave no error, which reads as done"
        judging.unproven(Code.SILENTLY_IGNORED, text, which, probes=(name,))
    judging.shown(which, name)


def audit(judging: Judging) -> None:
    """(g): the audit outlives the transaction that it speaks of."""
    if Part.AUDIT not in judging.evidence.surface.parts:
        judging.unproven(Code.MISSING_RELATION, "no audit is named: --audit FILE:table", Part.AUDIT)
        return
    audit = judging.table(Part.AUDIT)
    if audit is None:
        return
    file = judging.files.get(AUDIT)
    if file is None or file.file["is_main"]:
        text = (
            "the audit lies in the file of the effect: one write lock covers both, so no record can be written outside "
            "the transaction of which it speaks while that is open"
        )
        judging.refute(Code.AUDIT_NOT_SEPARATE, text, Part.AUDIT, rows=(audit.row,))
    else:
        _commits(judging, file)
        _rights(judging, AUDIT, Part.AUDIT)
        _survived(judging)
    _taken_again(judging, audit)
    taken_as_written(judging, audit, Part.AUDIT)
    _guarded(judging, audit, Part.AUDIT)


def _survived(judging: Judging) -> None:
    probe = judging.probe("audit-survives")
    effect, record = counts(probe, -2), counts(probe)
    if effect is None or record is None:
        judging.not_shown(Part.AUDIT, "audit-survives")
    elif record[Part.AUDIT.value] != 1:
        text = f"the record of a transaction that was rolled back is not there: {came_to(probe)}"
        judging.refute(Code.AUDIT_LOST, text, Part.AUDIT, probes=("audit-survives",))
    elif effect[Part.EFFECT.value]:
        judging.refute(Code.NOT_ATOMIC, "the effect was not rolled back", Part.EFFECT, probes=("audit-survives",))
    sound(judging, f"integrity-{AUDIT}", Part.AUDIT)


def _taken_again(judging: Judging, audit: Relation) -> None:
    """What was refused is refused again: nothing of a record may be unique but what makes it a record of its own."""
    keys = [{name} for name, column in audit.columns.items() if _MADE_UP.search(column.default or "")]
    if own(audit, judging.policy):
        keys.append({name for name, column in audit.columns.items() if column.primary_key})
    for index in audit.indexes:
        if index.unique and not any(key <= set(index.columns) for key in keys):
            text = (
                f"{index.called} on {audit.name} leaves no room for some records: let nothing in it be unique but its "
                "primary key, or a column that SQLite numbers or fills at random"
            )
            judging.unproven(Code.AUDIT_UNWRITABLE, text, Part.AUDIT, rows=index.rows)
    probe = judging.probe("audit-again")
    before, after = counts(probe, -3), counts(probe)
    answer = None if probe is None or after is None else probe.answers[-2]
    if before is None or after is None or answer is None or (answer.sqlstate is not None and not refused(answer)):
        judging.not_shown(Part.AUDIT, "audit-again")
    elif answer.sqlstate is not None or after["records"] != before["records"] + 1:
        text = f"{audit.name}: a second record of the same refusal does not go in: {came_to(probe)}"
        judging.refute(Code.AUDIT_UNWRITABLE, text, Part.AUDIT, probes=("audit-again",))


# (h) and (i): what is stored can be read, and stays

_HARMLESS = ("NO ACTION", "RESTRICT")


def prior_decision(judging: Judging) -> None:
    """(h): the stored decision can be read back."""
    effect = judging.table(Part.EFFECT)
    there = () if effect is None else judging.columns(effect, Part.EFFECT, ("decision",))
    if effect is None or not there:
        return
    ((_, column),) = there
    judging.rows.append(column.row)
    turned = column.affinity != "INTEGER" and column.changes_texts
    judging.flaws(effect, Part.EFFECT, column, (turned, Code.KEY_TYPE, column.changes_texts + _NOT_KEPT))
    if not effect.is_rowid(column):
        judging.not_null(effect, Part.EFFECT, column, Code.DECISION_NULLABLE, "decision-null")
        judging.refused(Part.EFFECT, Code.DECISION_NULLABLE, "a row without a decision went in", "decision-null")
    probe = judging.probe("read-back")
    if probe is None or probe.answer is None or probe.answer.sqlstate is not None:
        judging.not_shown(Part.EFFECT, "read-back")
    elif len(probe.answer.rows) != 1 or probe.answer.rows[0]["decision"] is None:
        text = f"another session found {len(probe.answer.rows)} decisions of the stored request"
        judging.refute(Code.DECISION_HIDDEN, text, Part.EFFECT, probes=("read-back",))


def retention(judging: Judging) -> None:
    """(i): what is stored stays."""
    for which in (Part.EFFECT, Part.NONCE):
        relation = judging.table(which)
        if relation is not None:
            _taken_away(judging, relation, which)
            _endings(judging, relation, which)


def _taken_away(judging: Judging, relation: Relation, which: Part) -> None:
    """Foreign keys and triggers that delete or change rows."""
    relations, name = judging.files[MAIN].relations.values(), relation.name.casefold()
    for key in (key for other in relations for key in other.foreign_keys):
        if name not in (key.relation.casefold(), key.parent.casefold()):
            continue
        judging.rows += key.rows
        for event, action in (("DELETE", key.on_delete), ("UPDATE", key.on_update)):
            if action.upper() not in _HARMLESS:
                text = f"a foreign key of {key.relation} to {key.parent} says ON {event} {action}"
                judging.refute(Code.CASCADE, text, which, rows=key.rows)
    for each in (trigger for other in relations for trigger in other.triggers):
        if each.takes_from(relation.name):
            text = f"the trigger {each.name} on {each.relation} deletes or changes rows of {relation.name}"
            judging.refute(Code.HOUSEKEEPING, text, which, rows=(each.row,))


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


_JUDGES = {
    Criterion.SINGLE_USE: single_use,
    Criterion.NONCE: nonce_consumed,
    Criterion.BINDING: binding,
    Criterion.DOMAIN: domain,
    Criterion.ATOMIC: atomic,
    Criterion.APPEND_ONLY: append_only,
    Criterion.AUDIT: audit,
    Criterion.PRIOR_DECISION: prior_decision,
    Criterion.RETENTION: retention,
}


def findings(evidence: Evidence, policy: Policy) -> tuple[CriterionResult, ...]:
    """Each criterion, in their order."""
    structure = evidence.snapshot.structure
    files = {name: database(evidence.snapshot, name) for name in (MAIN, AUDIT) if f"{name}.relations" in structure}
    return tuple(Judging(each, evidence, policy, files).judged(inspect) for each, inspect in _JUDGES.items())


def notes(evidence: Evidence) -> Iterator[str]:
    """What proves nothing, but the reader must know. From the evidence alone, so that every reader has the same."""
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
