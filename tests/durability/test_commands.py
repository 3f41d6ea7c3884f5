"""Commands of operators in a fault workload: acknowledged by their exit status, struck in a process of their own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.durability.workload import scopes_of, workload_of
from holdfast.conformance.faults.oracle import CrashClass, judge
from holdfast.conformance.faults.subject import Op, Outcome, SubjectAnswer, Workload
from holdfast.conformance.gate.decision import Expected, ReasonCode, decide, parse_requirement
from holdfast.reports.evidence import read_evidence
from holdfast.specs import SpecError
from holdfast.specs.loader import read_contract
from tests.durability.copies import changed
from tests.faults.fakes import NOWHERE, Fake, says
from tests.hostile.verify import Outcome as Verified
from tests.hostile.verify import verify

HERE = Path(__file__).resolve().parent
LIMIT_S = 120.0
COMMAND_LINE = """
provocations:
  command_line:
    title: Records one key with its value, in another process.
    args:
      type: object
      additionalProperties: false
      required: [arguments]
      properties:
        arguments: {type: array, items: {$ref: '#/$defs/text'}, minItems: 2, maxItems: 2}
    result:
      type: object
      additionalProperties: false
      required: [status]
      properties: {status: {type: integer}}
"""
FAULTS = """
contract: office
values: {key: 'key-${rand:key}', value: 'value-${rand:value}'}
workloads:
  commands:
    title: An entry, and one that an operator makes
    each:
      - {call: record, args: {key: $key, value: $value}}
      - {command: command_line, args: {arguments: [$key, $value]}}
    facts:
      entry: {observe: state, rows: entry, key: [key], columns: [value, copy]}
  entries:
    title: An entry, and another
    each:
      - {call: record, args: {key: $key, value: $value}}
    facts:
      entry: {observe: state, rows: entry, key: [key], columns: [value, copy]}
cases:
"""
CASES = {"power-loss": "commands", "kill": "commands", "full-calls": "commands", "failed-sync": "entries"}
CASE = """  - id: office/faults/{layer}
    clause: LEDGER-1
    title: The office keeps its promise under this layer
    layer: {layer}
    workload: {workload}
    promise: kept
"""


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ledger's contract with a command for operators."""
    into = tmp_path_factory.mktemp("specs") / "office"
    into.mkdir()
    for name in ("contract.yaml", "methods.yaml"):
        text = (HERE / "contracts" / "ledger" / name).read_text(encoding="utf-8")
        more = COMMAND_LINE if name == "methods.yaml" else ""
        (into / name).write_text(text.replace("contract: ledger", "contract: office") + more, encoding="utf-8")
    cases = "".join(CASE.format(layer=layer, workload=workload) for layer, workload in CASES.items())
    (into / "faults.yaml").write_text(FAULTS + cases, encoding="utf-8")
    return into


def run(office: Path, folder: Path, bug: str, *layers: str) -> Verified:
    """Verify the keeper with this bug, under these layers."""
    return verify(
        [sys.executable, str(HERE / "keeper.py"), bug, "office"],
        options=["--seed", "office", *(word for layer in layers for word in ("--case", f"office/faults/{layer}"))],
        cwd=folder,
        contract="office",
        specs=office.parent,
        limit=LIMIT_S,
    )


def verdicts_of(found: Verified) -> Mapping[str, Any]:
    """The verdicts by their layers."""
    return {case.rpartition("/")[2]: verdict for case, verdict in found.verdicts.items()}


@pytest.mark.usefixtures("tracer")
def test_a_command_that_ends_with_status_0_only_when_it_is_done_withstands_every_layer(
    office: Path, tmp_path: Path
) -> None:
    found = run(office, tmp_path, "right", "power-loss", "kill", "full-calls")
    assert verdicts_of(found) == dict.fromkeys(("power-loss", "kill", "full-calls"), "conforms"), found.stdout


@pytest.mark.usefixtures("tracer")
@pytest.mark.parametrize(("bug", "layer"), [("unsynced", "power-loss"), ("failure-is-success", "full-calls")])
def test_a_bug_of_the_command_alone_shows_in_its_process(bug: str, layer: str, office: Path, tmp_path: Path) -> None:
    found = run(office, tmp_path, f"command-{bug}", layer)
    assert verdicts_of(found) == {layer: "lost_durability"}, found.stdout


@pytest.mark.usefixtures("tracer")
def test_another_status_than_0_is_no_acknowledgement(office: Path, tmp_path: Path) -> None:
    found = run(office, tmp_path, "command-fails", "power-loss")
    said = next(line for line in found.lines if line["type"] == "verdict")
    assert said["verdict"] == "not_reached", found.stdout
    assert "expected command_line 2 to be accepted, got: error ok, status 1" in said["detail"]


