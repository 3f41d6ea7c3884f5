"""What an adapter consists of: the same for the same build wherever it lies, and honest about the rest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from holdfast.conformance.adapter.process import files_of_group
from holdfast.conformance.cli.commands import app
from holdfast.conformance.run.artefacts import ArtefactError, Identity
from holdfast.reports.evidence import Artefacts, Redactor, Source
from tests import warm
from tests.forger import lines_of
from tests.hostile.verify import LIMIT_S

LATER = timedelta(minutes=1)


def concluded(
    command: Sequence[str], *, named: Sequence[Path] = (), saw: Sequence[Path] = (), started: datetime | None = None
) -> Artefacts:
    identity = Identity(command, started=started or datetime.now(UTC) + LATER, named=named)
    identity.saw(map(str, saw))
    return identity.conclude()


def paths(found: Artefacts) -> dict[str, Source]:
    return {file.path: file.source for file in found.files}


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """An adapter in Python with a module and a library."""
    folder = tmp_path / "one"
    (folder / "lib" / "deep").mkdir(parents=True)
    (folder / "guard.py").write_text("import lib.rules\n")
    (folder / "lib" / "rules.py").write_text("RULES = 1\n")
    (folder / "lib" / "deep" / "fast.so").write_bytes(b"\x7fELF fast")
    return folder


def command(checkout: Path) -> list[str]:
    return [sys.executable, str(checkout / "guard.py"), "--level", "7"]


def test_two_checkouts_of_one_build_have_one_digest(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = shutil.copytree(checkout, checkout.parent / "elsewhere" / "two")
    found = [
        concluded(command(each), named=[each / "lib"], saw=[each / "lib" / "deep" / "fast.so"])
        for each in (checkout, other)
    ]
    monkeypatch.chdir(other)
    found.append(concluded([sys.executable, "guard.py"], named=[Path("lib")]))
    assert {each.digest for each in found} == {found[0].digest}
    assert set(paths(found[0])) == {"guard.py", "lib/rules.py", "lib/deep/fast.so"}
    (other / "lib" / "rules.py").write_text("RULES = 2\n")
    assert concluded(command(other), named=[other / "lib"]).digest != found[0].digest


def test_the_digest_is_that_of_the_sorted_lines_of_sha256sum(checkout: Path) -> None:
    words = "sha256sum guard.py lib/rules.py lib/deep/fast.so | LC_ALL=C sort | sha256sum"
    told = subprocess.run(["sh", "-c", words], cwd=checkout, capture_output=True, text=True, check=True).stdout
    assert concluded(command(checkout), named=[checkout / "lib"]).digest == f"sha256:{told.split()[0]}"


def test_the_interpreter_is_no_part_of_the_adapter_and_that_is_said(checkout: Path) -> None:
    found = concluded(command(checkout), saw=[Path(sys.executable), Path(os.__file__)])
    assert paths(found) == {"guard.py": Source.COMMAND}
    interpreter = Path(sys.executable).resolve().name
    assert any(each.what.startswith(f"the interpreter {interpreter}") for each in found.not_hashed)


def test_nothing_to_hash_is_no_digest(checkout: Path) -> None:
    found = concluded([sys.executable, "-c", "print()"])
    assert (found.digest, found.files) == (None, ())


def test_a_folder_on_the_command_line_and_a_secret_are_not_hashed_and_named(checkout: Path) -> None:
    (checkout / "word").write_text("hunter2")
    words = [str(checkout / "guard.py"), str(checkout / "lib"), "--password", str(checkout / "word")]
    identity = Identity(words, started=datetime.now(UTC) + LATER, redactor=Redactor.knowing(command=words))
    found = identity.conclude()
    assert set(paths(found)) == {"guard.py"}
    left_out = " ".join(each.what for each in found.not_hashed)
    assert "lib, a folder" in left_out
    assert "word 3" in left_out


def test_a_path_after_an_equals_sign_counts(checkout: Path) -> None:
    found = concluded([str(checkout / "guard.py"), f"--rules={checkout / 'lib' / 'rules.py'}"])
    assert set(paths(found)) == {"guard.py", "lib/rules.py"}


def test_what_was_made_after_the_run_began_is_no_part_of_the_build(checkout: Path) -> None:
    library = checkout / "lib" / "deep" / "fast.so"
    found = concluded(command(checkout), saw=[library], started=datetime.now(UTC) - LATER)
    assert set(paths(found)) == {"guard.py"}
    assert "lib/deep/fast.so" in {each.what for each in found.not_hashed}


def test_a_compiled_module_counts_as_its_source(checkout: Path) -> None:
    compiled = checkout / "lib" / "__pycache__" / "rules.cpython-311.pyc"
    compiled.parent.mkdir()
    compiled.write_bytes(b"when it was compiled")
    assert paths(concluded(command(checkout), saw=[compiled]))["lib/rules.py"] is Source.LOADED


def test_a_file_that_changes_meanwhile_is_named_and_one_that_is_only_touched_is_not(checkout: Path) -> None:
    identity = Identity(command(checkout), started=datetime.now(UTC) + LATER, named=[checkout / "lib"])
    (checkout / "lib" / "rules.py").touch()
    assert identity.conclude().changed == ()
    (checkout / "guard.py").write_text("other\n")
    (checkout / "lib" / "rules.py").unlink()
    assert set(identity.conclude().changed) == {"guard.py", "lib/rules.py"}


@pytest.mark.parametrize("name", ["none", "empty", "pipe"])
def test_a_named_file_that_cannot_be_hashed_is_a_clear_error(checkout: Path, name: str) -> None:
    (checkout / "empty").mkdir()
    os.mkfifo(checkout / "pipe")
    with pytest.raises(ArtefactError, match=r"name .*(file|built)"):
        concluded(command(checkout), named=[checkout / name])


def test_a_line_end_in_a_name_forges_no_line_of_the_digest(checkout: Path) -> None:
    (checkout / "lib" / f"a\n{'0' * 64}  b.py").write_text("")
    assert all("\n" not in path for path in paths(concluded(command(checkout), named=[checkout / "lib"])))


def test_a_process_shows_its_program_and_its_scripts_wherever_it_stands(checkout: Path) -> None:
    """A launcher script that goes to its folder and starts the real one there."""
    start = checkout / "start.sh"
    start.write_text(f"cd {checkout}\n{sys.executable} later.py --rules lib/rules.py & wait\n")
    maps = "import mmap, time\nf = open('lib/deep/fast.so')\nm = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)\n"
    (checkout / "later.py").write_text(f"{maps}time.sleep(60)\n")
    child = subprocess.Popen(["sh", str(start)], start_new_session=True, cwd="/")
    try:
        wanted = {str(checkout / name) for name in ("start.sh", "later.py", "lib/rules.py", "lib/deep/fast.so")}
        ends = time.monotonic() + 60
        while not wanted <= (seen := files_of_group(child.pid)) and time.monotonic() < ends:
            time.sleep(0.02)
        assert wanted <= seen
    finally:
        os.killpg(child.pid, 9)
        child.wait()


HONEST = Path(__file__).parents[1] / "hostile" / "adapters" / "honest.py"
TOY = Path(__file__).parents[1] / "toycontract"


def verify(folder: Path, *words: str, adapter: Sequence[str] = (str(HONEST),)) -> tuple[int, str, list[dict[str, Any]]]:
    """Run the command line in `folder`; exit status, what it printed, and the lines of the evidence."""
    line = ["verify", "--contract", "toy", *words, "--", sys.executable, *adapter]
    done = warm.run(line, cwd=folder, env={**os.environ, "HOLDFAST_SPECS": str(TOY)}, limit=LIMIT_S)
    evidence = folder / "holdfast-out" / "run.jsonl.zst"
    lines = [json.loads(raw) for raw in lines_of(evidence)] if evidence.is_file() else []
    return done.returncode, done.stdout + done.stderr, lines


def test_every_process_of_a_run_with_several_says_what_its_adapter_had(tmp_path: Path) -> None:
    """The adapter is a script that starts another one, which only its processes show."""
    inner = tmp_path / "inner.py"
    inner.write_bytes(HONEST.read_bytes())
    outer = tmp_path / "outer.py"
    outer.write_text(f"import os, sys\nos.execv(sys.executable, [sys.executable, {str(inner)!r}])\n")
    status, said, lines = verify(tmp_path, "--jobs", "2", adapter=["outer.py"])
    assert status == 0, said
    (found,) = [line for line in lines if line["type"] == "artefacts"]
    assert {(file["path"], file["source"]) for file in found["files"]} == {
        ("outer.py", "command"),
        ("inner.py", "loaded"),
    }
    assert found["digest"] in said


def test_an_adapter_that_changes_while_it_is_tested_holds_the_gate(tmp_path: Path) -> None:
    adapter = tmp_path / "changing.py"
    adapter.write_text(f"open(__file__, 'a').write('# more')\nexec(open({str(HONEST)!r}).read())\n")
    status, said, lines = verify(tmp_path, adapter=["changing.py"])
    assert (status, lines[-2]["changed"]) == (0, ["changing.py"]), said
    assert "adapter_changed" in said


@pytest.mark.parametrize(
    "words",
    [
        ["--nonce", ""], ["--nonce", "x" * 129], ["--nonce", "é"], ["--nonce", " "], ["--commit", ""],
        ["--commit", "x" * 65], ["--commit", "a\nb"], ["--commit", "password=hunter2hunter2"],
        ["--adapter-file", "none"], ["--seed", "a\x07"],
    ],
)  # fmt: skip
def test_what_the_caller_says_is_checked_before_anything_runs(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    line = ["verify", *words, "--", sys.executable, "-c", "open('ran', 'w')"]
    monkeypatch.setattr(sys, "argv", ["holdfast", *line])
    done = CliRunner().invoke(app, line)
    assert (done.exit_code, list(tmp_path.iterdir())) == (64, []), done.stderr
    assert words[0] in done.stderr


def test_a_run_that_never_came_to_hello_says_what_was_started(tmp_path: Path) -> None:
    adapter = tmp_path / "dies.py"
    adapter.write_text("raise SystemExit(3)\n")
    status, said, lines = verify(tmp_path, "--nonce", "n-1", "--commit", "c-1", adapter=["dies.py"])
    assert status == 13, said
    assert (lines[0]["nonce"], lines[0]["seed_origin"], lines[0]["adapter"]["commit"]) == ("n-1", "nonce", "c-1")
    assert [file["path"] for file in lines[-2]["files"]] == ["dies.py"]
