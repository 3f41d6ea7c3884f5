"""The lists of commands: each describes its command, and no command waits for the modules of another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import holdfast
from holdfast.conformance.cli.commands import GALLERY, SDK, VECTORS, Commands, app
from holdfast.conformance.cli.group import Entry, load
from tests import warm
from tests.hostile.verify import environment

GROUPS = (Commands, GALLERY, SDK, VECTORS)
ENTRIES = [(name, each) for group in GROUPS for name, each in group.entries.items() if isinstance(each, Entry)]


@pytest.mark.parametrize(("name", "entry"), ENTRIES, ids=[entry.where for _, entry in ENTRIES])
def test_a_list_of_commands_says_what_the_help_of_the_command_begins_with(name: str, entry: Entry) -> None:
    command = load(name, entry)
    first = " ".join(command.help.split("\n\n")[0].split())
    assert entry.summary == first


HELP = "from holdfast.conformance.cli.outermost.run import run; sys.argv = ['holdfast', {}'--help']; run()"
EARLIEST = "import holdfast.conformance.cli, holdfast.conformance.cli.outermost.older_runs"


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-P", "-c", f"import sys; {code}"], capture_output=True, text=True)


@pytest.mark.parametrize(
    ("code", "unwanted"),
    [
        (
            HELP.format(""),
            "pytest hypothesis jsonschema_rs yaml psycopg numpy holdfast.specs "
            "holdfast.conformance.run holdfast.conformance.faults",
        ),
        (HELP.format("'vectors', "), "pyspark pyarrow pandas numpy"),
        (HELP.format("'fitness', "), "psycopg"),
        # It sets aside what an older run left.
        (EARLIEST, "typer rich pytest jsonschema_rs specs holdfast.specs holdfast.reports.evidence"),
    ],
)
def test_nothing_is_loaded_that_is_not_needed(code: str, unwanted: str) -> None:
    done = python(f"{code}; print(sorted(set({unwanted.split()}) & set(sys.modules)), file=sys.stderr)")
    assert (done.returncode, done.stderr.strip()) == (0, "[]")
    assert ("--help" in done.stdout) is (code != EARLIEST)


@pytest.mark.parametrize("words", [["--version"], ["--version", "verify"]])
def test_the_version_is_printed(words: list[str]) -> None:
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stdout.split()) == (0, ["holdfast", holdfast.__version__])


def test_what_a_library_logs_is_no_output_of_a_command() -> None:
    done = python(f"import logging; {HELP.format('')}; logging.exception('so'); logging.getLogger('py4j').error('so')")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_command_that_cannot_be_loaded_is_a_fault_of_the_kit() -> None:
    done = python(
        "sys.modules['holdfast.conformance.gate.decision'] = None; sys.argv = ['holdfast', 'gate', 'x']; "
        "from holdfast.conformance.cli import main; main()"
    )
    assert done.returncode == 20
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("ignored", ["", "signal.signal(signal.SIGINT, signal.SIG_IGN)"])
def test_an_interruption_in_a_finaliser_is_not_forgotten(ignored: str) -> None:
    done = python(
        f"""import os, signal, time; from holdfast.conformance import cli; {ignored}
class Finalised:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(20)
def run():
    sys.unraisablehook = cli._unraisable
    one = Finalised()
    del one
    time.sleep(20)
cli._run = run
cli.main()"""
    )
    assert (done.returncode, done.stderr) == (12, "holdfast: interrupted; nothing was proven\n")


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
        # It is like none.
        (["explain", "qqqqqq"], ""),
    ],
)
def test_the_nearest_known_name_is_given_for_an_unknown_one(words: list[str], due: str, tmp_path: Path) -> None:
    done = warm.run(words, cwd=tmp_path, env=environment(tmp_path), limit=60.0)
    assert done.returncode == 64
    assert f"(did you mean {due}?)" in done.stderr if due else "did you mean" not in done.stderr


# What stands twice on a command line is refused: a word that a script appends cannot replace what was asked for.


@pytest.mark.parametrize(
    ("words", "status"),
    [
        # The console script makes 64 of click's own status.
        (["gate", "run.jsonl", "--require", "jcs", "--nonce", "one", "--nonce", "two"], 2),
        (["gate", "run.jsonl", "--require", "jcs", "--commit=one", "--commit", "one"], 2),
        (["gate", "run.jsonl", "--require", "jcs", "--max-age", "1h", "--max-age", "7d"], 2),
        (["verify", "--seed", "a", "--contract", "jcs", "--seed", "b", "reference"], 2),
        (["verify", "--evidence", "a.jsonl", "--evidence", "b.jsonl", "reference"], 2),
        # What may be repeated, or is the adapter's own, may stand twice.
        (["gate", "missing", "--require", "jcs", "--require", "mesh-delivery", "--allow-seed", "--allow-seed"], 64),
        (["verify", "--contract", "nothing", "--seed", "a", "--", "./adapter", "--seed", "b", "--seed", "c"], 64),
    ],
)
def test_an_option_that_takes_one_value_stands_once(words: list[str], status: int) -> None:
    ended = CliRunner().invoke(app, words)
    assert ended.exit_code == status
    assert ("once" in ended.output) is (status == 2)
