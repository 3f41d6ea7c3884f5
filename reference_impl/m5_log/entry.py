"""How the adapter gets at this contract: opening sessions on a store in the workdir."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from holdfast.reference_impl.m5_log.factory import REFERENCE, Factory
from holdfast.reference_impl.m5_log.terms import CONTRACT, StoreError, UncertainError
from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.session import OpenError, OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.reference_impl.whole import Whole

# See `registry.warm`. RocksDB imports `pickle` when it is opened.
LATER = ("joserfc.jws", "joserfc.jwk", "pickle")


@dataclass(frozen=True, slots=True)
class M5Log(Whole):
    """Implements `session.Implementation`. `mutant` is the name of the bug in the factory, for other processes."""

    contract: ClassVar[str] = CONTRACT
    factory: Factory = REFERENCE
    mutant: str | None = None

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`. A fresh session makes its store; any other finds one, or refuses every call."""
        ready = request.surface is SurfaceWanted.READY
        parts = self.factory.parts(request.workdir, request.config, mutant=self.mutant, configured=ready)
        if request.state is StateWanted.FRESH:
            try:
                parts.store.location.clear()
                if ready:
                    parts.store.opening.make()
            except (OSError, StoreError, UncertainError) as error:
                raise OpenError(f"the store cannot be made in the workdir: {error}") from error
        parts.failpoints.watch(parts.store)
        return self.factory.service(parts)


def implementation(*, mutant: str | None = None) -> M5Log:
    """The implementation, with a planted bug if one is named. Raises KeyError for an unknown mutant."""
    return M5Log(planted(REFERENCE, mutant), mutant)
