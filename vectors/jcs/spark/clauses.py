"""Which clause of the contract a departing row is about, so that a finding can be looked up in its source.

Rows of the opening name their clause themselves. Of a generated row it follows from its category, or, where bytes are
wrong in a mixed document, from what came out otherwise: a number, a string, or the order of members.
"""

from __future__ import annotations

from holdfast.vectors.jcs.frames import Answered, Status
from holdfast.vectors.jcs.spark.kinds import Kind, kinds
from holdfast.vectors.taxonomy import Category

_OF_CATEGORY = {
    Category.NUMBER_NOTATION: "JCS-NUM-02",
    Category.NUMBER_SHORTEST: "JCS-NUM-03",
    Category.NUMBER_TIES: "JCS-NUM-09",
    Category.NUMBER_SPELLING: "JCS-NUM-08",
    Category.NUMBER_INTEGERS: "JCS-NUM-06",
    Category.NUMBER_HUMAN: "JCS-NUM-03",
    Category.STRING_ESCAPED: "JCS-STR-02",
    Category.STRING_RAW: "JCS-STR-03",
    Category.STRING_UNNORMALISED: "JCS-STR-04",
    Category.ORDER_UTF16: "JCS-ORD-01",
    Category.ORDER_PREFIX: "JCS-ORD-02",
    Category.ORDER_TRAPS: "JCS-ORD-04",
    Category.STRUCTURE: "JCS-LIT-01",
    Category.WHITESPACE: "JCS-WS-01",
    Category.SIZE: "JCS-DEPTH-02",
    Category.IDEMPOTENCE: "JCS-IDEM-01",
    Category.DUPLICATE_NAMES: "JCS-DUP-01",
    Category.LONE_SURROGATES: "JCS-SUR-01",
    Category.INVALID_UTF8: "JCS-UTF8-01",
    Category.NUMBER_RANGE: "JCS-NUM-01",
    Category.NUMBER_GRAMMAR: "JCS-GRAM-02",
    Category.STRING_GRAMMAR: "JCS-GRAM-03",
    Category.STRUCTURE_GRAMMAR: "JCS-GRAM-01",
    Category.ENCODING: "JCS-UTF8-02",
    Category.NOT_CANONICAL: "JCS-IDEM-02",
}
# The categories whose documents are about one kind of thing, and the clause where another one came out otherwise.
_OF_KIND = {Kind.NUMBER: "JCS-NUM-03", Kind.STRING: "JCS-STR-04", Kind.ORDER: "JCS-ORD-05"}
_KIND_OF = {"NUMBER": Kind.NUMBER, "STRING": Kind.STRING, "ORDER": Kind.ORDER}


def clause_of(category: Category, expected: Answered, answered: Answered) -> str:
    """The clause that a departing generated row of this category is about."""
    if expected.status is Status.CANONICAL and answered.status is Status.CANONICAL:
        found = kinds(expected.body, answered.body)
        own = _KIND_OF.get(category.name.partition("_")[0])
        if own not in found:
            return next((_OF_KIND[kind] for kind in _OF_KIND if kind in found), _OF_CATEGORY[category])
    return _OF_CATEGORY[category]
