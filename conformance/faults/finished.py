"""The start state of the layers that take something away from an implementation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.conformance.faults.stored import Stored
from holdfast.conformance.faults.subject import Op, Workload


@dataclass(frozen=True, slots=True)
class Finished:
    """A run of the workload without what is kept for the time while a part is away: its last operation, or `later`.

    `workload` is `Workload.begun`.

    `served`: processes that it started keep the files, as a database server does. A single file is then that server's
    business, which may have no checksum for it; so only all of them at once are taken away.
    """

    folder: Path
    workload: Workload
    acknowledged: frozenset[int]
    late: tuple[Op, ...]
    stored: Stored
    served: bool
