"""(h) an exact retry finds the decision, and (i) nothing erases a consumed record before its horizon."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import timedelta

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.endings import Ending, Sense, ending
from holdfast.conformance.fitness.criteria.sheet import Sheet
from holdfast.conformance.fitness.criteria.tables import apart, there
from holdfast.conformance.fitness.model import EvidenceClass, Part, RelationName, Row
from holdfast.conformance.fitness.postgres.catalogue import UnreadError, name_of

NEEDS_DECISION = (EvidenceClass.CATALOGUE, EvidenceClass.PRIVILEGES, EvidenceClass.CLONE)
NEEDS_RETENTION = (EvidenceClass.CATALOGUE, EvidenceClass.CLONE)
_CONSUMED = (Part.EFFECT, Part.NONCE)


def prior_decision(sheet: Sheet) -> None:
    """(h)"""
    if (found := there(sheet, Part.EFFECT)) is None:
        return
    relation, _ = found
    sheet.check(lambda on: _decision(on, relation))
    sheet.check(lambda on: _readable(on, relation))
    for part in _CONSUMED:
        sheet.check(lambda on, part=part: unhidden(on, part))  # type: ignore[misc]
    sheet.check(lambda on: _read_back(on, relation))


def _decision(sheet: Sheet, relation: RelationName) -> None:
    name = sheet.policy.column("decision")
    row = sheet.catalogue.column(relation, name)
    if row is None:
        text = f"{relation} lacks {name}, the decision that an exact retry gets"
        sheet.refute(Code.MISSING_COLUMNS, text, part=Part.EFFECT)
    elif not row["not_null"]:
        sheet.refute(Code.DECISION_NULLABLE, f"{name} of {relation} may be NULL", part=Part.EFFECT, rows=[row])
    else:
        sheet.rest_on(row)


def _readable(sheet: Sheet, relation: RelationName) -> None:
    """The writer may read the key and the decision."""
    writer, roles = sheet.evidence.surface.writer, sheet.catalogue.roles
    if writer is None:
        sheet.doubt(Code.WRITER_UNPROVEN, "no role is named that writes, so nobody is shown to read what it wrote")
        return
    row = sheet.catalogue.relation(relation)
    powers = roles.powers(writer)
    if (row is not None and row["owner"] in powers) or "pg_read_all_data" in powers or roles.has(writer, "superuser"):
        return
    own = [
        each
        for each in sheet.catalogue.of("grants", relation)
        if each["privilege"] == "SELECT" and (each["grantee"] is None or each["grantee"] in powers)
    ]
    sheet.rest_on(*own)
    whole = any(each["object"] == "relation" for each in own)
    wanted = {sheet.policy.column("logical_request_key"), sheet.policy.column("decision")}
    if not whole and not wanted <= {each["column"] for each in own}:
        text = f"the writer {writer} may not read {' and '.join(sorted(wanted))} of {relation}"
        sheet.refute(Code.DECISION_HIDDEN, text, part=Part.EFFECT)


def unhidden(sheet: Sheet, part: Part) -> None:
    """No row security, or policies that let the writer read and append everything."""
    relation = sheet.part(part)
    row = None if relation is None else sheet.catalogue.relation(relation)
    if relation is None or row is None or not row["row_security"]:
        return
    policies = sheet.catalogue.of("policies", relation)
    for command in ("select", "insert"):
        if not _total(sheet, policies, command):
            text = f"row security is on for {relation}, and its policies are not shown to let the writer {command} all"
            sheet.doubt(Code.ROW_SECURITY, text, part=part, rows=[row, *policies])
    sheet.rest_on(row, *policies)


def _total(sheet: Sheet, policies: tuple[Row, ...], command: str) -> bool:
    writer = sheet.evidence.surface.writer
    powers = frozenset[str]() if writer is None else sheet.catalogue.roles.powers(writer)
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


def _read_back(sheet: Sheet, relation: RelationName) -> None:
    name = sheet.policy.column("decision")
    if sheet.catalogue.column(relation, name) is None:
        return
    text = f"a row without {name} went in"
    sheet.refused("without-decision", Code.DECISION_NULLABLE, text, part=Part.EFFECT)
    for probe, answer in sheet.tried("read-back"):
        if answer.sqlstate is not None:
            text = f"the writer cannot read the decision back: {answer.sqlstate} {answer.message}".strip()
            sheet.refute(Code.DECISION_HIDDEN, text, part=Part.EFFECT, probes=[probe.name])
        elif len(answer.rows) != 1:
            text = f"in a new session the writer found {len(answer.rows)} rows of the key that it had consumed"
            sheet.refute(Code.DECISION_HIDDEN, text, part=Part.EFFECT, probes=[probe.name])
        elif all(value is None for value in answer.rows[0].values()):
            text = "in a new session the writer found no decision in the row"
            sheet.refute(Code.DECISION_NULLABLE, text, part=Part.EFFECT, probes=[probe.name])


def retention(sheet: Sheet) -> None:
    """(i)"""
    for part in apart(sheet):
        if (found := there(sheet, part)) is None:
            continue
        relation, row = found
        for look in (_references, _ends, _partitions):
            sheet.check(lambda on, look=look, part=part, at=relation: look(on, part, at))  # type: ignore[misc]
        if row["kind"] not in ("r", "p"):
            text = f"{relation} is no table: what keeps its rows is not shown"
            sheet.refute(Code.NOT_A_TABLE, text, part=part, rows=[row])
    sheet.check(_jobs)


_ACTIONS = {"c": "CASCADE", "n": "SET NULL", "d": "SET DEFAULT"}


def _references(sheet: Sheet, part: Part, relation: RelationName) -> None:
    for key in sheet.catalogue.rows("references"):
        ends = (f"{key['schema']}.{key['relation']}", f"{key['to_schema']}.{key['to_relation']}")
        if str(relation) not in ends:
            continue
        told = [
            f"ON {verb} {_ACTIONS[key[column]]}"
            for verb, column in (("DELETE", "on_delete"), ("UPDATE", "on_update"))
            if key[column] in _ACTIONS
        ]
        if told:
            text = f"the foreign key {key['name']} from {ends[0]} to {ends[1]} has {' and '.join(told)}"
            sheet.refute(Code.CASCADE, text, part=part, rows=[key])


# Types of columns that hold a time; arrays of them begin with an underscore.
_TIMES = re.compile(
    r"pg_catalog\._?(?:timestamptz|timestamp|date|time|timetz|interval|(?:ts|tstz|date)(?:multi)?range)"
)
# Nobody reads an end from these, whatever function makes them.
NO_END = ("pg_catalog.bool", "pg_catalog.uuid")
_MOMENTS = (Sense.MOMENT, Sense.LATER, Sense.INSTANT)


def _ends(sheet: Sheet, part: Part, relation: RelationName) -> None:
    """No row is made with an end, or with one that lies before the horizon."""
    rows = sheet.catalogue.of("columns", relation)
    # What a generated column is made from.
    moments = [str(row["name"]) for row in rows if _timed(row) or _said(sheet, row).sense in _MOMENTS]
    for row in rows:
        if row["base_type"] not in NO_END or row["name"] == sheet.policy.column("retain_until"):
            _end(sheet, part, relation, row, moments if row.get("generated") else [])


def _timed(row: Row) -> bool:
    return _TIMES.fullmatch(str(row["base_type"])) is not None


def _default(row: Row) -> str:
    given = row["default"] if row["default"] is not None else row["domain_default"]
    return "" if given is None else str(given)


def _said(sheet: Sheet, row: Row, moments: Sequence[str] = ()) -> Ending:
    return ending(_default(row), timed=_timed(row), moments=moments, reviewed=sheet.policy.reviewed)


def _end(sheet: Sheet, part: Part, relation: RelationName, row: Row, moments: Sequence[str]) -> None:
    found, default = _said(sheet, row, moments), _default(row)
    what = f"{row['name']} of {relation}"
    advice = "write 'infinity' for what has no end, and now() for the moment in which a row is made"
    if found.sense is Sense.FOR_EVER:
        sheet.rest_on(row)
    elif found.sense is Sense.LATER:
        _ttl(sheet, part, what, default, row, found.length)
    elif found.sense is Sense.INSTANT:
        text = f"{what} is by default {default}, a fixed time or span, and may be read as the end of the row; {advice}"
        sheet.doubt(Code.RETENTION_UNKNOWN, text, part=part, rows=[row])
    elif found.sense is Sense.UNCLEAR:
        text = (
            f"{what} is by default {default}, and is not shown to be no end of the row: {found.why}; {advice}, or name "
            "a function (schema.name) that tells no end in a policy as reviewed"
        )
        sheet.doubt(Code.RETENTION_UNKNOWN, text, part=part, rows=[row])
    elif row["name"] == sheet.policy.column("retain_until"):
        text = (
            f"{what} says how long a record is kept, and has no default that is for ever or beyond the horizon; write "
            "DEFAULT 'infinity'"
        )
        sheet.doubt(Code.RETENTION_UNKNOWN, text, part=part, rows=[row])


def _ttl(sheet: Sheet, part: Part, what: str, default: str, row: Row, length: timedelta | None) -> None:
    horizon = sheet.policy.horizon
    if horizon is None or (length is not None and length < horizon):
        wanted = "for ever" if horizon is None else f"for {horizon}"
        text = f"{what} ends by default at {default}; a consumed record blocks {wanted}"
        sheet.refute(Code.RETENTION_TTL, text, part=part, rows=[row])
    elif length is None:
        text = f"{what} ends by default at {default}, which is not shown to lie beyond {horizon}"
        sheet.doubt(Code.RETENTION_UNKNOWN, text, part=part, rows=[row])
    else:
        sheet.rest_on(row)


def _partitions(sheet: Sheet, part: Part, relation: RelationName) -> None:
    row = sheet.catalogue.relation(relation)
    if row is None:
        return
    if row["is_partition"]:
        text = f"{relation} is a partition, which can be detached or dropped with all that it holds"
        sheet.refute(Code.PARTITION_DROPPABLE, text, part=part, rows=[row])
    if row["partition_strategy"] in ("r", "l"):
        text = f"{relation} is partitioned by {row['partition_key']}: dropping a partition opens its keys"
        sheet.refute(Code.PARTITION_DROPPABLE, text, part=part, rows=[row])


_JOBS = ("jobs_cron", "jobs_pgagent", "jobs_timescaledb", "jobs_partman")
_ERASES = re.compile(r"\b(delete|truncate|drop|update|merge|detach|retention|drop_chunks)\b", re.IGNORECASE)


def _jobs(sheet: Sheet) -> None:
    for query in _JOBS:
        try:
            rows = sheet.catalogue.rows(query)
        except UnreadError as error:
            sheet.doubt(Code.CATALOGUE_UNREADABLE, f"jobs are there and could not be read: {error}")
            continue
        for row in rows:
            _job(sheet, query, row)


def _job(sheet: Sheet, query: str, row: Row) -> None:
    told = f"{row.get('name') or ''} {row.get('command') or ''} {row.get('relation') or ''}"
    touched = [relation for relation in _relations(sheet) if _mentions(told, relation.name)]
    called = [each for each in sheet.catalogue.rows("mentions") if _mentions(told, str(each["name"]))]
    if not touched and not called:
        return
    names = ", ".join([*map(str, touched), *(f"{each['schema']}.{each['name']}()" for each in called)])
    text = f"a job ({query}) touches {names}: {str(row.get('command') or '')[:200]}"
    texts = [told, *(str(each["definition"] or "") for each in called)]
    erases = query in ("jobs_partman", "jobs_timescaledb") or any(_ERASES.search(each) for each in texts)
    (sheet.refute if erases else sheet.doubt)(Code.JOB, text, rows=[row, *called])


def _relations(sheet: Sheet) -> Iterator[RelationName]:
    """The consumed records' relations, their partitions, and what they are partitions or children of."""
    for part in _CONSUMED:
        if (relation := sheet.part(part)) is None:
            continue
        yield relation
        yield from sheet.catalogue.below(relation)
        for row in sheet.catalogue.parents(relation):
            yield RelationName(str(row["parent_schema"]), str(row["parent"]))
        for row in sheet.catalogue.children(relation):
            yield name_of(row)


def _mentions(text: str, name: str) -> bool:
    return re.search(rf"(?<![\w$]){re.escape(name)}(?![\w$])", text, re.IGNORECASE) is not None
