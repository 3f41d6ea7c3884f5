"""`holdfast vectors es6`: what each way of not coming to an end amounts to."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

import holdfast.vectors.jcs.es6.job
import holdfast.vectors.jcs.spark.numbers
from holdfast.conformance.cli.commands import app
from holdfast.conformance.cli.console import Format, PlainConsole
from holdfast.conformance.cli.vectors import streams
from holdfast.conformance.cli.vectors.spark import Seed
from holdfast.specs import schema
from holdfast.vectors.jcs.es6.job import PUBLISHED, Es6Result
from holdfast.vectors.jcs.es6.stream import StreamBrokenError, StreamLostError
from holdfast.vectors.jcs.sdk import manifest
from holdfast.vectors.jcs.spark.fingerprints import Family
from holdfast.vectors.jcs.spark.numbers import Departure, NumberResult
from holdfast.vectors.jcs.spark.tally import Meaning
from tests.cli.test_widths import is_readable

MATCHING = Es6Result(1000, 37_967, PUBLISHED[1000].sha256, 1, 0.5)


@pytest.fixture(autouse=True)
def without_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def working(*_: object) -> Iterator[Any]:
        yield SimpleNamespace(spark=None, progress=SimpleNamespace(show=None))

    monkeypatch.setattr(streams, "working", working)
    monkeypatch.setattr(streams, "target_of", lambda *_: SimpleNamespace(command=None))


def _ends(monkeypatch: pytest.MonkeyPatch, numbers: NumberResult | None, format_: Format = Format.TEXT) -> int:
    monkeypatch.setattr(holdfast.vectors.jcs.es6.job, "run", lambda *_, **__: MATCHING)
    monkeypatch.setattr(holdfast.vectors.jcs.spark.numbers, "verify_numbers", lambda *_, **__: numbers)
    return streams.es6(1000, None if numbers is None else "reference", format_=format_)


@pytest.mark.parametrize(
    ("error", "status", "said"),
    [
        (StreamLostError("nothing came"), 12, "not proven: nothing came"),
        (StreamBrokenError("no join"), 20, "fault of the kit: no join"),
    ],
)
def test_lines_that_did_not_come_are_not_proven_and_wrong_ones_are_a_fault_of_the_kit(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception, status: int, said: str
) -> None:
    def run(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(holdfast.vectors.jcs.es6.job, "run", run)
    with pytest.raises(typer.Exit) as caught:
        streams.es6(1000)
    assert caught.value.exit_code == status
    assert said in capsys.readouterr().err


def test_processes_that_failed_on_no_number_are_told_to_people_and_to_programs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {**dict.fromkeys(Meaning, 0), Meaning.AGREE: 1000}
    numbers = NumberResult(1000, counts, {}, None, restarts=3)
    assert _ends(monkeypatch, numbers, Format.JSON) == 12
    raw = json.loads(capsys.readouterr().out)
    assert schema.explain(schema.published_validator("vectors-es6"), raw) is None
    assert raw["sdk"]["restarts"] == 3
    assert _ends(monkeypatch, numbers) == 12
    assert "3 processes of the runner failed on no number in particular" in capsys.readouterr().out


def test_the_first_number_that_is_written_otherwise_stands_in_both_outputs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {**dict.fromkeys(Meaning, 0), Meaning.AGREE: 999, Meaning.WRONG_BYTES: 1}
    first = {Meaning.WRONG_BYTES: Departure(4, b"[1E+21]", b"[1e+21]", "[1e21]")}
    numbers = NumberResult(1000, counts, first, None)
    assert _ends(monkeypatch, numbers, Format.JSON) == 11
    assert json.loads(capsys.readouterr().out)["sdk"]["first"].startswith("line 4: [1E+21] became [1e21]")
    assert _ends(monkeypatch, numbers) == 11
    assert "show hex:5b31452b32315d --sdk reference" in capsys.readouterr().out
    assert _ends(monkeypatch, None) == 0


# `holdfast vectors show` with a runner that answers and fails all the same.

# Gives its sentinels back, gives its second argument as the answer to the document, and ends in disorder.
RUNNER = """
import struct, sys
status, body = sys.argv[1][:1].encode(), sys.argv[1][1:].encode()
while len(head := sys.stdin.buffer.read(4)) == 4:
    document = sys.stdin.buffer.read(struct.unpack(">I", head)[0])
    answer = b"C" + document if document != b"[]" else status + body
    sys.stdout.buffer.write(struct.pack(">I", len(answer) - 1) + answer)
    sys.stdout.buffer.flush()
