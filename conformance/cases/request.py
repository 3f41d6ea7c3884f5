"""The requests of a session, as recorded and as sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Every session starts at this moment unless the case moves its clock. The date is far from the machine's own: so an
# implementation that reads the machine's clock is found.
START = "2026-01-01T00:00:00Z"
# Replaces the workdir in recorded requests: the real path differs from run to run.
WORKDIR = "{workdir}"


def open_request(
    contract: str, state: str, *, clock: str, seed: str, config: Mapping[str, str], surface: str = "ready"
) -> dict[str, Any]:
    """An `open` as recorded, `fresh` or `existing`: with WORKDIR for the workdir and the session's config."""
    return {
        "op": "open",
        "contract": contract,
        "state": state,
        "surface": surface,
        "workdir": WORKDIR,
        "clock": clock,
        "seed": seed,
        "config": dict(config),
    }


def located(request: Mapping[str, Any], workdir: Path, config: Mapping[str, str]) -> dict[str, Any]:
    """A request as sent: with the real workdir, and with `config` below the session's own."""
    if request.get("op") != "open":
        return dict(request)
    return {**request, "workdir": str(workdir), "config": {**config, **request["config"]}}
