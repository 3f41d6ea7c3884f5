"""What the reference does not claim where it is installed without the extra `http`."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec

_NEEDED = ("starlette", "uvicorn")
_TRANSPORTS = ("http", "websocket")


def not_claimed() -> Mapping[str, str]:
    """The transports that cannot be served, with the reason. Imports none of what they need."""
    if all(find_spec(name) is not None for name in _NEEDED):
        return {}
    return dict.fromkeys(_TRANSPORTS, "holdfast is installed without the extra http")
