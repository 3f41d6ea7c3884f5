"""A proof is believed only after reading it strictly and judging it again."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from holdfast.conformance.fitness.assessment import Assessment, not_present
from holdfast.conformance.fitness.model import EvidenceClass, Part, RelationName, Status
from holdfast.conformance.fitness.policy import Policy
from holdfast.conformance.fitness.proof import (
    Expected,
    Proof,
    ProofError,
    fitness_schema,
    proof_json,
    read,
    verify,
    write,
)
from holdfast.reports.evidence import KitIdentity
from holdfast.specs import load_contract, schema, strictjson

KIT = KitIdentity("holdfast", "0.1.0", "sha256:" + "c" * 64)
MADE = datetime(2026, 3, 1, 12, tzinfo=UTC)
NAME = "surface.consumed_request"

Json = dict[str, Any]
Edit = Callable[[Json], object]


def reasons(proof: Proof, **changed: Any) -> tuple[str, ...]:
    """What the gate says where it expects this surface on the server that the proof names."""
    server = proof.raw["server"] or {}
    expected = Expected(NAME, server.get("name"))
    for name in ("surface", "server", "challenge"):
        if name in changed:
            expected = replace(expected, **{name: changed.pop(name)})
    asked: Json = {"contract": load_contract("rs4a-replay"), "kit": KIT, "now": MADE, "expected": expected}
    return verify(proof, **{**asked, **changed})


def sealed(document: Json) -> Json:
    """As a forger seals it anew."""
    rest = {name: part for name, part in document.items() if name != "seal"}
    return {**rest, "seal": strictjson.digest(rest)}


def bound(document: Json) -> Json:
    """As a forger who computes the digest anew, too."""
    value = {"policy": document["policy"], "structure": document["evidence"]["snapshot"]["structure"]}
    return sealed({**document, "digest": strictjson.digest(value).removeprefix("sha256:")})


@pytest.fixture(scope="module")
def document(documented: Assessment) -> Json:
    return proof_json(documented, kit=KIT, made=MADE)


@pytest.fixture
def forged(document: Json, tmp_path: Path) -> Callable[..., Proof]:
    """The proof with an edit, made whole again by `whole`."""

    def make(edit: Edit, whole: Callable[[Json], Json] = sealed) -> Proof:
        edited = copy.deepcopy(document)
        edit(edited)
        path = tmp_path / "forged.json"
        path.write_text(json.dumps(whole(edited)), encoding="utf-8")
        return read(path)

    return make


def test_a_proof_of_a_fit_surface_is_written_read_back_and_believed(
    document: Json, documented: Assessment, tmp_path: Path
) -> None:
    path = tmp_path / "new" / "proof.json"
    write(document, path)
    proof = read(path)
    assert proof.assessment.judgement == documented.judgement
    assert proof.assessment.evidence == documented.evidence
    assert proof.document.made == MADE
    assert reasons(proof) == ()
    assert [each.name for each in path.parent.iterdir()] == ["proof.json"]


def test_the_published_schema_is_the_one_that_the_types_of_a_proof_make() -> None:
    assert schema.published_schema("fitness") == fitness_schema()


def test_writing_a_proof_leaves_the_old_one_where_it_cannot_be_done(document: Json, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    path.mkdir()
    with pytest.raises(ProofError, match="cannot be written"):
        write(document, path)
    assert [each.name for each in tmp_path.iterdir()] == ["proof.json"]


def test_a_byte_changed_without_sealing_breaks_the_seal(document: Json, tmp_path: Path) -> None:
    path = tmp_path / "proof.json"
    path.write_text(json.dumps(document).replace("registrar_owner", "registrar_0wner"), encoding="utf-8")
    with pytest.raises(ProofError, match="the seal is broken"):
        read(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "expected a fitness proof as JSON"),
        ("[]", "does not fit fitness.schema.json"),
        ('{"schema": 1, "schema": 2}', "duplicate member name"),
        ('{"schema": 2}', "does not fit fitness.schema.json"),
    ],
)
def test_what_is_no_proof_is_refused(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "proof.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ProofError, match=complaint):
        read(path)
    with pytest.raises(ProofError, match="expected a fitness proof, got"):
        read(tmp_path / "none.json")


def _probe(document: Json, name: str) -> Json:
    return next(probe for probe in document["evidence"]["probes"] if probe["name"] == name)


def _admitted(name: str) -> Edit:
    """The probe was not refused after all."""
    return lambda document: _probe(document, name)["answers"][-1].update(
        sqlstate=None, message="", affected=1, constraint=None
    )


def _without(name: str) -> Edit:
    return lambda document: document["evidence"]["probes"].remove(_probe(document, name))


def _rows(document: Json, query: str) -> list[Json]:
    rows: list[Json] = document["evidence"]["snapshot"]["structure"][query]
    return rows


@pytest.mark.parametrize(
    "edit",
    [
        _admitted("same-key"),
        _admitted("owner-delete"),
        _without("race"),
        lambda document: document["evidence"].update(probes=[]),
        lambda document: document["evidence"]["lost"].update(clone="there was no server"),
        lambda document: _rows(document, "triggers").clear(),
        lambda document: [row.update(valid=False) for row in _rows(document, "indexes")],
        lambda document: document["evidence"]["snapshot"]["structure"].clear(),
        lambda document: document["surface"]["parts"].pop("audit"),
        lambda document: document["surface"]["parts"]["nonce"].update(name="consumed_request"),
        lambda document: document["surface"].update(writer=None),
    ],
)
def test_evidence_that_shows_no_fit_surface_is_found_out_by_judging_it_again(
    forged: Callable[..., Proof], edit: Edit
) -> None:
    said = reasons(forged(edit, bound))
    assert any("judged again" in text or "cannot be judged again" in text for text in said), said


def test_a_judgement_that_was_touched_up_is_not_the_one_that_the_evidence_amounts_to(
    documented: Assessment, forged: Callable[..., Proof]
) -> None:
    def unproven(document: Json) -> None:
        document["judgement"]["findings"][0]["standing"] = "unproven"
        document["judgement"]["status"] = "REPLAY_SURFACE_NOT_FIT"

    (said,) = reasons(forged(unproven))
    assert "judged again its evidence amounts to FIT" in said
    assessed = documented
    assert assessed.judgement.status is Status.FIT


def test_notes_that_were_taken_out_are_missed(forged: Callable[..., Proof]) -> None:
    (said,) = reasons(forged(lambda document: document["judgement"]["notes"].clear()))
    assert "judged again" in said


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (
            lambda document: document["evidence"]["probes"].append(document["evidence"]["probes"][0]),
            "it holds probes twice",
        ),
        (lambda document: document.update(digest="0" * 64), "its digest is not that of its catalogue and policy"),
        (lambda document: _rows(document, "columns").pop(), "its digest is not that of its catalogue and policy"),
        (lambda document: document["policy"].update(max_age_seconds=2678400), "its digest is not that"),
        (lambda document: document["contract"].update(digest="sha256:" + "0" * 64), "another text"),
        (lambda document: document["contract"].update(name="jcs"), "another text"),
        (lambda document: document["kit"].update(version="0.0.9"), "made by holdfast 0.0.9"),
        (lambda document: document["kit"].update(digest="sha256:" + "0" * 64), "made by other code"),
        (lambda document: document["surface"].update(name="prod"), "call the surface 'surface.consumed_request'"),
        (lambda document: document.update(departures=["all is well"]), "about departures from the contract"),
        (
            lambda document: document.update(target="postgresql://u:hunter2@db/x"),
            "holds a password in a URL at /target",
        ),
    ],
)
def test_each_thing_that_a_proof_is_bound_to_is_looked_at(
    forged: Callable[..., Proof], edit: Edit, complaint: str
) -> None:
    said = reasons(forged(edit))
    assert any(complaint in text for text in said), said


def test_a_proof_stands_for_as_long_as_its_policy_says_and_not_before_it_was_made(
    forged: Callable[..., Proof],
) -> None:
    proof = forged(lambda _: None)
    assert reasons(proof, now=MADE + timedelta(days=7)) == ()
    (late,) = reasons(proof, now=MADE + timedelta(days=7, seconds=1))
    assert "lets it stand for 7 days" in late
    assert reasons(proof, now=MADE - timedelta(minutes=5)) == ()
    (early,) = reasons(proof, now=MADE - timedelta(minutes=6))
    assert "in the future" in early


@pytest.mark.parametrize(
    ("edit", "complaint"),
    [
        (lambda document: document["policy"].update(max_age_seconds=315360000), "2678400"),
        (lambda document: document["policy"].pop("reviewed"), '"reviewed" is a required property'),
    ],
)
def test_no_policy_lets_a_proof_stand_for_years_or_leaves_something_open(
    forged: Callable[..., Proof], edit: Edit, complaint: str
) -> None:
    with pytest.raises(ProofError, match=complaint):
        forged(edit, bound)


def test_a_policy_cannot_give_a_table_the_name_of_the_live_one(documented: Assessment, tmp_path: Path) -> None:
    assert documented.surface is not None
    lab = {Part.EFFECT: RelationName("lab", "try_1"), Part.NONCE: documented.surface.parts[Part.NONCE]}
    policy = Policy(name=NAME)
    surface = structs.replace(documented.surface, name=NAME, parts=lab)
    path = tmp_path / "lab.json"
    write(proof_json(replace(documented, surface=surface, policy=policy), kit=KIT, made=MADE), path)
    assert any("it speaks of the relation 'lab.try_1'" in text for text in reasons(read(path)))


def test_an_alias_of_a_policy_is_no_name_that_the_gate_takes(documented: Assessment, tmp_path: Path) -> None:
    assert documented.surface is not None
    assert documented.evidence is not None
    policy, surface = Policy(name="prod"), structs.replace(documented.surface, name="prod")
    evidence = replace(documented.evidence, surface=surface)
    path = tmp_path / "alias.json"
    assessed = replace(documented, surface=surface, policy=policy, evidence=evidence)
    write(proof_json(assessed, kit=KIT, made=MADE), path)
    assert reasons(read(path)) == ()
    (said,) = reasons(read(path), surface="prod")
    assert f"it speaks of the relation {NAME!r}, and 'prod' was asked for" in said


def _facts(**changes: Any) -> Edit:
    """Edit what the server said of itself, in both places where a proof holds it."""

    def apply(document: Json) -> None:
        facts = {**document["server"]["facts"], **changes}
        replica = facts["replica"] is not False
        name = f"{facts['system_identifier']}/{facts['database']}"
        document["server"] = {"name": name, "replica": replica, "facts": facts}
        document["evidence"]["snapshot"]["circumstances"]["identity"] = [facts]

    return apply


@pytest.mark.parametrize(
    ("edit", "expected", "complaint"),
    [
        (lambda _: None, None, "no expected server was given"),
        (lambda _: None, "7000000000000000000/registry", "and 7000000000000000000/registry was expected"),
        (_facts(replica=True), ..., "it was made on a replica"),
        (_facts(replica=None), ..., "it was made on a replica"),
        (lambda document: document.update(server=None), ..., "the server that it names is not the one of its evidence"),
        (
            lambda document: document["server"].update(name="1/prod"),
            "1/prod",
            "the server that it names is not the one of its evidence",
        ),
        (
            lambda document: document["evidence"]["snapshot"]["circumstances"].update(identity=[]),
            ...,
            "it names no server",
        ),
        (_facts(clock="2026-02-20T12:00:00Z"), ..., "one of the two was edited"),
        (_facts(clock="yesterday"), ..., "one of the two was edited"),
        (lambda document: document.update(made="2026-03-01T11:00:00Z"), ..., "one of the two was edited"),
    ],
)
def test_a_proof_of_another_server_a_replica_or_another_day_holds(
    forged: Callable[..., Proof], edit: Edit, expected: Any, complaint: str
) -> None:
    said = reasons(forged(edit), **({} if expected is ... else {"server": expected}))
    assert any(complaint in text for text in said), said


def test_an_older_proof_does_not_hold_the_challenge_that_was_made_for_a_new_one(
    documented: Assessment, tmp_path: Path
) -> None:
    asked, path = "c0ffee", tmp_path / "challenged.json"
    write(proof_json(documented, kit=KIT, made=MADE, challenge=asked), path)
    proof = read(path)
    assert reasons(proof) == reasons(proof, challenge=asked) == ()
    for other in ("decaf", ""):
        (said,) = reasons(proof, challenge=other)
        assert f"expected the challenge {other!r}" in said
    write(proof_json(documented, kit=KIT, made=MADE), path)
    (said,) = reasons(read(path), challenge=asked)
    assert "got none" in said


def test_no_surface_proves_nothing(tmp_path: Path) -> None:
    absent = Assessment("nowhere", Policy(), None, None, not_present("MISSING_RELATION", "nothing is there"))
    path = tmp_path / "absent.json"
    write(proof_json(absent, kit=KIT, made=MADE), path)
    (said,) = reasons(read(path))
    assert "REPLAY_SURFACE_REQUIRED_NOT_PRESENT" in said


def test_a_password_in_the_catalogue_is_not_written_down(documented: Assessment) -> None:
    assessed = documented
    assert assessed.evidence is not None
    described = replace(assessed.evidence, lost={EvidenceClass.LIVE: "dblink('postgresql://u:hunter2@db/x') failed"})
    with pytest.raises(ProofError, match="found a password in a URL at /evidence/lost/live") as refused:
        proof_json(replace(assessed, evidence=described), kit=KIT, made=MADE)
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("made", ["2026-02-30T00:00:00.000000Z", "0000-00-00T00:00:00.000000Z"])
def test_a_day_that_no_calendar_has_makes_no_proof(forged: Callable[..., Proof], made: str) -> None:
    with pytest.raises(ProofError, match="expected an instant that exists"):
        forged(lambda document: document.update(made=made))
