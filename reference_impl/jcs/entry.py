"""How the adapter gets at this contract."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.reference_impl.jcs.canonicaliser import Canonicaliser
from holdfast.reference_impl.jcs.service import Service
from holdfast.reference_impl.jcs.terms import CONTRACT, Profile
from holdfast.reference_impl.session import Implementation, OpenRequest, Session
from holdfast.specs import kept_terms


@dataclass(frozen=True, slots=True)
class Jcs(Implementation):
    """Implements `session.Implementation`."""

    def open(self, request: OpenRequest) -> Session:  # noqa: ARG002 - the protocol's signature
        """See `session.Implementation`. Workdir, clock, surface and config mean nothing to this contract."""
        canonicalisers = {profile: Canonicaliser(profile) for profile in Profile}
        return Service(canonicalisers, kept_terms(CONTRACT).methods["canonicalise"].args)


def implementation(*, mutant: str | None = None) -> Jcs:  # noqa: ARG001 - a patch is made at import
    """The implementation."""
    return Jcs()
