"""`mutants.yaml`: read, refused where it is wrong, and published as it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.specs.errors import SpecError
from holdfast.specs.loader import read_file
from holdfast.specs.mutants import FILE, Choice, Mutant, Mutants, Patch, load_mutants
from holdfast.specs.registry import contract_names, folder_of
from holdfast.specs.schema import explain, published_validator
from holdfast.specs.yamlfile import read_yaml

TOY = """contract: toy
store: sqlite
unbreakable:
  TOY-01: 'why: "because"'
mutants:
  - name: one
    title: 'First: a bug'
    must_fail: {TOY-02: fail_open, TOY-03: state_leak}
  - name: other
    title: 'yes'
    must_fail: {TOY-04: fail_open}
    faults:
      toy/faults/kill: lost_durability
    store: postgres
    patch:
      - at: toy.store
        was: "True"
        now: |
          if x:
              return
choices:
  - name: third
    permitted: or twice
    clauses: [TOY-02]
no_choice:
  TOY-03: it permits nothing
"""
LEAK = "TOY-03: state_leak}"
READ = Mutants(
    "toy",
    "sqlite",
    {"TOY-01": 'why: "because"'},
    (
        Mutant("one", "First: a bug", {"TOY-02": "fail_open", "TOY-03": "state_leak"}),
        Mutant(
            "other",
            "yes",
            {"TOY-04": "fail_open"},
            {"toy/faults/kill": "lost_durability"},
            "postgres",
            listed=(Patch("toy.store", "True", "if x:\n    return\n"),),
        ),
    ),
    (Choice("third", "or twice", ("TOY-02",)),),
    {"TOY-03": "it permits nothing"},
)


def put(folder: Path, text: str) -> Path:
    """The file of the contract `toy` with this text."""
    path = folder / "toy" / FILE
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    return path


def test_a_file_is_read_with_all_its_members(tmp_path: Path) -> None:
    assert read_file(put(tmp_path, TOY), "planted", Mutants, "toy") == READ


@pytest.mark.parametrize(
    ("short", "now"),
    [
        ({"now": "b"}, "b"),
        ({"before": "x\n"}, "x\na"),
        ({"after": "x\ny\n"}, "a\nx\ny"),
        ({"before": "x", "after": "y"}, "x\na\ny"),
    ],
)
def test_a_patch_of_one_change_needs_no_list_and_names_what_it_adds(short: dict[str, Any], now: str) -> None:
    bug = Mutant("one", "a bug", {"TOY-02": "fail_open"}, at="toy.store", was="a", **short)
    assert [(patch.at, patch.was, patch.text) for patch in bug.patch] == [("toy.store", "a", now)]


@pytest.mark.parametrize("name", contract_names())
def test_a_shipped_file_fits_the_published_schema(name: str) -> None:
    assert explain(published_validator("planted"), read_yaml(folder_of(name) / FILE)) is None


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("fail_open", "open"),
        ("title: 'First", "titel: 'First"),
        ("contract: toy", "contract: other"),
        ("TOY-04", "toy-04"),
        ("name: one", "name: One"),
        ("title: 'yes'", "title: ''"),
        # A change that is none, or two.
        (LEAK, f"{LEAK}\n    at: toy.store\n    was: a"),
        (LEAK, f"{LEAK}\n    at: toy.store\n    was: a\n    now: b\n    after: c"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_name(tmp_path: Path, right: str, wrong: str) -> None:
    path = put(tmp_path, TOY.replace(right, wrong))
    with pytest.raises(SpecError, match=FILE):
        read_file(path, "planted", Mutants, "toy")


def test_a_contract_without_the_file_has_no_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SPECS", str(Path(__file__).parents[1] / "toycontract"))
    assert load_mutants("toy") == Mutants("toy")
