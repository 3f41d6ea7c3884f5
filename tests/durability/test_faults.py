"""Faults against a small adapter: a right one passes each layer, and the expected layer finds each planted bug."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from holdfast.conformance.cases.record import Record
from holdfast.conformance.durability.verdicts import ReportedFinding, is_recorded, read
from holdfast.conformance.faults.oracle import CrashClass
from holdfast.conformance.gate.cases import inconclusive_fault
from holdfast.conformance.gate.decision import Expected, ReasonCode, decide, parse_requirement
from holdfast.reports.evidence import Event, Run, read_evidence
from tests import warm
from tests.hostile.verify import Outcome, verify

HERE = Path(__file__).resolve().parent
KEEPER = HERE / "keeper.py"


# Of all layers, on a busy machine.
LIMIT_S = 240.0
# The seed of these runs is chosen, so that each asks the same.
GIVEN = Expected(allow_seed=True)


def run(
    folder: Path, bug: str, *layers: str, seconds: float = 0.5, before: tuple[str, ...] = (), by: Sequence[str] = ()
) -> Outcome:
    """Verify the keeper with this bug, under these layers or all of them; `by` are words that start it."""
    options = ["--fault-seconds", str(seconds), "--seed", "faults"]
    options += [word for layer in layers for word in ("--case", case_of(layer))]
    return verify(
        [sys.executable, *by, str(KEEPER), bug],
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
        told = read(line["event"]["detail"])
        assert re.search(r"\d+ of \d+.*, seed \d+", told.words), line
        said = next(one for one in found.lines if one["type"] == "verdict" and one["case"] == line["case"])
        # Who did not try anything says why, in the verdict too.
        assert (told.beside or "") in said["detail"], line
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
    assert decide(evidence, [required], now=now, expected=GIVEN).can_proceed == "YES", found.stdout + found.stderr
    fault = required.contract.fault(case_of("kill"))
    assert fault is not None
    lines = [line for line in evidence.exchanges if line.case == fault.id]
    records = [Record.of(line) for line in lines]
    assert inconclusive_fault(fault, records) is None
    assert "reports of the layer kill" in str(inconclusive_fault(fault, records[:-1]))
    failed = replace(records[-1], event={"kind": "failed", "detail": ""})
    assert "reports of the layer kill" in str(inconclusive_fault(fault, [*records[:-1], failed]))
    prepared = [record for record in records if record.action != "open existing"]
    assert "1 sessions" in str(inconclusive_fault(fault, prepared))
    told = read((records[-1].event or {}).get("detail"))
    lost = ReportedFinding(
        CrashClass.LOST, "all of operation 1 (acknowledged)", "gone is operation 1", "It was killed."
    )
    for forged in (
        "nothing at all",
        structs.replace(told, tried=1, words=f"1 of {told.total} points, seed {told.seed}").detail(),
        structs.replace(told, tried=0, words=f"0 of {told.total} points, seed {told.seed}").detail(),
        structs.replace(told, tried=0, total=0, words="0 of 0", beside="does not apply: it starts no process").detail(),
        structs.replace(told, layer="power loss").detail(),
        structs.replace(told, how="by restarts").detail(),
        structs.replace(told, seed=told.seed + 1).detail(),
        structs.replace(told, unproven=("not all of it could be seen",)).detail(),
        structs.replace(told, findings=(lost,)).detail(),
        structs.replace(told, layer="kill by signals", how="by signals", untested="no ptrace").detail(),
    ):
        decision = decide(_with_detail(evidence, fault.id, forged), [required], now=now, expected=GIVEN)
        reason = next(one for one in decision.reasons if one.code is ReasonCode.JUDGED_OTHERWISE)
        assert (decision.can_proceed, reason.cases) == ("NO", (fault.id,)), forged
        assert reason.exit == (10 if "gone is" in forged else 12)
    header = evidence.header
    assert header is not None
    for ability in ({"power loss and kills": "NOT TESTED: no ptrace"}, {"power loss and kills": ""}, {}):
        environment = {name: text for name, text in header.environment.items() if name != "power loss and kills"}
        unable = replace(evidence, header=structs.replace(header, environment={**environment, **ability}))
        held = decide(unable, [required], now=now, expected=GIVEN).reasons
        recorded = {one.id for one in required.contract.faults if is_recorded(one.layer)}
        assert {case for one in held for case in one.cases} == recorded
        assert {one.code for one in held} == {ReasonCode.JUDGED_OTHERWISE}
    less = replace(evidence, verdicts=tuple(line for line in evidence.verdicts if line.case != fault.id))
    assert decide(less, [required], now=now, expected=GIVEN).can_proceed == "NO"


def _with_detail(evidence: Run, case: str, detail: str) -> Run:
    """The run as a forger leaves it who mends the chain: the report of one layer is another."""
    exchanges = tuple(
        structs.replace(line, event=Event("done", detail)) if line.case == case and line.event else line
        for line in evidence.exchanges
    )
    return replace(evidence, exchanges=exchanges)


@pytest.mark.usefixtures("tracer")
def test_no_time_beyond_what_is_tried_in_any_case_leaves_evidence_that_is_whole(tmp_path: Path) -> None:
    found = run(tmp_path, "right", "clock-back", seconds=0)
    # It strikes alone where it is named.
    assert found.verdicts == {case_of("clock-back"): "conforms"}, found.stdout + found.stderr
    assert found.lines[0]["deadlines"]["faults"] == 0
    assert read_evidence(tmp_path / "run.jsonl").defects == ()


# Does not let itself be recorded; becomes the rest of its words otherwise.
SHY = """
import os, sys
tracer = next(line for line in open("/proc/self/status") if line.startswith("TracerPid:"))
if tracer.split()[1] != "0":
    with open(sys.argv[1], "a") as count:
        count.write("x")
    sys.exit(3)
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""


