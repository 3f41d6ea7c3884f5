"""The gate of rs4a-replay: a proof of the named surface takes away what only a live surface can show, nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.policy import Policy, policy_of
from holdfast.conformance.fitness.proof import proof_json, write
from holdfast.conformance.fitness.tie import schema_digest
from holdfast.conformance.gate.cases import fitness_clauses
from holdfast.conformance.gate.decision import Extent, FitnessProof, ReasonCode, Requirement, of_fitness
from holdfast.conformance.verdict import Exit
from holdfast.reports.evidence import KitIdentity, Relation
from holdfast.specs import load_contract, strictjson
from tests.fitness.documented import line_of

KIT = KitIdentity("holdfast", "0.1.0", "sha256:" + "c" * 64)
MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAME = "surface.consumed_request"
REPLAY = load_contract("rs4a-replay")
REGISTRAR = [Requirement(REPLAY, extent) for extent in (Extent.FULL, Extent.CORE)]

Asked = Callable[..., Any]


@pytest.fixture
def asked(documented: Assessment, tmp_path: Path) -> Asked:
    """What the gate says about a proof of this assessment, edited and sealed anew."""

    def ask(
        assessment: Assessment = documented, edit: Callable[[dict[str, Any]], object] | None = None, **changed: Any
    ) -> Any:
        path = tmp_path / "proof.json"
        document = proof_json(assessment, kit=KIT, made=MADE)
        if edit is not None:
            edit(document)
            rest = {name: part for name, part in document.items() if name != "seal"}
            document = {**rest, "seal": strictjson.digest(rest)}
        write(document, path)
        assert assessment.server is not None
        line = line_of(documented)
        given = {"kit": KIT, "now": MADE + timedelta(hours=1), "surfaces": [line], **changed}
        server = given.pop("server", assessment.server.name)
        proof = FitnessProof(str(path), given.pop("name", NAME), server, given.pop("challenge", None))
        return of_fitness(given.pop("required", REGISTRAR), proof, **given)

    return ask


def _looked_with(documented: Assessment, policy: Policy) -> Assessment:
    """The same evidence, judged with another policy."""
    assert documented.evidence is not None
    return replace(documented, policy=policy, judgement=judge(documented.evidence, policy))


def test_a_proof_of_the_named_surface_leaves_nothing_to_hold_for(asked: Asked) -> None:
    found = asked()
    assert found.reasons == ()
    described = "\n".join(found.notes)
    assert "the run was made on 7111111111111111111/lab, by the word of the adapter" in described
    assert "surface surface.consumed_request: FIT on 2026-03-01T12:00:00" in described
    assert "nonce surface.consumed_nonce, audit surface.refusal_audit, writer registrar" in described
    assert "superusers" in described
    for requirement in REGISTRAR:
        clauses = fitness_clauses(requirement)
        assert len(clauses) == 18
        assert f"{requirement.name}: 18 clauses" in described


def test_without_a_proof_it_holds_for_each_contract_that_needs_one() -> None:
    found = of_fitness(REGISTRAR, None, kit=KIT, now=MADE)
    assert [reason.code for reason in found.reasons] == [ReasonCode.FITNESS_MISSING] * 2
    assert of_fitness([Requirement(load_contract("jcs"), Extent.FULL)], None, kit=KIT, now=MADE).reasons == ()


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"name": "prod"}, "and 'prod' was asked for"),
        ({"server": None}, "no expected server was given"),
        ({"challenge": "c0ffee"}, "expected the challenge 'c0ffee' in it, got none"),
        ({"now": MADE + timedelta(days=8)}, "lets it stand for 7 days"),
        ({"kit": KitIdentity("holdfast", "0.2.0", KIT.digest)}, "installed is holdfast 0.2.0"),
        (
            {"required": [Requirement(structs.replace(REPLAY, digest="sha256:" + "0" * 64), Extent.FULL)]},
            "another text",
        ),
    ],
)
def test_a_proof_of_anything_else_holds(asked: Asked, changed: dict[str, Any], complaint: str) -> None:
    (reason,) = asked(**changed).reasons
    assert reason.code is ReasonCode.FITNESS_UNVERIFIED
    assert reason.exit is Exit.INCOMPLETE
    assert complaint in reason.text
    assert "rest on the fitness proof" not in "\n".join(asked(**changed).notes)


OTHER = "sha256:" + "0" * 64


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"problem": "the place of the store was not reported"}, "the place of the store was not reported"),
        ({"used": False}, "nothing that the adapter accepted was seen"),
        ({"dialect": "sqlite"}, "the run was made on sqlite, the proof is of postgresql"),
        ({"schema_digest": OTHER}, "the digest of the run's schema is not that"),
        ({"parts": {"effect": Relation("lab", "consumed_request")}}, "used the relations effect lab.consumed"),
    ],
)
def test_a_run_on_another_store_holds_and_the_reason_says_what_differs(
    asked: Asked, documented: Assessment, changed: dict[str, Any], complaint: str
) -> None:
    found = asked(surfaces=[line_of(documented, **changed)])
    (reason,) = found.reasons
    assert (reason.code, reason.exit) == (ReasonCode.FITNESS_UNTIED, Exit.INCOMPLETE)
    assert complaint in reason.text
    assert "rest on the fitness proof" not in "\n".join(found.notes)


def test_a_run_on_another_schema_holds_whatever_it_leaves_out_or_adds(asked: Asked, documented: Assessment) -> None:
    schema = dict(line_of(documented).schema)
    without = {name: digest for name, digest in schema.items() if name != "indexes"}
    for other in ({**schema, "indexes": OTHER}, without, {**schema, "indexes2": OTHER}, {}):
        (reason,) = asked(surfaces=[line_of(documented, schema=other, schema_digest=schema_digest(other))]).reasons
        assert reason.code is ReasonCode.FITNESS_UNTIED
        assert "another schema than the proof's: they differ in" in reason.text


def test_a_run_that_does_not_say_which_store_it_used_or_says_it_twice_holds(
    asked: Asked, documented: Assessment
) -> None:
    line = line_of(documented)
    for lines in ([], [line, line], [structs.replace(line, contract="mesh-delivery")]):
        (reason,) = asked(surfaces=lines).reasons
        assert reason.code is ReasonCode.FITNESS_UNTIED
        assert "which store it used, expected once" in reason.text


def test_a_run_of_a_contract_without_a_surface_is_tied_to_nothing(asked: Asked) -> None:
    assert asked(required=[Requirement(load_contract("jcs"), Extent.FULL)], surfaces=[]).reasons == ()


def test_a_policy_that_maps_columns_or_reviews_stands_in_the_notes(asked: Asked, documented: Assessment) -> None:
    data = {"columns": {"attempt": "run_id", "run_id": "attempt_id"}, "reviewed": ["no_change"]}
    found = asked(_looked_with(documented, policy_of(data, where="p")))
    described = "\n".join(found.notes)
    assert "takes the column run_id for attempt" in described
    assert "the policy says that no_change was reviewed" in described
    assert ReasonCode.FITNESS_DEPARTS not in {reason.code for reason in found.reasons}
    assert "horizon" not in "\n".join(asked().notes)


@pytest.mark.parametrize(
    ("policy", "complaint"),
    [
        ({"horizon_seconds": 86400}, "lowers the replay horizon to 1 day"),
        ({"operations": ["register_dot", "erase_dot"]}, "admits the operations erase_dot"),
    ],
)
def test_a_policy_that_asks_for_less_than_the_contract_holds_though_the_surface_is_fit_by_it(
    asked: Asked, documented: Assessment, policy: dict[str, Any], complaint: str
) -> None:
    assessed = _looked_with(documented, policy_of(policy, where="p"))
    # What that policy makes of the evidence is not the question here.
    found = asked(assessed)
    assert ReasonCode.FITNESS_DEPARTS in {reason.code for reason in found.reasons}
    (reason,) = (each for each in found.reasons if each.code is ReasonCode.FITNESS_DEPARTS)
    assert reason.exit is Exit.INCOMPLETE
    assert complaint in reason.text
    assert "; the contract " in "\n".join(found.notes)
    assert "rest on the fitness proof" not in "\n".join(found.notes)


def test_a_proof_does_not_speak_for_another_contract(asked: Asked) -> None:
    clauses = REGISTRAR[0].contract.clauses
    other = structs.replace(load_contract("jcs"), clauses={"X": structs.replace(clauses["RS4A-FIT-a"], id="X")})
    found = asked(required=[*REGISTRAR, Requirement(other, Extent.FULL)])
    assert [reason.code for reason in found.reasons] == [ReasonCode.FITNESS_MISSING]
    assert found.reasons[0].text.startswith("jcs: ")
