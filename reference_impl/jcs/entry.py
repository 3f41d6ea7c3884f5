"""How the adapter gets at this contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.reference_impl.jcs.factory import REFERENCE, Factory
from holdfast.reference_impl.jcs.terms import CONTRACT, Profile
from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.session import OpenRequest, Session
from holdfast.reference_impl.whole import Whole
from holdfast.specs import kept_terms


@dataclass(frozen=True, slots=True)
class Jcs(Whole):
    """Implements `session.Implementation`."""

    contract: ClassVar[str] = CONTRACT
    factory: Factory = REFERENCE

    def open(self, request: OpenRequest) -> Session:  # noqa: ARG002 - the protocol's signature
        """See `session.Implementation`. Workdir, clock, surface and config mean nothing to this contract."""
        canonicalisers = {profile: self.factory.build(profile) for profile in Profile}
        return self.factory.service(canonicalisers, kept_terms(CONTRACT).methods["canonicalise"].args)


def implementation(*, mutant: str | None = None) -> Jcs:
    """The implementation, with a planted bug if one is named. Raises KeyError for an unknown mutant."""
    return Jcs(planted(REFERENCE, mutant))
