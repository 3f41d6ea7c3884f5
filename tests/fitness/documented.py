"""The surface that docs/fitness.md says is fit, and the ledger that it refuses, as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

from conformance.fitness.gather import Names

_PAGE = Path(__file__).parents[2] / "docs" / "fitness.md"
DOCUMENTED = Names("surface.consumed_request", "surface.consumed_nonce", "surface.refusal_audit", "registrar")
LEDGER = "public.iu_route_attempt"


def _blocks() -> tuple[str, str, str, str]:
    surface, ledger, sqlite, audit = re.findall(
        r"^```sql\n(.*?)^```$", _PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    return surface, ledger, sqlite, audit


def surface_ddl() -> str:
    """The first block of SQL on the page."""
    return _blocks()[0]


def ledger_ddl() -> str:
    """The second."""
    return _blocks()[1]


def sqlite_ddl() -> tuple[str, str]:
    """The third and the fourth: a surface in a SQLite file, and its audit in another."""
    return _blocks()[2:]
