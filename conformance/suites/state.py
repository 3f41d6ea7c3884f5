"""The state that a refusal has to leave alone, as a suite test observes it."""

from __future__ import annotations

from typing import Any

from holdfast.conformance.cases.inertness import STORE, TREE
from holdfast.conformance.suites.session import SuiteSession
from holdfast.specs import Contract, Method


def observed(contract: Contract, method: Method, session: SuiteSession) -> dict[str, Any]:
    """What is observed around a call of this method; nothing where the contract keeps no state."""
    inertness = contract.inertness_of(method)
    if inertness is None:
        return {}
    tree = {} if inertness.tree is None else {TREE: session.tree(inertness.tree)}
    if inertness.observe is None:
        return {STORE: session.inspect()["rows"], **tree}
    audit = {inertness.audit: session.observe(inertness.audit)} if inertness.audit is not None else {}
    return {inertness.observe: session.observe(inertness.observe), **audit, **tree}
