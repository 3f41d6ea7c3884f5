"""The ladder: documents of growing size along each axis, sent before the generated rows.

A limit of a program (a stack, a buffer, a fixed array, a type of integer) shows only beyond it, and a defect may be
missed only in the first, the last or the only child of a large host. The ladder goes through these sizes and positions
one by one, so that no draw decides whether they come up. What stands there comes from the seed: every rung is made
alone from (seed, name). It is canonical by construction, as generated rows are, or has one documented defect.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import cache
from itertools import chain

from holdfast.vectors.jcs.construct.blocks import stock_of
from holdfast.vectors.jcs.construct.dice import Dice, derive
from holdfast.vectors.jcs.construct.segments import Reason
from holdfast.vectors.jcs.construct.stream import Row
from holdfast.vectors.jcs.ladder import containers, literals, strings
from holdfast.vectors.jcs.ladder.pieces import Defective, Step, Tools
from holdfast.vectors.taxonomy import Category

# Sets the draws of the ladder apart from those of rows and stocks, whose numbers are small.
_LADDER = 1785
_STOCK = 2**40


@cache
def steps() -> Mapping[str, tuple[Step, int]]:
    """Every rung by name, in order, with its number among those of its category. The same for every seed."""
    kinds = (
        containers.depths, containers.widths, containers.every, strings.lengths, strings.borders, strings.spaces,
        literals.numbers,
    )  # fmt: skip
    seen: Counter[Category] = Counter()
    found: dict[str, tuple[Step, int]] = {}
    for step in chain.from_iterable(kind() for kind in kinds):
        assert step.name not in found, step.name
        found[step.name] = step, seen[step.category]
        seen[step.category] += 1
    return found


def rung(seed: int, name: str) -> Row:
    """The rung of this name, made alone. Raises KeyError for an unknown name, ValueError for a bad seed."""
    if not 0 <= seed < 2**63:
        raise ValueError(f"a seed is from 0 to 2^63 - 1, not {seed}")
    step, turn = steps()[name]
    key = derive(seed, _LADDER)
    made = step.make(Tools(Dice(derive(key, *name.encode())), stock_of(seed, _STOCK), turn + key % 997))
    if isinstance(made, Defective):
        document, canonical, note, twin = made.document, None, made.note, made.twin
        reasons = frozenset((made.reason,))
    else:
        document, canonical, note, twin = made.written, made.canonical, "", None
        reasons = made.reasons
    refused_by = sum({reason.profiles for reason in reasons})
    reason = next((reason.value for reason in Reason if reason in reasons), None)
    return Row(name, step.category, step.clause, document, canonical, refused_by, reason, note, twin)
