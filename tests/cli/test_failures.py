"""What `holdfast verify` says of a case that failed: the side, the exchange, and a command that really repeats it."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperCommand

from holdfast.conformance.cases.record import Record
from holdfast.conformance.cli.verify.options import Options
from holdfast.conformance.cli.verify.transcript import again, around, credentials_of, transcribed
from holdfast.conformance.run.engine import twin_goes_first
from holdfast.conformance.run.plan import plan_of
from holdfast.specs import load_contract
from tests import warm
from tests.forger import lines_of
from tests.harness.play import toy_case
from tests.hostile.verify import ADAPTERS, HERE, LIMIT_S, environment, temp_folder
from tests.hostile.verify import adapter as named
from tests.pace import busy

KEEPER = HERE.parent / "durability" / "keeper.py"
LEDGER_SPECS = HERE.parent / "durability" / "contracts"
AGAIN = "toy/once/a-second-put-of-a-key-is-refused"
PYTHON = sys.executable
REFERENCE = (PYTHON, "-P", "-m", "holdfast.reference_impl", "adapter")


class Place:
    """A folder to run in, with an environment that every run there has."""

    def __init__(self, folder: Path, temp: Path, **extra: str) -> None:
        self.folder = folder
        # What a user has who has installed holdfast: its command on PATH.
        path = f"{Path(PYTHON).parent}{os.pathsep}{os.environ['PATH']}"
        self.environment = {**environment(temp), "PATH": path, **extra}

    def verify(self, *words: str, line: str = "") -> str:
        """Standard output of a run of the command line, or of a `line` of a shell; its evidence lies by default."""
        shutil.rmtree(self.folder / "holdfast-out", ignore_errors=True)
        done: subprocess.CompletedProcess[str]
        where: dict[str, Any] = {"cwd": self.folder, "env": self.environment}
        if line:
            limit = busy(LIMIT_S)
            done = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=limit, **where)
        else:
            done = warm.run(["verify", *words], limit=LIMIT_S, **where)
        assert done.returncode in {10, 11, 12}, done.stdout + done.stderr
        return done.stdout

    @property
    def lines(self) -> list[Mapping[str, Any]]:
        """The evidence of the last run."""
        (path,) = (self.folder / "holdfast-out").glob("*run.jsonl.zst")
        return [json.loads(line) for line in lines_of(path)]

    @property
    def verdicts(self) -> dict[str, Mapping[str, Any]]:
        """The verdict lines of the last run, by case."""
        return {line["case"]: line for line in self.lines if line["type"] == "verdict"}

    def repeats(self, *words: str) -> list[str]:
        """Run, and run each `again` line of it: all the verdicts must come again. The lines."""
        told = self.verify(*words)
        before = self.verdicts
        lines = re.findall(r"^again +(.*)$", told, re.MULTILINE)
        assert lines, told
        for line in lines:
            case = shlex.split(line)[shlex.split(line).index("--case") + 1]
            said = self.verify(line=line)
            # It leaves the evidence of the whole run where it is.
            assert not (self.folder / "holdfast-out" / "run.jsonl.zst").exists()
            after = self.verdicts
            assert [*after] == [case], f"{line}\n{said}"
            places = [(one[case]["verdict"], one[case]["silence"], one[case]["side"]) for one in (before, after)]
            assert places[0] == places[1], f"{line}\n{said}"
            assert before[case]["verdict"] != "conforms"
        return lines


@pytest.fixture
def place(tmp_path: Path) -> Any:
    """A place with the toy contract."""
    with temp_folder() as temp:
        yield Place(tmp_path, temp)


# Again


def test_a_line_repeats_a_run_with_launcher_environment_seed_workdir_and_a_relative_path(place: Place) -> None:
    # Words that need quoting, and a path in which the reference's name stands.
    home = place.folder / "my reference_impl"
    shutil.copytree(ADAPTERS, home)
    works = place.folder / "work here"
    works.mkdir()
    ready = 'import sys; sys.stdin.readline(); print(\'{"config": {"leaks": "a lot"}}\', flush=True); sys.stdin.read()'
    place.environment["LEAKS"] = "yes"
    lines = place.repeats(
        *("--contract", "toy", "--case", AGAIN, "--seed", "it's a $seed", "--slow", "1.25", "--pass-env", "LEAKS"),
        *("--workdir", str(works), "--config", "note=a b", "--launcher", shlex.join([PYTHON, "-c", ready])),
        *("--", PYTHON, "my reference_impl/flawed.py", "leaks_when_told"),
    )
    assert len(lines) == 1
    assert place.verdicts[AGAIN]["verdict"] == "state_leak"


def test_a_line_repeats_a_suite_test_and_a_script_of_a_mutant_of_the_reference(place: Place) -> None:
    cases = ("jcs/bom-01/a-mark-at-the-start", "jcs/suite/committed-vectors-of-bytes")
    words = [word for case in cases for word in ("--case", case)]
    lines = place.repeats("--contract", "jcs", *words, "--", *REFERENCE, "--mutant", "mark-skipped")
    assert len(lines) == len(cases)


def test_a_line_repeats_a_fault(tmp_path: Path, tracer: object) -> None:
    del tracer
    with temp_folder() as temp:
        place = Place(tmp_path, temp, HOLDFAST_SPECS=str(LEDGER_SPECS))
        (line,) = place.repeats(
            *("--contract", "ledger", "--case", "ledger/faults/kill", "--fault-seconds", "0.5", "--seed", "faults"),
            *("--", PYTHON, str(KEEPER), "answers-first"),
        )
    assert "--fault-seconds 0.5" in line


def options(words: Sequence[str], monkeypatch: pytest.MonkeyPatch, **changes: Any) -> Options:
    """What `verify` makes of a target and options."""
    monkeypatch.setattr(sys, "argv", ["holdfast", "verify", *(["--"] if words != ["reference"] else []), *words])
    context = typer.Context(TyperCommand("verify"))
    context.args = [*words]
    return Options(context=context, seed="s", **changes)


PLANNED = plan_of(load_contract("jcs"))[0]
SERVICE = Path(__file__).parents[1] / "wires" / "service.toml"


def test_the_reference_stands_only_for_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    line, gaps = again(PLANNED, options(["reference"], monkeypatch))
    assert shlex.split(line)[-1] == "reference"
    assert gaps == ()
    for command in (["./reference_impl/mine", "adapter"], ["python", "-m", "holdfast.reference_impl", "adapter"]):
        line, _ = again(PLANNED, options(command, monkeypatch))
        assert shlex.split(line)[-len(command) - 1 :] == ["--", *command]


@pytest.mark.parametrize(
    "named", [{"service": SERVICE}, {"url": "http://127.0.0.1:8080"}, {"start": "node 'my server.js' --at {port}"}]
)
def test_a_server_is_named_as_the_user_named_it(named: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    line, gaps = again(PLANNED, options([], monkeypatch, **named))
    ((option, value),) = named.items()
    assert shlex.split(line)[-2:] == [f"--{option}", str(value)]
    assert "holdfast.conformance" not in line
    assert gaps == ()


def test_a_line_of_curl_has_the_credential_or_a_name_for_a_secret_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "service.toml"
    text = SERVICE.read_text(encoding="utf-8").replace(
        "[profile]", '[credentials]\na = { X-Tenant = "one", Authorization = "Bearer abc-of-a" }\n\n[profile]'
    )
    file.write_text(text, encoding="utf-8")
    found = credentials_of(options([], monkeypatch, service=file))
    assert found == {"a": {"X-Tenant": "one", "Authorization": "$CREDENTIAL_A"}}


def test_a_secret_is_not_printed_and_the_line_says_that_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "correct-horse-battery"
    words = ["./mine", "--password", secret]
    config = [f"api_token={secret}", "note=open"]
    line, gaps = again(PLANNED, options(words, monkeypatch, config=config, launcher=f"./serve --secret {secret}"))
    assert secret not in line
    assert "note=open" in shlex.split(line)
    assert len(gaps) == 3
    assert any("api_token" in gap for gap in gaps)


# The side and the exchange


def seed_of(*, twin_first: bool) -> str:
    """A seed under which the twin of the case goes first, or last."""
    case = toy_case(AGAIN.rsplit("/", 1)[1])
    return next(str(number) for number in range(99) if twin_goes_first(case, str(number)) is twin_first)


@pytest.mark.parametrize("twin_first", [True, False])
def test_the_transcript_is_of_the_side_that_failed_and_marks_what_was_judged(place: Place, *, twin_first: bool) -> None:
    adapter = named("leaks")
    words = ("--contract", "toy", "--case", AGAIN, "--seed", seed_of(twin_first=twin_first), "--junitxml", "junit.xml")
    told = place.verify(*words, "--", *adapter)
    line = place.verdicts[AGAIN]
    assert line["side"] == "main"
    exchanges = [one for one in place.lines if one["type"] == "exchange"]
    assert any(one["side"] == "twin" for one in exchanges) is twin_first
    (judged,) = [one for one in exchanges if one["side"] == "main" and one["n"] == line["n"]]
    # The state leaked: what shows it is what was observed afterwards.
    assert judged["action"].startswith("state after [when.0")
    assert "transcript of the main side" in told
    (marked,) = re.findall(r"^=> *(\d+) w\d+ \[(.*)\] \(label again\)$", told, re.MULTILINE)
    assert marked == (str(line["n"]), judged["action"])
    # Other reports say the same.
    report = ET.parse(place.folder / "junit.xml").getroot()
    (failure,) = [one for one in report.iter("failure") if "state_leak" in (one.text or "")]
    assert f"main side, exchange {line['n']}" in (failure.text or "")


def test_a_twin_that_fails_is_the_side_that_is_shown(place: Place) -> None:
    adapter = named("refuses_others")
    told = place.verify("--contract", "toy", "--case", AGAIN, "--seed", "s", "--", *adapter)
    line = place.verdicts[AGAIN]
    assert (line["verdict"], line["side"]) == ("over_refusal", "twin")
    assert "transcript of the twin side" in told


def record(n: int, action: str) -> Record:
    return Record(n, action, 0, None, None, None, None, None)


def test_a_long_case_keeps_the_steps_that_lead_to_what_was_judged() -> None:
    records = [record(0, "open worker 0")]
    for step in range(40):
        for action in (f"state before [when.{step} call put]", f"when.{step} call put", f"state after [when.{step} …]"):
            records.append(record(len(records), action))
    judged = next(one for one in records if one.action == "when.30 call put")
    shown = around(records, judged.n)
    assert judged in shown
    assert [one.n for one in shown] == sorted({one.n for one in shown})
    assert sum(one.n > judged.n for one in shown) <= 2
    assert {f"when.{step} call put" for step in range(24, 31)} <= {one.action for one in shown}
    assert len(shown) < 20
    assert around([], None) == []


def test_only_exchanges_of_the_session_that_was_judged_explain_it() -> None:
    opened = Record(3, "open worker 0", 0, {"op": "open", "state": "fresh"}, None, None, None, None)
    records = [*(record(n, "forget") for n in range(3)), opened, record(4, "call put"), record(5, "state")]
    assert [each.n for each in around(records, 5)] == [3, 4, 5]


def test_a_file_that_the_harness_has_read_does_not_fill_the_screen() -> None:
    event = {"kind": "done", "detail": {"bytes": "A" * 100_000}}
    whole = Record(0, "file runtime/store.db", 0, None, None, event, None, None)
    assert max(len(line) for line in transcribed(whole, None)) < 300
