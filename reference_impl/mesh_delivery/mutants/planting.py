"""How a bug is planted in mesh-delivery."""

from __future__ import annotations

from holdfast.reference_impl.mesh_delivery.terms import CONTRACT, Terms
from holdfast.reference_impl.mutants.planting import Planting

# F11 is about a fingerprint compared with itself, F13 about refusals alone: another digest shakes neither.
_PLANTING: Planting[Terms] = Planting(CONTRACT, prefix="MESH-4.4-", unshaken=("F11", "F13"))
mutant = _PLANTING.mutant
