"""(g) the audit outlives the transaction of which it speaks."""

from __future__ import annotations

import re

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.atomic import counts
from holdfast.conformance.fitness.criteria.files import in_its_own_file
from holdfast.conformance.fitness.criteria.guards import changes_tried, held_by_others, owned
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.criteria.lasting import unhidden
from holdfast.conformance.fitness.criteria.tables import apart, guarded_by_triggers, ordinary, plain_insert
from holdfast.conformance.fitness.model import Part, RelationName
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE
from holdfast.conformance.fitness.postgres.catalogue import MADE_UP


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
    judging.check(ordinary, Part.AUDIT)
    judging.check(guarded_by_triggers, Part.AUDIT)
    if judging.in_files:
        judging.check(in_its_own_file)
    else:
        judging.check(_writable, relation)
        judging.check(owned, Part.AUDIT)
        judging.check(_rigged)
    # What a trigger, a rule, a function or row security does to one record says nothing of the next one, which has
    # another code.
    plain_insert(judging, Part.AUDIT)
    judging.check(unhidden, Part.AUDIT)
    judging.check(_tied, relation)
    judging.check(_unique)
    judging.check(_survives)
    judging.check(changes_tried, Part.AUDIT)


def _writable(judging: Judging, relation: RelationName) -> None:
    """The writer may append to it. Another role that appends does no harm: what is there stays."""
    writer, row = judging.writer, judging.catalogue.relation(relation)
    if row is None:
        return
    if writer is None:
        judging.unproven(Code.WRITER_UNPROVEN, "no writing role is named, so no role is shown to keep an audit")
        return
    powers = judging.powers
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
    powers = judging.powers
    for each in judging.spread(Part.AUDIT):
        own = judging.catalogue.relation(each)
        if own is None:
            continue
        grants = [row for row in judging.catalogue.of("grants", each) if row["privilege"] == "TRIGGER"]
        held_by_others(judging, Part.AUDIT, each, str(own["owner"]), grants)
        for row in grants if own["owner"] not in powers else ():
            if row["grantee"] is not None and row["grantee"] in powers:
                text = (
                    f"the writer {judging.writer} has TRIGGER on {each} by {row['grantee']}: a trigger can drop every "
                    "record; revoke it"
                )
                judging.refute(Code.WRITER_PRIVILEGES, text, part=Part.AUDIT, rows=[row])


def _tied(judging: Judging, relation: RelationName) -> None:
    """A record of a refusal cannot point at rows that are not there."""
    surface = {str(each) for part, each in judging.evidence.surface.parts.items() if part is not Part.AUDIT}
    for key in judging.catalogue.rows("references"):
        to = f"{key['to_schema']}.{key['to_relation']}"
        if f"{key['schema']}.{key['relation']}" == str(relation) and to in surface:
            text = f"the foreign key {key['name']} ties {relation} to {to}: what is refused has no row there"
            judging.refute(Code.AUDIT_LOST, text, part=Part.AUDIT, rows=[key])


def _unique(judging: Judging) -> None:
    """What was refused is refused again: nothing of a record may be unique but what makes it a record of its own."""
    said = {judging.policy.column(word) for word in (*KEYS, NONCE, *BINDINGS)}
    for each in judging.spread(Part.AUDIT):
        uniques = judging.catalogue.unique(each)
        # Sets of columns of which each makes a record itself: the primary key, and each column that the server makes
        # up. A primary key that only says what the refused request said has one record for all refusals of it.
        own = [
            {row["name"]}
            for row in judging.catalogue.of("columns", each)
            if row["identity"] or row.get("numbered") or re.match(MADE_UP, str(row["default"] or ""))
        ]
        own += [key for row in uniques if row["primary"] and not (key := set(row["columns"])) <= said]
        for index in uniques:
            if index["exclusion"] or not any(key <= set(index["columns"]) - {None} for key in own):
                text = (
                    f"{index['name']} of {each} leaves no room for some records: let nothing in it be unique but its "
                    "primary key, or a column that the server numbers or fills with a UUID"
                )
                judging.unproven(Code.AUDIT_UNWRITABLE, text, part=Part.AUDIT, rows=[index])
    text = "a second record of the same refusal does not go in"
    judging.admitted("audit-again", Code.AUDIT_UNWRITABLE, text, part=Part.AUDIT)


def _survives(judging: Judging) -> None:
    text = "after a rollback the audit record is not found, or something of the transaction is"
    wanted = {"audit": 1, "effect": 0, **({"nonce": 0} if Part.NONCE in apart(judging) else {})}
    judging.admitted("audit-first", Code.AUDIT_UNWRITABLE, "the writer cannot keep an audit record", part=Part.AUDIT)
    counts(judging, "audit-survives", wanted, Code.AUDIT_LOST, text, part=Part.AUDIT)
