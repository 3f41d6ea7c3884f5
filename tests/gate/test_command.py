"""`holdfast gate` as it is typed."""

from __future__ import annotations

import json
import os
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from typer.testing import CliRunner

from holdfast.conformance.cli.commands import app
from holdfast.conformance.gate.decision import ReasonCode, installed_kit
from holdfast.conformance.gate.model import GateReason
from holdfast.conformance.verdict import Exit
from holdfast.specs import schema
from holdfast.specs.typed import json_of
from tests import warm

from .conftest import ARTEFACTS, NONCE, TOY, Bench


@pytest.fixture(autouse=True)
def _toy_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SPECS", str(TOY))


@pytest.fixture
def good(bench: Bench) -> str:
    """A good run that ended a minute ago, made by the installed kit."""
    return str(recent(bench))


def recent(bench: Bench, **options: Any) -> Path:
    started = datetime.now(UTC) - timedelta(minutes=2)
    return bench.run(kit=installed_kit(), started=started, finished=started + timedelta(minutes=1), **options)


def call(*words: str) -> Any:
    return CliRunner().invoke(app, ["gate", *words])


@pytest.mark.parametrize(
    ("flaw", "require", "status", "words"),
    [
        (None, "toy", 0, []),
        (None, "toy/core", 0, ["1 cases need provocations and are left out"]),
        (None, "rs4a-replay", 12, ["fitness_missing: rs4a-replay: "]),
        (None, "rs4a-replay/core", 12, ["fitness_missing: rs4a-replay/core: "]),
        ("accepts duplicates", "toy", 10, ["fail_open: toy: ", "toy/once/a-second-put-of-a-key-is-refused"]),
        ("accepts duplicates", "toy/core", 10, ["fail_open: toy/core: "]),
    ],
)
def test_a_decision_has_its_exit_status_and_its_words_as_text_and_as_json(
    bench: Bench, flaw: str | None, require: str, status: int, words: list[str]
) -> None:
    command = [str(recent(bench, flaw=flaw)), "--require", require]
    result, can = call(*command), "NO" if status else "YES"
    assert (result.exit_code, result.stdout.splitlines()[0]) == (status, f"CAN_PROCEED = {can}")
    assert all(word in result.stdout for word in words)
    result = call(*command, "--format", "json")
    said = json.loads(result.stdout)
    assert schema.explain(schema.published_validator("gate"), said) is None
    assert (said["can_proceed"], said["exit"], result.exit_code) == (can, status, status)


def test_the_json_form_of_an_empty_file_fits_its_schema(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"")
    result = call(str(path), "--require", "toy", "--format", "json")
    assert result.exit_code == 12
    assert schema.explain(schema.published_validator("gate"), json.loads(result.stdout)) is None


def test_the_schema_knows_every_reason_of_the_code() -> None:
    published = schema.published_schema("gate")["properties"]["reasons"]["items"]["properties"]["code"]["enum"]
    assert published == [code.value for code in ReasonCode]
    reason = GateReason(ReasonCode.STALE, "old", Exit.INCOMPLETE)
    assert json_of(reason) == {"code": "stale", "text": "old", "exit": 12, "cases": []}


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["none.jsonl", "--require", "toy"], "expected the evidence of a run"),
        (["RUN", "--require", "nonsense"], "unknown contract 'nonsense'"),
        (["RUN", "--require", "toy/all"], "expected CONTRACT or CONTRACT/core"),
        (["RUN", "--require", "toy", "--max-age", "soon"], "expected a span such as"),
        (["RUN", "--require", "toy", "--max-age", "0d"], "expected a span such as"),
        (["RUN", "--require", "toy", "--fitness", "RUN"], "belong together"),
        (["RUN", "--require", "toy", "--surface", "prod"], "--surface: expected --fitness too"),
        (["RUN", "--require", "toy", "--server", "1/prod"], "--server: expected --fitness too"),
        (["RUN", "--require", "toy", "--challenge", "c0ffee"], "--challenge: expected --fitness too"),
        (["RUN", "--require", "toy", "--fitness", "none.json", "--surface", "prod"], "expected a file, found none"),
        (["RUN", "--require", "toy", "--adapter-digest", "f" * 64], "expected sha256: and 64 hexadecimal digits"),
        (["RUN", "--require", "toy", "--not-before", "yesterday"], "expected an instant with its zone"),
        (["RUN", "--require", "toy", "--not-before", "2026-01-01T00:00:00"], "expected an instant with its zone"),
        (["RUN", "--require", "toy", "--baseline", "none.jsonl"], "expected the evidence of a run"),
    ],
)
def test_bad_usage_is_64_and_says_what_was_expected(good: str, words: list[str], complaint: str) -> None:
    result = call(*(good if word == "RUN" else word for word in words))
    assert result.exit_code == 64
    assert complaint in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--fitness", "RUN", "--surface", "prod"], "fitness_unverified"),
        (["--max-age", "1m"], "stale"),
        (["--adapter-digest", "sha256:" + "e" * 64], "other_adapter"),
        (["--commit", "c0ffee"], "other_commit"),
        (["--nonce", "another"], "other_nonce"),
        (["--not-before", "2999-01-01T00:00:00+01:00"], "too_early"),
        (["--baseline", "RUN"], "baseline_unusable"),
    ],
)
def test_each_option_can_hold_the_gate(good: str, options: list[str], code: str) -> None:
    result = call(good, "--require", "toy", *(good if word == "RUN" else word for word in options))
    assert result.exit_code == 12
    assert f"{code}: " in result.stdout