sys.exit(3)
"""


@pytest.mark.parametrize(
    ("answer", "status", "said"),
    [
        ("C[]", 12, "no verdict (core)"),
        ("Rwill not", 12, "over refusal (core)"),
        ("C[0]", 12, "wrong bytes (core)"),
    ],
)
def test_a_process_that_failed_is_told_and_is_no_pass(tmp_path: Path, answer: str, status: int, said: str) -> None:
    program = tmp_path / "runner.py"
    program.write_text(RUNNER)
    done = CliRunner().invoke(app, ["vectors", "show", "hex:5b5d", "--", sys.executable, str(program), answer])
    assert done.exit_code == status, done.output
    assert said in done.output
    assert "exited with status 3" in done.output


# `holdfast vectors sdk` where a `runner.toml` is not what it should be.

COMMANDS = [["list"], ["build"], ["build", "go-gowebpki"], ["run", "go-gowebpki"]]
SHOW = ["show", "hex:5b5d", "--sdk", "go-gowebpki"]


@pytest.mark.parametrize("words", [*(["sdk", *words] for words in COMMANDS), SHOW], ids=" ".join)
def test_a_damaged_runner_is_a_matter_of_usage_or_if_it_is_the_kits_a_fault_of_the_kit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    (tmp_path / "cobol").mkdir()
    (tmp_path / "cobol" / "runner.toml").write_text("language =")
    monkeypatch.setenv("HOLDFAST_SDKS", str(tmp_path))
    done = CliRunner().invoke(app, ["vectors", *words])
    assert done.exit_code == 64, done.output
    assert "cobol/runner.toml: Invalid value" in done.stderr
    monkeypatch.delenv("HOLDFAST_SDKS")
    monkeypatch.setattr(manifest, "OURS", tmp_path)
    done = CliRunner().invoke(app, ["vectors", *words])
    assert done.exit_code == 20, done.output
    assert "holdfast is damaged: install it again" in done.stderr


def test_a_name_that_nobody_has_is_a_matter_of_usage() -> None:
    done = CliRunner().invoke(app, ["vectors", "sdk", "build", "cobol"])
    assert done.exit_code == 64, done.output
    assert "unknown SDK runner 'cobol'" in done.stderr


# `--seed` of the commands that make rows: a number, or one that is not known before the run.

seeded = typer.Typer()


@seeded.command()
def rows(seed: Seed = 0, format_: Annotated[Format, typer.Option("--format")] = Format.TEXT) -> None:
    """Print the seed."""
    print(json.dumps(seed))


def test_a_seed_is_a_number_and_a_random_one_is_another_each_time() -> None:
    given = [[], *(["--seed", word] for word in ("7", str(2**53 - 1), *["random"] * 8))]
    none, seven, largest, *drawn = (json.loads(CliRunner().invoke(seeded, words).stdout) for words in given)
    assert (none, seven, largest) == (0, 7, 2**53 - 1)
    assert len({*drawn}) == 8
    assert all(0 <= seed < 2**53 for seed in drawn)


@pytest.mark.parametrize("given", ["-1", str(2**53), "Random", "1_0", " 1", "1.0", "٣", "", "9" * 5000])
def test_what_is_no_seed_is_told_what_one_is(given: str) -> None:
    done = CliRunner().invoke(seeded, ["--seed", given])
    assert done.exit_code != 0
    assert "expected a number from 0 to" in done.output


def test_fingerprints_says_of_which_seed_they_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = SimpleNamespace(spark=None, progress=SimpleNamespace(show=None))
    monkeypatch.setattr(streams, "working", lambda *_: contextlib.nullcontext(work))
    families = [Family("rs4a.logical_request_key", 5, 3, 3, 0, 0, ())] * 2
    monkeypatch.setattr(streams, "check_fingerprints", lambda *_, **__: families)
    monkeypatch.setattr(streams, "out", lambda: PlainConsole(width=80))
    streams.fingerprints(5, seed=77)
    said = capsys.readouterr().out
    assert "5 requests, seed 77" in said
    is_readable(said, 80, ("rs4a.logical_request_key", "differing"))