@pytest.mark.usefixtures("tracer")
def test_what_cannot_be_recorded_is_waited_for_once(tmp_path: Path) -> None:
    layers = ("power-loss", "kill", "failed-sync")
    script, count = tmp_path / "shy.py", tmp_path / "count"
    script.write_text(SHY, encoding="utf-8")
    found = run(tmp_path, "right", *layers, seconds=0, by=(str(script), str(count)))
    assert {found.verdicts[case_of(layer)] for layer in layers} == {"indeterminate"}, found.stdout + found.stderr
    first, *others = (verdict_of(found, layer)["detail"].partition(": ")[2] for layer in layers)
    assert "expected it to start while it is recorded" in first
    assert others == [first, first]
    assert count.read_text(encoding="utf-8") == "x"


# Where a process may not trace its own children nothing that rests on it is judged, and the gate holds.

# Puts a filter on itself under which ptrace(2) fails as in a hardened container, and becomes the command.
REFUSING = """
import errno, os, struct, sys
from holdfast.conformance.faults.tracer import ptrace

def step(code, value, yes=0, no=0):
    return struct.pack("<HBBI", code, yes, no, value)

# The number of the call; ptrace(2) is 101 on x86-64.
load, equal, answer = 0x20, 0x15, 0x06
refuse, allow = 0x00050000 | errno.EPERM, 0x7FFF0000
ptrace.install([step(load, 0), step(equal, 101, 0, 1), step(answer, refuse), step(answer, allow)])
os.execvp(sys.argv[1], sys.argv[1:])
"""
BEFORE = (sys.executable, "-P", "-c", REFUSING)


# A bug, what stands before the kit's words, a layer, its verdict with its failure mode, and how it says so.
BUGS = {
    # One for each way to strike; the bugs of the contracts meet every layer in `holdfast selfcheck`.
    "unsynced": ((), "power-loss", "lost_durability", r"^lost \("),
    "stale-lock": ((), "kill", "lost_durability", r"^before-first-acknowledgement \("),
    "failure-is-success": ((), "failed-sync", "lost_durability", r"^lost \("),
    "made-anew": ((), "store-missing", "fail_open", r"^lost \("),
    "unchecked": ((), "damaged-bytes", "fail_open", r"^invented \("),
    # What never agrees with what was asked is no finding of a crash.
    "shows-another": ((), "power-loss", "indeterminate", "nothing was done to it"),
    # An operation that is answered with a fault is neither refused nor a crash.
    "faults": ((), "kill", "no_verdict:fault", "it says that it failed itself"),
    "faults-later": ((), "clock-forward", "no_verdict:fault", "it says that it failed itself"),
    # Where tracing is refused, a weaker layer still finds what a kill can show.
    "stale-lock by signals": (BEFORE, "kill", "lost_durability", "by signals"),
}


@pytest.mark.usefixtures("tracer")
@pytest.mark.parametrize("bug", BUGS)
def test_a_planted_bug_is_seen_by_the_layer_that_should_and_called_what_it_is(bug: str, tmp_path: Path) -> None:
    before, layer, verdict, words = BUGS[bug]
    found = run(tmp_path, bug.partition(" ")[0], layer, before=before)
    assert found.verdicts == {case_of(layer): verdict}, found.stdout + found.stderr
    assert re.search(words, verdict_of(found, layer)["detail"])
    assert found.exit == (10 if verdict in ("lost_durability", "fail_open") else 12)
    # Shown to a person in words, although it stands in the evidence as an object.
    assert found.exit == 12 or "! done " in found.stdout
    assert '"findings"' not in found.stdout


@pytest.mark.usefixtures("tracer")
def test_where_tracing_is_refused_the_run_says_so_and_proves_nothing(tmp_path: Path) -> None:
    found = run(tmp_path, "right", before=BEFORE)
    assert found.exit == 12, found.stdout + found.stderr
    assert found.verdicts[case_of("power-loss")] == "not_reached"
    assert "power-loss NOT TESTED: tracing a program of one's own failed" in verdict_of(found, "power-loss")["detail"]
    assert found.lines[0]["environment"]["power loss and kills"].startswith("NOT TESTED: tracing a program")
    weaker = verdict_of(found, "kill")
    assert weaker["verdict"] == "not_reached"
    assert "kill NOT TESTED" in weaker["detail"]
    assert "by signals, a weaker layer, nothing was found in" in weaker["detail"]
    environment = {"PATH": "/usr/bin:/bin", "HOLDFAST_SPECS": str(HERE / "contracts")}
    gate = warm.cold(warm.KIT, "gate", str(tmp_path / "run.jsonl"), "--require", "ledger", env=environment)
    assert gate.returncode == 12
    assert "CAN_PROCEED = NO" in gate.stdout
