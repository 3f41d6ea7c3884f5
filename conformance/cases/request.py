"""The requests of a session as they are recorded, and as they are sent."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

# Every session starts here unless the case moves its clock; a date far from the machine's own, so that an
# implementation which reads the machine's clock shows.
START = "2026-01-01T00:00:00Z"
# Stands for the workdir in requests as they are recorded: the real path differs from run to run.
WORKDIR = "{workdir}"


def open_request(
    contract: str, state: str, *, clock: str, seed: str, config: Mapping[str, str], surface: str = "ready"
) -> dict[str, Any]:
    """An `open` as it is recorded, `fresh` or `existing`: with WORKDIR for the workdir and the session's config."""
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
    """A request as it is sent: the real workdir is put in, and `config` under the session's own."""
    if request.get("op") != "open":
        return dict(request)
    return {**request, "workdir": str(workdir), "config": {**config, **request["config"]}}
