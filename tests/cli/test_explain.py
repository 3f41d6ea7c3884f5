"""`holdfast list methods` and `holdfast explain`: what the author of an adapter must know of a contract."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast.conformance.cli.commands import app
from holdfast.conformance.cli.explain.described import clause_data
from holdfast.conformance.cli.explain.pages import FOLDER, page_of
from holdfast.specs import Contract, contract_names, load_contract, schema
from holdfast.vectors.taxonomy import Category

DOCS = Path(__file__).parents[2] / "docs"
CONTRACTS = [load_contract(name) for name in contract_names()]
METHODS = [(contract, method) for contract in CONTRACTS for method in contract.methods]
REASONS = [(contract, reason) for contract in CONTRACTS for reason in contract.reasons]


def explained(*words: str) -> dict[str, Any]:
    """What `explain` prints as JSON, which fits its schema."""
    done = CliRunner().invoke(app, ["explain", *words, "--format", "json"])
    assert done.exit_code == 0, done.output
    data: dict[str, Any] = json.loads(done.stdout)
    assert schema.explain(schema.published_validator("explain"), data) is None
    return data


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_the_committed_page_of_a_contract_is_what_is_generated(contract: Contract) -> None:
    committed = (DOCS / FOLDER / f"{contract.name}.md").read_text(encoding="utf-8")
    assert committed == page_of(contract), "run `holdfast explain --write docs`"


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_methods_as_json_fit_the_schema_of_lists(contract: Contract) -> None:
    done = CliRunner().invoke(app, ["list", "methods", "--contract", contract.name, "--format", "json"])
    data = json.loads(done.stdout)
    assert schema.explain(schema.published_validator("list"), data) is None
    assert [row["method"] for row in data["rows"]] == list(contract.methods)


@pytest.mark.parametrize(("contract", "name"), METHODS, ids=lambda part: getattr(part, "name", part))
def test_a_method_is_explained_with_schemas_that_stand_alone(contract: Contract, name: str) -> None:
    data = explained(f"{contract.name}/{name}")
    method = contract.methods[name]
    assert (data["method"], data["capability"], list(data["reasons"])) == (name, name, list(method.reasons))
    for part, due in (
        ("args", method.args.schema),
        ("result", None if method.result is None else method.result.schema),
    ):
        assert (data[part] is None) is (due is None)
        if due is not None:
            # Every definition that it refers to is in it.
            schema.check_schema(data[part], name=part)
            assert {key: value for key, value in data[part].items() if key != "$defs"} == {
                key: value for key, value in due.items() if key != "$defs"
            }
            text = json.dumps(data[part])
            assert all(f"#/$defs/{each}" in text for each in data[part].get("$defs", {}))
            assert text.count("#/$defs/") == 0 or data[part]["$defs"]


@pytest.mark.parametrize(("contract", "name"), REASONS, ids=lambda part: getattr(part, "name", part))
def test_a_reason_is_explained_with_its_methods(contract: Contract, name: str) -> None:
    data = explained(name, "--contract", contract.name)
    assert (data["reason"], data["meaning"]) == (name, contract.reasons[name].meaning)
    assert data["methods"] == [method.name for method in contract.methods.values() if name in method.reasons]
    assert data["data"] == list(contract.reasons[name].data)


def test_a_reason_names_the_cases_that_expect_it() -> None:
    cases = explained("calyx-replay/REPLAY_DUPLICATE")["cases"]
    contract = load_contract("calyx-replay")
    assert cases
    assert set(cases) <= {case.id for case in contract.cases} | {fault.id for fault in contract.faults}


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_a_contract_is_explained_with_its_relations_and_parameters(contract: Contract) -> None:
    data = explained(contract.name)
    assert list(data["methods"]) == list(contract.methods)
    assert set(data["parameters"]) == set(contract.parameters)
    assert set(data["relations"] or {}) == set(contract.relations)


@pytest.mark.parametrize("words", [("replay_key",), ("accept", "--contract", "calyx-replay"), ("calyx-replay/accept",)])
def test_a_method_of_one_contract_needs_no_contract(words: tuple[str, ...]) -> None:
    assert explained(*words)["method"] == words[0].rpartition("/")[2]


@pytest.mark.parametrize("name", ["REQUEST_MALFORMED", "state", "recieve", "hx-sync/accept", "calyx-replay/"])
def test_a_name_of_several_contracts_or_of_none_is_refused_with_what_is_near(name: str) -> None:
    done = CliRunner().invoke(app, ["explain", name])
    assert done.exit_code == 64
    assert "calyx-replay/state" in done.output or name != "state"


def test_the_end_of_a_clause_id_will_do_and_its_case_is_explained_with_the_values_that_it_uses() -> None:
    assert explained("RP-03")["clause"] == "RS4A-RP-03"
    (case, *_) = (each["case"] for each in explained("RP-03")["cases"] if "by-another-process" in each["case"])
    shown = explained(case)
    assert (shown["case"], set(shown["script"]["values"])) == (case, {"window", "grant", "submission"})


def test_pages_are_written_into_a_folder_that_exists_only(tmp_path: Path) -> None:
    assert CliRunner().invoke(app, ["explain", "--write", str(tmp_path / "docs")]).exit_code == 64
    assert CliRunner().invoke(app, ["explain", "--contract", "jcs", "--write", str(tmp_path)]).exit_code == 0
    assert (tmp_path / FOLDER / "jcs.md").read_text(encoding="utf-8") == page_of(load_contract("jcs"))


def test_the_matrix_of_a_contract_has_a_reason_for_each_cell_without_a_case() -> None:
    data = explained("calyx-replay", "--matrix")
    assert data["cells"] == len(data["matrix"])
    assert all(one["by"] or one["exception"] or one["open"] for one in data["matrix"])
    assert {one["filled"] for one in data["matrix"]} == {None}


def test_the_matrix_is_of_one_contract_that_has_one() -> None:
    assert CliRunner().invoke(app, ["explain", "--matrix"]).exit_code == 64
    assert CliRunner().invoke(app, ["explain", "accept", "--matrix"]).exit_code == 64
    assert CliRunner().invoke(app, ["explain", "jcs", "--evidence", "run.jsonl"]).exit_code == 64


def test_the_categories_of_vectors_are_listed_and_fit_the_schema() -> None:
    done = CliRunner().invoke(app, ["list", "vectors", "--format", "json"])
    assert done.exit_code == 0
    data = json.loads(done.stdout)
    assert schema.explain(schema.published_validator("list"), data) is None
    assert [row["category"] for row in data["rows"]] == [each.value for each in Category]


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_a_clause_its_cases_and_its_bugs_are_where_the_explanation_says(contract: Contract) -> None:
    named = set()
    for clause in contract.clauses.values():
        data = clause_data(contract, clause)
        named.add((clause.id, data["where"]))
        named |= {(each["case"].rpartition("/")[2], each["where"]) for each in data["cases"]}
        named |= {(each["mutant"], each["where"]) for each in data["mutants"]}
    for what, where in named:
        path, _, line = where.rpartition(":")
        text = "".join(Path(path).read_text(encoding="utf-8").splitlines()[int(line) - 1 :][:40])
        # A sweep is a function that is made, and stands nowhere under its name.
        assert what in text or what.replace("-", "_") in text or path.endswith("neighbours.py"), where
    assert len(named) > len(contract.clauses)
