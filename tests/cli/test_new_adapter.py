"""`holdfast new-adapter`: what it writes is built, runs, and says of itself that nothing is there yet."""

from __future__ import annotations

import ast
import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from holdfast.conformance.starting import write
from holdfast.conformance.starting.write import COMMANDS, LANGUAGES, rendered, write_adapter
from holdfast.specs import contract_names, load_contract
from tests import warm
from tests.conftest import missing
from tests.hostile.verify import environment
from tests.pace import busy

CONTRACT = "calyx-replay"
LIMIT_S = 240.0
TOOLS = {"python": "python3", "node": "npm", "go": "go", "rust": "cargo", "java": "mvn"}


def holdfast(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return warm.run(words, cwd=folder, env=environment(folder.parent), limit=LIMIT_S)


def made(folder: Path, language: str, contract: str = CONTRACT) -> Path:
    ended = holdfast(folder, "new-adapter", "--contract", contract, "--lang", language, "guard")
    assert ended.returncode == 0, ended.stderr
    return folder / "guard"


def _languages() -> Iterator[object]:
    """Compilers take minutes. By default one of them is run, by the digest of the templates; `-m sweep` runs all."""
    compiled = [language for language in LANGUAGES if language not in ("python", "node")]
    files = sorted(path for path in write._FILES.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    digest = sha256(b"".join(path.read_bytes() for path in files)).digest()
    chosen = compiled[int.from_bytes(digest[:4]) % len(compiled)]
    for language in LANGUAGES:
        yield pytest.param(language, marks=pytest.mark.sweep if language in {*compiled} - {chosen} else ())


@pytest.mark.parametrize("language", list(_languages()))
def test_a_new_adapter_is_built_and_speaks_the_protocol(language: str, tmp_path: Path) -> None:
    if shutil.which(TOOLS[language]) is None:
        missing(TOOLS[language])
    folder = made(tmp_path, language)
    if build := COMMANDS[language]["build"]:
        subprocess.run(shlex.split(build), cwd=folder, check=True, timeout=busy(LIMIT_S))
    start = shlex.split(COMMANDS[language]["start"])
    examined = holdfast(folder, "doctor", "--contract", CONTRACT, "--format", "json", "--", *start)
    found = {each["name"]: each["health"] for each in json.loads(examined.stdout)["examinations"]}
    bad = {name for name, health in found.items() if health == "bad"}
    # It has no store yet.
    assert bad == {"store runtime/mailbox/replay_state.db"}, examined.stdout
    assert {"hello", "open", "clock", "unknown method", "close", "shutdown"} <= found.keys()
    words = ("--contract", CONTRACT, "--quick", "--format", "json", "--", *start)
    verified = holdfast(folder, "verify", *words)
    verdicts = {case["verdict"] for case in json.loads(verified.stdout)["cases"]}
    assert "unsupported" in verdicts
    assert "conforms" not in verdicts
    assert verified.returncode != 0


@pytest.mark.parametrize("contract", contract_names())
def test_every_contract_has_a_new_adapter_in_python_and_node(contract: str, tmp_path: Path) -> None:
    for language in ("python", "node"):
        (tmp_path / language).mkdir()
        folder = made(tmp_path / language, language, contract)
        start = [sys.executable, "adapter.py"] if language == "python" else ["node", "adapter.mjs"]
        if shutil.which(start[0]) is None:
            missing(start[0])
        hello = {"id": "1", "op": "hello", "protocol": 1, "kit": "holdfast/test", "challenge": "9" * 32}
        lines = [hello, {"id": "2", "op": "no-such-op"}, {"id": "3", "op": "bye"}]
        text = "".join(f"{json.dumps(line)}\n" for line in lines)
        ended = subprocess.run(
            start, cwd=folder, input=text, capture_output=True, text=True, timeout=busy(LIMIT_S), check=True
        )
        said = [json.loads(line) for line in ended.stdout.splitlines()]
        assert [each["id"] for each in said] == ["1", "2", "3"]
        (claim,) = said[0]["ok"]["claims"]
        assert claim["not_claimed"].keys() == load_contract(contract).methods.keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_every_method_of_every_contract(language: str) -> None:
    for name in contract_names():
        contract = load_contract(name)
        files = rendered(contract, language, name="guard")
        whole = "\n".join(files.values())
        assert {"README.md", ".github/workflows/holdfast.yml", ".gitlab-ci.yml", ".gitignore"} <= files.keys()
        assert all(f'"{method}"' in whole or f"{method}:" in whole for method in contract.methods)


@pytest.mark.parametrize("language", LANGUAGES)
def test_names_with_a_dash_and_compiled_files_beside_the_templates_do_no_harm(
    language: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(write._FILES, tmp_path / "files")
    (tmp_path / "files" / language / "__pycache__").mkdir(exist_ok=True)
    (tmp_path / "files" / language / "__pycache__" / "helper.cpython-312.pyc").write_bytes(b"\xa7\r\r\n")
    monkeypatch.setattr(write, "_FILES", tmp_path / "files")
    (tmp_path / ".git").mkdir()
    folder = tmp_path / "guard"
    paths = write_adapter(load_contract("jcs"), language, folder, name="guard")
    # A host reads its file at the root of the repository, and runs its steps there.
    assert 'working-directory: "guard"' in (folder / ".github/workflows/holdfast.yml").read_text(encoding="utf-8")
    assert '- cd "guard"' in (folder / ".gitlab-ci.yml").read_text(encoding="utf-8")
    assert not [path for path in paths if "__pycache__" in path.parts]
    for path in paths:
        if path.suffix == ".py":
            ast.parse(path.read_text(encoding="utf-8"))
        if path.suffix == ".mjs" and shutil.which("node") is not None:
            subprocess.run(["node", "--check", path], check=True, timeout=busy(LIMIT_S))


def test_a_folder_that_holds_something_is_left_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / "guard"
    folder.mkdir()
    (folder / "mine").write_text("precious", encoding="utf-8")
    ended = holdfast(tmp_path, "new-adapter", "--contract", CONTRACT, "--lang", "python", "guard")
    assert ended.returncode == 64
    assert "expected a new or an empty folder" in ended.stderr
    assert [path.name for path in folder.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--contract", "no-such-contract", "--lang", "python"), "unknown"),
        (("--contract", CONTRACT, "--lang", "cobol"), "unknown"),
        (("--contract", CONTRACT, "--lang", "python", "--name", "a b"), "expected"),
        (("--contract", "mesh-delivery", "--role", "client", "--lang", "go"), "daemon"),
    ],
)
def test_what_cannot_be_written_is_told(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ended = holdfast(tmp_path, "new-adapter", *words, "guard")
    assert ended.returncode == 64
    assert said in ended.stderr
    assert not (tmp_path / "guard").exists()


def test_a_new_adapter_of_one_role_has_its_methods_alone_and_says_what_is_no_part_of_it(tmp_path: Path) -> None:
    ended = holdfast(
        tmp_path, "new-adapter", "--contract", "mesh-delivery", "--role", "daemon", "--lang", "python", "guard"
    )
    assert ended.returncode == 0, ended.stderr
    text = (tmp_path / "guard" / "adapter.py").read_text(encoding="utf-8")
    assert "def deliver(" in text
    assert "def accept(" not in text
    assert '"broker": "not a part of it"' in text
    assert '"daemon"' not in text
    assert "--require mesh-delivery/daemon" in (tmp_path / "guard" / "README.md").read_text(encoding="utf-8")
    start = ("--", sys.executable, "adapter.py")
    examined = holdfast(tmp_path / "guard", "doctor", "--contract", "mesh-delivery", "--format", "json", *start)
    found = {each["name"]: each["health"] for each in json.loads(examined.stdout)["examinations"]}
    assert found["hello"] != "bad", examined.stdout
