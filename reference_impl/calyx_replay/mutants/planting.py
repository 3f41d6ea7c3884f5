"""How a bug is planted in calyx-replay."""

from __future__ import annotations

from holdfast.reference_impl.calyx_replay.settings import Settings
from holdfast.reference_impl.calyx_replay.terms import CONTRACT
from holdfast.reference_impl.mutants.planting import Planting

_PLANTING: Planting[Settings] = Planting(CONTRACT, prefix="CALYX-")
mutant, value = _PLANTING.mutant, _PLANTING.value
