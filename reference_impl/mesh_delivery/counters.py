"""Counters by name and labels, of one process."""

from __future__ import annotations

from collections import Counter
from typing import Any


class Counters:
    """They begin at nought with each session."""

    def __init__(self) -> None:
        self._values: Counter[tuple[str, tuple[tuple[str, str], ...]]] = Counter()

    def add(self, name: str, **labels: str) -> None:
        """Count one."""
        self._values[name, tuple(sorted(labels.items()))] += 1

    def shown(self) -> list[dict[str, Any]]:
        """All of them, in order."""
        return [
            {"name": name, "labels": dict(labels), "value": value}
            for (name, labels), value in sorted(self._values.items())
        ]
