"""Which states of the disk a crash may leave behind, from a recording alone.

`contents` are the bytes of one file, `pending` what is not durable of it, `names` in which order names reach the disk
on each kind of file system. `disk` follows a recording and knows what is durable and what is pending after each
operation, `states` are the legal states there, `kept` the bytes that they make, `losses` the words for what they lack.
`survey` counts them, `plan` puts them in order of worth. docs/crash-model.md has the rules and what they were
calibrated on.
"""

from holdfast.conformance.faults.model.contents import EMPTY, Content
from holdfast.conformance.faults.model.disk import Point, Profile, at, on, points
from holdfast.conformance.faults.model.pending import Data, Moved, Pending, Resized
from holdfast.conformance.faults.model.plan import Candidate, Plan
from holdfast.conformance.faults.model.states import State, StateRule, states
from holdfast.conformance.faults.model.survey import Stage

__all__ = [
    "EMPTY",
    "Candidate",
    "Content",
    "Data",
    "Moved",
    "Pending",
    "Plan",
    "Point",
    "Profile",
    "Resized",
    "Stage",
    "State",
    "StateRule",
    "at",
    "on",
    "points",
    "states",
]
