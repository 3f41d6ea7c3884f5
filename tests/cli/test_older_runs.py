"""A run that does not come to its end leaves nothing of an older one to the gate: no pipeline goes on by it.

The two lines of a pipeline are `holdfast verify --contract toy -- ADAPTER` and then, after each result of it,
`holdfast gate holdfast-out/run.jsonl.zst --require toy`. An older, good run stands in the folder.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from holdfast.conformance.cli.commands import app
from tests.hostile.verify import TOY, environment, temp_folder
from tests.hostile.verify import adapter as named
from tests.pace import busy

RUN = Path("holdfast-out") / "run.jsonl.zst"
# A busy machine may take so long to come to a point.
APPEARS_S = 60.0
REPORTS = ("--junitxml", "junit.xml", "--alluredir", "allure")


def adapter(name: str, *words: str) -> str:
    """The command of one of the kit's own adapters."""
    return shlex.join(named(name, *words))


@dataclass(frozen=True)
class Way:
    """A way in which a run can come to nothing.

    `options` and `adapter` are as a shell has them; `meanwhile` is what happens to the process while it runs; `exits`
    are the statuses that it may end with.
    """

    name: str = ""
    exits: Collection[int] = ()
    options: str = ""
    adapter: str = adapter("honest")
    meanwhile: Callable[[subprocess.Popen[str], Path], object] = lambda _process, _folder: None
    before: str = ""


def script(folder: Path, text: str) -> None:
    """An adapter of the user's own, `./mine`."""
    (folder / "mine").write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    (folder / "mine").chmod(0o755)


def until(wanted: Callable[[], bool], process: subprocess.Popen[str]) -> bool:
    """Whether something comes about that a process brings about."""
    deadline = time.monotonic() + busy(APPEARS_S)
    while not wanted() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.001)
    return wanted()


def once(wanted: Callable[[Path], bool], number: signal.Signals) -> Callable[[subprocess.Popen[str], Path], object]:
    """Signal the process as soon as the folder is as `wanted`."""

    def meanwhile(process: subprocess.Popen[str], folder: Path) -> None:
        until(lambda: wanted(folder), process)
        process.send_signal(number)

    return meanwhile


def early(folder: Path) -> bool:
    """The first thing has happened, the kit itself is not loaded yet."""
    return not (folder / RUN).exists()


def in_the_middle(folder: Path) -> bool:
    """A case waits for its answer."""
    with contextlib.suppress(FileNotFoundError):
        return (folder / f"{RUN}.partial").stat().st_size > 0
    return False


HANGS = adapter("hang_on_call")
WAYS = [
    Way("the adapter is missing", [13], adapter="./none"),
    Way("the launcher is missing", [13], "--launcher ./none"),
    Way("an option is misspelt", [64], "--no-such-option"),
    Way("the launcher of a run with --evidence is missing", [13], "--evidence new.jsonl --launcher ./none"),
    Way("the contract is unknown", [64], "--contract no-such"),
    Way("the disk has no room for the evidence", [12], before="ulimit -f 1; "),
    Way("TERM comes early", (12, 128 + signal.SIGTERM), meanwhile=once(early, signal.SIGTERM)),
    Way("KILL comes early", [128 + signal.SIGKILL], meanwhile=once(early, signal.SIGKILL)),
    Way(
        "KILL comes in the middle", [128 + signal.SIGKILL], adapter=HANGS, meanwhile=once(in_the_middle, signal.SIGKILL)
    ),
    Way("Ctrl-C comes in the middle", [12], adapter=HANGS, meanwhile=once(in_the_middle, signal.SIGINT)),
]


