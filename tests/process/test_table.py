"""Whatever goes wrong around a command, and whenever it is ended: a clear end, and nothing that stays behind."""

from __future__ import annotations

import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hostile.verify import holdfast, temp_folder
from tests.process.table import COMMANDS, DOCUMENTED, HONEST, Around, Entry, due, entries, prepare, run

# The moments of the signals hang on it; `--holdfast-seed` would be one more thing to know.
SEED = 15
TABLE = entries(SEED)
# What is tried by default: these, because each once went wrong, and some more by chance.
ALWAYS = {
    ("verify", Around.JANITOR), ("verify", Around.FULL), ("list", Around.PIPE), ("explain", Around.ASCII),
    ("crash-kill", Around.GONE),
}  # fmt: skip
SOME = 3


def _by_default() -> set[Entry]:
    cheap = [entry for entry in TABLE if not COMMANDS[entry.command].sweep and COMMANDS[entry.command].lasts <= 4]
    signals = [entry for entry in cheap if entry.number is not None and COMMANDS[entry.command].writes]
    return {
        *(entry for entry in cheap if entry.number is None and (entry.command, entry.around) in ALWAYS),
        *random.Random(SEED).sample(signals, SOME),
    }


DEFAULT = _by_default()


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evidence of a run in which everything conforms."""
    folder = tmp_path_factory.mktemp("sound")
    with temp_folder() as temp:
        ended = holdfast("verify", "--contract", "toy", "--evidence", "run.jsonl", *HONEST, temp=temp, cwd=folder)
    assert ended.returncode == 0, ended.stderr
    return folder / "run.jsonl"


@pytest.mark.parametrize(
    "entry",
    [pytest.param(each, id=each.name, marks=() if each in DEFAULT else pytest.mark.sweep) for each in TABLE],
)
def test_an_entry_of_the_table(entry: Entry, sound: Path, tmp_path: Path) -> None:
    prepare(tmp_path, sound)
    ended = run(entry, tmp_path)
    said = f"{ended.status}\n{ended.out[-2000:]}\n{ended.err[-4000:]}"
    if (entry.command, entry.number) != ("reference", signal.SIGINT):
        assert "Traceback (most recent call last)" not in ended.err, said
    assert "Exception ignored" not in ended.err, said
    assert ended.status in due(entry, ended), said
    if ended.status > 0 and entry.around is not Around.ERRORS_FULL:
        assert ended.err or ended.out, "it ended without a word"
    if COMMANDS[entry.command].writes:
        assert acceptable(tmp_path) is (ended.status == 0 or _complete(entry)), said


def _complete(entry: Entry) -> bool:
    """Whether the run itself is not touched by what is wrong: its evidence is whole, only its words are lost."""
    whole = COMMANDS[entry.command].good == 0
    return whole and entry.around in (Around.FULL, Around.PIPE, Around.CLOSED)


def acceptable(cwd: Path) -> bool:
    """Whether the gate would open for what was written."""
    with temp_folder() as temp:
        words = ("gate", "run.jsonl", "--require", "toy")
        return holdfast(*words, temp=temp, cwd=cwd).returncode == 0


def test_every_status_of_the_table_is_documented() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "verdicts.md").read_text(encoding="utf-8")
    assert all(f"{status}" in text for status in DOCUMENTED)


def test_help_that_cannot_be_read_is_no_success(tmp_path: Path) -> None:
    with Path("/dev/full").open("ab") as full:
        words = [sys.executable, "-P", "-m", "conformance.cli", "--help"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, check=False)
    assert done.returncode == 12
    assert b"Traceback" not in done.stderr
