"""The first thing that `verify` does: what an older run left is set aside, and nothing else is touched."""

from __future__ import annotations

import json
import os
import shlex
from pathlib import Path

import pytest

from holdfast.conformance.cli.outermost.older_runs import set_aside_earlier
from holdfast.reports.earlier import set_results_aside

NO_FILE = ("''", "holdfast-out", "holdfast-out/", "--contract")
EVIDENCE = b'{"adapter":{}}\n'
JUNIT = b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites name="holdfast" tests="1"/>'
# As pytest's plugin wrote it for older versions of the kit, and as it writes it for the tests of any project.
OLD_JUNIT = (
    b'<?xml version="1.0" encoding="utf-8"?><testsuites name="pytest tests"><testsuite name="pytest" errors="0">'
    b'<testcase classname="" name="toy/once/a-case" time="0.1" /></testsuite></testsuites>'
)
THEIR_JUNIT = OLD_JUNIT.replace(b'classname="" name="toy/once/a-case"', b'classname="tests.test_x" name="test_y"')


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("holdfast-out").mkdir()


def wrote(name: str, content: bytes = EVIDENCE) -> Path:
    """A file in the current folder."""
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def is_set_aside(path: Path) -> bool:
    """Whether the file has its new name, and only that."""
    return not path.exists() and Path(f"{path}.previous").is_file()


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ("verify", "holdfast-out/run.jsonl"),
        ("verify --no-such-option -- ./adapter", "holdfast-out/run.jsonl.zst"),
        ("verify --evidence -- ./adapter", "holdfast-out/run.jsonl.zst"),
        ("verify --evidence out/a.jsonl reference", "out/a.jsonl"),
        ("verify --evidence=out/a.jsonl reference", "out/a.jsonl"),
        ("verify --evidnce=out/a.jsonl reference", "out/a.jsonl"),
        ("--verbose verify reference", "holdfast-out/run.jsonl.zst"),
        ("vectors verify --count 5 -- ./my-canonicaliser", "holdfast-out/vectors/my-canonicaliser/run.jsonl"),
        ("vectors verify --sdk reference", "holdfast-out/vectors/reference/run.jsonl"),
        ("vectors verify --out rows --sdk reference", "rows/run.jsonl"),
        ("vectors verify --evidence a.jsonl --sdk reference", "a.jsonl"),
        # A place for the evidence that is no file leaves nothing of an older run.
        *(
            (f"verify --evidence {no_file} --contract toy -- ./adapter", "holdfast-out/run.jsonl.zst")
            for no_file in NO_FILE
        ),
        # Help behind the dashes is the adapter's.
        ("verify -- ./adapter --help", "holdfast-out/run.jsonl.zst"),
    ],
)
def test_an_older_run_is_set_aside_by(words: str, name: str) -> None:
    path = wrote(name)
    assert set_aside_earlier(shlex.split(words)) == ""
    assert is_set_aside(path)
    assert Path(f"{path}.previous").read_bytes() == EVIDENCE


@pytest.mark.parametrize(
    "words",
    [
        "verify --help",
        "verify --evidence holdfast-out/run.jsonl.zst --help",
        "--help verify",
        "gate holdfast-out/run.jsonl.zst --require toy",
        "report verify holdfast-out/run.jsonl.zst",
        "verify --evidence other.jsonl reference",
        "verify --evidence other.jsonl -- ./adapter holdfast-out/run.jsonl.zst",
        "vectors show 1:2 -- holdfast-out/run.jsonl.zst",
        "",
    ],
)
def test_a_run_is_left_where_it_is_by(words: str) -> None:
    path = wrote("holdfast-out/run.jsonl.zst")
    assert set_aside_earlier(words.split()) == ""
    assert path.read_bytes() == EVIDENCE


@pytest.mark.parametrize("content", [JUNIT, OLD_JUNIT], ids=["own", "of older versions"])
def test_a_junit_file_of_an_older_run_is_set_aside(content: bytes) -> None:
    path = wrote("junit.xml", content)
    set_aside_earlier(["verify", "--junitxml", "junit.xml", "reference"])
    assert is_set_aside(path)


@pytest.mark.parametrize("content", [THEIR_JUNIT, b"", b"{}", b'{"adapter', b"<testsuites/>"])
@pytest.mark.parametrize("option", ["--junitxml", "--evidence", "--xfail"])
def test_a_file_that_is_not_holdfasts_own_is_left_alone(option: str, content: bytes) -> None:
    path = wrote("theirs", content)
    assert set_aside_earlier(["verify", option, "theirs", "reference"]) == ""
    assert path.read_bytes() == content
    assert {found.name for found in Path().iterdir()} == {"theirs", "holdfast-out"}


@pytest.mark.parametrize(
    "make", [os.mkfifo, os.mkdir, lambda path: os.symlink(path, path)], ids=["pipe", "dir", "loop"]
)
def test_what_is_no_file_is_left_alone(make: object) -> None:
    assert callable(make)
    make("odd")
    assert set_aside_earlier(["verify", "--evidence", "odd", "--junitxml=odd", "--alluredir", "odd"]) == ""
    assert os.path.lexists("odd")


def result(name: str, labels: dict[str, str], **more: object) -> None:
    """A result of Allure, with an attachment."""
    data = {
        "fullName": "x",
        "labels": [{"name": key, "value": value} for key, value in labels.items()],
        "attachments": [{"name": "transcript", "source": f"{name}-attachment.txt"}],
        **more,
    }
    wrote(f"allure/{name}-result.json", json.dumps(data).encode())
    wrote(f"allure/{name}-attachment.txt", b"text")


@pytest.mark.parametrize("words", [["--alluredir", "allure"], ["--alluredir=allure"]])
def test_results_of_allure_are_set_aside_with_their_attachments_and_only_holdfasts_own(words: list[str]) -> None:
    result("own", {"framework": "holdfast"})
    result("old", {"framework": "pytest"}, fullName="#toy/once/a-case")
    result("theirs", {"framework": "pytest"}, fullName="tests.test_x#test_y")
    result("escaping", {"framework": "holdfast"}, attachments=[{"source": "../holdfast-out"}])
    wrote("allure/broken-result.json", b"{")
    wrote("allure/categories.json", b"[]")
    assert set_aside_earlier(["verify", *words, "reference"]) == ""
    left = {path.name.partition("-")[0] for path in Path("allure").iterdir()}
    assert left == {"theirs", "escaping", "broken", "categories.json"}
    moved = {path.name for path in Path("allure.previous").iterdir()}
    own = {f"{name}-{what}" for name in ("own", "old") for what in ("result.json", "attachment.txt")}
    assert moved == own | {"escaping-result.json"}
    # Of the run before that, nothing is kept.
    result("newer", {"framework": "holdfast"})
    set_results_aside("allure")
    assert {path.name for path in Path("allure.previous").iterdir()} == {"newer-result.json", "newer-attachment.txt"}


def test_results_that_cannot_move_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    result("own", {"framework": "holdfast"})
    result("theirs", {"framework": "pytest"}, fullName="tests.test_x#test_y")

    def elsewhere(_old: str, _new: str) -> None:
        raise OSError(18, "Invalid cross-device link")

    monkeypatch.setattr(os, "replace", elsewhere)
    set_results_aside("allure")
    assert {path.name for path in Path("allure").iterdir()} == {"theirs-result.json", "theirs-attachment.txt"}