@dataclass(frozen=True)
class Pipeline:
    """A folder in which pipelines run."""

    folder: Path
    environment: dict[str, str]

    def start(self, script: str) -> subprocess.Popen[str]:
        """Run a script of the shell."""
        return subprocess.Popen(
            ["/bin/sh", "-c", script],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def verify(self, one: Way) -> tuple[int, str]:
        """The first line, by itself: its status, as a shell has it, and what it printed."""
        process = self.start(f"{one.before}exec {line(one)}")
        one.meanwhile(process, self.folder)
        said = "".join(process.communicate(timeout=busy(APPEARS_S)))
        return process.returncode if process.returncode >= 0 else 128 - process.returncode, said

    def gate(self, run: Path = RUN) -> tuple[int, str]:
        """The second line, in this process: its status, and what it printed."""
        result = CliRunner().invoke(app, ["gate", str(self.folder / run), "--require", "toy"])
        return result.exit_code, result.output


def line(one: Way, *more: str) -> str:
    """The first line of a pipeline."""
    words = f"--contract toy {shlex.join(more)} {one.options}"
    return f"holdfast verify {words} -- {one.adapter}" if one.adapter else f"holdfast verify {words}"


@pytest.fixture(scope="module")
def temp() -> Iterator[Path]:
    """The temp folder of all runs, with the console script in it."""
    with temp_folder() as folder:
        program = folder / "bin" / "holdfast"
        program.parent.mkdir()
        root = Path(__file__).parents[2]
        program.write_text(
            f"#!{sys.executable} -P\nimport sys\nsys.path.insert(0, {str(root)!r})\n"
            "from holdfast.conformance.cli import main\nmain()\n",
            encoding="utf-8",
        )
        program.chmod(0o755)
        (folder / "tmp").mkdir()
        yield folder


@pytest.fixture(scope="module")
def variables(temp: Path) -> dict[str, str]:
    """The environment of all runs."""
    kept = environment(temp / "tmp")
    return {**kept, "PATH": f"{temp / 'bin'}:{kept['PATH']}"}


@pytest.fixture(scope="module")
def good(temp: Path, variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a good run and its reports."""
    folder = tmp_path_factory.mktemp("good")
    done = Pipeline(folder, variables).start(line(WAYS[0], *REPORTS).replace("./none", adapter("honest")))
    said = done.communicate(timeout=busy(APPEARS_S))
    assert done.returncode == 0, said
    return folder


@pytest.fixture
def pipeline(good: Path, variables: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    """A folder with a good older run, of which the gate says YES."""
    monkeypatch.setenv("HOLDFAST_SPECS", str(TOY))
    shutil.copytree(good, tmp_path, dirs_exist_ok=True)
    found = Pipeline(tmp_path, variables)
    assert found.gate()[0] == 0
    return found


@pytest.mark.parametrize("one", WAYS, ids=lambda one: one.name)
def test_the_gate_never_goes_on_by_an_older_run_when(one: Way, pipeline: Pipeline) -> None:
    status, said = pipeline.verify(one)
    assert status in one.exits, said
    assert "CAN_PROCEED = YES" not in said
    status, said = pipeline.gate()
    assert status != 0, said
    assert "CAN_PROCEED = YES" not in said


# Two runs in one folder


def test_of_two_runs_in_one_folder_the_second_writes_nothing_and_says_nothing_of_the_first(pipeline: Pipeline) -> None:
    waits = f"while [ ! -e {pipeline.folder}/go ]; do sleep 0.02; done; exec {adapter('honest')}"
    script(pipeline.folder, waits)
    first = pipeline.start(f"exec {line(Way('', frozenset(), adapter='./mine'))}")
    partial = pipeline.folder / f"{RUN}.partial"
    assert until(partial.exists, first)
    status, said = pipeline.verify(Way(adapter=adapter("accept_all")))
    assert status == 64, said
    assert f"process {first.pid}" in said
    assert "CAN_PROCEED" not in said
    assert pipeline.gate()[0] != 0
    (pipeline.folder / "go").touch()
    said = "".join(first.communicate(timeout=busy(APPEARS_S)))
    assert (first.returncode, pipeline.gate()[0]) == (0, 0), said


# Evidence that is not what the run wrote

# It runs, as what it starts does, until the end of the kit.
SWAPPING = '(cp good.jsonl other; until [ -e "$RUN" ]; do :; done; mv other "$RUN") >&2 &'


def test_a_run_does_not_end_well_whose_evidence_an_adapter_swapped_when_it_was_whole(pipeline: Pipeline) -> None:
    shutil.copy(pipeline.folder / RUN, pipeline.folder / "good.jsonl")
    script(pipeline.folder, f"cd {pipeline.folder}\nRUN={RUN}\n{SWAPPING}\nexec {adapter('honest')}")
    status, said = pipeline.verify(Way(adapter="./mine"))
    assert status == 12, said
    assert "CAN_PROCEED" not in said
    assert pipeline.gate()[0] != 0


# The gate, and what stands beside a run


def test_the_gate_takes_neither_an_older_run_nor_one_that_has_not_ended(pipeline: Pipeline) -> None:
    whole = pipeline.folder / RUN
    for suffix, reason in ((".previous", "older_run"), (".partial", "unfinished_run")):
        other = whole.rename(f"{whole}{suffix}")
        status, said = pipeline.gate(Path(f"{RUN}{suffix}"))
        assert status == 12
        assert reason in said
        status, said = pipeline.gate()
        assert status == 64
        assert other.name in said
        link = pipeline.folder / "link"
        link.symlink_to(other)
        assert pipeline.gate(Path("link"))[0] == 12
        link.unlink()
        other.rename(whole)


def test_reports_of_an_older_run_do_not_stand_for_one_that_never_started(pipeline: Pipeline) -> None:
    status, _ = pipeline.verify(Way(options=shlex.join(REPORTS), adapter="./none"))
    assert status == 13
    errors = [case.find("error") is not None for case in ET.parse(pipeline.folder / "junit.xml").iter("testcase")]
    assert errors
    assert all(errors)
    results = [json.loads(path.read_bytes()) for path in (pipeline.folder / "allure").glob("*-result.json")]
    assert {result["status"] for result in results} == {"broken"}
    assert (pipeline.folder / "junit.xml.previous").is_file()
    assert list((pipeline.folder / "allure.previous").glob("*-result.json"))
