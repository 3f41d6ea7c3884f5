"""The lists of commands: each describes its command, and no command waits for the modules of another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import holdfast
from holdfast.conformance.cli.commands import _Commands, app
from holdfast.conformance.cli.group import Entry, load
from holdfast.conformance.cli.vectors.commands import _Sdk, _Vectors
from tests import warm
from tests.hostile.verify import environment

ENTRIES = [(name, entry) for group in (_Commands, _Vectors, _Sdk) for name, entry in group.entries.items()]


@pytest.mark.parametrize(("name", "entry"), ENTRIES, ids=[entry.where for _, entry in ENTRIES])
def test_a_list_of_commands_says_what_the_help_of_the_command_begins_with(name: str, entry: Entry) -> None:
    command = load(name, entry)
    first = " ".join(command.help.split("\n\n")[0].split())
    assert entry.summary == first


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from holdfast.conformance.cli.outermost.run import run; sys.argv = ['holdfast', '--help']; run(); "
        "print({'pytest', 'hypothesis', 'jsonschema_rs', 'yaml', 'psycopg', 'numpy', 'holdfast.specs', "
        "'holdfast.conformance.run', 'holdfast.conformance.faults'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "set()"
    assert "verify" in done.stdout


@pytest.mark.parametrize("words", [["--version"], ["--version", "verify"]])
def test_the_version_is_printed(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout.split()) == (0, ["holdfast", holdfast.__version__])


def test_what_a_library_logs_is_no_output_of_a_command() -> None:
    code = (
        "import logging, sys; from holdfast.conformance.cli.outermost.run import run; "
        "sys.argv = ['holdfast', '--help']; run(); logging.exception('so'); logging.getLogger('py4j').error('so')"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""


def test_a_command_that_cannot_be_loaded_is_a_fault_of_the_kit() -> None:
    code = (
        "import sys; sys.modules['holdfast.conformance.gate.decision'] = None; sys.argv = ['holdfast', 'gate', 'x']; "
        "from holdfast.conformance.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 20
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "due"),
    [
        (["verfy", "reference"], "verify"),
        (["vectors", "verfy"], "verify"),
        (["verify", "--contrct", "jcs"], "--contract"),
        (["verify", "--no-fault", "reference"], "--no-faults"),
        (["verify", "reference", "--contract", "jsc"], "jcs"),
        (["gate", "run.jsonl", "--require", "jsc"], "jcs"),
        (["explain", "JCS-LIT-1"], "JCS-LIT-01"),
        (["explain", "jcs/ver-03/a-lone-surogate"], "jcs/ver-03/a-lone-surrogate"),
        (["new-adapter", "--contract", "jcs", "--lang", "pyton"], "python"),
        (["crash", "--layer", "powr", "--", "true"], "power"),
    ],
)
def test_the_nearest_known_name_is_given_for_an_unknown_one(words: list[str], due: str, tmp_path: Path) -> None:
    done = warm.run(words, cwd=tmp_path, env=environment(tmp_path), limit=60.0)
    assert done.returncode == 64
    assert f"(did you mean {due}?)" in done.stderr


def test_a_name_that_is_like_none_is_not_given_another(tmp_path: Path) -> None:
    done = warm.run(["explain", "qqqqqq"], cwd=tmp_path, env=environment(tmp_path), limit=60.0)
    assert done.returncode == 64
    assert "did you mean" not in done.stderr


# What stands twice on a command line is refused: a word that a script appends cannot replace what was asked for.


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
