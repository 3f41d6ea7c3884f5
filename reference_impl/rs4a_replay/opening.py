"""The store of a session. Each kind is opened by a module of its own, which is loaded when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, auto, unique
from typing import TYPE_CHECKING

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.failpoints import Failpoints
from holdfast.reference_impl.rs4a_replay.operator import Operator
from holdfast.reference_impl.rs4a_replay.store import AuditSink, Store
from holdfast.servers.pace import scaled

if TYPE_CHECKING:
    from holdfast.servers.postgres.confined import ConfinedServer

# The part of an operation's patience that only the audit may use.
AUDIT_RESERVE_S = scaled(0.25)


@unique
class Use(Enum):
    """The purpose of a session's surface: for tests that break it, or to hold keys."""

    LABORATORY = auto()
    LIVE = auto()


@dataclass(frozen=True, slots=True)
class Opened:
    """The store of a session: for the registrar, for the operator, its failpoints, and the server if it has its own.

    `place` is where the store of a test session lies, so that the kit can inspect it from outside.
    """

    store: Store | None
    audit: AuditSink | None
    operator: Operator
    failpoints: type[Failpoints]
    server: ConfinedServer | None = None
    use: Use = Use.LABORATORY
    place: Mapping[str, str] | None = None

    def close(self) -> None:
        """Give back connections, and end the server. Never raises."""
        for part in (self.operator, self.store, self.audit, self.server):
            if part is not None:
                part.close()


class Reserving(Patience):
    """The patience of a surface: after its loss the refusal is still to be recorded, and the audit waits as well."""

    def __init__(self, whole: Patience) -> None:
        self._whole = whole

    def left(self) -> float:
        """See `Patience`. The last seconds of the whole are left out; it begins with that one."""
        return max(0.0, self._whole.left() - AUDIT_RESERVE_S)
