"""The columns that make a record of the audit unique, and whether a second one of the same refusal goes in."""

from __future__ import annotations

import re

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.model import Part
from holdfast.conformance.fitness.policy import BINDINGS, KEYS, NONCE, Policy
from holdfast.conformance.fitness.sqlite.catalogue import Relation
from holdfast.conformance.fitness.sqlite.judging import Judging
from holdfast.conformance.fitness.sqlite.outcomes import Outcome, came_to, counts
from holdfast.conformance.fitness.sqlite.session import refused

# A default that gives each row a value of its own.
_MADE_UP = re.compile(r"\brandomblob\s*\(", re.IGNORECASE)


def own(relation: Relation, policy: Policy) -> frozenset[str]:
    """The columns of the primary key in which records of one refusal differ.

    What the refused request said is the same each time, in a primary key too.
    """
    said = {policy.column(word) for word in (*KEYS, NONCE, *BINDINGS)}
    return frozenset(name for name, column in relation.columns.items() if column.primary_key and name not in said)


def taken_again(judging: Judging, audit: Relation) -> None:
    """What was refused is refused again: nothing of a record may be unique but what makes it a record of its own."""
    _nothing_else_unique(judging, audit)
    probe = judging.probe("audit-again")
    before, after = counts(probe, -3), counts(probe)
    answer = None if probe is None or after is None else probe.answers[-2]
    if before is None or after is None or answer is None or (answer.sqlstate is not None and not refused(answer)):
        judging.shown(Part.AUDIT, {"audit-again": Outcome.NOT_SHOWN})
    elif answer.sqlstate is not None or after["records"] != before["records"] + 1:
        text = f"{audit.name}: a second record of the same refusal does not go in: {came_to(probe)}"
        judging.refute(Code.AUDIT_UNWRITABLE, text, Part.AUDIT, probes=("audit-again",))


def _nothing_else_unique(judging: Judging, audit: Relation) -> None:
    made_up = [name for name, column in audit.columns.items() if _MADE_UP.search(column.default or "")]
    primary = frozenset(name for name, column in audit.columns.items() if column.primary_key)
    keys = [frozenset({name}) for name in made_up] + ([primary] if own(audit, judging.policy) else [])
    for index in audit.indexes:
        columns = frozenset(name for name in index.columns if name is not None)
        if index.unique and not any(key <= columns for key in keys):
            text = (
                f"{index.called} on {audit.name} leaves no room for some records: let nothing in it be unique but its "
                "primary key, or a column that SQLite numbers or fills at random"
            )
            judging.unproven(Code.AUDIT_UNWRITABLE, text, Part.AUDIT, rows=index.rows)
