"""The lists of commands: each describes its command, and no command waits for the modules of another."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

import holdfast
from holdfast.conformance.cli.commands import _Commands, app
from holdfast.conformance.cli.group import Entry, load
from holdfast.conformance.cli.vectors.commands import _Sdk, _Vectors

ENTRIES = [(name, entry) for group in (_Commands, _Vectors, _Sdk) for name, entry in group.entries.items()]


@pytest.mark.parametrize(("name", "entry"), ENTRIES, ids=[entry.where for _, entry in ENTRIES])
def test_a_list_of_commands_says_what_the_help_of_the_command_begins_with(name: str, entry: Entry) -> None:
    command = load(name, entry)
    first = " ".join(command.help.split("\n\n")[0].split())
    assert entry.summary == first


def test_help_imports_no_command() -> None:
    code = (
        "import sys; from holdfast.conformance.cli.outermost.run import run; sys.argv = ['holdfast', '--help']; run(); "
        "print({'pytest', 'hypothesis', 'jsonschema', 'yaml', 'psycopg', 'numpy', 'holdfast.specs', "
        "'holdfast.conformance.run', 'holdfast.conformance.faults'} & set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "set()"
    assert "verify" in done.stdout


@pytest.mark.parametrize("words", [["--version"], ["--version", "verify"]])
def test_the_version_is_printed(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout.split()) == (0, ["holdfast", holdfast.__version__])


def test_the_package_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "holdfast", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"holdfast {holdfast.__version__}\n"


def test_a_command_that_cannot_be_loaded_is_a_fault_of_the_kit() -> None:
    code = (
        "import sys; sys.modules['holdfast.conformance.gate.decision'] = None; sys.argv = ['holdfast', 'gate', 'x']; "
        "from holdfast.conformance.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 20
    assert done.stderr.count("\n") == 1
