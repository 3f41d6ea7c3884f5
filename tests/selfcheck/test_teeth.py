"""The brake of `bench.teeth`: it fails for all that is worse than frozen, and for all that it does not know."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest

from bench import teeth
from bench.teeth import PARTS, Cpu, Killed, Part, Run, Teeth
from holdfast.conformance.run.plan import plan_of
from holdfast.conformance.selfcheck.automatic import listed
from holdfast.conformance.selfcheck.tasks import Shown
from holdfast.specs import load_contract
from holdfast.specs.mutants import load_mutants

ROOT = Path(__file__).resolve().parents[2]
JCS = load_contract("jcs")
BUG, KILLER = "utf8-ignored", "jcs/utf8-01/a-stray-byte-in-a-name"
# A case that both of them pass: no bug of UTF-8 or of `verify` shows there.
BLIND = "jcs/ws-01/nothing-between-tokens"

Compare = Callable[..., tuple[int, str]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "teeth.json"


@pytest.fixture
def compare(file: Path, capsys: pytest.CaptureFixture[str]) -> Compare:
    """The exit status of a comparison with these parts of a file, and what it says of what is worse or not known."""

    def compared(*words: str, contract: str = "jcs", sound: Any = (), broken: Any = (), **part: Any) -> tuple[int, str]:
        teeth.write(file, Teeth({contract: Part(**part)}, sound=dict(sound), broken=dict(broken)))
        parts = ["--part", "adapters", *(word for name in PARTS if name in part for word in ("--part", name))]
        status = teeth.main(["--compare", str(file), "--contract", contract, *parts, *words])
        lines = capsys.readouterr().out.splitlines()
        return status, "\n".join(line for line in lines if line.startswith(("WORSE", "no result")))

    return compared


def altered(what: str) -> str:
    """The frozen name of an automatic mutant."""
    return next(name for name in teeth.places(listed("jcs")[1]) if name.endswith(what))


def test_each_kill_that_is_lost_fails_and_no_other_does(compare: Compare) -> None:
    lost, kept = altered("Canonicaliser.compared truncated"), altered("Canonicaliser.verify guard")
    planted = {
        "utf8-replaced": {BLIND: "fail_open"},
        "utf8-ignored": {BLIND: "fail_open", KILLER: "fail_open"},
        "latin-1-instead": {"jcs/utf8-01/renamed": "fail_open"},
    }
    automatic = {lost: Killed(BLIND), kept: Killed("jcs/ver-02/a-trailing-zero")}
    status, said = compare(planted=planted, automatic=automatic, clauses=[*JCS.clauses])
    assert status == 1
    first, second = said.splitlines()
    assert "utf8-replaced" in first
    assert BLIND in first
    assert lost in second


@pytest.mark.parametrize("part", ["cpu", "automatic", "planted"])
def test_what_is_not_frozen_is_no_result_where_it_is_asked_for(part: str, compare: Compare) -> None:
    status, said = compare("--part", part)
    assert status == 2
    assert f"{part} of jcs" in said


def test_a_verdict_that_is_less_grave_is_a_lost_kill() -> None:
    assert teeth.stands({"a": "wrong_reason"}, [Shown("a", ("C-1",), "fail_open")])
    assert not teeth.stands({"a": "fail_open"}, [Shown("a", ("C-1",), "wrong_reason")])
    assert not teeth.stands({"a": "fail_open"}, [Shown("b", ("C-1",), "fail_open")])


def test_what_is_missing_is_frozen_by_running_it_and_the_rest_is_kept(file: Path) -> None:
    bugs = {bug.name: {"jcs/kept": "fail_open"} for bug in load_mutants("jcs").mutants}
    teeth.write(file, Teeth({"jcs": Part(planted={**bugs, BUG: {}, "gone-bug": {}})}))
    assert teeth.main(["--write", str(file), "--contract", "jcs", "--part", "planted", "--missing"]) == 0
    written = teeth.read(file).contracts["jcs"]
    assert written.planted.keys() == bugs.keys()
    assert "fail_open" in written.planted[BUG].values()
    assert written.planted["utf8-replaced"] == {"jcs/kept": "fail_open"}
    assert written.permitted == [choice.name for choice in load_mutants("jcs").choices]
    assert written.cases == [case.id for case in plan_of(JCS)]


@pytest.mark.parametrize(
    ("part", "name"),
    [
        ({"clauses": ["JCS-GONE-1"]}, "JCS-GONE-1"),
        ({"cases": ["jcs/gone/a-case"]}, "jcs/gone/a-case"),
        ({"planted": {"a-bug": {KILLER: "fail_open"}}}, "a-bug"),
    ],
)
def test_what_is_gone_fails_until_it_is_named(part: dict[str, Any], name: str, compare: Compare) -> None:
    status, said = compare(**part)
    assert status == 1
    assert name in said
    assert compare("--gone", name, **part) == (0, "")


def test_automatic_mutants_that_have_no_place_any_more_are_no_pass(compare: Compare) -> None:
    assert compare(automatic={"0123456789 jcs/gone.py f guard": Killed(KILLER)})[0] == 1


def test_a_sound_adapter_that_is_accused_fails(compare: Compare) -> None:
    status, said = compare(contract="idempotency-key", sound={"shape cut": 1, "shape waits": 40})
    assert status == 1
    assert "shape cut" in said
    assert "waits" not in said


def test_a_sound_adapter_of_which_less_is_shown_fails(compare: Compare) -> None:
    assert compare(contract="idempotency-key", sound={"shape waits": 1000})[0] == 1


def test_a_broken_adapter_that_is_not_found_fails(compare: Compare) -> None:
    test = "test_keys_that_differ_in_one_thing_are_two"
    broken = {name: {test: "fail_open"} for name in ("shape cut", "shape waits", "no such adapter")}
    status, said = compare(contract="idempotency-key", broken=broken)
    assert status == 1
    assert [line for line in said.splitlines() if "shape cut" in line] == []
    assert len(said.splitlines()) == 2


def test_a_tenth_more_cpu_fails_whatever_the_speed_of_the_machine(
    compare: Compare, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teeth, "measured", lambda _: Cpu(22.5, 2.0))
    assert compare(cpu=Cpu(10.3, 1.0))[0] == 0
    status, said = compare(cpu=Cpu(10.0, 1.0))
    assert status == 1
    assert "22.5" in said
    assert "10.0" in said


def test_cpu_time_is_that_of_all_that_came_of_a_command() -> None:
    left = f"{sys.executable} -c 'import time\nwhile time.process_time() < 0.3: pass' &"
    assert teeth.cpu_of("sh", "-c", left) >= 0.3


def test_a_reference_that_does_not_conform_is_no_result() -> None:
    with pytest.raises(teeth.TeethError):
        teeth.cpu_of("sh", "-c", "exit 12")


@pytest.mark.parametrize("text", ["", "{", '{"format": "holdfast-teeth/2"}', '{"format": "holdfast-teeth/1", "x": 1}'])
def test_a_damaged_file_and_one_of_another_format_are_no_result(
    text: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(text, encoding="utf-8")
    assert teeth.main(["--compare", str(file)]) == 2
    assert str(file) in capsys.readouterr().out


@pytest.mark.parametrize("whom", ["the run", "a worker"])
def test_an_interrupted_run_and_a_worker_that_is_killed_are_no_pass(whom: str, file: Path) -> None:
    bugs = {bug.name: dict[str, str]() for bug in load_mutants("jcs").mutants}
    teeth.write(file, Teeth({"jcs": Part(planted=bugs)}))
    words = [sys.executable, "-m", "bench.teeth", "--compare", str(file), "--contract", "jcs"]
    with subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True) as run:
        workers: list[psutil.Process] = []
        while not workers:
            time.sleep(0.1)
            assert run.poll() is None
            of_run = psutil.Process(run.pid).children()
            workers = [one for one in of_run if "holdfast.conformance.selfcheck.worker" in one.cmdline()]
        if whom == "the run":
            run.send_signal(signal.SIGINT)
        else:
            workers[0].kill()
        said, _ = run.communicate()
    assert run.returncode not in (0, 1)
    assert said.startswith("no result")


def test_a_quarter_is_the_same_for_one_seed_and_another_for_another() -> None:
    names = [f"bug-{number}" for number in range(400)]
    monday, tuesday = (set(Run(seed).of(names)) for seed in ("monday", "tuesday"))
    assert Run("monday").of(names) == [name for name in names if name in monday]
    assert monday != tuesday
    assert 60 < len(monday) < 140
    assert Run().of(names) == names