def test_a_run_that_is_the_one_that_is_asked_for_may_proceed(bench: Bench) -> None:
    assert ARTEFACTS.digest is not None
    good = str(recent(bench, adapter=structs.replace(bench.header().adapter, commit="c0ffee")))
    asked = ["--nonce", NONCE, "--commit", "c0ffee", "--adapter-digest", ARTEFACTS.digest]
    asked += ["--not-before", "2020-01-01T00:00:00Z"]
    result = call(good, "--require", "toy", *asked)
    assert result.exit_code == 0, result.stdout
    assert ARTEFACTS.digest in result.stdout
    decided = json.loads(call(good, "--require", "toy", "--format", "json").stdout)
    said = decided["run"]
    assert (said["adapter_digest"], said["nonce"], said["seed_origin"]) == (ARTEFACTS.digest, NONCE, "nonce")
    # A YES says which checks an option would have made.
    assert not set(asked[::2]) & set(re.findall(r"not asked: (--[a-z-]+)", result.stdout))
    assert set(asked[::2]) <= {text.partition(":")[0] for text in decided["not_asked"]}


@pytest.mark.parametrize("option", ["run", "--baseline", "--fitness"])
def test_a_pipe_is_never_waited_for(good: str, tmp_path: Path, option: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    pipe = str(tmp_path / "pipe")
    words = {"run": [pipe], "--baseline": [good, "--baseline", pipe]}.get(option)
    result = call(*(words or [good, "--fitness", pipe, "--surface", "prod"]), "--require", "toy")
    assert result.exit_code == 64, result.stdout


@pytest.mark.parametrize("words", [["run.jsonl"], ["run.jsonl", "--require", "toy", "--force"], []])
def test_the_whole_command_line_maps_usage_errors_to_64(tmp_path: Path, words: list[str]) -> None:
    root = Path(__file__).parents[2]
    done = warm.cold(warm.KIT, "gate", *words, cwd=tmp_path, env={"PYTHONPATH": str(root)})
    assert done.returncode == 64, done.stderr


@pytest.mark.parametrize(("flaw", "status"), [(None, 0), ("accepts duplicates", 10)])
def test_what_a_ci_server_shows_is_written_beside_the_decision(
    bench: Bench, flaw: str | None, status: int, tmp_path: Path
) -> None:
    sarif, summary, notes = (tmp_path / name for name in ("found.sarif", "summary.md", "notes"))
    summary.write_text("of another step\n", encoding="utf-8")
    words = ("--sarif", str(sarif), "--summary", str(summary), "--annotations", str(notes), "--at", "src/shelf.py")
    result = call(str(recent(bench, flaw=flaw)), "--require", "toy", *words)
    assert (result.exit_code, result.stdout.splitlines()[0]) == (status, f"CAN_PROCEED = {'NO' if status else 'YES'}")
    (run,) = json.loads(sarif.read_text(encoding="utf-8"))["runs"]
    shown = summary.read_text(encoding="utf-8")
    assert shown.startswith("of another step\n## holdfast: CAN_PROCEED = ")
    assert bool(run["results"]) == bool(notes.read_text(encoding="utf-8")) == bool(status)
    assert ("toy/once/a-second-put-of-a-key-is-refused" in shown) == bool(status)
    assert all("src/shelf.py" in json.dumps(found["locations"]) for found in run["results"])


def test_a_place_for_a_ci_server_that_cannot_be_written_is_said_before_the_decision(good: str, tmp_path: Path) -> None:
    result = call(good, "--require", "toy", "--sarif", str(tmp_path))
    assert (result.exit_code, result.stdout) == (64, "")
    assert "--sarif" in result.stderr
