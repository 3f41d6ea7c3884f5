"""The loader: what it returns is whole and consistent, what is not is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from holdfast.specs import SpecError, contract_names, load_contract, load_terms, version_of
from holdfast.specs.registry import contracts, folder_of
from holdfast.specs.schema import check_schema
from holdfast.specs.yamlfile import read_yaml
from tests.specs.conftest import TOY, Change, Spoilt

SCHEMAS = Path(__file__).resolve().parent.parent.parent / "specs" / "schemas"
AGAIN = "a-second-put-of-a-key-is-refused"
SURVIVES = "an-acknowledged-put-survives-a-kill"
RACE = "one-of-two-concurrent-puts-wins"
HELD = "a-put-killed-before-its-commit-left-nothing"


@pytest.mark.parametrize("path", sorted(SCHEMAS.glob("*.json")), ids=lambda path: path.stem)
def test_every_published_schema_is_a_schema_and_names_itself(path: Path) -> None:
    schema = json.loads(path.read_text(encoding="utf-8"))
    check_schema(schema, name=path.name)
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["$id"].endswith(f"/{path.name}")


@pytest.mark.parametrize("name", [name for name, one in contracts().items() if one.folder.parent == SCHEMAS.parent])
def test_every_shipped_contract_can_be_loaded_with_and_without_its_cases(name: str) -> None:
    contract, terms = load_contract(name), load_terms(name)
    # A service is judged by its profile, which no script can follow.
    assert contract.cases or name == "idempotency-key"
    assert not terms.cases
    assert terms.digest == contract.digest
    assert all(clause in contract.clauses for case in contract.cases for clause in case.clauses)
    assert name in contract_names()


def test_an_unknown_contract_is_named_with_those_that_are_known() -> None:
    with pytest.raises(SpecError, match=r"unknown contract 'no-such'; known: .*rs4a-replay"):
        load_contract("no-such")


def test_a_shipped_contract_cannot_be_shadowed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "rs4a-replay").mkdir()
    (tmp_path / "rs4a-replay" / "contract.yaml").write_text("a: [", encoding="utf-8")
    monkeypatch.setenv("HOLDFAST_SPECS", str(tmp_path))
    assert folder_of("rs4a-replay") == SCHEMAS.parent / "rs4a-replay"


STORE = {"path": "data/store.db", "format": "sqlite"}


def step(toy: Spoilt, words: str, phase: str, index: int = 0) -> dict[str, Any]:
    """One step of a case."""
    found: dict[str, Any] = toy.case(words)[phase][index]
    return found


def twin_at(toy: Spoilt, phase: str) -> None:
    """The twin of a case ends at the first step of a phase."""
    step(toy, AGAIN, phase)["label"] = "it"
    toy.case(AGAIN)["twin"]["at"] = "it"


def stateless(toy: Spoilt) -> Spoilt:
    """The toy contract without anything that could hold a state."""
    toy.contract["stateless"] = "Nothing is kept between two calls."
    for part in ("inertness", "relations"):
        toy.contract.pop(part)
    for reason in toy.contract["reasons"].values():
        reason["audit_records"] = 0
    toy.methods.pop("observations")
    toy.once["cases"] = [case for case in toy.once["cases"] if "observe" not in str(case)]
    toy.hard["cases"] = [{**toy.case("malformed"), "id": "toy/hard/another"}]
    return toy


LOOK = {"look": {"title": "A look", "result": {}}}
RELATIONS = read_yaml(TOY / "contract.yaml")["relations"]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.contract.update(contract="other"), "must agree on name and version"),
        (lambda t: t.methods.update(contract="other"), "must agree on name and version"),
        (lambda t: t.methods.update(version="9.9.9"), "must agree on name and version"),
        (lambda t: t.once.update(contract="other"), "is for contract 'other'"),
        (lambda t: t.contract.pop("title"), "does not fit contract.schema.json"),
        (lambda t: t.contract.update(surprise=1), "does not fit contract.schema.json"),
        (lambda t: t.methods["operations"]["put"].pop("effects"), "does not fit methods.schema.json"),
        (lambda t: t.case(AGAIN).update(kind="rumour"), "does not fit cases.schema.json"),
        (lambda t: t.case(AGAIN).update(surprise=1), "does not fit cases.schema.json"),
        (lambda t: t.methods["$defs"].update(name={"type": "nonsense"}), "not a JSON Schema"),
        (lambda t: t.methods["operations"]["put"]["reasons"].append("NO_SUCH"), "put: undeclared reason NO_SUCH"),
        (
            lambda t: t.methods["observations"].update(put={"title": "Another of that name", "result": {}}),
            "used in another group",
        ),
        (lambda t: t.contract["inertness"].update(observe="put"), "put is not an observation"),
        (lambda t: t.contract["inertness"].update(tree="../data"), "inertness/tree"),
        (lambda t: t.contract["inertness"].update(audit="nothing"), "nothing is not an observation"),
        (lambda t: t.contract["inertness"].pop("audit_list"), "audit needs audit_list"),
        (lambda t: t.contract["inertness"].pop("observe"), "self-reported needs `observe`"),
        (lambda t: t.contract["inertness"].update(seen_by="harness"), "seen_by harness needs `inspection`"),
        (
            lambda t: t.contract.update(inspection=STORE) or t.contract["inertness"].update(seen_by="harness"),
            "state would not be looked at",
        ),
        (lambda t: t.contract.update(inspection={**STORE, "format": "xml"}), "does not fit contract.schema.json"),
        (lambda t: t.contract.update(inspection={**STORE, "path": "../x"}), "does not fit contract.schema.json"),
        (lambda t: t.case(AGAIN)["then"].append({"inspect": "store"}), "inspect: the contract has no `inspection`"),
        (lambda t: t.case(AGAIN)["then"].append({"insert": "t", "row": {"a": 1}}), "insert: the contract has no"),
        (lambda t: t.case(AGAIN)["then"].append({"probe": "t", "row": {"a": 1}}), "does not fit cases.schema.json"),
        (lambda t: t.case(AGAIN)["then"].append({"file": "x", "bind": {"y": "mode"}}), "does not fit cases"),
        (lambda t: t.contract.pop("inertness"), "expected either `inertness`"),
        (lambda t: t.contract.update(stateless="none"), "expected either `inertness`"),
        (lambda t: t.contract.update(stateless=""), "does not fit contract.schema.json"),
        (lambda t: t.contract["clauses"].append(t.clause("TOY-01")), "clause TOY-01 stands there twice"),
        (lambda t: t.add(AGAIN, id=t.case(AGAIN)["id"]), "stands there twice"),
        (lambda t: t.case(AGAIN).update(clause="TOY-99"), "unknown clause TOY-99"),
        (lambda t: t.case(AGAIN).update(also=["TOY-98"]), "unknown clause TOY-98"),
        (lambda t: step(t, AGAIN, "when").update(call="state"), "state is not one of the contract's operations"),
        (lambda t: step(t, AGAIN, "when").update(call="no_such"), "no_such is not one of the contract's operations"),
        (lambda t: step(t, AGAIN, "then").update(observe="put"), "put is not one of the contract's observations"),
        (lambda t: step(t, HELD, "given").update(provoke="audit"), "audit is not one of the contract's provocations"),
        (lambda t: step(t, HELD, "when").update(start="audit"), "audit is not one of the contract's operations"),
        (lambda t: step(t, RACE, "when").update(race="audit"), "audit is not one of the contract's operations"),
        (lambda t: step(t, AGAIN, "given").update(label="again"), "label again stands there twice"),
        (lambda t: step(t, AGAIN, "given").update(worker=1), "worker: 1 in a case with 1"),
        (lambda t: step(t, SURVIVES, "when").update(kill=1), "kill: 1 in a case with 1"),
        (lambda t: step(t, SURVIVES, "when", 1).update(reopen=3), "reopen: 3 in a case with 1"),
        (lambda t: t.case(SURVIVES)["when"].append({"restart": 1}), "restart: 1 in a case with 1"),
        (lambda t: t.case(RACE).update(workers=1), "a race needs at least 2 workers"),
        (lambda t: t.case(HELD)["then"].append({"finish": "nobody"}), "nothing was started as 'nobody'"),
        (lambda t: t.case(HELD)["then"].append({"unanswered": "nobody"}), "nothing was started as 'nobody'"),
        (lambda t: t.case(HELD)["then"].append({"unanswered": "held"}), "held is never finished"),
        (lambda t: step(t, AGAIN, "when").update(expect="NO_SUCH"), "NO_SUCH, which is not among put's"),
        (
            lambda t: step(t, AGAIN, "when").update(expect={"any": [{"outcome": "accepted"}, {"reason": "DUPLICATE"}]}),
            "not said to be refused",
        ),
        (lambda t: step(t, AGAIN, "given").update(expect={"effect": "new"}), "not said to be accepted"),
        (lambda t: step(t, AGAIN, "given").update(expect={"value": {"entry": 1}}), "a value without an outcome"),
        (lambda t: step(t, RACE, "when")["expect"].update(rest=[{"outcome": "refused", "reason": "X"}]), "reason X"),
        (lambda t: t.case(AGAIN)["twin"].update(step="nowhere"), "twin names the step 'nowhere'"),
        (lambda t: t.case(AGAIN)["twin"].update(at="nowhere"), "twin names the step 'nowhere'"),
        (lambda t: t.case(AGAIN)["twin"].update(at="open"), "which is no call"),
        (lambda t: twin_at(t, "given"), "ends at 'it', before the step 'again'"),
        (lambda t: twin_at(t, "then"), "ends at 'it', which is no call"),
        (lambda t: t.case(AGAIN)["twin"].update(set={}), "does not fit cases.schema.json"),
        (lambda t: t.case(AGAIN)["twin"].update(set={"args.key": 1, "args.nonce": 2}), "cases.schema.json"),
        (lambda t: t.case(AGAIN)["twin"].update(expect={"effect": "new"}), "twin: expects effect new"),
        (lambda t: stateless(t).contract.update(relations=RELATIONS), "yet it has relations"),
        (lambda t: stateless(t).contract.update(states={"S0": "Nothing."}), "yet it has states"),
        (lambda t: stateless(t).contract["reasons"]["DUPLICATE"].update(audit_records=1), "leaves 1 audit records"),
        (lambda t: stateless(t).methods.update(observations=LOOK), "look is an observation"),
        (lambda t: stateless(t).methods["operations"]["put"].update(effects=["new", "prior"]), "an earlier result"),
        (lambda t: stateless(t).case("malformed").update(kind="durability"), "is about durability"),
    ],
)
def test_what_is_inconsistent_is_named(toy: Spoilt, change: Change, words: str) -> None:
    change(toy)
    with pytest.raises(SpecError) as caught:
        toy.read()
    assert words in str(caught.value)


def test_a_contract_without_a_state_says_so_and_is_loaded(toy: Spoilt) -> None:
    loaded = stateless(toy).read()
    assert loaded.inertness is None
    assert loaded.stateless == "Nothing is kept between two calls."


def test_many_problems_are_counted_and_not_all_printed(toy: Spoilt) -> None:
    for number in range(20):
        toy.add(AGAIN, id=f"toy/once/another-{number}", clause="TOY-99")
    with pytest.raises(SpecError, match=r"and \d+ more"):
        toy.read()


def test_the_digest_covers_terms_and_the_cases_digest_covers_cases(toy: Spoilt) -> None:
    before = toy.read()
    toy.case(AGAIN)["title"] = "Another title of the same case"
    other_case = toy.read()
    assert (other_case.digest, other_case.cases_digest != before.cases_digest) == (before.digest, True)
    toy.clause("TOY-01")["text"] += " Never."
    other_text = toy.read()
    assert other_text.digest != before.digest
    assert other_text.clauses["TOY-01"].digest != before.clauses["TOY-01"].digest
    assert other_text.clauses["TOY-02"].digest == before.clauses["TOY-02"].digest
    toy.clause("TOY-02")["harm_of"] = ["fail_open"]
    assert toy.read().digest == other_text.digest, "what a report says of a failure binds nobody"


@pytest.mark.parametrize("name", list(contracts()))
def test_the_version_is_read_without_the_contract(name: str) -> None:
    assert version_of(name) == load_terms(name).version


@pytest.mark.parametrize(
    ("short", "long"),
    [
        ("new", {"outcome": "accepted", "effect": "new"}),
        ("accepted", {"outcome": "accepted"}),
        ("DUPLICATE", {"outcome": "refused", "reason": "DUPLICATE"}),
        (["DUPLICATE", "REQUEST_MALFORMED"], {"outcome": "refused", "reason": ["DUPLICATE", "REQUEST_MALFORMED"]}),
        (
            {"any": ["new", "DUPLICATE"]},
            {"any": [{"outcome": "accepted", "effect": "new"}, {"outcome": "refused", "reason": "DUPLICATE"}]},
        ),
    ],
)
def test_a_short_expectation_means_what_the_long_one_says(toy: Spoilt, short: Any, long: Any) -> None:
    digests = set()
    for said in (short, long):
        step(toy, AGAIN, "when")["expect"] = said
        step(toy, AGAIN, "when")["args"]["key"] = {"expect": "new"}
        contract = toy.read()
        (found,) = (case for case in contract.cases if case.id.endswith(AGAIN))
        assert found.when[0]["expect"] == long
        assert found.when[0]["args"]["key"] == {"expect": "new"}, "what is sent is sent as it is written"
        digests.add(contract.cases_digest)
    assert len(digests) == 1
