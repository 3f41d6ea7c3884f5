"""What every criterion asks of a relation before anything else: that it is a table, that rows stay in it, and that
nothing unread runs at an INSERT.

A function that runs then needs to refuse nothing to do harm: it may set synchronous_commit for the rest of the
transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.files import loud
from holdfast.conformance.fitness.criteria.judging import Judging, foreign_calls
from holdfast.conformance.fitness.model import Part, RelationName, Row

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
    name = judging.part(part)
    row = None if name is None else judging.catalogue.relation(name)
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
