"""How the adapter gets at this contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.reference_impl.mesh_delivery.factory import REFERENCE, Factory
from holdfast.reference_impl.mesh_delivery.terms import CONTRACT
from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.session import OpenRequest, Session
from holdfast.reference_impl.whole import Whole


@dataclass(frozen=True, slots=True)
class MeshDelivery(Whole):
    """Implements `session.Implementation`."""

    contract: ClassVar[str] = CONTRACT
    factory: Factory = REFERENCE

    def open(self, request: OpenRequest) -> Session:  # noqa: ARG002 - the protocol's signature
        """See `session.Implementation`. Workdir, clock, surface and config mean nothing to a fingerprint."""
        return self.factory.build()


def implementation(*, mutant: str | None = None) -> MeshDelivery:
    """The implementation, with a planted bug if one is named. Raises KeyError for an unknown mutant."""
    return MeshDelivery(planted(REFERENCE, mutant))
