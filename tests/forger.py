"""The means of a forger who has the file of a run: compute the chain and the seal again after an edit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import zstandard

from holdfast.reports.evidence.chain import sealed
from holdfast.specs import strictjson


def lines_of(path: Path) -> list[bytes]:
    """The plain lines of a compressed run."""
    return zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes()).splitlines()


def resealed(lines: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """The lines, each without its end, with a chain computed anew and every footer sealed."""
    previous: str | None = None
    raws = []
    for line in lines:
        whole = {**line, "prev": previous}
        raw = strictjson.canonical(sealed(whole) if line["type"] == "footer" else whole)
        previous = strictjson.digest_bytes(raw)
        raws.append(raw)
    return raws
