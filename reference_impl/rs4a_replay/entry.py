"""How the adapter gets at this contract: opening sessions on either store."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.service import Service
from holdfast.reference_impl.rs4a_replay.settings import load_settings
from holdfast.reference_impl.session import Implementation, OpenRequest, Session, SurfaceWanted

# See `registry.warm`.
LATER = tuple(f"holdfast.reference_impl.rs4a_replay.{kind}_opening" for kind in ("postgres", "sqlite"))


@dataclass(frozen=True, slots=True)
class Rs4aReplay(Implementation):
    """Implements `session.Implementation`."""

    # By the name of their store. An adapter starts for every session, and one driver takes half of all imports.
    openings: dict[str, Any] = field(default_factory=dict)

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`."""
        settings, patience = load_settings(request.config), Patience()
        kind = settings.store.value
        if kind not in self.openings:
            self.openings[kind] = import_module(f"holdfast.reference_impl.rs4a_replay.{kind}_opening")
        opened = self.openings[kind].open_store(request, settings, patience)
        if request.surface is SurfaceWanted.ABSENT:
            opened = replace(opened, store=None, audit=None)
        return Service(request, settings, patience, opened)

    def shut_down(self) -> None:
        """See `session.Implementation`."""
        for opening in self.openings.values():
            opening.shut_down()


def implementation(*, mutant: str | None = None) -> Rs4aReplay:  # noqa: ARG001 - a patch is made at import
    """The implementation."""
    return Rs4aReplay()
