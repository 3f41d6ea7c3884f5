"""Which clause of the contract a departing row is about, so that a finding can be looked up in its source.

Rows of the opening name their clause themselves. Of a generated row it follows from its category, or, where bytes are
wrong in a mixed document, from what came out otherwise: a number, a string, or the order of members.
"""

from __future__ import annotations

from holdfast.vectors.jcs.clauses import OF_CATEGORY
from holdfast.vectors.jcs.frames import Answered, Status
from holdfast.vectors.jcs.spark.kinds import Kind, kinds
from holdfast.vectors.taxonomy import Category

# The categories whose documents are about one kind of thing, and the clause where another one came out otherwise.
_OF_KIND = {Kind.NUMBER: "JCS-NUM-03", Kind.STRING: "JCS-STR-04", Kind.ORDER: "JCS-ORD-05"}
_KIND_OF = {"NUMBER": Kind.NUMBER, "STRING": Kind.STRING, "ORDER": Kind.ORDER}


def clause_of(category: Category, expected: Answered, answered: Answered) -> str:
    """The clause that a departing generated row of this category is about."""
    if expected.status is Status.CANONICAL and answered.status is Status.CANONICAL:
        found = kinds(expected.body, answered.body)
        own = _KIND_OF.get(category.name.partition("_")[0])
        if own not in found:
            return next((_OF_KIND[kind] for kind in _OF_KIND if kind in found), OF_CATEGORY[category])
    return OF_CATEGORY[category]
