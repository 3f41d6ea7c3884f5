"""A file of a contract as JSON beside it, so that an implementation parses no YAML each time it is started.

`__pycache__/contract.yaml.json` is to `contract.yaml` what a compiled module is to its source: it names the digest of
the bytes that it was made from, and is made again when they change. The harness reads the YAML itself.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from holdfast.specs.strictjson import digest_bytes


def kept(path: Path, read: Callable[[Path], Any]) -> Any:
    """The result of `read` for the file at `path`, from JSON if that was kept; raises the errors of `read`."""
    place = path.parent / "__pycache__" / f"{path.name}.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        source = digest_bytes(path.read_bytes())
        found = json.loads(place.read_bytes())
        if found["source"] == source:
            return found["value"]
    value = read(path)
    if not sys.dont_write_bytecode:
        # A folder without write permission keeps no JSON.
        with contextlib.suppress(OSError):
            _keep(place, {"source": digest_bytes(path.read_bytes()), "value": value})
    return value


def _keep(place: Path, found: dict[str, Any]) -> None:
    """Write it so that another process reads all of it or nothing."""
    place.parent.mkdir(exist_ok=True)
    written = place.with_name(f"{place.name}.{os.getpid()}")
    try:
        written.write_text(json.dumps(found, ensure_ascii=False, separators=(",", ":")), encoding="utf-8")
        written.replace(place)
    finally:
        written.unlink(missing_ok=True)
