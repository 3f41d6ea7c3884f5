"""Actions: what the interpretation of a case asks its driver to do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any


@unique
class Verb(Enum):
    """The closed list of actions."""

    EXCHANGE = "exchange"  # each request to its worker, then each answer
    RACE = "race"  # all requests behind a barrier, answers as they come
    START = "start"  # send, do not wait
    UNANSWERED = "unanswered"  # see that what START sent has no answer yet
    FINISH = "finish"  # wait for what START sent
    KILL = "kill"  # SIGKILL to a worker's group
    STOP = "stop"  # shut a worker down in order
    REACHED = "reached"  # wait for a stop point
    RELEASE = "release"  # let a stop point go on
    TAMPER = "tamper"  # change a file in the workdir
    INSPECT = "inspect"  # look into the store
    FILE = "file"  # see what a file in the workdir is
    TREE = "tree"  # see what lies below a folder of the workdir
    SEARCH = "search"  # see which files below a folder of the workdir hold a text
    PLACE = "place"  # write a file into the workdir
    LINK = "link"  # make a symbolic link in the workdir
    COPY = "copy"  # put a copy of a file or folder to another place in the workdir
    INSERT = "insert"  # put a row into the store
    PROBE = "probe"  # put rows into a copy of the store
    EXPECT_DEATH = "expect-death"  # the worker died as expected; forget it without counting it


@dataclass(frozen=True, slots=True)
class Action:
    """One action. `requests` are pairs of worker and request (without id); each yields one record.

    An action without requests yields one record too, with an `event` of kind done or failed. What INSPECT, FILE, TREE,
    SEARCH, PLACE, LINK, COPY, INSERT and PROBE came to stands in the event's detail (`conformance.cases.seen`).
    `starting` says that the deadline for a start holds.
    """

    verb: Verb
    note: str
    requests: tuple[tuple[int, Mapping[str, Any]], ...] = ()
    worker: int = 0
    operand: Mapping[str, Any] = field(default_factory=dict)
    starting: bool = False

    @property
    def record_count(self) -> int:
        """How many records it yields."""
        return len(self.requests) or 1
