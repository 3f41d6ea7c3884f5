"""Failpoints: places where an operation stops or fails on request (docs/adapter-protocol.md, "Failpoints").

They are added from outside. What opens a session wraps named steps of its parts; the parts do not know this.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from enum import Enum, unique
from pathlib import Path
from typing import Any, Generic, TypeVar

from holdfast.reference_impl.patience import Patience
from holdfast.servers.pace import scaled

# The protocol lets an implementation give up after this long.
HOLD_GIVE_UP_S = scaled(20.0)
_POLL_S = 0.005

Step = Callable[..., Any]
_Point = TypeVar("_Point", bound=Enum)
_Fault = TypeVar("_Fault", bound=Enum)


class AbortedError(Exception):
    """The operation was asked to fail here."""


class Failpoints(Generic[_Point, _Fault]):
    """At most one armed failpoint of one worker. Unarmed, it does nothing."""

    def __init__(self, workdir: Path, patience: Patience | None = None) -> None:
        """`patience`, if the session has one, starts again after a hold, because a hold is no wait for a store."""
        self._folder = workdir / "hold"
        self._patience = patience
        self._armed: tuple[_Point, _Fault] | None = None

    @property
    def armed(self) -> bool:
        """Whether a failpoint waits to be reached."""
        return self._armed is not None

    def arm(self, point: _Point, fault: _Fault) -> None:
        """Arm one failpoint for the next operation of this worker."""
        self._armed = (point, fault)

    def disarm(self) -> None:
        """Disarm: that operation is over, whether it reached the failpoint or not."""
        self._armed = None

    def taken(self, point: _Point) -> _Fault | None:
        """The fault that is armed at `point`, and disarm it; None if there is none."""
        if self._armed is None or self._armed[0] is not point:
            return None
        fault = self._armed[1]
        self._armed = None
        return fault

    def hold(self, point: _Point) -> None:
        """Report that the point is reached, and wait until it is released. Raises AbortedError after too long."""
        self._folder.mkdir(exist_ok=True)
        (self._folder / f"{point.value}.reached").touch()
        release = self._folder / f"{point.value}.release"
        deadline = time.monotonic() + HOLD_GIVE_UP_S
        try:
            while not release.exists():
                if time.monotonic() > deadline:
                    raise AbortedError(f"{point.value} was not released in {HOLD_GIVE_UP_S:g} s")
                time.sleep(_POLL_S)
        finally:
            if self._patience is not None:
                self._patience.begin()


@unique
class Fault(Enum):
    """What happens at an armed failpoint where a contract knows of nothing else."""

    HOLD = "hold"
    ABORT = "abort"


class HoldOrAbort(Failpoints[_Point, Fault]):
    """Failpoints at which an operation holds or fails."""

    def reach(self, point: _Point) -> None:
        """The operation is at `point`. Raises AbortedError as armed."""
        fault = self.taken(point)
        if fault is Fault.ABORT:
            raise AbortedError(f"aborted at {point.value}")
        if fault is Fault.HOLD:
            self.hold(point)

    def around(self, before: _Point | None, after: _Point | None) -> Callable[[Step], Step]:
        """For `wrap`: a step that reaches one point before it begins and another when it is done."""

        def wrapping(step: Step) -> Step:
            def wrapped(*args: Any, **named: Any) -> Any:
                if before is not None:
                    self.reach(before)
                result = step(*args, **named)
                if after is not None:
                    self.reach(after)
                return result

            return wrapped

        return wrapping


def wrap(part: object, step: str, around: Callable[[Step], Step]) -> None:
    """Replace one method of one object by what `around` makes of it."""
    setattr(part, step, around(getattr(part, step)))
