"""Workloads: what an operation is asked for, and by which facts it shows."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.durability.subject import Showing
from holdfast.conformance.durability.workload import (
    GONE,
    answers_of,
    facts_of_rows,
    scopes_of,
    with_gone,
    workload_of,
)
from holdfast.conformance.durability.workload import changed as changed_facts
from holdfast.conformance.faults.subject import SubjectError, SubjectPartlyError, Workload
from holdfast.conformance.run.plan import Form, plan_of
from holdfast.specs import Contract, SpecError, contract_names, load_contract
from holdfast.specs.faults import FaultLayer
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


# Facts that the harness reads in the store itself: behind its owner, and none of a store that is not whole.

CONTRACT = load_contract("mesh-delivery")
ROW = {"client_message_id": "c", "request_fingerprint": {"blob": "00"}, "payload": {"blob": "01"}}
WHOLE: Mapping[str, Any] = {
    "exists": True,
    "error": None,
    "integrity": "ok",
    "rows": {"outbox": [{**ROW, "broker_message_id": None}]},
}


class Asked:
    """What an adapter answers, and in which order it was asked."""

    def __init__(self, inspected: Mapping[str, Any], *, refuses: bool = False) -> None:
        self.order: list[str] = []
        self.inspected, self.refuses = inspected, refuses
        spec = CONTRACT.workloads["delivering"]
        scopes = scopes_of(spec, contract=CONTRACT.name, seed="a")
        self.showing = Showing(CONTRACT, spec, scopes, frozenset(), self.value, self.run)

    def value(self, method: str, args: Mapping[str, Any]) -> Any:
        assert args == {}
        self.order.append(method)
        if self.refuses:
            raise SubjectError("no")
        return {"rows": [{"client_message_id": "d", "last_error": "409"}]}

    def run(self, talk: Any) -> Any:
        talk.close()
        self.order.append("inspected")
        return None, self.inspected


def test_the_store_is_read_once_behind_a_question_to_its_owner() -> None:
    asked = Asked(WHOLE)
    assert asked.showing.facts(lambda: True) == {
        "dead d client_message_id": "d",
        "row c request_fingerprint": '={"blob":"00"}',
        "row c payload": '={"blob":"01"}',
        "outcome c broker_message_id": "=null",
    }
    assert asked.order == ["failed", "inspected"]
    asked.showing.begin(turned=True)
    asked.showing.facts(lambda: True)
    assert asked.order[2:] == ["failed", "inspected"]


@pytest.mark.parametrize("broken", [{"exists": False}, {"error": "locked"}, {"integrity": "row 1 missing"}])
def test_a_store_that_is_gone_or_not_whole_shows_nothing(broken: Mapping[str, Any]) -> None:
    with pytest.raises(SubjectPartlyError) as raised:
        Asked({**WHOLE, **broken}).showing.facts(lambda: True)
    assert raised.value.reported == {"dead d client_message_id": "d"}


def test_an_owner_that_shows_nothing_is_asked_once_and_its_store_is_not_read() -> None:
    asked = Asked(WHOLE, refuses=True)
    with pytest.raises(SubjectError):
        asked.showing.facts(lambda: True)
    assert asked.order == ["failed"]


def test_the_broker_that_is_played_knows_the_ids_of_every_operation() -> None:
    spec = CONTRACT.workloads["delivering"]
    scopes = scopes_of(spec, contract=CONTRACT.name, seed="a")
    answers = answers_of(spec, scopes)
    assert {answers[scope.resolve("$taken")]["status"] for scope in scopes.values()} == {200}
    assert {answers[scope.resolve("$rejected")]["status"] for scope in scopes.values()} == {409}
    assert len(answers) == 3 * len(scopes)


# The shipped contracts: what they promise about crashes is proven without the implementation's help.

# Clauses that needed failpoints, which only an implementation with test hooks has.
ONCE_HELPED = "S1-1 S1-2 S1-3 S2-1 S2-3 RP-06 AUD-1".split()


@pytest.mark.parametrize("clause", [f"RS4A-{name}" for name in ONCE_HELPED])
def test_what_needed_a_stop_point_is_proven_without_one(clause: str) -> None:
    cases = [case for case in plan_of(load_contract("rs4a-replay")) if clause in case.clauses]
    assert any(case.form is Form.FAULT and not case.provocations for case in cases)


# The wires of `idempotency-key` start the service, so its suite lets the power fail and the store go.
IN_A_SUITE = {"idempotency-key": "IK-CRASH-2"}
KEEPING = [name for name in contract_names() if load_contract(name).stateless is None and name not in IN_A_SUITE]


@pytest.mark.parametrize("name", IN_A_SUITE)
def test_a_contract_without_fault_layers_lets_the_power_fail_in_its_suite(name: str) -> None:
    assert any(IN_A_SUITE[name] == case.clauses[0] for case in plan_of(load_contract(name)))


@pytest.mark.parametrize("name", KEEPING)
def test_a_contract_that_keeps_anything_lets_the_power_fail_and_the_store_go(name: str) -> None:
    layers = {fault.layer for fault in load_contract(name).faults}
    assert {FaultLayer.POWER_LOSS, FaultLayer.KILL, FaultLayer.STORE_MISSING, FaultLayer.STORE_LOCKED} <= layers
