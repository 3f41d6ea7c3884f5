"""The planted bugs: one change each, and each of them declared."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.reference_impl import altered
from holdfast.reference_impl.planting import Bug, all_bugs
from holdfast.reference_impl.registry import contract_names, package_of
from holdfast.specs.mutants import load_mutants
from holdfast.specs.schema import explain, published_validator

ROOT = Path(__file__).resolve().parents[2]
BUGS = all_bugs()
CONTRACTS = contract_names()


def reference(contract: str) -> Any:
    """The factory without a bug."""
    return import_module(f"{package_of(contract)}.factory").REFERENCE


def most_methods(contract: str) -> int:
    """How many methods a bug may override. A contract whose bugs need more than one says so beside them."""
    most: int = getattr(import_module(f"{package_of(contract)}.mutants"), "MOST_METHODS", 1)
    return most


def sound(bug: type[Any]) -> type[Any]:
    """The class of the reference that a bug changes, where the factory leaves it to be loaded with its store."""
    return next(one for one in bug.__mro__ if ".mutants." not in one.__module__)


def overridden(bug: type[Any], honest: type[Any]) -> set[str]:
    """The methods of the honest class that the bug, or a class between them, has in another form."""
    between = bug.__mro__[: bug.__mro__.index(honest)]
    return {name for one in between for name in vars(one) if not name.startswith("__") and hasattr(honest, name)}


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_bug_changes_one_method_or_one_loaded_value(bug: Bug) -> None:
    whole = reference(bug.contract)
    changed = bug.apply(whole)
    parts = [f.name for f in fields(whole) if getattr(changed, f.name) is not getattr(whole, f.name)]
    if parts == ["loaded"]:
        before, after = whole.settings({}), changed.settings({})
        values = [f.name for f in fields(before) if getattr(before, f.name) != getattr(after, f.name)]
        assert len(values) == 1
        return
    methods = [
        overridden(getattr(changed, part), getattr(whole, part) or sound(getattr(changed, part))) for part in parts
    ]
    assert all(methods), "a part is replaced by one that does the same"
    assert 1 <= sum(map(len, methods)) <= most_methods(bug.contract), methods


def test_names_are_unique() -> None:
    assert len({bug.name for bug in BUGS}) == len(BUGS)


@pytest.mark.parametrize("name", CONTRACTS)
def test_every_bug_is_declared_and_every_declared_one_is_there(name: str) -> None:
    declared = [each.name for each in load_mutants(name).planted if not each.patch]
    assert sorted(declared) == sorted(bug.name for bug in BUGS if bug.contract == name)


@pytest.mark.parametrize("name", CONTRACTS)
def test_the_patch_of_every_bug_fits_the_reference(name: str) -> None:
    assert [problem for each in load_mutants(name).planted if (problem := altered.problem_of(each.name))] == []


SOURCE = """class Store:
    def put(self, key):
        if key is None:
            raise ValueError
        return key or key


def put(key):
    return key
"""


@pytest.fixture
def planting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """Plants patches in a small module; gives the name of the bug."""
    (tmp_path / "shelf").mkdir()
    (tmp_path / "shelf" / "store.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.setattr(altered, "_ROOT", tmp_path)
    monkeypatch.setattr(altered, "contract_folders", lambda: {"shelf": tmp_path})

    def plant(*patches: Mapping[str, str]) -> str:
        altered.patched.cache_clear()
        bugs = [{"name": "other", "title": "x"}, {"name": "a-bug", "patch": [*patches]}, {"name": "a-bug-2"}]
        (tmp_path / "mutants.yaml").write_text(yaml.safe_dump({"mutants": bugs}, sort_keys=False), encoding="utf-8")
        return "a-bug"

    return plant


@pytest.mark.parametrize(
    ("patch", "problem"),
    [
        ({"at": "shelf.store.Store.put", "was": "key or key", "now": "None"}, None),
        ({"at": "shelf.store.put", "was": "return key", "now": "return None"}, None),
        ({"at": "shelf.store.Store.put", "was": "if key is None:\n    raise ValueError", "now": "pass"}, None),
        ({"at": "shelf.store.Store.put", "was": "key or", "now": "key or key or"}, None),
        ({"at": "shelf.store.Store.put", "was": "key", "now": "None"}, "4 times"),
        ({"at": "shelf.store.Store.put", "was": "nothing like it", "now": "None"}, "0 times"),
        ({"at": "shelf.store.Store.get", "was": "key", "now": "None"}, "get is defined 0 times"),
        ({"at": "shelf.other.Store", "was": "key", "now": "None"}, "expected a module"),
        ({"at": "shelf.store.put", "was": "return key", "now": "return ("}, "never closed"),
        ({"at": "shelf.store.put", "was": "return key", "now": "return key"}, "changes nothing"),
    ],
)
def test_a_patch_has_to_find_its_place_once_and_to_leave_python(
    patch: Mapping[str, str], problem: str | None, planting: Callable[..., str]
) -> None:
    found = altered.problem_of(planting(patch))
    assert found is None if problem is None else problem in str(found)


def test_two_patches_of_one_place_are_a_problem_and_of_two_places_none(planting: Callable[..., str]) -> None:
    first = {"at": "shelf.store.Store.put", "was": "key is None", "now": "key"}
    inside = {"at": "shelf.store.Store.put", "was": "is None:", "now": "== 0:"}
    beside = {"at": "shelf.store.Store.put", "was": "key or key", "now": "None"}
    assert altered.problem_of(planting(first, beside)) is None
    assert "change one place" in str(altered.problem_of(planting(first, inside)))


def test_a_patch_of_several_lines_keeps_the_margin_of_its_function(
    tmp_path: Path, planting: Callable[..., str]
) -> None:
    bug = planting(
        {
            "at": "shelf.store.Store.put",
            "was": "key is None:\n    raise",
            "now": "key:\n    raise",
        }
    )
    (patch,) = altered.patched(bug)
    made = altered.changed((tmp_path / "shelf" / "store.py").read_bytes(), [patch.alteration]).decode()
    assert made == SOURCE.replace("key is None", "key")
    assert patch.lines == ("shelf/store.py", range(2, 6))


def test_the_listing_fits_its_published_schema() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "holdfast.reference_impl", "mutants", "--json"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    assert explain(published_validator("mutants"), json.loads(done.stdout)) is None


@pytest.mark.parametrize("name", [name for name in CONTRACTS if find_spec(f"{package_of(name)}.factory")])
def test_the_reference_itself_carries_no_change(name: str) -> None:
    whole = reference(name)
    assert replace(whole) == type(whole)()
