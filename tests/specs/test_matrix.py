"""`matrix.yaml`: which cells there are, what the linter refuses, and that the file is published as it is read."""

from __future__ import annotations

import re
from collections.abc import Set
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs

from holdfast.specs import Contract, load_contract
from holdfast.specs.cells import cells_of, coverage, covered, fitted, matrix_problems, rows_of
from holdfast.specs.matrix import FILE, Matrix, Reasoned, Row, load_matrix, written
from holdfast.specs.mutants import Mutant, Mutants
from holdfast.specs.registry import contract_names, folder_of
from holdfast.specs.schema import explain, published_validator
from holdfast.specs.yamlfile import read_yaml
from tests.specs.conftest import Spoilt

CASE = "toy/once/a-second-put-of-a-key-is-refused"
SUITE = {"toy/suite/history": ("TOY-01",)}
WITH = [name for name in contract_names() if (folder_of(name) / FILE).exists()]


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


VOLUME, BUGS = {"cells": {"volume": ("toy/suite/history",)}}, ("forgets", "loses")


def excepted(place: str, why: str, *cells: str, **more: Any) -> dict[str, Any]:
    """A row with cells that nothing fills."""
    return {place: (Reasoned(why, cells),), **more}


# What a row says, whether a generator alone fills the volume, and the words of the one problem, if any.
ROWS: list[tuple[dict[str, Any], bool, str]] = [
    ({}, False, ""),
    (excepted("open", "not yet", "volume"), False, ""),
    (excepted("open", "", "volume"), False, "volume stands under `open` for no reason"),
    (excepted("exceptions", "no", "clock-back", declared=("timeless",)), False, "clock-back stands .* not apply"),
    ({"cells": {"volume": ("toy/once/nothing",)}}, False, "nothing does not exist"),
    ({"rivals": ("take",)}, False, "its rival take is no row"),
    (VOLUME, True, "volume: only generators"),
    ({**VOLUME, "mutants": {"volume": ("forgets",)}}, True, ""),
    ({**VOLUME, "mutants": {"volume": ("loses",)}}, True, "volume: only generators"),
]


@pytest.mark.parametrize(("row", "generated", "words"), ROWS)
def test_what_is_wrong_in_a_row_is_found(contract: Contract, row: Any, generated: bool, words: str) -> None:
    bugs = [Mutant(name, "A bug", {f"TOY-0{at}": "fail_open"}) for at, name in enumerate(BUGS, 1)]
    found = problems(contract, full(contract, **row), SUITE.keys() if generated else frozenset(), *bugs)
    # A rival that is no row has no cell either.
    assert len(found) == bool(words) or "rivals" in row, found
    assert not words or any(re.search(words, problem) for problem in found), found


def test_a_blank_cell_and_an_operation_without_a_row_are_found(contract: Contract) -> None:
    filled = full(contract).operations["put"]
    kept = {name: ids for name, ids in filled.cells.items() if name != "volume"}
    (cell,) = problems(
        contract, structs.replace(full(contract), operations={"put": structs.replace(filled, cells=kept)})
    )
    assert "volume is blank" in cell
    (row,) = problems(contract, structs.replace(full(contract), operations={}))
    assert "put has no row" in row


def test_a_case_that_does_not_call_the_operation_fills_nothing(toy: Spoilt) -> None:
    toy.add("a-second-put-of-a-key-is-refused", given=[], then=[], when=[{"observe": "state"}], twin=None)
    del toy.once["cases"][-1]["twin"]
    toy.once["cases"][-1]["kind"] = "behaviour"
    contract = toy.read()
    (found,) = problems(contract, full(contract, cells={"volume": ("toy/once/another",)}))
    assert "does not call it" in found


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
    path: Path = folder_of(name) / FILE
    matrix = load_matrix(name)
    assert matrix is not None
    assert path.read_text(encoding="utf-8") == written(matrix), "run `holdfast lint specs --update`"
    assert explain(published_validator("matrix"), read_yaml(path)) is None
    assert rows_of(load_contract(name), matrix).keys() == matrix.operations.keys()
