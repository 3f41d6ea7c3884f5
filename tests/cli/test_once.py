"""What stands twice on a command line is refused: a word that a script appends cannot replace what was asked for."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from holdfast.conformance.cli.commands import app


@pytest.mark.parametrize(
    "words",
    [
        ["gate", "run.jsonl", "--require", "jcs", "--nonce", "one", "--nonce", "two"],
        ["gate", "run.jsonl", "--require", "jcs", "--commit=one", "--commit", "one"],
        ["gate", "run.jsonl", "--require", "jcs", "--max-age", "1h", "--max-age", "7d"],
        ["verify", "--seed", "a", "--contract", "jcs", "--seed", "b", "reference"],
        ["verify", "--evidence", "a.jsonl", "--evidence", "b.jsonl", "reference"],
    ],
    ids=" ".join,
)
def test_an_option_that_takes_one_value_stands_once(words: list[str]) -> None:
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 2  # the console script makes 64 of click's own status
    assert "once" in ended.output


@pytest.mark.parametrize(
    "words",
    [
        ["gate", "missing.jsonl", "--require", "jcs", "--require", "mesh-delivery", "--allow-seed", "--allow-seed"],
        ["verify", "--contract", "nothing", "--seed", "a", "--", "./adapter", "--seed", "b", "--seed", "c"],
    ],
    ids=" ".join,
)
def test_what_may_be_repeated_or_is_the_adapters_own_may_stand_twice(words: list[str]) -> None:
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == 64
    assert "once" not in ended.output
