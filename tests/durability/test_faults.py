"""Faults against a small adapter: a right one withstands each layer, a planted bug is seen by the layer that should."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from conformance.cases.record import Record
from conformance.gate import decide, parse_requirement
from conformance.gate_suites import doubt_of_fault
from reports.evidence import read_evidence

HERE = Path(__file__).resolve().parent
KEEPER = HERE / "keeper.py"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run of `holdfast verify` left behind."""

    exit: int
    said: str
    lines: tuple[Mapping[str, Any], ...]

    @property
    def verdicts(self) -> dict[str, str]:
        """Verdict by layer."""
        return {each["case"].rpartition("/")[2]: each["verdict"] for each in self.lines if each["type"] == "verdict"}

    def of(self, layer: str) -> Mapping[str, Any]:
        """The verdict's line of one layer."""
        case = f"ledger/faults/{layer}"
        return next(line for line in self.lines if line["type"] == "verdict" and line["case"] == case)


def run(folder: Path, *keeper: str, layer: str = "", seconds: float = 0.5, before: tuple[str, ...] = ()) -> Outcome:
    """Verify the keeper with this bug, under one layer or all of them."""
    evidence = folder / "run.jsonl"
    words = ["verify", "--contract", "ledger", "--evidence", str(evidence), "--fault-seconds", str(seconds)]
    words += ["--seed", "faults", *(("--case", f"ledger/faults/{layer}") if layer else ())]
    ended = subprocess.run(
        [*before, sys.executable, "-P", "-m", "conformance.cli", *words, "--", sys.executable, str(KEEPER), *keeper],
        cwd=folder,
        env={**os.environ, "HOLDFAST_SPECS": str(HERE / "contracts"), "NO_COLOR": "1", "COLUMNS": "200"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    text = evidence.read_text(encoding="utf-8") if evidence.exists() else ""
    return Outcome(ended.returncode, ended.stdout + ended.stderr, tuple(map(json.loads, text.splitlines())))


@pytest.fixture(scope="module")
def withstood(tmp_path_factory: pytest.TempPathFactory, tracer: object) -> tuple[Path, Outcome]:
    """The run of a right adapter under every layer."""
    del tracer
    folder = tmp_path_factory.mktemp("right")
    return folder, run(folder, "right")


@pytest.mark.xdist_group("ledger")
def test_a_right_adapter_withstands_every_layer(withstood: tuple[Path, Outcome]) -> None:
    _, found = withstood
    assert {layer: verdict for layer, verdict in found.verdicts.items() if verdict != "conforms"} == {}, found.said
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
    assert decide(evidence, [required], now=now).can_proceed == "YES", found.said
    fault = required.contract.fault("ledger/faults/kill")
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
    line = found.of(layer)
    assert line["verdict"] == verdict, found.said
    assert line["detail"].startswith(f"{kind} ("), line["detail"]
    assert found.exit == 10
