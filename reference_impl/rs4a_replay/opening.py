"""How a session gets its store: the parts that differ between stores, each kind in a module that is loaded for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.admission import Ports
from holdfast.reference_impl.rs4a_replay.failpoints import Failpoints
from holdfast.reference_impl.rs4a_replay.operator import Operator
from holdfast.reference_impl.rs4a_replay.service import Server, Use
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.session import OpenRequest

LAUNCH_ADVICE = "run `python -m holdfast.reference_impl launch` and pass the config that it prints"


@dataclass(frozen=True, slots=True)
class Opened:
    """The store of a session: for the registrar, for the operator, its failpoints, and the server if it has its own."""

    ports: Ports
    operator: Operator
    failpoints: type[Failpoints]
    server: Server | None = None
    use: Use = Use.LABORATORY
    place: Mapping[str, str] | None = None


class Opening(Protocol):
    """The class `Opening` of a module that opens stores of one kind."""

    def open(self, request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
        """Open the store of one session. Raises OpenError."""

    def shut_down(self) -> None:
        """Remove what sessions have left. Never raises."""
