"""How the adapter gets at this contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reference_impl.mesh_delivery.blueprint import REFERENCE, Blueprint
from reference_impl.mesh_delivery.terms import CONTRACT
from reference_impl.mutants import find
from reference_impl.session import OpenRequest, Session
from specs import load_terms


@dataclass(frozen=True, slots=True)
class MeshDelivery:
    """Implements `session.Implementation`."""

    blueprint: Blueprint = REFERENCE

    @property
    def version(self) -> str:
        """See `session.Implementation`."""
        return load_terms(CONTRACT).version

    @property
    def not_claimed(self) -> Mapping[str, str]:
        """See `session.Implementation`. Everything is claimed."""
        return {}

    def open(self, request: OpenRequest) -> Session:  # noqa: ARG002 - the protocol's signature
        """See `session.Implementation`. Workdir, clock, surface and config mean nothing to a fingerprint."""
        return self.blueprint.build()

    def shut_down(self) -> None:
        """See `session.Implementation`. Sessions leave nothing behind."""


def implementation(*, mutant: str | None = None) -> MeshDelivery:
    """The implementation, with a planted bug if one is named. Raises KeyError for an unknown mutant."""
    return MeshDelivery() if mutant is None else MeshDelivery(find(mutant).apply(REFERENCE))
