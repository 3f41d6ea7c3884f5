"""`matrix.yaml`: which cells there are, what the linter refuses, and that the file is published as it is read."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from holdfast.specs import Contract, load_contract
from holdfast.specs.cells import cells_of, coverage, covered, fitted, matrix_problems, rows_of
from holdfast.specs.loader import contract_folders, contract_names
from holdfast.specs.matrix import FILE, Matrix, Reasoned, Row, load_matrix, written
from holdfast.specs.mutants import Mutant, Mutants
from holdfast.specs.schema import explain, published_validator
from holdfast.specs.yamlfile import read_yaml
from tests.specs.conftest import Spoilt

CASE = "toy/once/a-second-put-of-a-key-is-refused"
SUITE = {"toy/suite/history": ("TOY-01",)}
WITH = [name for name in contract_names() if (contract_folders()[name] / FILE).exists()]


@pytest.fixture
def contract(toy: Spoilt) -> Contract:
    """The toy contract."""
    return toy.read()


def full(contract: Contract, **changes: Any) -> Matrix:
    """A matrix in which one case fills every cell of the one operation."""
    case = contract.cases[0].id
    row = Row(**changes)
    due = cells_of(contract, "put", row, horizon=None)
    held = {*row.left(), *row.excepted(), *row.cells}
    cells = {**row.cells, **{name: (case,) for name in due if name not in held}}
    unbounded = {
        each.name: "a toy" for each in contract.parameters.values() if isinstance(each.value, int) or each.unit
    }
    return Matrix("toy", unbounded=unbounded, operations={"put": structs.replace(row, cells=cells)})


def problems(contract: Contract, matrix: Matrix, generators: Set[str] = frozenset(), *mutants: Mutant) -> list[str]:
    """What the linter finds."""
    return list(
        matrix_problems(contract, matrix, mutants=Mutants("toy", mutants=mutants), suite=SUITE, generators=generators)
    )


def one(found: list[str], *words: str) -> None:
    """Exactly one problem, with these words."""
    assert len(found) == 1, found
    assert all(word in found[0] for word in words), found


def test_nothing_is_found_in_a_matrix_without_a_blank(contract: Contract) -> None:
    assert problems(contract, full(contract)) == []


def test_a_blank_cell_is_found(contract: Contract) -> None:
    matrix = full(contract)
    row = matrix.operations["put"]
    kept = {name: ids for name, ids in row.cells.items() if name != "volume"}
    one(
        problems(contract, structs.replace(matrix, operations={"put": structs.replace(row, cells=kept)})),
        "volume",
        "blank",
    )


def test_an_operation_without_a_row_is_found(contract: Contract) -> None:
    found = problems(contract, structs.replace(full(contract), operations={}))
    one(found, "put", "no row")


def test_an_open_cell_needs_its_reason(contract: Contract) -> None:
    assert problems(contract, full(contract, open=(Reasoned("not yet", ("volume",)),))) == []
    one(problems(contract, full(contract, open=(Reasoned("", ("volume",)),))), "volume", "no reason")


def test_a_cell_that_does_not_apply_is_found(contract: Contract) -> None:
    found = problems(contract, full(contract, declared=("timeless",), exceptions=(Reasoned("no", ("clock-back",)),)))
    one(found, "clock-back", "does not apply")


def test_a_case_that_does_not_exist_fills_nothing(contract: Contract) -> None:
    one(problems(contract, full(contract, cells={"volume": ("toy/once/nothing",)})), "nothing", "does not exist")


def test_a_case_that_does_not_call_the_operation_fills_nothing(toy: Spoilt) -> None:
    toy.add("a-second-put-of-a-key-is-refused", given=[], then=[], when=[{"observe": "state"}], twin=None)
    del toy.once["cases"][-1]["twin"]
    toy.once["cases"][-1]["kind"] = "behaviour"
    contract = toy.read()
    one(problems(contract, full(contract, cells={"volume": ("toy/once/another",)})), "does not call it")


def test_a_generator_alone_needs_a_bug_that_dies_by_it(contract: Contract) -> None:
    generated = {"volume": ("toy/suite/history",)}
    bug = Mutant("forgets", "Forgets", {"TOY-01": "fail_open"})
    other = Mutant("loses", "Loses", {"TOY-02": "fail_open"})
    alone = full(contract, cells=generated)
    one(problems(contract, alone, SUITE.keys(), bug), "volume", "generators")
    shown = full(contract, cells=generated, mutants={"volume": ("forgets",)})
    assert problems(contract, shown, SUITE.keys(), bug) == []
    wrong = full(contract, cells=generated, mutants={"volume": ("loses",)})
    one(problems(contract, wrong, SUITE.keys(), bug, other), "volume", "generators")


def test_a_cell_without_a_case_that_there_is_becomes_open_and_what_does_not_apply_leaves(contract: Contract) -> None:
    exceptions = (Reasoned("no clock", ("clock-back",)), Reasoned("not now", ("retry-here",)))
    row = Row(cells={"volume": (CASE, "gone"), "kill": ("gone",), "no-cell": (CASE,)}, exceptions=exceptions)
    matrix = fitted(contract, Matrix("toy", operations={"put": structs.replace(row, declared=("timeless",))}), {CASE})
    found = matrix.operations["put"]
    assert found.cells == {"volume": (CASE,)}
    assert found.excepted() == {"retry-here": "not now"}
    assert {*found.cells, *found.excepted(), *found.left()} == {*cells_of(contract, "put", found, horizon=None)}
    assert "kill" in found.left()


def test_a_cell_counts_where_one_of_its_cases_conforms(contract: Contract) -> None:
    row = Row(cells={"volume": (CASE, "toy/suite/history"), "kill": ("toy/suite/history",)})
    matrix = fitted(contract, Matrix("toy", operations={"put": row}), {CASE, "toy/suite/history"})
    assert covered(matrix, {CASE}) == {("put", "volume")}
    assert f" 1 of {len(cells_of(contract, 'put', row, horizon=None))} cells" in coverage(contract, matrix, {CASE})
    assert covered(matrix, set()) == set()


def test_rivals_are_rivals_of_each_other(contract: Contract) -> None:
    found = problems(contract, full(contract, rivals=("take",)))
    assert any("its rival take is no row" in problem for problem in found)


def test_what_changes_nothing_is_not_killed_and_what_has_no_store_loses_none() -> None:
    contract = load_contract("rs4a-replay")
    reading = cells_of(contract, "resolve_status", Row(), horizon=None)
    storeless = cells_of(contract, "register", Row(declared=("storeless",)), horizon=None)
    assert "kill" not in reading
    assert "store-missing" in reading
    assert "store-missing" not in storeless
    assert "inert REPLAY_DUPLICATE" in storeless


def test_every_leaf_reason_and_rival_has_a_cell_of_its_own() -> None:
    contract = load_contract("rs4a-replay")
    cells = cells_of(contract, "register", Row(rivals=("compensate",)), horizon=None)
    assert {"neighbour request.run_id", "format request.run_id", "inert COMMIT_FAILED", "beside compensate"} <= {*cells}


@pytest.mark.parametrize("name", WITH)
def test_a_file_is_read_and_written_as_it_stands(name: str) -> None:
    path: Path = contract_folders()[name] / FILE
    matrix = load_matrix(name)
    assert matrix is not None
    assert path.read_text(encoding="utf-8") == written(matrix), "run `holdfast lint specs --update`"
    assert explain(published_validator("matrix"), read_yaml(path)) is None
    assert rows_of(load_contract(name), matrix).keys() == matrix.operations.keys()
