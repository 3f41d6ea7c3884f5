"""How the adapter gets at this contract: opening sessions on a store in the workdir."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.reference_impl.m5_log.service import Parts, Service
from holdfast.reference_impl.m5_log.terms import StoreError, UncertainError
from holdfast.reference_impl.session import Implementation, OpenError, OpenRequest, Session, StateWanted, SurfaceWanted

# See `registry.warm`. RocksDB imports `pickle` when it is opened.
LATER = ("joserfc.jws", "joserfc.jwk", "pickle")


@dataclass(frozen=True, slots=True)
class M5Log(Implementation):
    """Implements `session.Implementation`. `mutant` is the name of its bug, for other processes."""

    mutant: str | None = None

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`. A fresh session makes its store; any other finds one, or refuses every call."""
        ready = request.surface is SurfaceWanted.READY
        parts = Parts(request.workdir, request.config, mutant=self.mutant, configured=ready)
        if request.state is StateWanted.FRESH:
            try:
                parts.store.location.clear()
                if ready:
                    parts.store.opening.make()
            except (OSError, StoreError, UncertainError) as error:
                raise OpenError(f"the store cannot be made in the workdir: {error}") from error
        return Service(parts)


def implementation(*, mutant: str | None = None) -> M5Log:
    """The implementation, with the name of its bug for other processes."""
    return M5Log(mutant)
