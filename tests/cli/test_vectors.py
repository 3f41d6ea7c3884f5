"""`holdfast vectors` as a user meets it: help, output, exit statuses, and what is left behind."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import typer

from holdfast.conformance.cli import outermost
from holdfast.conformance.cli.vectors.evidence import answer_text
from holdfast.conformance.cli.vectors.parity import _written
from holdfast.conformance.cli.vectors.spark import JobError, _words, words_kept
from holdfast.reports.evidence import read_evidence
from holdfast.specs import schema
from holdfast.vectors.jcs.frames import Answered, Status
from holdfast.vectors.jcs.spark.session import _shipped
from tests import warm
from tests.pace import busy
from tests.process.leftovers import until

FAKE = str(Path(__file__).parents[1] / "vectors" / "ladder" / "runner.py")


# The whole ladder takes the reference some seconds, and the smallest counterexample of each kind half a minute; what
# these tests are about needs neither.
FEW_RUNGS = """
import sys, time
from dataclasses import replace
from holdfast.conformance.cli import main
from holdfast.vectors.jcs import opening
from holdfast.vectors.jcs.spark import verify
whole, shrinker = opening.opening_of, verify.Shrinker
verify.Shrinker = lambda *asked, until: shrinker(*asked, until=time.monotonic() + 0.1)
opening.opening_of = lambda seed: replace(whole(seed), rungs=whole(seed).rungs[::100])
sys.argv[0] = "holdfast"
main()
"""


def _run_few(*words: str, cwd: Path, **more: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", FEW_RUNGS, *([] if words[0] == "gate" else ["vectors"]), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=busy(300), cwd=cwd, **more)


def _run(*words: str, cwd: Path, env: Mapping[str, str] = os.environ) -> subprocess.CompletedProcess[str]:
    return warm.run(["vectors", *words], cwd=cwd, env=env, limit=300)


def _fits(name: str, text: str) -> Any:
    raw = json.loads(text)
    assert schema.explain(schema.published_validator(name), raw) is None
    return raw


def test_a_row_is_shown_alone_with_what_every_profile_expects(tmp_path: Path) -> None:
    done = _run("show", "7:12345", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    raw = _fits("vectors-show", done.stdout)
    assert raw["name"] == "7:12345"
    assert raw["finding"] is None


@pytest.mark.parametrize(
    ("runner", "document", "status", "finding", "said"),
    [
        ("naive", b"[1]", 0, "agree", ""),
        ("naive", b"[1.0]", 11, "wrong_bytes", ""),
        ("naive", b'{"a":1,"a":2}', 10, "accepted_must_refuse", ""),
        ("dead", b"[1]", 12, "no_verdict", ""),
        # It answers, and aborts when its input ends.
        ("abort-at-end", b"[1]", 12, "no_verdict", "SIGABRT"),
    ],
)
def test_an_sdk_is_asked_about_one_document(
    tmp_path: Path, runner: str, document: bytes, status: int, finding: str, said: str
) -> None:
    done = _run("show", f"hex:{document.hex()}", "--format", "json", "--", sys.executable, FAKE, runner, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert _fits("vectors-show", done.stdout)["finding"] == finding
    assert said in done.stdout


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["show", "no-such-vector"], "SEED:INDEX"),
        (["verify", "--count", "5"], "--sdk NAME"),
        (["verify", "--sdk", "reference"], "--count N or --in DIR"),
        (["verify", "--count", "5", "--sdk", "reference", "--master", "yarn"], "expected --out on a cluster"),
        (["parity", "--master", "yarn"], "local"),
    ],
)
def test_usage_errors_say_what_was_expected(tmp_path: Path, words: list[str], said: str) -> None:
    done = _run(*words, cwd=tmp_path)
    assert done.returncode == 64
    assert said in done.stderr


def test_without_java_nothing_is_proven_and_the_message_says_what_to_do(tmp_path: Path) -> None:
    code = (
        "import holdfast.vectors.jcs.spark.java as java, sys; java._from_wheel = lambda: None; "
        "from holdfast.conformance.cli import main; sys.argv[0] = 'holdfast'; main()"
    )
    words = [sys.executable, "-c", code, "vectors", "generate", "--count", "5", "--out", str(tmp_path / "rows")]
    done = subprocess.run(words, capture_output=True, text=True, env={"PATH": str(tmp_path)}, cwd=tmp_path)
    assert done.returncode == 12, done.stderr
    assert "not proven: expected a Java runtime of version 17 or later" in done.stderr
    assert not (tmp_path / "rows").exists()


def test_the_committed_vectors_have_no_problem(tmp_path: Path) -> None:
    done = _run("lint", "--format", "json", cwd=tmp_path)
    assert _fits("vectors-lint", done.stdout) == {"problems": []}


def test_sdks_are_listed(tmp_path: Path) -> None:
    raw = _fits("vectors-sdk", _run("sdk", "list", "--format", "json", cwd=tmp_path).stdout)
    assert {"reference", "python-rfc8785"} <= {one["name"] for one in raw["sdks"]}


@pytest.mark.xdist_group("spark-cli")
def test_verify_writes_evidence_that_the_gate_judges_again_and_exits_by_the_worst(tmp_path: Path) -> None:
    known = ["--nonce", "4711", "--commit", "c0ffee"]
    words = ["verify", "--count", "300", *known, "--name", "mine", "--junitxml", "sdk.xml", "--format", "json"]
    done = _run_few(*words, "--", sys.executable, FAKE, "naive", cwd=tmp_path)
    assert done.returncode == 10, done.stderr
    raw = _fits("vectors-verify", done.stdout)
    assert raw["evidence"] == "holdfast-out/vectors/mine/run.jsonl"
    run = read_evidence(tmp_path / raw["evidence"])
    assert run.defects == ()
    assert run.footer is not None
    assert run.footer.exit == 10
    assert run.vectors[0].count == 300
    (failure,) = ET.parse(tmp_path / "sdk.xml").findall(".//testcase[@name='N1']/failure")
    assert {"input:", "expected:", "got:", str(raw["seed"])} <= {*re.split(r"[ ,\n]+", failure.text or "")}
    judged = _run_few("gate", raw["evidence"], "--require", "jcs/vectors", *known, "--summary", "s.md", cwd=tmp_path)
    assert judged.returncode == 10, judged.stderr
    assert "300 rows were generated, 100,000 are asked for" in judged.stdout
    more = ["--rows", "300", "--format", "json"]
    held = json.loads(_run_few("gate", raw["evidence"], "--require", "jcs/vectors", *known, *more, cwd=tmp_path).stdout)
    assert {each["code"] for each in held["reasons"]} == {"fail_open", "non_conforming"}
    assert "JCS-DUP-01" in (tmp_path / "s.md").read_text(encoding="utf-8")


@pytest.mark.sweep
@pytest.mark.xdist_group("spark-cli")
def test_a_run_without_rows_of_every_category_is_not_a_pass_and_says_so(tmp_path: Path) -> None:
    words = ["verify", "--count", "1", "--seed", "6", "--evidence", "run.jsonl", "--sdk", "reference"]
    done = _run_few(*words, cwd=tmp_path)
    assert done.returncode == 12, done.stderr
    assert "nothing is proven about them" in done.stdout
    run = read_evidence(tmp_path / "run.jsonl")
    assert run.defects == ()
    assert run.footer is not None
    assert (run.footer.verdict, run.footer.exit) == ("not_reached", 12)


@pytest.mark.sweep
@pytest.mark.xdist_group("spark-cli")
def test_a_job_that_fails_proves_nothing_and_does_not_leave_an_earlier_run_in_its_place(tmp_path: Path) -> None:
    (tmp_path / "run.jsonl").write_bytes(b'{"adapter":')
    words = ["verify", "--count", "10", "--evidence", "run.jsonl", "--", sys.executable, FAKE, "kill-worker"]
    done = _run(*words, cwd=tmp_path)
    assert done.returncode == 12, done.stderr
    assert "not proven: expected Spark to finish, got org.apache.spark.SparkException" in done.stderr
    assert not (tmp_path / "run.jsonl").exists()


def test_words_of_a_failed_job_do_not_need_a_jvm_that_is_gone() -> None:
    with pytest.raises(JobError, match="ConnectionRefusedError"), words_kept():
        raise ConnectionRefusedError


def test_a_job_that_fails_because_it_was_interrupted_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outermost, "_interrupted", True)
    with pytest.raises(KeyboardInterrupt), words_kept():
        raise ConnectionRefusedError


def test_what_cannot_be_evidence_is_a_matter_of_usage_and_left_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    for path in (tmp_path, notes):
        done = _run("verify", "--count", "10", "--sdk", "reference", "--evidence", str(path), cwd=tmp_path)
        assert done.returncode == 64, done.stderr
        assert "expected" in done.stderr
    assert notes.read_text() == "mine"


def test_an_earlier_run_does_not_stand_for_one_that_never_began(tmp_path: Path) -> None:
    earlier = tmp_path / "out" / "run.jsonl"
    earlier.parent.mkdir()
    earlier.write_bytes(b'{"adapter":')
    without = {**os.environ, "JAVA_HOME": str(tmp_path), "PATH": str(tmp_path)}
    words = ["--count", "10", "--sdk", "reference", "--out", str(earlier.parent)]
    done = _run("verify", *words, cwd=tmp_path, env=without)
    assert done.returncode == 12, done.stderr
    assert not earlier.exists()


def test_a_result_that_cannot_be_written_proves_nothing(tmp_path: Path) -> None:
    with pytest.raises(typer.Exit) as caught:
        _written(tmp_path / "gone" / "parity.json", "{}")
    assert caught.value.exit_code == 12


def test_the_words_of_a_runner_are_no_lines_of_the_report() -> None:
    refusal = Answered(Status.REFUSED, "ok\n400 of 400 rows agree\u202e".encode())
    assert answer_text(refusal) == r"refused: ok\n400 of 400 rows agree\u202e"


WORKER = 'Traceback (most recent call last):\n  File "x", line 1\n{}\n\n\tat Java'


@pytest.mark.parametrize(
    ("deepest", "said"),
    [
        ("No space left on device", "No space left on device"),
        (WORKER.format("vectors.BlockError: expected 3 rows"), "vectors.BlockError: expected 3"),
        (WORKER.format("ModuleNotFoundError: No module named 'orjson'"), "ModuleNotF.* named 'orjson'.*PYSPARK_PYTHON"),
    ],
)
def test_a_failed_job_is_told_by_what_began_it_and_what_a_worker_lacks(deepest: str, said: str) -> None:
    root = SimpleNamespace(getCause=lambda: None, toString=lambda: deepest)
    error = Exception("of pyspark")
    outermost = SimpleNamespace(getCause=lambda: root, toString=lambda: "Job aborted\nmore")
    error._origin = outermost  # type: ignore[attr-defined]
    assert re.match(f"Job aborted: {said}", _words(error))


def test_what_travels_to_a_worker_can_be_imported_there(tmp_path: Path) -> None:
    archive = _shipped(tmp_path)
    code = "import holdfast.vectors, holdfast.reports.plain; print(holdfast.__file__)"
    # Without site-packages, as holdfast is not installed on a worker.
    words = [sys.executable, "-P", "-S", "-c", f"import sys; sys.path.insert(0, {str(archive)!r}); {code}"]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout.startswith(str(archive)), done.stderr


@pytest.mark.sweep
@pytest.mark.xdist_group("spark-cli")
def test_a_named_runner_that_cannot_run_leaves_the_comparison_incomplete(tmp_path: Path) -> None:
    folders = {"lost": "never-built-for-this-test", "kept": sys.executable}
    for name, program in folders.items():
        folder = tmp_path / "sdks" / name
        folder.mkdir(parents=True)
        (folder / "runner.toml").write_text(
            f'language = "Test"\nsteps = []\n[[needs]]\nprogram = "{program}"\nget = "it"\n'
            f'[[runners]]\nname = "test-{name}"\nlibrary = "none"\nversion = "1"\n'
            f'command = ["{program}", "-P", "-m", "holdfast.reference_impl", "frames", "--profile", "core"]\n'
        )
    environment = {**os.environ, "HOLDFAST_SDKS": str(tmp_path / "sdks"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    words = ["parity", "--build", "--matrix-only", "--count", "400", "--sdk", "test-kept", "--sdk", "test-lost"]
    done = _run_few(*words, cwd=tmp_path, env=environment)
    assert done.returncode == 12, done.stderr
    raw = _fits("vectors-parity", (tmp_path / "holdfast-out" / "parity" / "parity.json").read_text())
    assert [one["agree"] for one in raw["sdks"]] == [400] * 4
    assert raw["faults"] == []
    assert "not proven: test-lost" in done.stdout


@pytest.mark.xdist_group("spark-cli")
def test_the_first_lines_of_the_number_stream_match_what_is_published(tmp_path: Path) -> None:
    done = _run("es6", "--lines", "1000", "--master", "local[1]", cwd=tmp_path)
    assert (done.returncode, "MATCH" in done.stdout) == (0, True), done.stderr


@pytest.mark.xdist_group("spark-cli")
def test_nothing_is_left_after_an_interruption(tmp_path: Path) -> None:
    words = ["generate", "--count", "3000000", "--partitions", "2", "--master", "local[2]", "--out", "rows"]
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "holdfast.conformance.cli", "vectors", *words], stderr=subprocess.PIPE, text=True,
        cwd=tmp_path, env={**os.environ, "TMPDIR": str(temporary)}, start_new_session=True,
    )  # fmt: skip
    # The JVM, and in it the first tasks.
    until((tmp_path / "rows" / "_holdfast_plan.json").exists, within=busy(120))
    assert list(temporary.glob("holdfast-*"))
    family = psutil.Process(child.pid).children(recursive=True)
    assert any("java" in process.name() for process in family)
    os.kill(child.pid, signal.SIGINT)
    said = child.communicate(timeout=busy(120))[1]
    assert child.returncode == 12, said
    (line,) = said.splitlines()
    assert "interrupted" in line
    _, alive = psutil.wait_procs(family, timeout=busy(20))
    assert alive == []
    assert list(temporary.glob("holdfast-*")) == []
    assert not (tmp_path / "rows" / "manifest.json").exists()
