"""The contracts of import-linter name every member of the harness, so that a new one is forbidden too."""

from __future__ import annotations

import pkgutil
import tomllib
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest

from bench.house import PAGE, picture
from holdfast import conformance

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("member", ["faults", "fitness"])
def test_a_part_that_may_not_use_the_harness_may_use_no_member_of_it(member: str) -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = (
        each for each in linter["contracts"] if each.get("source_modules") == [f"holdfast.conformance.{member}"]
    )
    members = {f"holdfast.conformance.{found.name}" for found in pkgutil.iter_modules(conformance.__path__)}
    forbidden = {name for name in contract["forbidden_modules"] if name.startswith("holdfast.conformance.")}
    assert forbidden == members - {f"holdfast.conformance.{member}"}


def test_no_file_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph("holdfast", exclude_type_checking_imports=True, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 500
    # Raises CycleError, with the files.
    TopologicalSorter(imports).prepare()


def test_the_picture_of_the_house_is_what_the_imports_say() -> None:
    assert picture() in PAGE.read_text(encoding="utf-8"), "run `python -m bench.house`"
