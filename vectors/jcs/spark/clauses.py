"""Which clause of the contract a departing row is about, so that a finding can be looked up in its source.

Rows of the opening name their clause themselves, and that of a generated row is its category's. Where bytes are wrong,
it follows from what came out otherwise: a number, a string, or the order of members.
"""

from __future__ import annotations

from holdfast.vectors.jcs.frames import Answered, Status
from holdfast.vectors.jcs.spark.kinds import Kind, kinds

# The clauses that are about one kind of thing, and the clause where another one came out otherwise.
_OF_KIND = {Kind.NUMBER: "JCS-NUM-03", Kind.STRING: "JCS-STR-04", Kind.ORDER: "JCS-ORD-05"}
_KIND_OF = {"NUM": Kind.NUMBER, "STR": Kind.STRING, "SUR": Kind.STRING, "ORD": Kind.ORDER}


def clause_of(own: str, expected: Answered, answered: Answered) -> str:
    """The clause that a departing row is about, whose `own` is that of its document."""
    if expected.status is Status.CANONICAL and answered.status is Status.CANONICAL:
        found = kinds(expected.body, answered.body)
        if _KIND_OF.get(own.split("-")[1]) not in found:
            return next((_OF_KIND[kind] for kind in _OF_KIND if kind in found), own)
    return own
