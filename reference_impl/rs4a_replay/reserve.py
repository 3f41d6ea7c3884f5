"""The patience of a surface: after its loss the refusal is still to be recorded, and the audit waits as well."""

from __future__ import annotations

from holdfast.reference_impl.patience import Patience
from holdfast.servers.pace import scaled

# The part of an operation's patience that only the audit may use.
AUDIT_RESERVE_S = scaled(0.25)


class Reserving(Patience):
    """The same budget without the last seconds of it. It begins with that one."""

    def __init__(self, whole: Patience, seconds: float = AUDIT_RESERVE_S) -> None:
        self._whole, self._kept_s = whole, seconds

    def left(self) -> float:
        """See `Patience`."""
        return max(0.0, self._whole.left() - self._kept_s)
