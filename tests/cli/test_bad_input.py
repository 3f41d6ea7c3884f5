"""Bad input: a clear error on standard error, and the exit status of the table, never a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.hostile.verify import TOY, Outcome, adapter, holdfast, temp_folder, verify

HONEST = adapter("honest")
# A port without a listener: the discard service, which no machine has run for decades.
DEAD_DSN = "postgresql://nobody:hunter2@127.0.0.1:9/none?connect_timeout=2"


@pytest.fixture
def temp() -> Iterator[Path]:
    """A temp folder of its own for the run."""
    with temp_folder() as folder:
        yield folder


def refused(ended: subprocess.CompletedProcess[str] | Outcome, status: int, *words: str) -> None:
    """The exit status is `status`, standard error has the words, and nothing crashed."""
    code = ended.exit if isinstance(ended, Outcome) else ended.returncode
    assert code == status, f"expected exit {status}, got {code}\n{ended.stdout}\n{ended.stderr}"
    assert "Traceback (most recent call last)" not in ended.stderr
    missing = [word for word in words if word not in ended.stderr]
    assert not missing, f"expected {missing} on standard error, got:\n{ended.stderr}"


def toy_copy(folder: Path) -> Path:
    """A copy of the toy contract that a test may spoil."""
    copy = folder / "contracts" / "toy"
    shutil.copytree(TOY / "toy", copy)
    return copy


@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("contract.yaml", lambda text: text + "\n  ]: {"),
        ("methods.yaml", lambda text: text.replace("operations:", "operations: &a\noperations:")),
        ("cases/once.yaml", lambda text: text.replace("clause: TOY-02", "clause: TOY-99")),
        ("cases/once.yaml", lambda text: text.replace("kind: refusal", "kind: rumour")),
        ("cases/once.yaml", lambda _: "- not\n- a\n- mapping\n"),
    ],
    ids=["no-yaml", "name-twice", "unknown-clause", "breaks-the-schema", "no-mapping"],
)
def test_a_malformed_contract_is_a_usage_error(temp: Path, tmp_path: Path, name: str, spoil: object) -> None:
    path = toy_copy(tmp_path) / name
    assert callable(spoil)
    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
    extra = {"HOLDFAST_SPECS": str(tmp_path / "contracts")}
    ended = holdfast("verify", "--contract", "toy", "--", *HONEST, temp=temp, cwd=tmp_path, extra=extra)
    refused(ended, 64, "toy")


@pytest.mark.parametrize(
    ("text", "mode", "said"),
    [("#!/bin/sh\nexit 0\n", 0o600, ("not executable", "chmod +x")), ("print('hello')\n", 0o755, ())],
)
def test_an_adapter_that_cannot_be_executed_is_named(
    text: str, mode: int, said: tuple[str, ...], tmp_path: Path
) -> None:
    adapter = tmp_path / "adapter"
    adapter.write_text(text, encoding="utf-8")
    adapter.chmod(mode)
    refused(verify([str(adapter)], cwd=tmp_path), 13, str(adapter), *said)


def test_a_database_that_is_down_is_named_without_its_password(temp: Path, tmp_path: Path) -> None:
    ended = holdfast("verify", "reference", "--config", f"dsn={DEAD_DSN}", temp=temp, cwd=tmp_path)
    refused(ended, 13)
    written = "".join(path.read_text(encoding="utf-8", errors="replace") for path in tmp_path.rglob("*.jsonl"))
    assert "hunter2" not in ended.stdout + ended.stderr + written


def test_a_working_directory_that_is_gone_is_a_usage_error(temp: Path, tmp_path: Path) -> None:
    gone = ("/bin/sh", "-c", 'mkdir gone; cd gone; rmdir ../gone; exec "$@"', "sh")
    words = ("verify", "--contract", "toy", "--evidence", str(tmp_path / "run.jsonl"), "--", "./none")
    refused(holdfast(*words, temp=temp, cwd=tmp_path, before=gone), 64, "working directory")


def test_a_workdir_that_is_not_there_or_takes_nothing_is_a_usage_error(temp: Path, tmp_path: Path) -> None:
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    # Root writes anywhere but into the kernel's own tree.
    for folder in (tmp_path / "none", Path("/proc") if os.geteuid() == 0 else locked):
        words = ("verify", "--contract", "toy", "--workdir", str(folder), "--", *HONEST)
        refused(holdfast(*words, temp=temp, cwd=tmp_path), 64, "--workdir", str(folder))


def test_an_expression_that_selects_nothing_proves_nothing(tmp_path: Path) -> None:
    outcome = verify(HONEST, options=["-k", "no_such_case"], cwd=tmp_path)
    assert outcome.exit == 12
    assert not outcome.verdicts
    assert "no case ran" in outcome.stdout + outcome.stderr


def test_expected_failures_that_match_nothing_are_stale(tmp_path: Path) -> None:
    expected = tmp_path / "xfail.toml"
    expected.write_text(
        '[[expected]]\nid = "toy/no/such-case"\nverdict = "fail_open"\nreason = "known"\n'
        'owner = "me"\nissue = "https://example.org/1"\nexpires = 2099-01-01\n',
        encoding="utf-8",
    )
    outcome = verify(HONEST, options=["--xfail", str(expected)], cwd=tmp_path)
    assert outcome.exit == 14, outcome.stdout + outcome.stderr
    assert "toy/no/such-case" in outcome.stdout + outcome.stderr


def test_what_is_excused_stands_on_top_of_the_report_and_holds_the_gate(tmp_path: Path) -> None:
    cases = [f"toy/once/{name}" for name in ("a-second-put-of-a-key-is-refused", "an-empty-key-is-malformed")]
    expires = datetime.now(UTC).date() + timedelta(days=30)
    expected = tmp_path / "xfail.toml"
    entry = '[[expected]]\nid = "{}"\nverdict = "wrong_reason"\nowner = "me"\nissue = "issue 17"\nexpires = {}\n'
    expected.write_text("".join(entry.format(case, expires) for case in cases), encoding="utf-8")
    words = adapter("wrong_reason")
    narrowed = [word for case in cases for word in ("--case", case)]
    outcome = verify(words, options=["--xfail", str(expected), *narrowed], cwd=tmp_path)
    top = outcome.stdout.splitlines()[:2]
    assert all(line.startswith("excused: wrong_reason ") and "issue 17" in line for line in top), outcome.stdout
    assert {case for case in cases for line in top if case in line} == set(cases)
    assert "excused: toy: 2 cases are excused" in outcome.stdout


# Root writes anywhere but into the kernel's own tree.
@pytest.mark.parametrize(
    ("words", "place", "said"),
    [
        (["verify", "--contract", "toy"], "", "holdfast verify -- ./my-adapter"),
        (["list"], "", "contracts, clauses, cases, methods, reasons"),
        (["verify", "--contract", "toy", "--", "./none"], "/proc", "holdfast-out"),
        *(
            (["verify", "--contract", "toy", option, value, "--", *HONEST], "", option.lstrip("-"))
            for option, value in (
                ("-k", "a and ("), ("--config", "novalue"), ("--config", "=x"), ("--slow", "0"), ("--slow", "nan"),
                ("--seed", ""),
            )
        ),
    ],
)  # fmt: skip
def test_words_that_make_no_run_are_a_usage_error(
    words: list[str], place: str, said: str, temp: Path, tmp_path: Path
) -> None:
    refused(holdfast(*words, temp=temp, cwd=Path(place) if place else tmp_path), 64, said)
