"""The public interface: an adapter and a store that are classes, typed results, and no pass without one."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import holdfast
from holdfast import Adapter, Exit, Verdict, VerifyResult, crash, gate, interface, load_contract, verify, worker
from holdfast.adapter import lacking
from tests.forger import lines_of
from tests.hostile.verify import TOY
from tests.packaging.test_tree import ROOT, repository_files
from tests.python.shelf import Lacking, Leaving, Open, Raising, Shelf, Silent

PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")
BLOCKS = re.compile(r"^```python\n(# (\S+)\n.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def _toy(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOLDFAST_SPECS", str(TOY))
    monkeypatch.chdir(tmp_path)


def python(*words: str | Path, given: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], input=given, capture_output=True, text=True, check=False)


def test_a_sound_class_conforms_and_passes_the_gate() -> None:
    result = verify("toy", Shelf, nonce="a nonce", config={"some": "thing"})
    assert (bool(result), result.conforms, result.exit, result.decision) == (True, True, Exit.OK, "YES"), str(result)
    assert (result.verdict, result.findings) == (Verdict.CONFORMS, ())
    assert gate(result, "toy", nonce="a nonce").decision == "YES"
    other = gate(result.evidence, ["toy"], nonce="another")
    assert (bool(other), [each.code for each in other.reasons]) == (False, ["other_nonce"])
    assert '"path":"shelf.py"' in str(lines_of(result.evidence))


def test_findings_of_a_broken_class_are_typed_and_printed() -> None:
    result = verify("toy", Open)
    assert (bool(result), result.conforms, result.exit, result.decision) == (False, False, Exit.FAIL_OPEN, "NO")
    finding = result.findings[0]
    assert (finding.clauses, finding.verdict, result.verdict) == (("TOY-02",), Verdict.FAIL_OPEN, Verdict.FAIL_OPEN)
    assert f"fail_open {finding.case}" in str(result)
    decision = gate(result, "toy")
    assert (bool(decision), decision.exit, decision.reasons[0].code) == (False, Exit.FAIL_OPEN, "fail_open")


def test_a_narrowed_run_conforms_and_proves_nothing() -> None:
    result = verify("toy", Shelf, quick=True, clauses=["TOY-03"])
    assert (bool(result), result.conforms, result.exit, result.decision) == (False, True, Exit.INCOMPLETE, "NO")


@pytest.mark.parametrize("kind", [Raising, Lacking])
def test_what_is_raised_or_lacking_proves_nothing(kind: type[Shelf]) -> None:
    result = verify("toy", kind, quick=True)
    found = {each.verdict for each in result.findings}
    assert found
    assert found <= {Verdict.NO_VERDICT, Verdict.NOT_REACHED, Verdict.UNSUPPORTED}
    assert not result.conforms


def test_an_adapter_that_ends_is_a_result() -> None:
    result = verify("toy", Leaving, quick=True)
    assert (result.conforms, result.exit, result.decision) == (False, Exit.ADAPTER, "NO")
    never = verify("toy", [sys.executable, "-c", "raise SystemExit('no such store')"])
    assert (never.conforms, never.exit, never.findings) == (False, Exit.ADAPTER, ())
    assert "no such store" in never.problem


def test_what_a_method_does_wrong_is_a_fault_with_its_trace(tmp_path: Path) -> None:
    opened = {"op": "open", "state": "fresh", "surface": "ready", "workdir": str(tmp_path), "clock": "", "config": {}}
    put = {"op": "call", "method": "put", "args": {"key": "a", "nonce": "b"}}
    for kind, after, trace in ((Raising, put, "LookupError: DUPLICATE"), (Silent, {**put, "method": "state"}, "")):
        requests = (opened, put, after)
        lines = "".join(f"{json.dumps({'id': '1', **each})}\n" for each in requests)
        done = python(*worker.command_of(kind, "adapter")[1:], given=lines)
        outcomes = [json.loads(line)["outcome"] for line in done.stdout.splitlines()]
        assert outcomes == ["ok", "accepted" if trace else "fault", "fault"]
        assert trace in done.stderr
        assert ("Traceback" in done.stderr) is bool(trace)
        (tmp_path / "shelf.sqlite").unlink()


def test_a_store_refuses_and_fails_in_the_words_of_the_protocol(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "full.py").write_text(
        "from holdfast import Refused\nclass Full:\n    def __init__(self, folder): print(folder)\n"
        "    def put(self, facts):\n        raise Refused('full') if 'a.left' in facts else OSError('gone')\n"
        "    def dump(self): return {'b.left': '1'}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    command = worker.command_of(importlib.import_module("full").Full, "store")
    done = python(*command[1:], tmp_path, given="PUT a 1\nDUMP\nPUT b 1\nDUMP\n")
    assert done.stdout.splitlines() == ["READY", "REFUSED 'Refused: full'", '{"b.left": "1"}', "ERROR 'OSError: gone'"]
    assert str(tmp_path) in done.stderr


def test_a_method_that_a_class_lacks_is_not_claimed() -> None:
    kind = type("Mine", (Adapter,), {"contract": "jcs", "not_claimed": {"verify": "none"}})
    assert lacking(kind, load_contract("jcs")) == {"verify": "none", "canonicalise": "Mine has no method canonicalise"}


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: verify("toy", type("Here", (Shelf,), {})), "put it at the top level of a module"),
        (lambda: verify("jcs", Shelf), "for jcs"),
        (lambda: verify("toy", dict), "a subclass of holdfast.Adapter"),
        (lambda: verify("toy", "node mine.js"), "a list of words"),
        (lambda: verify("nothing", ["true"]), "nothing"),
        (lambda: verify("toy", ["true"], jobs=0), "jobs"),
        (lambda: crash(["true"], layers=["nothing"]), "layer"),
        (lambda: gate("none.jsonl", "toy"), "none.jsonl"),
    ],
)
def test_what_cannot_be_asked_is_an_error_that_says_so(ask: Callable[[], object], said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        ask()


GOOD = {"exit": 0, "can_proceed": "YES", "verdict": "conforms", "not_asked": [], "notes": [], "cases": []}
SAID = f"print({json.dumps(GOOD)!r}, flush=True)"


@pytest.mark.parametrize(
    "program",
    [
        *("pass", "print('{}')", "print('all is well')", SAID.replace('"exit": 0', '"exit": 12')),
        *(f"{SAID}; exit(10)", f"{SAID}; exit(1)", f"{SAID}; exit(20)", f"{SAID}; time.sleep(60)"),
        f"{SAID}; os.kill(os.getpid(), 9)",
    ],
)
def test_no_result_is_never_a_pass(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interface, "_COMMAND", (sys.executable, "-c", f"import os, time; {program}"))
    with pytest.raises(RuntimeError):
        verify("toy", ["true"], timeout=5)


@pytest.mark.parametrize("status", [12, 13])
def test_a_run_of_no_case_does_not_conform(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    program = f"{SAID}; exit({status})".replace('"exit": 0', f'"exit": {status}')
    monkeypatch.setattr(interface, "_COMMAND", (sys.executable, "-c", program))
    assert not verify("toy", ["true"], quick=True).conforms


def test_the_examples_of_the_page_run_in_a_project_of_their_own(tmp_path: Path) -> None:
    for page in ((ROOT / "README.md").read_text(encoding="utf-8"), PAGE):
        for text, name in BLOCKS.findall(page):
            (tmp_path / name).write_text(text, encoding="utf-8")
    stub = "from typing import Any\ndef canonicalise(args: object) -> dict[str, Any]: ...\n"
    (tmp_path / "mine.pyi").write_text(stub, encoding="utf-8")
    typed = python("-m", "mypy", "--strict", "check.py", "my_adapter.py", "my_store.py", "test_mine.py")
    assert typed.returncode == 0, typed.stdout
    # The same, but for a sync, and for a member that is written once more.
    lost = (tmp_path / "my_store.py").read_text(encoding="utf-8").replace("os.fsync(stream.fileno())", "pass")
    (tmp_path / "lost.py").write_text(lost, encoding="utf-8")
    (tmp_path / "open.py").write_text(
        "from my_adapter import Mine\nclass Open(Mine):\n    def canonicalise(self, args):\n"
        "        answer = super().canonicalise(args)\n"
        "        return self.accepted({'canonical': ''}) if answer.get('reason') == 'DUPLICATE_NAME' else answer\n"
    )
    (tmp_path / "test_broken.py").write_text(
        "from lost import MyStore\nfrom open import Open\n"
        "def test_open(holdfast): holdfast.verify('jcs', Open, quick=True, clauses=['JCS-DUP-01'])\n"
        "def test_lost(holdfast): holdfast.crash(MyStore, layers=['power'], least=True)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n", encoding="utf-8")
    done = python("-m", "pytest", "-q", "-p", "no:cacheprovider", "--basetemp", "temp")
    assert "2 failed, 2 passed" in done.stdout, done.stdout
    assert "fail_open jcs/dup-01/" in done.stdout
    assert re.search(r"power loss: (lost|unrecoverable): expected ", done.stdout)
    assert list(tmp_path.glob("temp/test_open0/holdfast-*/run.jsonl.zst"))


def test_a_script_that_runs_something_when_it_is_imported_is_told_so(tmp_path: Path) -> None:
    text = "from holdfast import Adapter, verify\nclass A(Adapter): contract = 'toy'\nprint(verify('toy', A).problem)"
    (tmp_path / "script.py").write_text(text, encoding="utf-8")
    assert '`if __name__ == "__main__":`' in python("script.py").stdout
    assert "which no file has" in python(given=text).stderr


def test_the_package_imports_nothing_and_its_page_names_all_that_is_public() -> None:
    shown = "import sys, holdfast; print([each for each in sys.modules if each.startswith(('holdfast.', 'msgspec'))])"
    assert python("-P", "-c", shown).stdout.strip() == "[]"
    assert all(getattr(holdfast, name) is not None for name in holdfast.__all__)
    assert {*holdfast.__all__, *VerifyResult.__struct_fields__} <= set(re.findall(r"\w+", PAGE))
    with pytest.raises(AttributeError):
        _ = holdfast.nothing


def test_the_kit_itself_imports_no_public_name_so_the_import_linter_misses_nothing() -> None:
    own = [ROOT / name for name in repository_files() if name.endswith(".py") and not name.startswith("tests/")]
    taken = re.compile(rf"^\s*from holdfast import .*\b({'|'.join(holdfast.__all__)})\b", re.MULTILINE)
    assert [path for path in own if taken.search(path.read_text(encoding="utf-8"))] == []
