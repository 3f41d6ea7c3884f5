"""`mutants.yaml`: read as it is written, refused where it is wrong, and published as it is read."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.specs.errors import SpecError
from holdfast.specs.loader import contract_folders, contract_names
from holdfast.specs.mutants import FILE, Allowed, Choice, Mutant, Mutants, load_mutants, read_mutants, written
from holdfast.specs.schema import explain, published_validator
from holdfast.specs.yamlfile import read_yaml

TOY = Mutants(
    "toy",
    "sqlite",
    {"TOY-01": 'why: "because"'},
    (
        Mutant("one", "First: a bug", {"TOY-02": "fail_open", "TOY-03": "state_leak"}),
        Mutant(
            "other",
            "yes",
            {"TOY-02": "fail_open"},
            (Allowed("it follows", ("TOY-04", "TOY-05")), Allowed("", ("TOY-06",))),
            {"toy/faults/kill": "lost_durability"},
            "postgres",
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


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    assert read_mutants(put(tmp_path, written(TOY))) == TOY


@pytest.mark.parametrize("name", contract_names())
def test_a_shipped_file_fits_the_published_schema_and_is_as_an_update_writes_it(name: str) -> None:
    path = contract_folders()[name] / FILE
    assert explain(published_validator("planted"), read_yaml(path)) is None
    assert written(load_mutants(name)) == path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("fail_open", "open"),
        ("title: 'First", "titel: 'First"),
        ("contract: toy", "contract: other"),
        ("TOY-04", "toy-04"),
        ("name: one", "name: One"),
        ("title: 'yes'", "title: ''"),
    ],
)
def test_a_file_that_is_wrong_is_refused_with_its_name(tmp_path: Path, right: str, wrong: str) -> None:
    path = put(tmp_path, written(TOY).replace(right, wrong))
    with pytest.raises(SpecError, match=FILE):
        read_mutants(path)


def test_a_contract_without_the_file_has_no_mutants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SPECS", str(Path(__file__).parents[1] / "toycontract"))
    assert load_mutants("toy") == Mutants("toy")
