"""`holdfast verify` and its neighbours as a user meets them: options, reports, formats, a hostile current folder."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from holdfast.specs.schema import explain, published_validator
from tests import warm
from tests.harness.play import TOY
from tests.hostile.verify import (
    LIMIT_S,
    Outcome,
    adapter,
    assert_nothing_remains,
    environment,
    temp_folder,
    verify,
)

FAKE = Path(__file__).resolve().parent / "fake_adapter.py"
LEAKS = adapter("leaks")
HONEST = adapter("honest")
AGAIN = "toy/once/a-second-put-of-a-key-is-refused"
EMPTY = "toy/once/an-empty-key-is-malformed"
SHELF = "toy/once/a-put-key-stands-on-the-shelf"


@pytest.fixture
def temp() -> Iterator[Path]:
    """A temp folder of its own for the run, in which nothing may remain."""
    with temp_folder() as folder:
        yield folder
        assert_nothing_remains(folder)


def command(*words: str, temp: Path, cwd: Path, **extra: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    return warm.run(words, cwd=cwd, env={**environment(temp), **extra}, limit=LIMIT_S)


def as_json(ended: subprocess.CompletedProcess[str] | Outcome, schema: str) -> dict[str, Any]:
    """Standard output as JSON that fits the published schema."""
    data: dict[str, Any] = json.loads(ended.stdout)
    assert explain(published_validator(schema), data) is None
    return data


# Reports of others


@pytest.fixture(scope="module")
def leaky(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, Path]:
    """A run in which something leaked, with both reports."""
    folder = tmp_path_factory.mktemp("leaky")
    options = ["--junitxml", str(folder / "reports" / "junit.xml"), "--alluredir", str(folder / "allure")]
    outcome = verify(LEAKS, options=[*options, "--clause", "TOY-01"], cwd=folder)
    assert outcome.exit == 10, outcome.stderr
    return outcome, folder


def of_junit(path: Path) -> dict[str, ET.Element]:
    """The test cases by their class and name, as a case id has them."""
    cases = ET.parse(path).getroot().iter("testcase")
    return {f"{case.get('classname')}.{case.get('name')}".replace(".", "/"): case for case in cases}


def of_allure(folder: Path) -> dict[str, dict[str, Any]]:
    """The results by the name of the case."""
    results = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*-result.json")]
    return {result["fullName"].rpartition("#")[2]: result for result in results}


def test_junit_has_every_case_that_ran_and_says_what_failed(leaky: tuple[Outcome, Path]) -> None:
    outcome, folder = leaky
    cases = of_junit(folder / "reports" / "junit.xml")
    assert set(cases) == {*outcome.verdicts, "holdfast/run"}
    failure = cases[AGAIN].find("failure")
    assert failure is not None
    assert failure.get("type") == "state_leak"
    assert failure.text is not None
    assert "TOY-01" in failure.text
    assert cases[AGAIN].find("system-out") is not None
    assert list(cases[SHELF]) == []
    assert cases["holdfast/run"].find("error") is not None


def test_allure_says_failed_of_what_failed(leaky: tuple[Outcome, Path]) -> None:
    outcome, folder = leaky
    found = of_allure(folder / "allure")
    assert set(found) == {*outcome.verdicts, "holdfast/run"}
    assert found[AGAIN]["status"] == "failed"
    assert "TOY-01" in found[AGAIN]["statusDetails"]["trace"]
    assert {each["name"] for each in found[AGAIN]["attachments"]} == {"transcript", "again"}
    # The seed says which side runs first; the other may not have run.
    (main,) = (step for step in found[AGAIN]["steps"] if step["name"] == "main side")
    assert [step["status"] for step in main["steps"]].count("failed") == 1
    assert found[SHELF]["status"] == "passed"


@pytest.mark.parametrize("contract", [["--contract", "toy"], []], ids=["of one contract", "of what it would claim"])
def test_an_adapter_that_never_starts_is_red_in_both_reports(tmp_path: Path, contract: list[str]) -> None:
    words = ["verify", *contract, "--junitxml", "junit.xml", "--alluredir", "allure", "--", "./missing"]
    with temp_folder() as temp:
        ended = command(*words, temp=temp, cwd=tmp_path)
        assert_nothing_remains(temp)
    assert ended.returncode == 13, ended.stderr
    cases = of_junit(tmp_path / "junit.xml")
    assert all(case.find("error") is not None for case in cases.values())
    assert (SHELF in cases) is bool(contract)
    results = of_allure(tmp_path / "allure")
    assert set(results) == set(cases)
    assert {result["status"] for result in results.values()} == {"broken"}


def test_an_excused_failure_is_skipped_in_junit_and_known_in_allure(tmp_path: Path) -> None:
    wrong = adapter("wrong_reason")
    issue = "https://example.org/issues/17"
    day = (datetime.now(UTC) + timedelta(days=30)).date().isoformat()
    (tmp_path / "xfail.toml").write_text(
        f'[[expected]]\nid = "{AGAIN}"\nverdict = "wrong_reason"\nowner = "team"\nissue = "{issue}"\nexpires = {day}\n',
        encoding="utf-8",
    )
    options = ["--xfail", "xfail.toml", "--junitxml", "junit.xml", "--alluredir", "allure", "--case", AGAIN]
    outcome = verify(wrong, options=options, cwd=tmp_path)
    assert outcome.verdicts == {AGAIN: "wrong_reason"}, outcome.stderr
    case = of_junit(tmp_path / "junit.xml")[AGAIN]
    assert case.find("skipped") is not None
    assert case.find("failure") is None
    result = of_allure(tmp_path / "allure")[AGAIN]
    assert result["status"] == "failed"
    assert result["statusDetails"]["known"] is True
    assert [link["url"] for link in result["links"]] == [issue]
    assert {"name": "tag", "value": "excused"} in result["labels"]


# Narrowing


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["-k", "shelf"], {"a-put-key-stands-on-the-shelf"}),
        (["-k", "TOY-05"], {"one-of-two-concurrent-puts-wins"}),
        (["-k", AGAIN], {"a-second-put-of-a-key-is-refused"}),
        (["--clause", "TOY-03"], {"an-empty-key-is-malformed"}),
        (
            ["--clause", "TOY-02", "--clause", "TOY-03"],
            {"a-consumed-nonce-puts-no-other-key", "an-empty-key-is-malformed"},
        ),
        (["--clause", "TOY-01", "-k", "refused"], {"a-second-put-of-a-key-is-refused"}),
        (["--case", EMPTY, "--no-faults", "--quick", "--clause", "TOY-03"], {"an-empty-key-is-malformed"}),
        (["--case", EMPTY, "--case", AGAIN, "-k", "empty"], {"an-empty-key-is-malformed"}),
        (["--quick"], {case.id.rsplit("/", 1)[1] for case in TOY.cases}),
    ],
    ids=lambda value: " ".join(sorted(value)),
)
def test_a_narrowed_run_runs_what_was_asked_for_and_proves_nothing_more(
    options: list[str], words: set[str], tmp_path: Path
) -> None:
    outcome = verify(HONEST, options=options, cwd=tmp_path)
    assert {case.rsplit("/", 1)[1] for case in outcome.verdicts} == words, outcome.stderr
    assert set(outcome.verdicts.values()) == {"conforms"}
    assert outcome.exit == 12
    assert len(outcome.plan) == len(TOY.cases)
    assert outcome.lines[0]["selection"]["expression"]
    # A clause some of whose cases did not run is not said to conform.
    asked = [{case.id for case in TOY.cases if clause in case.clauses} for clause in TOY.clauses]
    in_part = any(0 < len(cases & {*outcome.verdicts}) < len(cases) for cases in asked)
    assert ("in part" in outcome.stdout) == in_part


def test_options_that_leave_no_case_are_a_usage_error(tmp_path: Path) -> None:
    outcome = verify(HONEST, options=["--case", EMPTY, "--clause", "TOY-01"], cwd=tmp_path)
    assert outcome.exit == 64
    assert f"no case is selected by TOY-01 and {EMPTY}" in outcome.stderr


def test_with_x_the_run_ends_at_the_first_failure(tmp_path: Path) -> None:
    outcome = verify(LEAKS, options=["-x"], cwd=tmp_path)
    verdicts = [outcome.verdicts.get(case) for case in outcome.plan]
    first = next(index for index, verdict in enumerate(verdicts) if verdict != "conforms")
    assert verdicts[first] == "state_leak"
    assert set(verdicts[first + 1 :]) <= {None}
    assert outcome.exit == 10


def test_with_x_and_several_processes_the_run_keeps_its_footer_its_report_and_its_exit(tmp_path: Path) -> None:
    path = tmp_path / "junit.xml"
    outcome = verify(LEAKS, options=["-x", "--jobs", "2", "--junitxml", str(path)], cwd=tmp_path)
    assert outcome.exit == outcome.footer["exit"] == 10, outcome.stderr
    # Which of its failures comes first is up to the machine.
    worst = outcome.footer["verdict"]
    assert worst in {"fail_open", "state_leak"} & set(outcome.verdicts.values())
    assert worst in path.read_text(encoding="utf-8")
    assert f"verdict:  {worst}" in outcome.stdout


# Reproducibility


def requests(outcome: Outcome) -> dict[str, list[Any]]:
    """What was asked, by case and side, without what the answers brought."""
    found: dict[str, list[Any]] = {}
    for line in outcome.exchanges:
        if line["request"] is not None:
            found.setdefault(f"{line['case']} {line['side']}", []).append(line["request"])
    return found


def runs(tmp_path: Path, *options: Sequence[str]) -> list[Outcome]:
    """One run of the honest adapter for each."""
    outcomes = []
    for number, words in enumerate(options):
        folder = tmp_path / str(number)
        folder.mkdir()
        outcomes.append(verify(HONEST, options=words, cwd=folder))
    return outcomes


def keys(outcome: Outcome) -> set[str]:
    """Every well-formed key that was put."""
    found = {
        request["args"].get("key", "") for sent in requests(outcome).values() for request in sent if "args" in request
    }
    return found - {""}


def test_the_same_seed_makes_the_same_requests_in_any_number_of_processes_and_another_seed_others(
    tmp_path: Path,
) -> None:
    once, several, other, fresh = runs(
        tmp_path, ["--seed", "s1"], ["--seed", "s1", "--jobs", "2"], ["--seed", "s2"], []
    )
    assert requests(once) == requests(several)
    assert once.verdicts == several.verdicts
    assert (once.exit, several.exit) == (0, 0)
    assert once.plan == several.plan
    for different in (other, fresh):
        assert requests(once).keys() == requests(different).keys()
        assert keys(different)
        assert not keys(different) & keys(once)


# Formats


def test_the_summary_as_json_fits_its_schema_and_the_evidence(tmp_path: Path) -> None:
    outcome = verify(LEAKS, options=["--format", "json"], cwd=tmp_path)
    data = as_json(outcome, "verify")
    assert data["exit"] == outcome.exit == outcome.footer["exit"]
    assert {row["case"]: row["verdict"] for row in data["cases"]} == outcome.verdicts
    assert data["counts"] == outcome.footer["counts"]


@pytest.mark.parametrize("what", ["contracts", "clauses", "cases", "methods", "reasons"])
def test_a_list_fits_its_schema_as_json_and_has_a_row_on_each_line_in_a_pipe(
    what: str, temp: Path, tmp_path: Path
) -> None:
    data = as_json(command("list", what, "--format", "json", temp=temp, cwd=tmp_path), "list")
    assert data["list"] == what
    only = as_json(command("list", what, "--contract", "toy", "--format", "json", temp=temp, cwd=tmp_path), "list")
    due = {"contracts": 1, "clauses": 5, "cases": len(TOY.cases), "methods": len(TOY.methods), "reasons": 3}
    assert len(only["rows"]) == due[what] < len(data["rows"])
    head, *lines = command("list", what, temp=temp, cwd=tmp_path).stdout.splitlines()
    last = head.split()[-1]
    for line, row in zip(lines, data["rows"], strict=True):
        assert line.startswith(next(iter(row.values())))
        assert line.endswith(str(row[last]))


def test_what_the_linter_finds_as_json_fits_its_schema(temp: Path, tmp_path: Path) -> None:
    ended = command("lint", "specs", "--contract", "toy", "--format", "json", temp=temp, cwd=tmp_path)
    data = as_json(ended, "lint")
    # The toy contract has no mutants of its own.
    assert data["problems"]
    assert ended.returncode == 20


# The environment


@pytest.mark.parametrize(("options", "in_utc"), [((), False), (("--pass-env", "TZ"), True)])
def test_local_time_of_an_adapter_is_not_that_of_utc_unless_its_zone_is_passed(
    options: Sequence[str], in_utc: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "UTC")
    said = tmp_path / "said"
    told = f"open({str(said)!r}, 'w').write(str(time.timezone))"
    program = f"import runpy, time; {told}; runpy.run_path({HONEST[1]!r}, run_name='__main__')"
    outcome = verify((HONEST[0], "-c", program), options=["--case", AGAIN, *options], cwd=tmp_path)
    assert outcome.verdicts[AGAIN] == "conforms"
    assert (int(said.read_text()) == 0) is in_utc


# The current folder

TRAP = "import pathlib\npathlib.Path({hit!r}).open('a').write(__name__ + '\\n')\nraise SystemExit('trapped')\n"


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_nothing_in_the_current_folder_or_of_the_users_pytest_matters(jobs: str, temp: Path, tmp_path: Path) -> None:
    hit = tmp_path / "hit"
    cwd = tmp_path / "hostile folder"
    (cwd / "holdfast" / "conformance").mkdir(parents=True)
    modules = (
        "json",
        "yaml",
        "conftest",
        "pytest",
        "logging",
        "holdfast/__init__",
        "holdfast/conformance/__init__",
        "sitecustomize",
    )
    for name in modules:
        (cwd / f"{name}.py").write_text(TRAP.format(hit=str(hit)), encoding="utf-8")
    (cwd / "pytest.ini").write_text(
        "[pytest]\naddopts = --collect-only -k nothing\npython_files = *\n", encoding="utf-8"
    )
    (cwd / "pyproject.toml").write_text("[tool.pytest.ini_options]\naddopts = '-k nothing'\n", encoding="utf-8")
    (cwd / "tox.ini").write_text("[pytest]\naddopts = --no-such-option\n", encoding="utf-8")
    variables = {
        "PYTEST_ADDOPTS": "-k nothing --collect-only",
        "PYTEST_PLUGINS": "json,conftest",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "",
        "PYTEST_XDIST_AUTO_NUM_WORKERS": "0",
    }
    words = ("verify", "--contract", "toy", "--jobs", jobs, "--evidence", "run.jsonl", "--", *HONEST)
    ended = command(*words, temp=temp, cwd=cwd, **variables)
    assert not hit.exists(), hit.read_text(encoding="utf-8")
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    lines = [json.loads(line) for line in (cwd / "run.jsonl").read_text(encoding="utf-8").splitlines()]
    assert sum(line["type"] == "verdict" for line in lines) == len(TOY.cases)


# The doctor


def doctor(argv: Sequence[str], temp: Path, cwd: Path, *options: str) -> tuple[int, dict[str, dict[str, Any]]]:
    """Exit status and criteria by name."""
    ended = command("doctor", "--format", "json", *options, "--", *argv, temp=temp, cwd=cwd)
    assert "Traceback" not in ended.stderr, ended.stderr
    data = as_json(ended, "doctor")
    return ended.returncode, {row["name"]: row for row in data["examinations"]}


def test_the_doctor_says_which_worker_was_asked(temp: Path, tmp_path: Path) -> None:
    _, found = doctor(HONEST, temp, tmp_path)
    assert found["open"]["worker"] == 0
    assert found["close without a session"]["worker"] == 1
    assert found["claim toy"]["worker"] is None


@pytest.mark.parametrize("contract", ["calyx-replay", "jcs"])
def test_the_doctor_finds_nothing_wrong_with_the_reference(contract: str, temp: Path, tmp_path: Path) -> None:
    ended = command("doctor", "--format", "json", "--contract", contract, "reference", temp=temp, cwd=tmp_path)
    assert ended.returncode == 0, f"{ended.stdout}\n{ended.stderr}"
    found = {row["name"]: row for row in as_json(ended, "doctor")["examinations"]}
    assert {row["health"] for row in found.values()} == {"good"}
    # The contract fixes the file, so the harness reads it itself; a value of it can be spoiled.
    assert ("store runtime/mailbox/replay_state.db" in found) is (contract == "calyx-replay")
    assert found["line break in base64"]["worker"] == 0


def test_the_doctor_without_the_config_that_an_adapter_needs_says_so(temp: Path, tmp_path: Path) -> None:
    reference = (sys.executable, "-P", "-m", "holdfast.reference_impl", "adapter")
    status, found = doctor(reference, temp, tmp_path, "--contract", "calyx-replay")
    assert status == 11
    assert found["open"]["health"] == "bad"
    assert found["session"]["health"] == "skipped"


def test_the_doctor_finds_an_adapter_that_leaves_line_breaks_out_of_base64(temp: Path, tmp_path: Path) -> None:
    status, found = doctor(adapter("lenient_base64"), temp, tmp_path, "--contract", "jcs")
    assert status == 11
    assert found["line break in base64"]["health"] == "bad"


def fake(script: Sequence[Any], greeting: str = "ok") -> tuple[str, ...]:
    """The fake adapter: its script begins with the answer to `open`."""
    return (sys.executable, "-S", str(FAKE), json.dumps(script), greeting)


# It reads all of its standard input before it answers.
TO_THE_END = "import sys\nsys.stdin.read()\n"


@pytest.mark.parametrize(
    ("argv", "status", "where", "words"),
    [
        ((str(Path("/no/such/adapter")),), 13, "start", "does not exist"),
        (adapter("banner"), 13, "hello", "Shelf Server 1.0"),
        ((sys.executable, "-c", TO_THE_END), 13, "hello", "to its end before answering"),
        ((sys.executable, "-c", "raise ValueError('no config file')"), 13, "hello", "no config file"),
        ((sys.executable, "-c", "raise SystemExit(0)"), 13, "hello", "in a loop"),
        (fake([], "no-outcome"), 13, "hello", "does not fit protocol-hello.schema.json"),
        (adapter("lies_in_hello", "challenge"), 13, "hello", "canned transcript"),
        (fake([["exit", 3]]), 11, "open", "exited with status 3"),
        (fake(["garbage"]), 11, "open", "print it to standard error"),
        (fake(["nothing"]), 11, "open", "No answer"),
        (fake(["twice"]), 11, "clock", "each request is answered once"),
        (adapter("accept_all"), 11, "unknown method", "never accepted"),
    ],
    ids=lambda value: str(value)[-60:],
)
def test_the_doctor_names_the_usual_mistakes(
    argv: tuple[str, ...], status: int, where: str, words: str, temp: Path, tmp_path: Path
) -> None:
    code, found = doctor(argv, temp, tmp_path, "--slow", "0.1")
    assert where in found, found
    assert found[where]["health"] == "bad"
    assert words in found[where]["found"] + found[where]["advice"], found[where]
    assert found[where]["advice"]
    assert code == status
