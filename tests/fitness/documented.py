"""The surface that docs/fitness.md says is fit, and the ledger that it refuses, as they stand there."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import structs

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.gather import Names
from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.tie import parts_of, schema_digest, schema_of
from holdfast.reports.evidence import SurfaceLine
from holdfast.specs.typed import instant_text

_PAGE = Path(__file__).parents[2] / "docs" / "fitness.md"
DOCUMENTED = Names("surface.consumed_request", "surface.consumed_nonce", "surface.refusal_audit", "registrar")
LEDGER = "public.iu_route_attempt"
DOCUMENTED_AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def line_of(assessed: Assessment, **changed: Any) -> SurfaceLine:
    """The result of a run on the same schema on another server, perhaps changed."""
    assert assessed.surface is not None
    assert assessed.evidence is not None
    shot = assessed.evidence.snapshot
    schema = schema_of(shot, assessed.surface.writer)
    line = SurfaceLine(
        contract="rs4a-replay",
        source="adapter",
        dialect=shot.dialect.value,
        server="7111111111111111111/lab",
        parts=parts_of(assessed.surface, shot.dialect),
        writer="lab_writer",
        schema=schema,
        schema_digest=schema_digest(schema),
        used=True,
        problem="",
    )
    return structs.replace(line, **changed)


def at(moment: datetime, assessed: Assessment) -> Assessment:
    """The same assessment, by a server whose clock said `moment`."""
    return identity_edited(assessed, lambda row: row.update(clock=instant_text(moment)))


def identity_edited(assessed: Assessment, edit: Callable[[dict[str, Any]], object]) -> Assessment:
    """The same assessment of another server; judged again."""
    assert assessed.evidence is not None
    shot = assessed.evidence.snapshot
    (row,) = shot.circumstances["identity"]
    edit(row := dict(row))
    circumstances = {**shot.circumstances, "identity": [row]}
    evidence = replace(assessed.evidence, snapshot=structs.replace(shot, circumstances=circumstances))
    return replace(assessed, evidence=evidence, judgement=judge(evidence, assessed.policy))


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
