"""Which states of the disk a crash may leave behind, from a recording alone.

`contents` are the bytes of one file, `writes` what is pending of them, `names` in which order names reach the disk on
each kind of file system. `disk` follows a recording and knows what is durable and what is pending after each operation,
`states` are the legal states there, `losses` the words for what they lack, `plan` puts them in order of worth.
docs/crash-model.md has the rules and what they were calibrated on.
"""

from conformance.faults.model.contents import EMPTY, Content
from conformance.faults.model.disk import Pending, Point, Profile, at, on, points
from conformance.faults.model.names import Moved
from conformance.faults.model.plan import Candidate, Plan, Stage
from conformance.faults.model.states import Kind, State, states
from conformance.faults.model.writes import Data, Resized

__all__ = [
    "EMPTY",
    "Candidate",
    "Content",
    "Data",
    "Kind",
    "Moved",
    "Pending",
    "Plan",
    "Point",
    "Profile",
    "Resized",
    "Stage",
    "State",
    "at",
    "on",
    "points",
    "states",
]
