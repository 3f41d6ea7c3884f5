"""What criteria ask of a relation before anything else: that it is a table, that rows stay in it, that nothing unread
runs at an INSERT; and whether triggers guard its rows.

A function that runs at an INSERT needs to refuse nothing to do harm: it may set synchronous_commit for the rest of the
transaction.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.files import loud
from holdfast.conformance.fitness.criteria.judging import Judging, foreign_calls
from holdfast.conformance.fitness.model import SUFFIX, Part, RelationName, Row

_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
# pg_class.relkind of a table, and pg_class.relpersistence of one that loses its rows.
TABLES = ("r", "p")
_LOSES = {
    "u": (Code.UNLOGGED, "unlogged: a crash empties it"),
    "t": (Code.TEMPORARY, "temporary: the session's end drops it"),
}
# pg_trigger.tgenabled: never fired.
OFF = "D"
# pg_constraint.contype: checks and exclusion constraints.
_CALLING = ("c", "x")
# Of PostgreSQL's own functions in a default this one reaches beyond the row.
_SETS = "set_config"
# Columns of these types give a row no end, by any function that makes them.
NO_END = ("pg_catalog.bool", "pg_catalog.uuid")


def there(judging: Judging, part: Part) -> tuple[RelationName, Row] | None:
    """A part of the surface with its row; None, with a reason, if there is none."""
    name, row = judging.part(part), judging.relation(part)
    if name is None or row is None:
        what = f"no relation is named for the {part.value}" if name is None else f"there is no relation {name}"
        judging.refute(Code.MISSING_RELATION, what, part=part)
        return None
    judging.rest_on(row)
    if judging.in_files and row["kind"] not in TABLES:
        _no_table(judging, part, name, row)
    return name, row


def _no_table(judging: Judging, part: Part, name: RelationName, row: Row) -> None:
    what = _KINDS.get(str(row["kind"]), f"of kind {row['kind']}")
    judging.refute(Code.NOT_A_TABLE, f"{name} is {what}: what holds its rows is not shown", part=part, rows=[row])


def apart(judging: Judging) -> tuple[Part, ...]:
    """The parts that hold what is consumed and are relations of their own; that one is missing is for (b) to say."""
    nonce = judging.part(Part.NONCE)
    return (Part.EFFECT,) if nonce is None or nonce == judging.part(Part.EFFECT) else (Part.EFFECT, Part.NONCE)


def ordinary(judging: Judging, part: Part) -> None:
    """The relation is a table whose rows are all in it, and outlive a crash."""
    if (found := there(judging, part)) is None:
        return
    name, row = found
    if row["kind"] not in TABLES:
        _no_table(judging, part, name, row)
    logged(judging, part)
    if children := judging.catalogue.children(name):
        text = f"{name} has children, whose rows are its rows, and no unique index of its own sees them"
        judging.refute(Code.CHILD_TABLES, text, part=part, rows=children)
    if row["is_partition"]:
        text = f"{name} is a partition: the same key may lie in another one"
        judging.refute(Code.IS_PARTITION, text, part=part, rows=judging.catalogue.parents(name))


def logged(judging: Judging, part: Part) -> None:
    """The rows outlive a crash and the session."""
    for each in judging.spread(part):
        row = judging.catalogue.relation(each)
        if row is not None and row["persistence"] in _LOSES:
            code, how = _LOSES[row["persistence"]]
            judging.refute(code, f"{each} is {how}", part=part, rows=[row])


def plain_insert(judging: Judging, part: Part) -> None:
    """All code of users between an INSERT and the row is reviewed, and no check may answer otherwise tomorrow."""
    for inspect in (_touched, *((loud,) if judging.in_files else (_called, _defaulted))):
        judging.check(inspect, part)


def _touched(judging: Judging, part: Part) -> None:
    """By triggers and rules."""
    for each in judging.spread(part):
        for row in judging.catalogue.of("triggers", each):
            if "insert" in row["events"] and row["enabled"] != OFF and not judging.reviewed(row, each):
                text = f"the trigger {row['name']} of INSERT on {each} may change or drop rows; it was not reviewed"
                judging.unproven(Code.TRIGGER_UNREVIEWED, text, part=part, rows=[row])
        for row in judging.catalogue.of("rules", each):
            if row["enabled"] != OFF and not judging.reviewed(row, each):
                text = f"the rule {row['name']} rewrites {str(row['event']).upper()} on {each}; it was not reviewed"
                judging.unproven(Code.RULE_UNREVIEWED, text, part=part, rows=[row])


def _called(judging: Judging, part: Part) -> None:
    """By checks and indexes."""
    for relation in judging.spread(part):
        constraints = (row for row in judging.catalogue.of("constraints", relation) if row["kind"] in _CALLING)
        for row in (*constraints, *judging.catalogue.of("domain_checks", relation)):
            if row["enforced"] and not judging.reviewed(row, relation):
                what = f"the constraint {row['name']} of {relation}"
                _calls(judging, part, what, row, row["calls"], str(row["definition"]))
                if row["volatile"]:
                    text = (
                        f"{what} calls {', '.join(row['volatile'])}, which is not immutable: it may answer otherwise "
                        "tomorrow, or set something; drop it, or name it in a policy as reviewed"
                    )
                    judging.unproven(Code.CHECK_VOLATILE, text, part=part, rows=[row])
        for row in judging.catalogue.of("indexes", relation):
            if not judging.reviewed(row, relation):
                # The whole definition names the relation with its schema, which is no call.
                text = f"{row['expressions'] or ''} {row['predicate'] or ''}"
                calls = [*row["calls"], *(each for each in row["opclasses"] if not str(each).startswith("pg_catalog."))]
                _calls(judging, part, f"the index {row['name']} of {relation}", row, calls, text)


def _defaulted(judging: Judging, part: Part) -> None:
    """By defaults and generated columns. Of what is consumed most are read for what gives a row an end."""
    for relation in judging.spread(part):
        for row in judging.catalogue.of("columns", relation):
            if part is Part.AUDIT or row["base_type"] in NO_END:
                sets = [_SETS] if f"{_SETS}(" in f"{row['default']} {row['domain_default']}" else []
                _calls(judging, part, f"the default of {row['name']} of {relation}", row, [*row["calls"], *sets])


def _calls(judging: Judging, part: Part, what: str, row: Row, calls: Sequence[str], text: str = "") -> None:
    if foreign := foreign_calls(judging, {"definition": text, "calls": calls}):
        described = (
            f"{what} calls {', '.join(foreign)} at every INSERT, which was not reviewed; drop it, or name "
            "what it calls in a policy as reviewed"
        )
        judging.unproven(Code.CHECK_UNREVIEWED, described, part=part, rows=[row])


# pg_trigger.tgenabled of a trigger that fires in an ordinary session.
_FIRES = ("O", "A")
VERBS = ("update", "delete", "truncate")


def guarded_by_triggers(judging: Judging, part: Part) -> None:
    """UPDATE, DELETE and TRUNCATE of a part each run into a trigger, on every partition as well."""
    for relation in judging.spread(part) if judging.relation(part) is not None else ():
        verbs = VERBS[:2] if judging.in_files else VERBS
        triggers = [row for row in judging.catalogue.of("triggers", relation) if row["enabled"] != OFF]
        own = relation == judging.part(part)
        if not triggers:
            by = judging.refusal(*(trial for verb in verbs for trial in _trials(judging, part, verb))) if own else ""
            text = f"{relation} has no triggers that guard its rows"
            judging.refute_unless(by, Code.NO_TRIGGERS, text, part, doubt=Code.GUARD_UNREVIEWED)
            continue
        for verb in verbs:
            _guard(judging, part, relation, verb, triggers, own=own)


def _trials(judging: Judging, part: Part, verb: str) -> list[str]:
    """The probes that try a change of a part."""
    verbs = (verb, "truncate") if judging.in_files and verb == "delete" else (verb,)
    return [f"{who}-{each}{SUFFIX[part]}" for each in verbs for who in judging.actors]


def _guard(judging: Judging, part: Part, relation: RelationName, verb: str, triggers: list[Row], *, own: bool) -> None:
    near = [row for row in triggers if verb in row["events"]]
    good = [row for row in near if not any(_weaknesses(row, verb))]
    if good:
        judging.rest_on(*good)
        if not any(_refuses(judging, row) or judging.reviewed(row, relation) for row in good):
            names = ", ".join(f"{row['name']} ({row['function']})" for row in good)
            text = (
                f"the guard {names} of {relation} does more than raise an exception: it refused what was tried, and "
                f"may let other things pass; write {_PLAIN_GUARD[judging.in_files]}, or name it in a policy as reviewed"
            )
            judging.unproven(Code.GUARD_UNREVIEWED, text, part=part, rows=good)
        return
    # A change of the whole is no change of one of its partitions alone.
    firing = [row for row in near if row["enabled"] in _FIRES]
    by = judging.refusal(*_trials(judging, part, verb)) if own or firing else ""
    if by and any(judging.reviewed(row, relation) for row in firing):
        judging.rest_on(*firing)
        return
    weak = "; ".join(f"{row['name']}: {', '.join(_weaknesses(row, verb))}" for row in near) or "none fires at it"
    how = "let one raise an exception BEFORE it FOR EACH ROW (TRUNCATE: STATEMENT)"
    text = (
        f"no trigger of {relation} is shown to refuse every {verb.upper()} ({weak}); "
        f"{f'write {_PLAIN_GUARD[True]}' if judging.in_files else how}, without a condition, or name it in a policy "
        "as reviewed"
    )
    if firing and by is None:
        judging.unproven(Code.GUARD_UNREVIEWED, text, part=part, rows=near)
    else:
        judging.refute_unless(by, Code.GUARD_MISSING, text, part, near, doubt=Code.GUARD_UNREVIEWED)


# In PL/pgSQL a guard that always refuses: nothing before the exception, no condition, and no handler behind it. What
# DECLARE declares may have a default that calls something, so nothing may be declared.
# Other quotes than the plain ones may hold one of these, so that what is text and what is a statement changes places.
_ALWAYS_RAISES = re.compile(
    r"\s*(?:DECLARE\s+)?BEGIN\s+RAISE\s+(?!DEBUG|LOG|INFO|NOTICE|WARNING)(?=[A-Z'])(?:'(?:[^']|'')*'|[^;'\"$])*;"
    r"(?:\s*RETURN\s+(?:NULL|NEW|OLD)\s*;)?\s*END\s*;?\s*",
    re.IGNORECASE | re.ASCII,
)
# Text in quotes is kept: it holds no comments. PostgreSQL ends a comment at either end of line.
_COMMENTS = re.compile(r"('(?:[^']|'')*')|--[^\n\r]*")
# A block comment may hold others, and a backslash may keep a quote from ending a text: not read here, hence not plain.
_UNCLEAR = ("/*", "\\")
# How pg_get_functiondef ends; it chooses a tag that the body does not have.
_BODY = re.compile(r"^AS (\$functionx*\$)(.*)\1\s*\Z", re.DOTALL | re.MULTILINE)


_PLAIN_GUARD = {False: "BEGIN RAISE EXCEPTION …; END", True: "SELECT RAISE(ABORT, text) and nothing else"}


def _refuses(judging: Judging, row: Row) -> bool:
    return bool(row["raises"]) if "raises" in row else only_raises(judging, str(row["function"]))


def only_raises(judging: Judging, function: str) -> bool:
    """Whether a trigger function, by schema and name, is a single exception. A plain one is executed all the same."""
    for row in judging.catalogue.rows("functions"):
        # A function of the same name that takes arguments is no trigger function.
        if f"{row['schema']}.{row['name']}" == function and not row["arguments"]:
            return row["language"] == "plpgsql" and plain(str(row["definition"]))
    return False


def plain(definition: str) -> bool:
    """Whether the text of a PL/pgSQL function, as PostgreSQL gives it, is a single exception."""
    body = _BODY.search(definition)
    # A third tag stands in a setting of the function: where the body begins is not clear then.
    if body is None or definition.count(body.group(1)) != 2 or any(each in body.group(2) for each in _UNCLEAR):
        return False
    return _ALWAYS_RAISES.fullmatch(_COMMENTS.sub(lambda found: found.group(1) or " ", body.group(2))) is not None


def _weaknesses(row: Row, verb: str) -> Iterator[str]:
    if row["timing"] != "before":
        yield f"it runs {row['timing']} the change"
    if row["level"] != ("statement" if verb == "truncate" else "row"):
        yield f"it runs for each {row['level']}"
    if row["enabled"] not in _FIRES:
        yield "it fires in replication only"
    if row["conditional"]:
        yield "it has a condition"
    if row["columns"]:
        yield f"it looks at {', '.join(row['columns'])} only"
    if row["constraint"]:
        yield "it is a constraint trigger"
