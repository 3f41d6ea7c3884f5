"""How a bug is planted in jcs."""

from __future__ import annotations

from holdfast.reference_impl.jcs.terms import CONTRACT, Limits
from holdfast.reference_impl.mutants.planting import Planting

_PLANTING: Planting[Limits] = Planting(CONTRACT, prefix="JCS-")
mutant, value = _PLANTING.mutant, _PLANTING.value
