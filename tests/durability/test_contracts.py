"""The shipped contracts: what they promise about crashes is proven without the implementation's help."""

from __future__ import annotations

import pytest

from holdfast.conformance.run.plan import Form, plan_of
from holdfast.specs import contract_names, load_contract
from holdfast.specs.faults import FaultLayer

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
