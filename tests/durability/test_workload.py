"""Workloads: what an operation is asked for, and by which facts it shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.durability.workload import (
    GONE,
    facts_of_rows,
    request_of,
    scopes_of,
    text_of,
    with_gone,
    workload_of,
)
from holdfast.conformance.durability.workload import changed as changed_facts
from holdfast.conformance.faults.subject import Workload
from holdfast.specs import Contract, SpecError
from holdfast.specs.loader import read_contract
from tests.durability.copies import changed

LEDGER = Path(__file__).parent / "contracts" / "ledger"
ROWS = {"observe": "state", "rows": "entry", "key": "key", "columns": {"key": "k", "value": "v", "copy": "v"}}


def row(key: str, value: str, copy: Any = None) -> dict[str, Any]:
    return {"key": key, "value": value, "copy": value if copy is None else copy}


def test_each_column_of_a_row_is_a_fact_so_that_half_of_one_shows() -> None:
    assert facts_of_rows("entry", ROWS, [row("a", "1", "")]) == {"entry a value": "1", "entry a copy": ""}


def test_a_second_row_of_one_key_is_a_fact_of_its_own() -> None:
    found = facts_of_rows("entry", ROWS, [row("a", "1"), row("a", "1")])
    assert found == {
        "entry a value": "1",
        "entry a copy": "1",
        "entry a again (2) value": "1",
        "entry a again (2) copy": "1",
    }


def test_rows_that_may_repeat_are_one_as_long_as_they_are_equal() -> None:
    fact = {**ROWS, "repeats": True}
    assert len(facts_of_rows("entry", fact, [row("a", "1"), row("a", "1")])) == 2
    assert len(facts_of_rows("entry", fact, [row("a", "1"), row("a", "2")])) == 4


def test_a_value_that_is_no_text_equals_no_text() -> None:
    assert facts_of_rows("entry", ROWS, [row("a", "true", copy=True)]) == {
        "entry a value": "true",
        "entry a copy": "=true",
    }


@pytest.fixture(scope="module")
def ledger() -> Contract:
    return read_contract(LEDGER)


def test_operations_differ_in_their_values_and_the_same_seed_gives_the_same(ledger: Contract) -> None:
    spec = ledger.workloads["entries"]
    scopes = scopes_of(spec, contract="ledger", seed="a")
    asked = [request_of(spec.step(1), scope)["args"]["key"] for scope in scopes.values()]
    assert len(set(asked)) == spec.operations + 1
    again = scopes_of(spec, contract="ledger", seed="a")
    assert [request_of(spec.step(1), scope)["args"]["key"] for scope in again.values()] == asked
    other = scopes_of(spec, contract="ledger", seed="b")
    assert not {request_of(spec.step(1), scope)["args"]["key"] for scope in other.values()} & set(asked)


def test_an_operation_sets_what_its_rows_hold_and_what_is_told_of_it(ledger: Contract) -> None:
    spec = ledger.workloads["entries"]
    scopes = scopes_of(spec, contract="ledger", seed="a")
    workload = workload_of(spec, scopes, {"entry old value": "1"})
    key, value = (scopes[1].resolve(f"${name}") for name in ("key", "value"))
    assert workload.ops[0].facts == {
        f"entry {key} value": value,
        f"entry {key} copy": value,
        "found of operation 1": "yes",
    }
    assert workload.probe.number == spec.operations + 1
    assert workload.before == {"entry old value": "1"}
    assert (workload.once, workload.prior) == (True, False)


def test_what_is_told_of_an_operation_may_be_a_value_of_its_own(tmp_path: Path) -> None:
    copy = changed(LEDGER, tmp_path, "faults.yaml", "done: 'yes'", "done: '=[\"${key}\"]'")
    spec = read_contract(copy).workloads["entries"]
    scopes = scopes_of(spec, contract="ledger", seed="a")
    keys = [scope.resolve("$key") for scope in scopes.values()][:-1]
    found = [op.facts[f"found of operation {op.number}"] for op in workload_of(spec, scopes, {}).ops]
    assert found == [text_of([key]) for key in keys]


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
