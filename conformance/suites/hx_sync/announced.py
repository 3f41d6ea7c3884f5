"""The tombstone that the command line has published: what it says is not asked for, and is read in the store."""

from __future__ import annotations

from holdfast.conformance.suites.hx_sync.looking import Looking
from holdfast.conformance.suites.hx_sync.model import Tombstone, instant, normal
from holdfast.vectors.derive import derive

# The command line may go by the clock of the machine.
_MACHINE = ("2025-01-01T00:00:00Z", "2099-12-31T00:00:00Z")


def announced(look: Looking, key: str, data: str | None, since: str, now: str) -> Tombstone:
    """What the object at this key says, which must be a window from `since` to now. Fails with what differs."""
    payload = derive("hx.opened", {"object": data})["payload"] or {}
    ends = [instant(each) for each in (*_MACHINE, now)]
    wrong = normal(payload["start_ts"]) != normal(since) if "start_ts" in payload else True
    if wrong or not (instant(payload["end_ts"]) == ends[2] or ends[0] <= instant(payload["end_ts"]) <= ends[1]):
        look.differs("wrong_reason", f"a window from {since} to now", repr(payload))
    return Tombstone(
        key.rpartition("/")[2].partition(".")[0],
        normal(payload["start_ts"]),
        normal(payload["end_ts"]),
        payload.get("node_id"),
    )
