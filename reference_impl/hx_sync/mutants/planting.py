"""How a bug is planted in hx-sync."""

from __future__ import annotations

from holdfast.reference_impl.hx_sync.settings import Settings
from holdfast.reference_impl.hx_sync.terms import CONTRACT
from holdfast.reference_impl.mutants.planting import Planting

# HX-CRY-8 is a limit of the format, HX-STO-4 takes a second filesystem: neither has a case.
_PLANTING: Planting[Settings] = Planting(CONTRACT, prefix="HX-", unshaken=("CRY-8", "STO-4"))
mutant, value = _PLANTING.mutant, _PLANTING.value
