"""How the adapter gets at this contract: opening sessions on a mailbox in the workdir."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.provision import copy
from holdfast.reference_impl.calyx_replay.service import Parts, Service
from holdfast.reference_impl.calyx_replay.terms import Settings, load_settings
from holdfast.reference_impl.session import (
    Implementation,
    OpenError,
    OpenRequest,
    Session,
    StateWanted,
    SurfaceWanted,
    template_of,
)

_UTC = "UTC"


@dataclass(frozen=True, slots=True)
class CalyxReplay(Implementation):
    """Implements `session.Implementation`. `mutant` is the name of its bug, for other processes."""

    mutant: str | None = None

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`. The first call finds a database that cannot be read."""
        settings = load_settings(request.config)
        if request.state is StateWanted.FRESH:
            self._start_afresh(request, settings)
        parts = Parts(request.workdir, request.config, mutant=self.mutant)
        service = Service(parts, now=request.now, closing=live_in(settings.timezone))
        service.begin()
        return service

    def _start_afresh(self, request: OpenRequest, settings: Settings) -> None:
        location = Location(request.workdir, settings)
        for path in location.files():
            path.unlink(missing_ok=True)
        if request.surface is SurfaceWanted.ABSENT:
            return
        with template_of(request.config) as template:
            copy(template, location)


def live_in(timezone: str) -> Callable[[], None]:
    """Make `timezone` the local one of this process. Returns the function that undoes it. Raises OpenError."""
    if timezone != _UTC:
        try:
            ZoneInfo(timezone)
        except (ZoneInfoNotFoundError, ValueError, OSError) as error:
            raise OpenError(f"config timezone: expected a name of the IANA database, got {timezone!r}") from error
    before = os.environ.get("TZ")

    def set_zone(name: str | None) -> None:
        if name is None:
            os.environ.pop("TZ", None)
        else:
            os.environ["TZ"] = name
        time.tzset()

    set_zone(timezone)
    return lambda: set_zone(before)


def implementation(*, mutant: str | None = None) -> CalyxReplay:
    """The implementation, with the name of its bug for other processes."""
    return CalyxReplay(mutant)
