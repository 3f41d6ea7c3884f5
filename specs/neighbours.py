"""`neighbours.yaml` of a contract: how each leaf of its operations is varied, and what is due for a near miss of it.

The types below are the file's schema and its reader. docs/neighbours.md says how one is written.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, unique
from typing import Annotated, Any

from msgspec import Meta

from holdfast.specs.entry import (
    DISTINCT,
    ClauseId,
    ContractName,
    Entry,
    Label,
    Placed,
    Text,
    Title,
    ValueName,
    by_hand,
    text,
)
from holdfast.specs.leaves import Leaf

# OPERATION:PATH, with the path as in `holdfast.specs.leaves`.
LeafName = Annotated[str, text("^[a-z][a-z0-9_]*:[^ ]+$")]
Expectation = Annotated[Mapping[str, Any], by_hand("expect")]
# A call, a provocation, a file that is placed, or a step of the clock.
Step = Annotated[Mapping[str, Any], by_hand("step")]


@unique
class Sessions(Enum):
    """How many sessions a sweep has: one for all near misses, or one for each."""

    ONE = "one"
    EACH = "each"


class Sweep(Entry, frozen=True):
    """One leaf is varied in one situation.

    With `original`, the good value, `$x` in `given` is the value that is stored before and `$y` in `probe` the one that
    is presented. Either may be the near miss, unless an answer of `given` has chosen the original or `stored` is false.
    `value` says what is varied where it stands in a file and not in arguments. Without `original` each of the leaves is
    varied for itself, where it stands in the arguments of the probe.

    `due` is what is expected of the probe, by what `$y` is to `$x`: `same`, `other`, `malformed`, or a class that the
    leaf's normal form names. `again` is expected of the same probe once more after it was accepted as new. At most
    `most` near misses are sent; if there are more, the seed of the run draws them.
    """

    name: Placed
    clause: ClauseId
    title: Title
    probe: Step
    due: Annotated[Mapping[Label, Expectation], Meta(min_length=1)]
    leaves: Annotated[tuple[LeafName, ...], DISTINCT] = ()
    value: Leaf | None = None
    original: Any = None
    given: tuple[Step, ...] = ()
    again: Expectation | None = None
    values: Mapping[ValueName, Any] = {}
    stored: bool = True
    sessions: Sessions = Sessions.ONE
    most: Annotated[int, Meta(ge=1)] = 200


class NeighbourFile(Entry, frozen=True):
    """neighbours.yaml: how each leaf of the operations is varied. `unswept` gives the reason for each that is not."""

    contract: ContractName
    sweeps: Annotated[Mapping[Label, Sweep], Meta(min_length=1)]
    values: Mapping[ValueName, Any] = {}
    unswept: Mapping[LeafName, Text] = {}
    forms: Mapping[Text, Any] = {}

    def proving(self, clause: str) -> tuple[Sweep, ...]:
        """The sweeps of one clause, in the order of the file."""
        return tuple(sweep for sweep in self.sweeps.values() if sweep.clause == clause)
