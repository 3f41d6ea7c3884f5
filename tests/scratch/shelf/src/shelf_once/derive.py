"""Expected keys of shelf-once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any


def _key(name: str) -> str:
    return hashlib.new("sha256", name.encode("utf-8")).hexdigest()


DERIVATIONS: Mapping[str, Callable[[Any], Any]] = {"key": _key}
