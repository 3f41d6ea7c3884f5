"""How the adapter gets at this contract: opening sessions on a store and its devices in the workdir."""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from holdfast.reference_impl.hx_sync.nodes import FOLDER
from holdfast.reference_impl.hx_sync.service import Parts, Service
from holdfast.reference_impl.session import (
    Implementation,
    OpenError,
    OpenRequest,
    Session,
    StateWanted,
    SurfaceWanted,
    template_of,
)

# See `registry.warm`.
LATER = ("cryptography.exceptions", "cryptography.hazmat.primitives.ciphers.aead")


@dataclass(frozen=True, slots=True)
class HxSync(Implementation):
    """Implements `session.Implementation`. `mutant` is the planted bug of this process, for others that it starts."""

    mutant: str | None = None

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`. The first call finds a store that cannot be read."""
        parts = Parts(request.workdir, request.config)
        if request.state is StateWanted.FRESH:
            _start_afresh(request, (parts.layout.root, FOLDER))
        service = Service(parts, now=request.now, mutant=self.mutant)
        service.begin()
        return service


def _start_afresh(request: OpenRequest, folders: tuple[str, ...]) -> None:
    """Replace what an earlier session left by a copy of the template, unless no surface is wanted."""
    try:
        for name in folders:
            if (request.workdir / name).exists():
                shutil.rmtree(request.workdir / name)
    except OSError as error:
        raise OpenError(f"what an earlier session left cannot be removed: {error}") from error
    if request.surface is SurfaceWanted.ABSENT:
        return
    with template_of(request.config) as template:
        for name in folders:
            shutil.copytree(template / name, request.workdir / name, symlinks=True)


def implementation(*, mutant: str | None = None) -> HxSync:
    """The implementation, with the name of its bug for other processes."""
    return HxSync(mutant)
