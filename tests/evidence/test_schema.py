"""The published schema against the words that the code knows."""

from __future__ import annotations

import json
from pathlib import Path

from holdfast.conformance.verdict import Exit, FailureMode, Verdict
from holdfast.reports.evidence.published import evidence_schema
from holdfast.specs import schema


def test_the_schema_knows_exactly_the_verdicts_silences_and_exits_of_the_code() -> None:
    defs = schema.published_schema("evidence")["$defs"]
    assert set(defs["verdict"]["properties"]["verdict"]["enum"]) == {verdict.value for verdict in Verdict}
    silences, null = defs["verdict"]["properties"]["silence"]["anyOf"]
    assert set(silences["enum"]) == {silence.value for silence in FailureMode}
    assert null == {"type": "null"}
    assert set(defs["footer"]["properties"]["exit"]["enum"]) == {int(code) for code in Exit}


def test_the_published_schema_is_the_one_that_the_types_of_the_lines_make() -> None:
    assert schema.published_schema("evidence") == evidence_schema()


def test_every_line_that_is_written_fits_the_published_schema(run_path: Path) -> None:
    validator = schema.published_validator("evidence")
    lines = [json.loads(line) for line in run_path.read_bytes().splitlines()]
    assert {line["type"] for line in lines} == {
        "header",
        "exchange",
        "verdict",
        "log",
        "restart",
        "artefacts",
        "footer",
    }
    assert [schema.explain(validator, line) for line in lines] == [None] * len(lines)
