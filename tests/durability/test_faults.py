"""Faults against a small adapter: a right one withstands each layer, a planted bug is seen by the layer that should."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from conformance.cases.record import Record
from conformance.gate import decide, parse_requirement
from conformance.gate_suites import doubt_of_fault
from reports.evidence import read_evidence
from tests.hostile.verify import Outcome, verify

HERE = Path(__file__).resolve().parent
KEEPER = HERE / "keeper.py"


# Of all layers, on a busy machine.
LIMIT_S = 240.0


def run(folder: Path, *keeper: str, layer: str = "", seconds: float = 0.5, before: tuple[str, ...] = ()) -> Outcome:
    """Verify the keeper with this bug, under one layer or all of them."""
    options = ["--fault-seconds", str(seconds), "--seed", "faults"]
    options += ["--case", case_of(layer)] if layer else []
    return verify(
        [sys.executable, str(KEEPER), *keeper],
        options=options,
        cwd=folder,
        contract="ledger",
        specs=HERE / "contracts",
        before=before,
        limit=LIMIT_S,
    )


def case_of(layer: str) -> str:
    """The case that a layer is in the ledger's contract."""
    return f"ledger/faults/{layer}"


def verdict_of(found: Outcome, layer: str) -> Mapping[str, Any]:
    """The verdict's line of one layer."""
    return next(line for line in found.lines if line["type"] == "verdict" and line["case"] == case_of(layer))


@pytest.fixture(scope="module")
def withstood(tmp_path_factory: pytest.TempPathFactory, tracer: object) -> tuple[Path, Outcome]:
    """The run of a right adapter under every layer."""
    del tracer
    folder = tmp_path_factory.mktemp("right")
    return folder, run(folder, "right")


@pytest.mark.xdist_group("ledger")
def test_a_right_adapter_withstands_every_layer(withstood: tuple[Path, Outcome]) -> None:
    _, found = withstood
    assert {layer: verdict for layer, verdict in found.verdicts.items() if verdict != "conforms"} == {}, (
        found.stdout + found.stderr
    )
    assert found.exit == 0
    struck = [line for line in found.lines if line["type"] == "exchange" and line["event"] is not None]
    assert len(struck) == len(found.verdicts)
    for line in struck:
        assert re.search(r"\d+ of \d+.*, seed \d+|does not apply", line["event"]["detail"]), line
    header = found.lines[0]
    assert header["environment"]["power loss and kills"].startswith("by ptrace")
    assert header["deadlines"]["faults"] == 0.5


@pytest.mark.xdist_group("ledger")
def test_the_gate_opens_on_faults_that_were_withstood_and_on_nothing_less(
    withstood: tuple[Path, Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOLDFAST_SPECS", str(HERE / "contracts"))
    folder, found = withstood
    required = parse_requirement("ledger")
    now = datetime.now(UTC)
    evidence = read_evidence(folder / "run.jsonl")
    assert decide(evidence, [required], now=now).can_proceed == "YES", found.stdout + found.stderr
    fault = required.contract.fault(case_of("kill"))
    assert fault is not None
    lines = [line for line in evidence.exchanges if line.case == fault.id]
    records = [Record(**{name: getattr(line, name) for name in Record.__slots__}) for line in lines]
    assert doubt_of_fault(fault, records) is None
    assert "reports of the layer kill" in str(doubt_of_fault(fault, records[:-1]))
    failed = replace(records[-1], event={"kind": "failed", "detail": ""})
    assert "reports of the layer kill" in str(doubt_of_fault(fault, [*records[:-1], failed]))
    prepared = [record for record in records if record.action != "open existing"]
    assert "1 sessions" in str(doubt_of_fault(fault, prepared))
    less = replace(evidence, verdicts=tuple(line for line in evidence.verdicts if line.case != fault.id))
    assert decide(less, [required], now=now).can_proceed == "NO"


BUGS = [
    ("unsynced", "power-loss", "lost_durability", "lost"),
    ("answers-first", "power-loss", "lost_durability", "lost"),
    ("two-writes", "kill", "lost_durability", "torn"),
    ("stale-lock", "kill", "lost_durability", "unrecoverable"),
    ("index-in-memory", "power-loss", "fail_open", "invented"),
    ("failure-is-success", "failed-sync", "lost_durability", "lost"),
    ("short-ignored", "short-writes", "lost_durability", "lost"),
    ("made-anew", "store-missing", "fail_open", "lost"),
    ("unreadable-is-empty", "store-foreign", "fail_open", "lost"),
    ("unchecked", "damaged-bytes", "fail_open", "invented"),
]


@pytest.mark.usefixtures("tracer")
@pytest.mark.parametrize(("bug", "layer", "verdict", "kind"), BUGS, ids=[one[0] for one in BUGS])
def test_a_planted_bug_is_seen_by_the_layer_that_should(
    bug: str, layer: str, verdict: str, kind: str, tmp_path: Path
) -> None:
    found = run(tmp_path, bug, layer=layer, seconds=2.0)
    line = verdict_of(found, layer)
    assert line["verdict"] == verdict, found.stdout + found.stderr
    assert line["detail"].startswith(f"{kind} ("), line["detail"]
    assert found.exit == 10
