"""The planted bugs: each is a patch that fits the reference."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import yaml

from holdfast.reference_impl import altered
from holdfast.reference_impl.registry import contract_names
from holdfast.specs.mutants import declared_names, load_mutants
from holdfast.specs.registry import Installed, Package
from holdfast.specs.schema import explain, published_validator
from tests import warm

ROOT = Path(__file__).resolve().parents[2]


def test_names_are_unique() -> None:
    names = declared_names()
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("name", contract_names())
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
    here = Package("shelf", tmp_path / "shelf")
    monkeypatch.setattr(altered, "contracts", lambda: {"shelf": Installed("shelf", tmp_path, here, here, here)})

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
    done = warm.cold(warm.REFERENCE, "mutants", "--json", cwd=ROOT, check=True)
    assert explain(published_validator("mutants"), json.loads(done.stdout)) is None
