"""What runs at every INSERT beside triggers and rules: functions of indexes, of any check, and of an audit's defaults.

Such a function needs to refuse nothing to do harm: it may set synchronous_commit for the rest of the transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.judging import Judging, foreign_calls
from holdfast.conformance.fitness.criteria.lasting import NO_END
from holdfast.conformance.fitness.criteria.tables import reviewed
from holdfast.conformance.fitness.model import Part, RelationName, Row

# pg_constraint.contype: checks and exclusion constraints.
_CALLING = ("c", "x")
# Of PostgreSQL's own functions in a default this one reaches beyond the row.
_SETS = "set_config"


def called_on_insert(judging: Judging, part: Part) -> None:
    """All code of users that an INSERT runs is reviewed, and no check may answer otherwise tomorrow."""
    for relation in _relations(judging, part):
        for row in _constraints(judging, relation):
            if row["enforced"] and not reviewed(judging, relation, row):
                what = f"the constraint {row['name']} of {relation}"
                _calls(judging, part, what, row, str(row["definition"]), row["calls"])
                _constant(judging, part, what, row)
        for row in judging.catalogue.of("indexes", relation):
            if not reviewed(judging, relation, row):
                # The whole definition names the relation with its schema, which is no call.
                text = f"{row['expressions'] or ''} {row['predicate'] or ''}"
                calls = [*row["calls"], *(each for each in row["opclasses"] if not str(each).startswith("pg_catalog."))]
                _calls(judging, part, f"the index {row['name']} of {relation}", row, text, calls)


def defaulted(judging: Judging, part: Part) -> None:
    """The same of defaults and generated columns. Of what is consumed most are read for what gives a row an end."""
    for relation in _relations(judging, part):
        for row in judging.catalogue.of("columns", relation):
            if part is Part.AUDIT or row["base_type"] in NO_END:
                what = f"the default of {row['name']} of {relation}"
                sets = [_SETS] if f"{_SETS}(" in f"{row['default']} {row['domain_default']}" else []
                _calls(judging, part, what, row, "", [*row["calls"], *sets])


def _relations(judging: Judging, part: Part) -> tuple[RelationName, ...]:
    name = judging.part(part)
    return () if name is None else (name, *judging.catalogue.below(name))


def _constraints(judging: Judging, relation: RelationName) -> Iterator[Row]:
    yield from (row for row in judging.catalogue.of("constraints", relation) if row["kind"] in _CALLING)
    yield from judging.catalogue.of("domain_checks", relation)


def _calls(judging: Judging, part: Part, what: str, row: Row, text: str, calls: Sequence[str]) -> None:
    if foreign := foreign_calls(judging, {"definition": text, "calls": calls}):
        described = (
            f"{what} calls {', '.join(foreign)} at every INSERT, which was not reviewed; drop it, or name "
            "what it calls in a policy as reviewed"
        )
        judging.unproven(Code.CHECK_UNREVIEWED, described, part=part, rows=[row])


def _constant(judging: Judging, part: Part, what: str, row: Row) -> None:
    if row["volatile"]:
        described = (
            f"{what} calls {', '.join(row['volatile'])}, which is not immutable: it may answer otherwise tomorrow, or "
            "set something; drop it, or name it in a policy as reviewed"
        )
        judging.unproven(Code.CHECK_VOLATILE, described, part=part, rows=[row])
