"""What the reference does not claim: a second worker, and everything where it is installed without the extra `http`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

_NEEDED = ("fastapi", "uvicorn", "http_sf")


def not_claimed() -> Mapping[str, str]:
    """See `session.Implementation`. Imports none of what the service needs."""
    lacking = [name for name in _NEEDED if find_spec(name) is None]
    service = {"submit": f"holdfast is installed without the extra http ({', '.join(lacking)})"} if lacking else {}
    return {"concurrency": "one worker has several instances of the service", **service}
