"""What every criterion asks of a relation before anything else: that it is a table, and that rows stay in it."""

from __future__ import annotations

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.model import Part, RelationName, Row

_ORDINARY, _PARTITIONED = "r", "p"
_KINDS = {"v": "a view", "m": "a materialized view", "f": "a foreign table"}
# pg_trigger.tgenabled: never fired.
OFF = "D"


def there(judging: Judging, part: Part) -> tuple[RelationName, Row] | None:
    """A part of the surface with its row; None, with a reason, if there is none."""
    name = judging.part(part)
    row = None if name is None else judging.catalogue.relation(name)
    if name is None or row is None:
        what = f"no relation is named for the {part.value}" if name is None else f"there is no relation {name}"
        judging.refute(Code.MISSING_RELATION, what, part=part)
        return None
    judging.rest_on(row)
    return name, row


def apart(judging: Judging) -> tuple[Part, ...]:
    """The parts that hold what is consumed and are relations of their own; that one is missing is for (b) to say."""
    nonce = judging.part(Part.NONCE)
    return (Part.EFFECT,) if nonce is None or nonce == judging.part(Part.EFFECT) else (Part.EFFECT, Part.NONCE)


def ordinary(judging: Judging, part: Part) -> None:
    """The relation is a table whose rows are all in it, and outlive a crash."""
    if (found := there(judging, part)) is None:
        return
    name, row = found
    if row["kind"] not in (_ORDINARY, _PARTITIONED):
        what = _KINDS.get(str(row["kind"]), f"of kind {row['kind']}")
        judging.refute(Code.NOT_A_TABLE, f"{name} is {what}: what holds its rows is not shown", part=part, rows=[row])
    logged(judging, part)
    if children := judging.catalogue.children(name):
        text = f"{name} has children, whose rows are its rows, and no unique index of its own sees them"
        judging.refute(Code.CHILD_TABLES, text, part=part, rows=children)
    if row["is_partition"]:
        text = f"{name} is a partition: the same key may lie in another one"
        judging.refute(Code.IS_PARTITION, text, part=part, rows=judging.catalogue.parents(name))


def logged(judging: Judging, part: Part) -> None:
    """The rows outlive a crash and the session."""
    name = judging.part(part)
    if name is None:
        return
    for each in (name, *judging.catalogue.below(name)):
        row = judging.catalogue.relation(each)
        if row is not None and row["persistence"] == "u":
            judging.refute(Code.UNLOGGED, f"{each} is unlogged: a crash empties it", part=part, rows=[row])
        elif row is not None and row["persistence"] == "t":
            judging.refute(Code.TEMPORARY, f"{each} is temporary: the session's end drops it", part=part, rows=[row])


def untouched_on_insert(judging: Judging, part: Part) -> None:
    """No trigger and no rule comes between an INSERT and the row, unless a person has reviewed it."""
    name = judging.part(part)
    if name is None:
        return
    for each in (name, *judging.catalogue.below(name)):
        for row in judging.catalogue.of("triggers", each):
            if "insert" in row["events"] and row["enabled"] != OFF and not reviewed(judging, each, row):
                text = f"the trigger {row['name']} of INSERT on {each} may change or drop rows; it was not reviewed"
                judging.unproven(Code.TRIGGER_UNREVIEWED, text, part=part, rows=[row])
        for row in judging.catalogue.of("rules", each):
            if row["enabled"] != OFF and not reviewed(judging, each, row):
                text = f"the rule {row['name']} rewrites {str(row['event']).upper()} on {each}; it was not reviewed"
                judging.unproven(Code.RULE_UNREVIEWED, text, part=part, rows=[row])


def reviewed(judging: Judging, relation: RelationName, row: Row) -> bool:
    """Whether a policy says that a person has reviewed a trigger or rule of a relation."""
    return str(row["name"]) in judging.policy.reviewed or f"{relation}.{row['name']}" in judging.policy.reviewed
