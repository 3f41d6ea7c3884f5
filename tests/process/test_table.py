"""For every error around a command and every moment of its end: a clear end, and no leftovers."""

from __future__ import annotations

import os
import random
import re
import signal
from pathlib import Path

import pytest

from holdfast.conformance.verdict import Exit
from tests.hostile.verify import assert_nothing_remains, holdfast, temp_folder
from tests.process.table import COMMANDS, HONEST, Around, Ended, Entry, due, entries, prepare, run

# The moments of the signals hang on it; `--holdfast-seed` would be one more thing to know.
SEED = 15
TABLE = entries(SEED)
# What is tried by default: these, because each once went wrong, and some more by chance.
ALWAYS = {
    ("verify", Around.JANITOR), ("verify", Around.FULL), ("gate", Around.PIPE), ("gate", Around.ASCII),
    ("crash-kill", Around.GONE), ("help", Around.FULL),
}  # fmt: skip
SOME = 2
# In this last part of a run its footer may be written.
LATE = 0.3


# Words that are bad by themselves, with the status that they end with: nothing is run.
WORDS: dict[str, tuple[int, tuple[str, ...]]] = {
    "no-launcher": (64, ("verify", "--contract", "toy", "--launcher", "", *HONEST)),
    "blank-launcher": (64, ("verify", "--contract", "toy", "--launcher", " ", *HONEST)),
    "launcher-without-program": (64, ("verify", "--contract", "toy", "--launcher", "''", *HONEST)),
    "no-text": (13, ("verify", "--contract", "toy", "--", "\udcff")),
    "evidence-in-a-file": (64, ("verify", "--contract", "toy", "--evidence", "file/run.jsonl", *HONEST)),
    "evidence-is-a-folder": (64, ("verify", "--contract", "toy", "--evidence", "folder", *HONEST)),
    "evidence-is-a-loop": (64, ("verify", "--contract", "toy", "--evidence", "loop", *HONEST)),
    "allure-is-a-file": (64, ("verify", "--contract", "toy", "--alluredir", "file", *HONEST)),
    "junit-is-a-folder": (64, ("verify", "--contract", "toy", "--junitxml", "folder", *HONEST)),
    "junit-is-a-loop": (64, ("verify", "--contract", "toy", "--junitxml", "loop", *HONEST)),
    "gate-of-a-pipe": (64, ("gate", "pipe", "--require", "toy")),
    "gate-of-an-endless-file": (64, ("gate", "/dev/zero", "--require", "toy")),
    "gate-of-a-folder": (64, ("gate", "folder", "--require", "toy")),
    "gate-of-a-loop": (64, ("gate", "loop", "--require", "toy")),
    "workdir-is-a-file": (64, ("verify", "--contract", "toy", "--workdir", "file", *HONEST)),
    "out-is-a-file": (64, ("crash", "--out", "file", "--", "true")),
    "proof-is-a-pipe": (64, ("fitness", "keys.sqlite", "--json", "pipe")),
    "page-is-a-pipe": (64, ("fitness", "keys.sqlite", "--html", "pipe")),
    "policy-is-a-pipe": (64, ("fitness", "keys.sqlite", "--policy", "pipe")),
    "expected-failures-are-a-pipe": (64, ("verify", "--contract", "toy", "--xfail", "pipe", *HONEST)),
    "proof-in-a-file": (64, ("fitness", "keys.sqlite", "--json", "file/proof.json")),
}
CHEAP = {"no-launcher", "no-text", "gate-of-a-loop"}


def _words_marked(name: str) -> tuple[pytest.MarkDecorator, ...]:
    return () if name in CHEAP else (pytest.mark.sweep,)


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
    if COMMANDS[entry.command].writes and not _is_late(entry, ended):
        assert acceptable(tmp_path) is (ended.status == 0 or _complete(entry)), said


def _complete(entry: Entry) -> bool:
    """Whether the run itself is not touched by what is wrong: its evidence is whole, only its words are lost."""
    whole = COMMANDS[entry.command].good == 0
    return whole and entry.around in (Around.FULL, Around.PIPE, Around.CLOSED)


def _is_late(entry: Entry, ended: Ended) -> bool:
    """Whether the signal came when the evidence was complete, which a process that is killed cannot say."""
    if entry.number is signal.SIGKILL:
        return COMMANDS[entry.command].good == 0 and entry.moment > LATE
    return "the evidence was complete" in ended.err


def acceptable(cwd: Path) -> bool:
    """Whether the gate would open for what was written."""
    with temp_folder() as temp:
        words = ("gate", "run.jsonl", "--require", "toy")
        return holdfast(*words, temp=temp, cwd=cwd).returncode == 0


@pytest.mark.parametrize("name", [pytest.param(each, marks=_words_marked(each)) for each in WORDS])
def test_words_that_cannot_be_used_are_noticed_before_anything_runs(name: str, tmp_path: Path) -> None:
    status, words = WORDS[name]
    prepare(tmp_path, None)
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "folder").mkdir()
    (tmp_path / "loop").symlink_to("loop")
    os.mkfifo(tmp_path / "pipe")
    with temp_folder() as temp:
        ended = holdfast(*words, temp=temp, cwd=tmp_path, limit=30)
        assert_nothing_remains(temp)
    assert ended.returncode == status, ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert (tmp_path / "file").read_text(encoding="utf-8") == "mine"
    assert (tmp_path / "pipe").is_fifo()
    if status == 64:
        assert not list(tmp_path.rglob("run.jsonl*"))


def test_the_statuses_that_are_documented_are_those_of_the_code() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "verdicts.md").read_text(encoding="utf-8")
    assert {int(status) for status in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)} == {int(code) for code in Exit}
