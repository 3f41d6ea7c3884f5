"""`--seed` of the commands that make rows: a number, or one that is not known before the run."""

from __future__ import annotations

import contextlib
import json
from types import SimpleNamespace
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

import holdfast.vectors.jcs.spark.fingerprints
from holdfast.conformance.cli.console import Format
from holdfast.conformance.cli.vectors import fingerprints as fingerprints_command
from holdfast.conformance.cli.vectors.spark import Seed

app = typer.Typer()


@app.command()
def rows(seed: Seed = 0, format_: Annotated[Format, typer.Option("--format")] = Format.TEXT) -> None:
    """Print the seed."""
    print(json.dumps(seed))


def _seeds(*words: str) -> int:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert isinstance(found, int)
    return found


def test_a_seed_is_a_number() -> None:
    assert [_seeds(), _seeds("--seed", "7"), _seeds("--seed", str(2**53 - 1))] == [0, 7, 2**53 - 1]


def test_a_random_seed_is_another_one_each_time() -> None:
    found = {_seeds("--seed", "random") for _ in range(8)}
    assert len(found) == 8
    assert all(0 <= seed < 2**53 for seed in found)


@pytest.mark.parametrize("given", ["-1", str(2**53), "Random", "1_0", " 1", "1.0", "٣", "", "9" * 5000])
def test_what_is_no_seed_is_told_what_one_is(given: str) -> None:
    done = CliRunner().invoke(app, ["--seed", given])
    assert done.exit_code != 0
    assert "expected a number from 0 to" in done.output


def test_fingerprints_says_of_which_seed_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = SimpleNamespace(spark=None, progress=SimpleNamespace(show=None))
    monkeypatch.setattr(fingerprints_command, "working", lambda *_: contextlib.nullcontext(work))
    monkeypatch.setattr(holdfast.vectors.jcs.spark.fingerprints, "check_fingerprints", lambda *_, **__: [])
    with pytest.raises(typer.Exit):
        fingerprints_command.fingerprints(5, seed=77)
    assert "5 requests, seed 77" in capsys.readouterr().out
