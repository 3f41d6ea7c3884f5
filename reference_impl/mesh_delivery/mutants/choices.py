"""Sound variants of mesh-delivery: each does what a clause permits, and the reference does not do."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.reference_impl.mesh_delivery.daemon import Daemon
from holdfast.reference_impl.planting import Change, part


class ConflictIsAWarning(Daemon):
    def tell(self, level: str, text: str) -> None:
        super().tell("WARN" if " 409 " in text else level, text)


BUGS: Mapping[str, Change] = {
    "choice-conflict-is-a-warning": part(daemon=ConflictIsAWarning),
}
