"""(g) the audit outlives the transaction of which it speaks, (h) an exact retry finds the decision, and (i) nothing
erases a consumed record before its horizon.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.atomic import counts
from holdfast.conformance.fitness.criteria.binding import kept, must_be_said, says_something
from holdfast.conformance.fitness.criteria.endings import Ending, Sense, ending, given, is_timed
from holdfast.conformance.fitness.criteria.files import housekeeping, in_its_own_file
from holdfast.conformance.fitness.criteria.guards import changes_tried, held_by_others, owned
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.criteria.spelling import has_word
from holdfast.conformance.fitness.criteria.tables import (
    NO_END,
    TABLES,
    apart,
    guarded_by_triggers,
    ordinary,
    plain_insert,
    there,
)
from holdfast.conformance.fitness.model import Part, RelationName, Row
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE
from holdfast.conformance.fitness.postgres.catalogue import MADE_UP, UnreadError, name_of
from holdfast.conformance.fitness.sqlite.sqltext import ending_in_files

_CONSUMED = (Part.EFFECT, Part.NONCE)


def prior_decision(judging: Judging) -> None:
    """(h)"""
    if (found := there(judging, Part.EFFECT)) is None:
        return
    judging.check(_decision, found[0])
    if not judging.in_files:
        judging.check(_readable, found[0])
    for part in _CONSUMED:
        judging.check(unhidden, part)
    judging.check(_read_back)


def _decision(judging: Judging, relation: RelationName) -> None:
    row = judging.column(Part.EFFECT, "decision")
    if row is None:
        text = f"{relation} lacks {judging.policy.column('decision')}, the decision that an exact retry gets"
        judging.refute(Code.MISSING_COLUMNS, text, part=Part.EFFECT)
        return
    judging.rest_on(row)
    must_be_said(judging, Part.EFFECT, relation, row, "without-decision", Code.DECISION_NULLABLE)
    if row.get("affinity") != "INTEGER":
        # A decision may be a number, and numbers are what it keeps.
        kept(judging, relation, row)
    says_something(judging, relation, row)


def _readable(judging: Judging, relation: RelationName) -> None:
    """The writer may read the key and the decision."""
    writer, roles, powers = judging.writer, judging.catalogue.roles, judging.powers
    if writer is None:
        judging.unproven(Code.WRITER_UNPROVEN, "no writing role is named, so no role is shown to read what it wrote")
        return
    row = judging.catalogue.relation(relation)
    if (row is not None and row["owner"] in powers) or "pg_read_all_data" in powers or roles.has(writer, "superuser"):
        return
    own = [
        each
        for each in judging.catalogue.of("grants", relation)
        if each["privilege"] == "SELECT" and (each["grantee"] is None or each["grantee"] in powers)
    ]
    judging.rest_on(*own)
    whole = any(each["object"] == "relation" for each in own)
    wanted = {judging.policy.column("logical_request_key"), judging.policy.column("decision")}
    if not whole and not wanted <= {each["column"] for each in own}:
        text = f"the writer {writer} may not read {' and '.join(sorted(wanted))} of {relation}"
        judging.refute(Code.DECISION_HIDDEN, text, part=Part.EFFECT)


def unhidden(judging: Judging, part: Part) -> None:
    """No row security, or policies that let the writer read and append everything."""
    row = judging.relation(part)
    if row is None or not row["row_security"]:
        return
    relation = name_of(row)
    policies = judging.catalogue.of("policies", relation)
    for command in ("select", "insert"):
        if not _total(judging, policies, command):
            text = f"row security is on for {relation}, and its policies are not shown to let the writer {command} all"
            judging.unproven(Code.ROW_SECURITY, text, part=part, rows=[row, *policies])
    judging.rest_on(row, *policies)


def _total(judging: Judging, policies: tuple[Row, ...], command: str) -> bool:
    powers = judging.powers
    for_us = [
        each
        for each in policies
        if each["command"] in ("all", command) and any(role is None or role in powers for role in each["roles"])
    ]
    lets = [_lets_all(each, command) for each in for_us if each["permissive"]]
    holds = [_lets_all(each, command) for each in for_us if not each["permissive"]]
    return any(lets) and all(holds)


def _lets_all(policy: Row, command: str) -> bool:
    # Without WITH CHECK that of USING counts.
    check = policy["using"] if policy["check"] is None else policy["check"]
    return bool((policy["using"] if command == "select" else check) == "true")


def _read_back(judging: Judging) -> None:
    row = judging.column(Part.EFFECT, "decision")
    if row is None:
        return
    text = f"a row without {judging.policy.column('decision')} went in"
    # A number that SQLite gives where none is said is there in each row.
    if not (judging.in_files and row["identity"]):
        judging.refused("without-decision", Code.DECISION_NULLABLE, text, part=Part.EFFECT)
    for probe, answer in judging.tried("read-back"):
        code = Code.DECISION_HIDDEN
        if answer.sqlstate is not None:
            text = f"the writer cannot read the decision back: {answer.sqlstate} {answer.message}".strip()
        elif len(answer.rows) != 1:
            text = f"in a new session the writer found {len(answer.rows)} rows of the key that it had consumed"
        elif all(value is None for value in answer.rows[0].values()):
            code, text = Code.DECISION_NULLABLE, "in a new session the writer found no decision in the row"
        else:
            continue
        judging.refute(code, text, part=Part.EFFECT, probes=[probe.name])


def retention(judging: Judging) -> None:
    """(i)"""
    for part in apart(judging):
        if (found := there(judging, part)) is None:
            continue
        relation, row = found
        for inspect in (_references, _ends):
            judging.check(inspect, part, relation)
        if row["kind"] not in TABLES:
            text = f"{relation} is no table: what keeps its rows is not shown"
            judging.refute(Code.NOT_A_TABLE, text, part=part, rows=[row])
        judging.check(housekeeping if judging.in_files else _partitions, part, relation)
    if not judging.in_files:
        judging.check(_jobs)


_ACTIONS = {"c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}


def _references(judging: Judging, part: Part, relation: RelationName) -> None:
    for key in judging.catalogue.rows("references"):
        ends = (f"{key['schema']}.{key['relation']}", f"{key['to_schema']}.{key['to_relation']}")
        if str(relation) not in ends:
            continue
        described = [
            f"ON {verb} {_ACTIONS[key[column]]}"
            for verb, column in (("DELETE", "on_delete"), ("UPDATE", "on_update"))
            if key[column] in _ACTIONS
        ]
        if described:
            text = f"the foreign key {key['name']} from {ends[0]} to {ends[1]} has {' and '.join(described)}"
            judging.refute(Code.CASCADE, text, part=part, rows=[key])


_MOMENTS = (Sense.MOMENT, Sense.LATER, Sense.INSTANT)


def _ends(judging: Judging, part: Part, relation: RelationName) -> None:
    """No row is made with an end, or with one that lies before the horizon."""
    rows = judging.catalogue.of("columns", relation)
    # What a generated column is made from.
    moments = dict[str, Ending]()
    for row in rows:
        kind, said = str(row["base_type"]), _said(judging, row)
        if is_timed(kind) or said.sense in _MOMENTS:
            moments[str(row["name"])] = given(kind, _modifier(row)) if said.sense is Sense.NO_TIME else said
    for row in rows:
        if row["base_type"] not in NO_END or row["name"] == judging.policy.column("retain_until"):
            _end(judging, part, relation, row, moments if row.get("generated") else {})


def _modifier(row: Row) -> int:
    return int(row.get("modifier", -1))


def _default(row: Row) -> str:
    said = row["default"] if row["default"] is not None else row["domain_default"]
    return "" if said is None else str(said)


_Moments: TypeAlias = Mapping[str, Ending]


def _said(judging: Judging, row: Row, moments: _Moments = MappingProxyType({})) -> Ending:
    if judging.in_files:
        return ending_in_files(_default(row), moments)
    kind, reviewed = str(row["base_type"]), judging.policy.reviewed
    return ending(_default(row), kind=kind, modifier=_modifier(row), moments=moments, reviewed=reviewed)


_FOR_EVER = {False: "'infinity'", True: "'9999-12-31'"}
_ADVICE = {
    False: "write 'infinity' for what has no end, and now() for the moment in which a row is made",
    True: "write '9999-12-31' for what has no end, and CURRENT_TIMESTAMP for the moment in which a row is made",
}


def _end(judging: Judging, part: Part, relation: RelationName, row: Row, moments: _Moments) -> None:
    found, default = _said(judging, row, moments), _default(row)
    what, horizon = f"{row['name']} of {relation}", judging.policy.horizon
    advice = _ADVICE[judging.in_files]
    if found.sense is Sense.LATER:
        if horizon is None or (found.most is not None and found.most < horizon):
            wanted = "for ever" if horizon is None else f"for {horizon}"
            text = f"{what} ends by default at {default}; a consumed record blocks {wanted}"
            judging.refute(Code.RETENTION_TTL, text, part=part, rows=[row])
            return
        shown = found.least is not None and found.least >= horizon
        text = "" if shown else f"{what} ends by default at {default}, which is not shown to lie beyond {horizon}"
    elif found.sense is Sense.INSTANT:
        text = f"{what} is by default {default}, a fixed time or span, and may be read as the end of the row; {advice}"
    elif found.sense is Sense.UNCLEAR:
        text = (
            f"{what} is by default {default}, and is not shown to be no end of the row: {found.why}; {advice}, or name "
            "a function (schema.name) that tells no end in a policy as reviewed"
        )
    elif found.sense is not Sense.FOR_EVER and row["name"] == judging.policy.column("retain_until"):
        text = (
            f"{what} says how long a record is kept, and has no default that is for ever or beyond the horizon; write "
            f"DEFAULT {_FOR_EVER[judging.in_files]}"
        )
    else:
        text = ""
    if text:
        judging.unproven(Code.RETENTION_UNKNOWN, text, part=part, rows=[row])
    elif found.sense in (Sense.FOR_EVER, Sense.LATER):
        judging.rest_on(row)


def _partitions(judging: Judging, part: Part, relation: RelationName) -> None:
    row = judging.catalogue.relation(relation)
    if row is not None and row["is_partition"]:
        text = f"{relation} is a partition, which can be detached or dropped with all that it holds"
        judging.refute(Code.PARTITION_DROPPABLE, text, part=part, rows=[row])
    if row is not None and row["partition_strategy"] in ("r", "l"):
        text = f"{relation} is partitioned by {row['partition_key']}: dropping a partition opens its keys"
        judging.refute(Code.PARTITION_DROPPABLE, text, part=part, rows=[row])


JOBS = ("jobs_cron", "jobs_pgagent", "jobs_timescaledb", "jobs_partman")
_ERASES = re.compile(r"\b(delete|truncate|drop|update|merge|detach|retention|drop_chunks)\b", re.IGNORECASE)


def _jobs(judging: Judging) -> None:
    for query in JOBS:
        try:
            rows = judging.catalogue.rows(query)
        except UnreadError as error:
            judging.unproven(Code.CATALOGUE_UNREADABLE, f"jobs are there and could not be read: {error}")
            continue
        for row in rows:
            _job(judging, query, row)


def _job(judging: Judging, query: str, row: Row) -> None:
    described = f"{row.get('name') or ''} {row.get('command') or ''} {row.get('relation') or ''}"

    def named(name: str) -> bool:
        return has_word(described, name, re.IGNORECASE)

    touched = [relation for relation in _relations(judging) if named(relation.name)]
    called = [each for each in judging.catalogue.rows("mentions") if named(str(each["name"]))]
    if not touched and not called:
        return
    names = ", ".join([*map(str, touched), *(f"{each['schema']}.{each['name']}()" for each in called)])
    text = f"a job ({query}) touches {names}: {str(row.get('command') or '')[:200]}"
    texts = [described, *(str(each["definition"] or "") for each in called)]
    erases = query in ("jobs_partman", "jobs_timescaledb") or any(_ERASES.search(each) for each in texts)
    (judging.refute if erases else judging.unproven)(Code.JOB, text, rows=[row, *called])


def _relations(judging: Judging) -> Iterator[RelationName]:
    """The consumed records' relations, their partitions, and what they are partitions or children of."""
    for part in _CONSUMED:
        if (relation := judging.part(part)) is None:
            continue
        yield relation
        yield from judging.catalogue.below(relation)
        for row in judging.catalogue.parents(relation):
            yield RelationName(str(row["parent_schema"]), str(row["parent"]))
        for row in judging.catalogue.children(relation):
            yield name_of(row)


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
