"""Workloads: what an operation is asked for, and by which facts it shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.conformance.durability.workload import (
    GONE,
    facts_of_rows,
    scopes_of,
    with_gone,
    workload_of,
)
from holdfast.conformance.durability.workload import changed as changed_facts
from holdfast.conformance.faults.subject import Workload
from holdfast.specs import Contract, SpecError
from holdfast.specs.loader import read_contract
from tests.durability.copies import changed

LEDGER = Path(__file__).parent / "contracts" / "ledger"


@pytest.fixture(scope="module")
def ledger() -> Contract:
    return read_contract(LEDGER)


ONE, BOTH = {"entry a value": "1", "entry a copy": "1"}, {"entry a again (2) value": "1", "entry a again (2) copy": "1"}
FACT = {"observe": "state", "rows": "entry", "key": "key", "columns": {"key": "k", "value": "v", "copy": "v"}}


@pytest.mark.parametrize(
    ("repeats", "copies", "due"),
    [
        (False, [""], {**ONE, "entry a copy": ""}),
        (False, [True], {**ONE, "entry a copy": "=true"}),
        (False, ["1", "1"], ONE | BOTH),
        (True, ["1", "1"], ONE),
        (True, ["1", "2"], ONE | BOTH | {"entry a again (2) copy": "2"}),
    ],
)
def test_each_column_of_each_row_is_a_fact(repeats: bool, copies: list[object], due: dict[str, str]) -> None:
    rows = [{"key": "a", "value": "1", "copy": copy} for copy in copies]
    assert facts_of_rows("entry", {**FACT, "repeats": repeats}, rows) == due


def test_a_workload_says_what_its_retry_must_be_and_an_operation_knows_its_number(tmp_path: Path) -> None:
    def told(old: str, new: str) -> Workload:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        spec = read_contract(changed(LEDGER, folder, "faults.yaml", old, new)).workloads["entries"]
        return workload_of(spec, scopes_of(spec, contract="ledger", seed="a"), {})

    assert told("once: true", "once: prior").prior
    plain = told("      once: true\n", "")
    assert (plain.once, plain.prior) == (False, False)
    numbered = told("value: 'value-${rand:value}-${pad}'", "value: 'value-${i}'")
    assert ["value-1" in op.facts.values() for op in numbered.ops] == [True, False, False]
    assert "value-4" in numbered.probe.facts.values()
    folder = changed(LEDGER, tmp_path / "never", "faults.yaml", "once: true", "once: prior")
    methods = folder / "methods.yaml"
    methods.write_text(methods.read_text(encoding="utf-8").replace("effects: [new, prior]", "effects: [new]"))
    with pytest.raises(SpecError, match="record is never accepted as known from before"):
        read_contract(folder)
    with pytest.raises(SpecError, match=r"does not fit faults\.schema\.json"):
        told("once: true", "once: refused")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("workload: entries", "workload: exits", "unknown workload exits"),
        ("clause: LEDGER-1", "clause: LEDGER-9", "unknown clause LEDGER-9"),
        ("call: record", "call: state", "state is not one of the contract's operations"),
        ("observe: state", "observe: find", "expected an observation, or an operation that tells"),
        ("observe: state", "inspect: store\n        behind: state", "needs `inspection`"),
        ("call: record", "job: state", "state is no provocation"),
        ("call: record", "job: state\n      command: state", "does not fit faults.schema.json"),
        ("call: record", "job: state\n      call: record", "does not fit faults.schema.json"),
        ("        key: key\n", "        key: name\n", "its key name is not among its columns"),
        ("      once: true", "      refused: NO_SUCH", "NO_SUCH is not among record's reasons"),
        ("once: true", "once: prior\n      refused: REQUEST_MALFORMED", "never accepted as known from before"),
        ("layer: kill\n", "layer: flood\n", "does not fit faults.schema.json"),
        ("id: ledger/faults/kill\n", "id: ledger/faults/power-loss\n", "stands there twice"),
        ("contract: ledger\n", "contract: other\n", "is for contract 'other'"),
    ],
)
def test_what_makes_no_sense_is_refused_when_the_contract_is_read(
    old: str, new: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SpecError, match=said):
        read_contract(changed(LEDGER, tmp_path, "faults.yaml", old, new))


def test_one_fact_for_an_operation_is_too_few(tmp_path: Path) -> None:
    told = LEDGER.joinpath("faults.yaml").read_text(encoding="utf-8")
    begin, end = told.index("      found:"), told.index("cases:")
    columns = "columns: {key: $key, value: $value"
    one = told[:begin].replace(f"{columns}, copy: $value}}", f"{columns}}}")
    copy = changed(LEDGER, tmp_path, "faults.yaml", told, one + told[end:])
    with pytest.raises(SpecError, match="shows 1 fact"):
        read_contract(copy)


def test_what_an_operation_changes_is_what_is_new_other_or_gone() -> None:
    assert changed_facts({"a": "1", "b": "2", "c": "3"}, {"a": "1", "b": "4", "d": "5"}) == {
        "b": "4",
        "c": GONE,
        "d": "5",
    }
    assert with_gone({"a": "1"}, ["a", "b"]) == {"a": "1", "b": GONE}


@pytest.mark.parametrize(("idle", "is_taken"), [("", False), (", idle: true", True)])
def test_an_operation_that_changes_nothing_in_a_second_session_has_to_say_so(
    idle: str, is_taken: bool, tmp_path: Path
) -> None:
    told = LEDGER.joinpath("faults.yaml").read_text(encoding="utf-8")
    begin, end = told.index("    operations: "), told.index("    facts:")
    each = "{call: record, args: {key: $key, value: $value}, once: true%s}"
    steps = f"    each:\n      - {each % ''}\n      - {each % idle}\n"
    columns = "columns: {key: $key, value: $value, copy: $value}"
    facts = told[end : told.index("      found:")].replace(columns, "columns: [key, value, copy]")
    mine = told[:begin] + steps + facts + told[told.index("cases:") :]
    spec = read_contract(changed(LEDGER, tmp_path, "faults.yaml", told, mine)).workloads["entries"]
    learned = {number: {f"entry {number} value": "1", f"entry {number} copy": "1"} for number in (1, 2, 3, 5)}
    scopes = scopes_of(spec, contract="ledger", seed="a")
    if is_taken:
        workload = workload_of(spec, scopes, {}, {**learned, 4: {}})
        assert [op.number for op in workload.later if op.idle] == [4]
    else:
        with pytest.raises(ValueError, match="operation 4"):
            workload_of(spec, scopes, {}, {**learned, 4: {}})
