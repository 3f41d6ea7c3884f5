"""Roles and routes: what a contract says of them is consistent, and what they mean for an adapter follows from it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.conformance.gate.decision import parse_requirement
from holdfast.conformance.run.plan import methods_of, plan_of
from holdfast.specs import SpecError, contract_names, load_contract
from holdfast.specs.binding import REQUESTS, openapi_of, route_of
from holdfast.specs.routes import Route
from tests.specs.conftest import Change, Spoilt

STATUSES = {"new": 201, "REQUEST_MALFORMED": 400, "DUPLICATE": 409, "NONCE_CONSUMED": 409}
ROUTE = {"method": "PUT", "path": "/v1/{key}", "statuses": STATUSES, "headers": {"nonce": "Nonce"}}


def with_roles(toy: Spoilt, **more: Any) -> Spoilt:
    toy.contract["roles"] = {"shelf": {"title": "Keeps keys."}, "reader": {"title": "Reads.", **more}}
    for group in ("operations", "observations", "provocations"):
        for method in toy.methods.get(group, {}).values():
            method["role"] = "shelf"
    for clause in toy.contract["clauses"]:
        clause["roles"] = ["shelf"]
    return toy


def routed(toy: Spoilt, **change: Any) -> None:
    toy.methods["operations"]["put"]["route"] = {**ROUTE, **change}


def test_a_role_that_is_not_claimed_takes_all_of_its_methods_along(toy: Spoilt) -> None:
    with_roles(toy)
    contract = toy.read()
    assert contract.lacks({"reader": "none"}) == {"reader": "none"}
    lacked = contract.lacks({"shelf": "none", "clock": "frozen"})
    assert lacked == {"shelf": "none", "clock": "frozen", **dict.fromkeys(contract.methods, "none")}
    assert contract.roles_of(contract.clauses) == {"shelf"}
    assert contract.roles_of(["no such clause"]) == set()


def test_a_case_may_name_the_roles_it_is_asked_of(toy: Spoilt) -> None:
    with_roles(toy)
    contract = toy.read()
    assert contract.roles_of(["TOY-01"], ("reader",)) == {"reader"}
    assert contract.roles_of(["TOY-01"]) == {"shelf"}
    toy.once["cases"][0]["roles"] = ["cook"]
    with pytest.raises(SpecError, match="unknown role cook"):
        toy.read()


def test_a_role_may_be_called_as_its_only_method(toy: Spoilt) -> None:
    with_roles(toy)
    toy.contract["roles"]["put"] = {"title": "Puts."}
    toy.methods["operations"]["put"]["role"] = "put"
    assert toy.read().lacks({"put": "none"}) == {"put": "none"}


@pytest.mark.parametrize("name", [name for name in contract_names() if load_contract(name).roles])
def test_no_case_calls_a_method_of_a_role_that_it_is_not_of(name: str) -> None:
    contract = load_contract(name)
    for case in contract.cases:
        called = {contract.methods[method].role for method in methods_of(contract, case)}
        of_others = called - contract.roles_of(case.clauses, case.roles)
        # What stands in the profile of every claim is no role of its own.
        assert not of_others - {"core"}, case.id


def test_a_strict_profile_is_asked_of_those_alone_that_have_it() -> None:
    contract = load_contract("jcs")
    for case in contract.cases:
        profiles = {step.get("args", {}).get("profile") for step in (*case.given, *case.when, *case.then)}
        strict = profiles & contract.roles.keys() - {"core"}
        assert strict <= contract.roles_of(case.clauses, case.roles), case.id


def test_the_gate_takes_a_role_called_core_for_that_role() -> None:
    planned = {case.id: case for case in plan_of(load_contract("jcs"))}
    wanted = parse_requirement("jcs/core")
    assert wanted.name == "jcs/core"
    assert wanted.roles == frozenset({"core"})
    assert wanted.leaves_out(planned["jcs/ver-01/canonical-bytes"])
    assert not wanted.leaves_out(planned["jcs/dup-01/two-values"])
    other = parse_requirement("calyx-replay/core")
    assert (other.name, other.roles) == ("calyx-replay/core", None)


def test_a_role_may_have_no_state_though_its_contract_has_one(toy: Spoilt) -> None:
    with_roles(toy, stateless="It only reads.")
    toy.methods["operations"]["put"]["role"] = "reader"
    contract = toy.read()
    assert contract.inertness_of(contract.methods["put"]) is None
    assert contract.inertness_of(contract.methods["state"]) == contract.inertness


def test_an_operation_may_change_nothing_though_its_role_has_a_state(toy: Spoilt) -> None:
    toy.methods["operations"]["put"]["stateless"] = "It only looks."
    contract = toy.read()
    assert contract.inertness_of(contract.methods["put"]) is None


OBSERVED = {"seen_by": "self-reported", "observe": "put"}
LACKING = {"new": 201, "REQUEST_MALFORMED": 400, "DUPLICATE": 409}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda t: with_roles(t).clause("TOY-01").update(roles=["shelf", "cook"]), "unknown role cook"),
        (lambda t: with_roles(t).clause("TOY-01").pop("roles"), "clause TOY-01: has no role"),
        (lambda t: with_roles(t).methods["observations"]["state"].pop("role"), "method state: has no role"),
        (lambda t: with_roles(t).contract["roles"].update(put={"title": "Puts."}), "a method has that name"),
        (lambda t: with_roles(t, stateless="x", inertness=t.contract["inertness"]), "has inertness and is stateless"),
        (lambda t: with_roles(t, inertness=OBSERVED), "put is not an observation"),
        # A route that could not be read back.
        (lambda t: routed(t, statuses=LACKING), "no status for NONCE_CONSUMED"),
        (lambda t: routed(t, statuses={**STATUSES, "prior": 200}), "a status for prior, which it never answers"),
        (lambda t: routed(t, statuses={**STATUSES, "DUPLICATE": 201}), "new shares its status"),
        (lambda t: routed(t, headers={"colour": "Colour"}), "no argument colour"),
    ],
)
def test_a_role_that_is_half_declared_or_a_route_that_leads_nowhere_is_named(
    toy: Spoilt, change: Change, problem: str
) -> None:
    change(toy)
    with pytest.raises(SpecError, match=problem):
        toy.read()


def test_arguments_travel_where_the_route_says_and_nowhere_else(toy: Spoilt) -> None:
    routed(toy)
    route = toy.read().routes["put"]
    args = {"key": "a b/ü", "nonce": "n", "colour": "red"}
    assert route.target(route.path, args) == "/v1/a%20b%2F%C3%BC"
    assert route.body(args) == {"colour": "red"}


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (201, {"x": 1}, {"outcome": "accepted", "effect": "new", "value": {"x": 1}}),
        (400, None, {"outcome": "refused", "reason": "REQUEST_MALFORMED"}),
        (400, {"field": "key"}, {"outcome": "refused", "reason": "REQUEST_MALFORMED", "data": {"field": "key"}}),
        (409, {"error": "DUPLICATE"}, {"outcome": "refused", "reason": "DUPLICATE"}),
        (409, {"error": "DUPLICATE", "n": 1}, {"outcome": "refused", "reason": "DUPLICATE", "data": {"n": 1}}),
        (409, {"n": 1}, None),
        (409, {"error": "REQUEST_MALFORMED"}, None),
        (409, None, None),
        (409, [], None),
        (200, {"x": 1}, None),
        (302, None, None),
        (404, None, None),
        (500, None, {"outcome": "fault", "detail": "status 500"}),
        (504, None, {"outcome": "indeterminate"}),
    ],
)
def test_a_response_is_what_its_status_says_or_nothing(status: int, body: Any, message: Any) -> None:
    route = Route(method="PUT", path="/v1", statuses={**STATUSES, "indeterminate": 504})
    assert route.message(status, body) == message


def _references(part: Any) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*map(_references, part.values())) if part else own
    return set().union(*map(_references, part)) if isinstance(part, list) else set()


@pytest.mark.parametrize("name", contract_names())
def test_the_openapi_document_has_every_method_and_status_and_no_reference_into_nothing(name: str) -> None:
    contract = load_contract(name)
    document = openapi_of(contract)
    schemas = document["components"]["schemas"]
    assert {name.removeprefix("#/components/schemas/") for name in _references(document)} <= schemas.keys()
    operations = {each["operationId"]: each for path in document["paths"].values() for each in path.values()}
    assert operations.keys() == {*contract.methods, *(f"protocol_{request}" for request in REQUESTS)}
    for method in contract.methods.values():
        statuses = {str(status) for status in route_of(contract, method).statuses.values()}
        assert operations[method.name]["responses"].keys() == {*statuses, "415", "422", "428", "500", "501"}


@pytest.mark.parametrize("name", contract_names())
def test_the_openapi_document_in_the_docs_is_that_of_the_contract(name: str) -> None:
    kept = json.loads((Path("docs/openapi") / f"{name}.json").read_text(encoding="utf-8"))
    assert kept == openapi_of(load_contract(name)), "run `holdfast explain --write docs`"


def test_a_declared_route_stands_in_the_openapi_document_as_it_travels() -> None:
    document = openapi_of(load_contract("mesh-delivery"))
    operation = document["paths"]["/v1/messages"]["post"]
    required = {each["name"] for each in operation["parameters"] if each["required"]}
    assert required == {"Client-Message-Id", "Mesh-Member"}
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    assert set(body["properties"]) == {"mesh_id", "request", "claimed_fingerprint"}
    assert set(body["required"]) == {"mesh_id", "request"}


@pytest.mark.parametrize("name", contract_names())
def test_an_answer_is_the_same_behind_its_route(name: str) -> None:
    contract = load_contract(name)
    for method in contract.methods.values():
        route = route_of(contract, method)
        answers: list[dict[str, Any]] = [
            {"outcome": "accepted", "effect": each, "value": {}} for each in method.effects
        ]
        answers += [{"outcome": "refused", "reason": each} for each in method.reasons]
        answers += [{"outcome": "refused", "reason": each, "data": {"field": "x"}} for each in method.reasons]
        answers += [{"outcome": "unsupported", "capability": method.name}]
        answers += [{"outcome": "indeterminate"}] if method.effects else [{"outcome": "ok", "value": {"rows": []}}]
        for answer in answers:
            assert route.message(*route.response(answer)) == answer
        told = route.message(*route.response({"outcome": "fault", "detail": "it broke"}))
        assert told is not None
        assert told["outcome"] == "fault"
