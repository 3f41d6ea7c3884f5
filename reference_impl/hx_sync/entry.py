"""How the adapter gets at this contract: opening sessions on a store and its devices in the workdir."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from holdfast.reference_impl.hx_sync.factory import REFERENCE, Factory
from holdfast.reference_impl.hx_sync.provision import Provisioner
from holdfast.reference_impl.hx_sync.service import Parts, Service
from holdfast.reference_impl.hx_sync.settings import TEMPLATE_KEY
from holdfast.reference_impl.hx_sync.terms import CONTRACT
from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.session import OpenError, OpenRequest, Session, StateWanted, SurfaceWanted
from holdfast.reference_impl.whole import Whole

_LAUNCH = "run `python -m holdfast.reference_impl launch` and pass the config that it prints"
# See `registry.warm`.
LATER = ("cryptography.exceptions", "cryptography.hazmat.primitives.ciphers.aead")


@dataclass(frozen=True, slots=True)
class HxSync(Whole):
    """Implements `session.Implementation`. `mutant` is the name of the bug in the factory, for other processes."""

    contract: ClassVar[str] = CONTRACT
    factory: Factory = REFERENCE
    mutant: str | None = None

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`. The first call finds a store that cannot be read."""
        config = {name: value for name, value in request.config.items() if name != TEMPLATE_KEY}
        parts = self.factory.parts(request.workdir, config, mutant=self.mutant)
        if request.state is StateWanted.FRESH:
            self._start_afresh(request, parts)
        service = Service(parts, now=request.now)
        service.begin()
        return service

    def _start_afresh(self, request: OpenRequest, parts: Parts) -> None:
        provisioner = Provisioner(parts.settings, parts.layout)
        try:
            provisioner.clear(request.workdir)
        except OSError as error:
            raise OpenError(f"what an earlier session left cannot be removed: {error}") from error
        if request.surface is SurfaceWanted.ABSENT:
            return
        template = request.config.get(TEMPLATE_KEY)
        if not template:
            raise OpenError(f"config template: expected the folder of a provisioned template, got nothing; {_LAUNCH}")
        try:
            provisioner.copy(Path(template), request.workdir)
        except (OSError, shutil.Error) as error:
            raise OpenError(f"the template cannot be copied into the workdir: {error}; {_LAUNCH}") from error


def implementation(*, mutant: str | None = None) -> HxSync:
    """The implementation, with a planted bug if one is named. Raises KeyError for an unknown mutant."""
    return HxSync(planted(REFERENCE, mutant), mutant)
