"""How a bug is planted in calyx-replay."""

from __future__ import annotations

from reference_impl.calyx_replay.settings import Settings
from reference_impl.calyx_replay.terms import CONTRACT
from reference_impl.mutants.planting import Planting

_PLANTING: Planting[Settings] = Planting(CONTRACT, prefix="CALYX-")
mutant, value = _PLANTING.mutant, _PLANTING.value