@pytest.mark.usefixtures("tracer")
def test_an_adapter_without_the_command_is_unsupported_there_and_nowhere_else(
    office: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = run(office, tmp_path, "alone", *CASES)
    due = {layer: "unsupported" if workload == "commands" else "conforms" for layer, workload in CASES.items()}
    assert verdicts_of(found) == due, found.stdout
    monkeypatch.setenv("HOLDFAST_SPECS", str(office.parent))
    evidence = read_evidence(tmp_path / "run.jsonl")
    decision = decide(
        evidence, [parse_requirement("office")], now=datetime.now(UTC), expected=Expected(allow_seed=True)
    )
    assert ReasonCode.JUDGED_OTHERWISE not in {reason.code for reason in decision.reasons}, decision.reasons


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("{command: command_line, args", "{command: command_line, call: record, args", "valid under more than one"),
        ("command: command_line", "command: state", "state is no provocation that answers with a status"),
        ("command: command_line", "command: no_such", "no_such is no provocation that answers with a status"),
        ("$value]}}", "$value]}, refused: TAKEN}", "refused: the command command_line answers with a status"),
        ("$value]}}", "$value]}, anew: true}", "anew: the command command_line answers with a status"),
        ("$value]}}", "$value]}, once: prior}", "command_line does not say what it knew from before"),
        ("$value]}}", "$value]}, spared: true, idle: true}", "cannot be `idle` there"),
        ("value: $value}}", "value: $value}, spared: true}", "spared: expected the last operations of `each`"),
        (
            "    each:\n      - {call: record, args: {key: $key, value: $value}}\n      - {command",
            "    operation: {command",
            "what a command changes is learned, so use `each`",
        ),
    ],
)
def test_a_command_that_makes_no_sense_is_refused_when_the_contract_is_read(
    old: str, new: str, said: str, office: Path, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match=said):
        read_contract(changed(office, tmp_path, "faults.yaml", old, new))


def test_what_a_first_session_spares_is_done_first_in_a_second_one(office: Path, tmp_path: Path) -> None:
    copy = changed(office, tmp_path, "faults.yaml", "$value]}}", "$value]}, spared: true}")
    spec = read_contract(copy).workloads["commands"]
    learned = {number: {f"entry {number} value": "1", f"entry {number} copy": "1"} for number in (1, 2, 3, 5)}
    workload = workload_of(spec, scopes_of(spec, contract="office", seed="a"), {}, {**learned, 4: {}})
    assert [op.number for op in workload.later if op.idle] == [4]
    first, second = workload.sessions
    assert [op.number for op in first] == [1]
    assert [(op.number, op.idle) for op in second] == [(3, False), (4, False)]
    assert second[1].facts == learned[2]
    # A layer that takes something away does the same.
    assert [op.number for op in workload.begun.every] == [1, 3, 4, 5]
    assert workload.begun.later[1].facts == learned[2]


def fails_where_done(subject: Fake, op: Op) -> SubjectAnswer:
    """A command that finds its work done fails, as `init` of many programs does."""
    failed = op.command and (op.facts.items() <= subject.facts.items() or op.number == 2)
    return says(Outcome.ERROR, "ok, status 1")() if failed else subject.does(op, new=None)


@pytest.mark.parametrize(("there", "kind"), [({1, 2}, CrashClass.CLEAN), ({1}, CrashClass.UNRECOVERABLE)])
def test_a_command_may_fail_where_it_was_done_before_and_nowhere_else(there: set[int], kind: CrashClass) -> None:
    ops = tuple(Op(number, f"add {number}", {f"{number} a": "1", f"{number} b": "1"}) for number in (1, 2, 3))
    workload = Workload((ops[0], replace(ops[1], command=True)), ops[2])
    subject = Fake(workload.after(there), submit=fails_where_done)
    assert judge(subject, NOWHERE, workload, {1}, {1, 2}).kind is kind


RECORD = "      - {call: record, args: {key: $key, value: $value}}\n"
BARRED = """      - call: record
        args: {key: $key, value: $value}
        barred: {call: record, args: {key: 'old-${key}', value: $value}, clock: '-1h'}
        prepare:
          - {call: record, args: {key: 'KIND-${key}', value: $value}}
"""


@pytest.mark.usefixtures("tracer")
@pytest.mark.parametrize(("prepared", "verdict"), [("old", "conforms"), ("other", "not_reached")])
def test_what_is_never_accepted_again_is_asked_for_after_each_restart(
    prepared: str, verdict: str, office: Path, tmp_path: Path
) -> None:
    barred = changed(office, tmp_path / "specs", "faults.yaml", RECORD, BARRED.replace("KIND", prepared))
    found = run(barred, tmp_path, "right", "power-loss")
    assert verdicts_of(found) == {"power-loss": verdict}, found.stdout
