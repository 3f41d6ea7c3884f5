"""How the adapter gets at this contract: wires around the reference, which is a service like any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Fault, Ok, Refused
from holdfast.reference_impl.session import Implementation, OpenError, OpenRequest, StateWanted
from holdfast.reference_impl.session import Session as Opened
from holdfast.servers.wires.instances import EndedError
from holdfast.servers.wires.profile import read
from holdfast.servers.wires.world import ServiceEnvironment, UseError

# The key of a session's config under which the launcher names its template.
TEMPLATE = "template"
_FILES = {"sqlite": "service.toml", "postgres": "service-postgres.toml", "queue": "service-queue.toml"}


def _milliseconds(now: datetime) -> int:
    return round(now.timestamp() * 1000)


@dataclass(slots=True)
class Session:
    """Implements `session.Session`."""

    world: ServiceEnvironment
    place: Mapping[str, str] | None = None

    def call(self, method: str, args: Any) -> Answer:
        """See `session.Session`."""
        try:
            told = self.world.answer(method, args)
        except (UseError, EndedError) as error:
            return Fault(str(error))
        match told["outcome"]:
            case "accepted":
                return Accepted(Effect(told["effect"]), told["value"])
            case "refused":
                return Refused(told["reason"], told["data"])
            case "unsupported":
                return Fault(f"the wires do not have {told['capability']}")
            case "ok":
                return Ok(told.get("value"))
            case _:
                return Fault(told["detail"])

    def set_clock(self, now: datetime) -> None:
        """See `session.Session`."""
        self.world.set_clock(_milliseconds(now))

    def close(self) -> None:
        """See `session.Session`."""
        self.world.close()


@dataclass(frozen=True, slots=True)
class IdempotencyKey(Implementation):
    """Implements `session.Implementation`."""

    mutant: str | None = None

    def open(self, request: OpenRequest) -> Opened:
        """See `session.Implementation`."""
        name = _FILES.get(request.config.get("store", "sqlite"))
        if name is None:
            raise OpenError(f"expected the store sqlite, postgres or queue, got {request.config['store']!r}")
        service = read(Path(__file__).with_name(name))
        bug = "" if self.mutant is None else f"--mutant {self.mutant}"
        given = {"mutant": bug, "template": request.config.get(TEMPLATE, "")}
        try:
            world = ServiceEnvironment(
                service,
                request.workdir,
                fresh=request.state is StateWanted.FRESH,
                now=_milliseconds(request.now),
                given=given,
            )
        except (UseError, EndedError) as error:
            raise OpenError(str(error)) from error
        return Session(world)


def implementation(*, mutant: str | None = None) -> IdempotencyKey:
    """The implementation, with a planted bug if one is named."""
    return IdempotencyKey(mutant)
