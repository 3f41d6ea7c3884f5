"""`holdfast vectors sdk` where a `runner.toml` is not what it should be."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.conformance.cli.commands import app
from holdfast.vectors.jcs.sdk import manifest

COMMANDS = [["list"], ["build"], ["build", "go-gowebpki"], ["run", "go-gowebpki"]]
SHOW = ["show", "hex:5b5d", "--sdk", "go-gowebpki"]


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A folder of runners, one of which cannot be read."""
    (tmp_path / "cobol").mkdir()
    (tmp_path / "cobol" / "runner.toml").write_text("language =")
    return tmp_path


@pytest.mark.parametrize("words", [*(["sdk", *words] for words in COMMANDS), SHOW], ids=" ".join)
def test_a_runner_of_the_users_own_that_is_damaged_is_a_matter_of_usage(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setenv("HOLDFAST_SDKS", str(damaged))
    done = CliRunner().invoke(app, ["vectors", *words])
    assert done.exit_code == 64, done.output
    assert "cobol/runner.toml: Invalid value" in done.stderr


@pytest.mark.parametrize("words", [*(["sdk", *words] for words in COMMANDS), SHOW], ids=" ".join)
def test_a_runner_of_the_kit_that_is_damaged_is_a_fault_of_the_kit(
    damaged: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    monkeypatch.setattr(manifest, "OURS", damaged)
    done = CliRunner().invoke(app, ["vectors", *words])
    assert done.exit_code == 20, done.output
    assert "holdfast is damaged: install it again" in done.stderr


def test_a_name_that_nobody_has_is_a_matter_of_usage() -> None:
    done = CliRunner().invoke(app, ["vectors", "sdk", "build", "cobol"])
    assert done.exit_code == 64, done.output
    assert "unknown SDK runner 'cobol'" in done.stderr
