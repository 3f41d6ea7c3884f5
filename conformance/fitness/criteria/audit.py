"""(g) the audit outlives the transaction of which it speaks."""

from __future__ import annotations

import re

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.atomic import counts
from holdfast.conformance.fitness.criteria.guards import changes_tried, held_by_others
from holdfast.conformance.fitness.criteria.inserting import called_on_insert, defaulted
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.criteria.lasting import unhidden
from holdfast.conformance.fitness.criteria.owners import owned
from holdfast.conformance.fitness.criteria.tables import apart, ordinary, untouched_on_insert
from holdfast.conformance.fitness.criteria.triggers import guarded_by_triggers
from holdfast.conformance.fitness.model import EvidenceClass, Part, RelationName
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE
from holdfast.conformance.fitness.postgres.catalogue import MADE_UP

NEEDS = (EvidenceClass.CATALOGUE, EvidenceClass.PRIVILEGES, EvidenceClass.CLONE, EvidenceClass.CONCURRENCY)


def audit(judging: Judging) -> None:
    """(g)"""
    relation = judging.part(Part.AUDIT)
    if relation is None:
        text = "no audit is named that is kept outside the transaction; name one with --audit"
        judging.unproven(Code.MISSING_RELATION, text, part=Part.AUDIT)
        return
    if relation in (judging.part(Part.EFFECT), judging.part(Part.NONCE)):
        text = f"{relation} is what the transaction writes: a record in it is rolled back with it"
        judging.refute(Code.AUDIT_NOT_SEPARATE, text, part=Part.AUDIT)
        return
    judging.check(lambda on: ordinary(on, Part.AUDIT))
    judging.check(lambda on: guarded_by_triggers(on, Part.AUDIT))
    judging.check(_writable)
    judging.check(lambda on: owned(on, Part.AUDIT))
    judging.check(_rigged)
    # What a trigger, a rule, a function or row security does to one record says nothing of the next one, which has
    # another code.
    judging.check(lambda on: untouched_on_insert(on, Part.AUDIT))
    judging.check(lambda on: called_on_insert(on, Part.AUDIT))
    judging.check(lambda on: defaulted(on, Part.AUDIT))
    judging.check(lambda on: unhidden(on, Part.AUDIT))
    judging.check(_tied)
    judging.check(_unique)
    judging.check(_survives)
    judging.check(lambda on: changes_tried(on, Part.AUDIT))


def _writable(judging: Judging) -> None:
    """The writer may append to it. Another role that appends does no harm: what is there stays."""
    writer, relation = judging.evidence.surface.writer, judging.part(Part.AUDIT)
    row = None if relation is None else judging.catalogue.relation(relation)
    if relation is None or row is None:
        return
    if writer is None:
        judging.unproven(Code.WRITER_UNPROVEN, "no writing role is named, so no role is shown to keep an audit")
        return
    powers = judging.catalogue.roles.powers(writer)
    grants = [each for each in judging.catalogue.of("grants", relation) if each["privilege"] == "INSERT"]
    own = [each for each in grants if each["grantee"] is None or each["grantee"] in powers]
    judging.rest_on(*own)
    if row["owner"] in powers:
        text = f"the writer {writer} owns {relation}, or may become its owner {row['owner']}, and can drop its guards"
        judging.refute(Code.WRITER_OWNS, text, part=Part.AUDIT, rows=[row])
    elif not own and not judging.catalogue.roles.has(writer, "superuser"):
        text = f"the writer {writer} has no INSERT on {relation}"
        judging.refute(Code.AUDIT_UNWRITABLE, text, part=Part.AUDIT, rows=grants)


def _rigged(judging: Judging) -> None:
    """Only its owner may put a trigger on it, which could drop every record without an error."""
    writer, relation, roles = judging.evidence.surface.writer, judging.part(Part.AUDIT), judging.catalogue.roles
    if relation is None:
        return
    powers = frozenset[str]() if writer is None else roles.powers(writer)
    for each in (relation, *judging.catalogue.below(relation)):
        own = judging.catalogue.relation(each)
        if own is None:
            continue
        grants = [row for row in judging.catalogue.of("grants", each) if row["privilege"] == "TRIGGER"]
        held_by_others(judging, Part.AUDIT, each, str(own["owner"]), grants)
        if own["owner"] in powers:
            continue
        for row in grants:
            if row["grantee"] is not None and row["grantee"] in powers:
                text = f"the writer {writer} has TRIGGER on {each} by {row['grantee']}: a trigger can drop every record"
                judging.refute(Code.WRITER_PRIVILEGES, f"{text}; revoke it", part=Part.AUDIT, rows=[row])


def _tied(judging: Judging) -> None:
    """A record of a refusal cannot point at rows that are not there."""
    relation = judging.part(Part.AUDIT)
    surface = {str(each) for part, each in judging.evidence.surface.parts.items() if part is not Part.AUDIT}
    for key in judging.catalogue.rows("references"):
        to = f"{key['to_schema']}.{key['to_relation']}"
        if f"{key['schema']}.{key['relation']}" == str(relation) and to in surface:
            text = f"the foreign key {key['name']} ties {relation} to {to}: what is refused has no row there"
            judging.refute(Code.AUDIT_LOST, text, part=Part.AUDIT, rows=[key])


def _unique(judging: Judging) -> None:
    """What was refused is refused again: nothing of a record may be unique but what makes it a record of its own."""
    relation = judging.part(Part.AUDIT)
    if relation is None:
        return
    for each in (relation, *judging.catalogue.below(relation)):
        own = _own(judging, each)
        for index in judging.catalogue.unique(each):
            columns = frozenset(name for name in index["columns"] if name is not None)
            if index["exclusion"] or not any(key <= columns for key in own):
                text = (
                    f"{index['name']} of {each} leaves no room for some records: let nothing in it be unique but its "
                    "primary key, or a column that the server numbers or fills with a UUID"
                )
                judging.unproven(Code.AUDIT_UNWRITABLE, text, part=Part.AUDIT, rows=[index])
    text = "a second record of the same refusal does not go in"
    judging.admitted("audit-again", Code.AUDIT_UNWRITABLE, text, part=Part.AUDIT)


def _own(judging: Judging, relation: RelationName) -> list[frozenset[str]]:
    """Sets of columns of which each makes a record itself: the primary key, and each column that the server makes up.

    A primary key that only says what the refused request said has one record for all refusals of it.
    """
    said = {judging.policy.column(word) for word in (*KEYS, NONCE, *BINDINGS)}
    made_up = [
        frozenset({str(row["name"])})
        for row in judging.catalogue.of("columns", relation)
        if row["identity"] or re.match(MADE_UP, str(row["default"] or "")) is not None
    ]
    primary = [frozenset(row["columns"]) for row in judging.catalogue.unique(relation) if row["primary"]]
    return [*made_up, *(key for key in primary if not key <= said)]


def _survives(judging: Judging) -> None:
    text = "after a rollback the audit record is not found, or something of the transaction is"
    wanted = {"audit": 1, "effect": 0, "nonce": 0}
    if Part.NONCE not in apart(judging):
        wanted = {"audit": 1, "effect": 0}
    judging.admitted("audit-first", Code.AUDIT_UNWRITABLE, "the writer cannot keep an audit record", part=Part.AUDIT)
    counts(judging, "audit-survives", wanted, Code.AUDIT_LOST, text, part=Part.AUDIT)
