"""The sessions that docs/transcripts.md shows are those of the reference: the page is played, line by line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.hostile.verify import environment
from tests.pace import busy

PAGE = Path(__file__).parents[2] / "docs" / "transcripts.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LIMIT_S = 20.0


class Player:
    """Does what a line says, and holds what comes against what stands there."""

    def __init__(self, folder: Path) -> None:
        text = PAGE.read_text(encoding="utf-8")
        self.lines = [line for kind, body in BLOCK.findall(text) if kind == "transcript" for line in body.splitlines()]
        envelopes = [
            line.split() for kind, body in BLOCK.findall(text) if kind == "envelopes" for line in body.split("\n")
        ]
        self._stands = {pair[0]: pair[1] for pair in envelopes if pair}
        self._variables = environment(folder)
        self._programs: dict[str, subprocess.Popen[str]] = {}
        self._workdir = ""
        for name in ("workdir", "next", "dir"):
            (folder / name).mkdir()
            self._stands[f"/path/to/{name}"] = str(folder / name)

    def play(self) -> None:
        """Every line of the page."""
        for line in self.lines:
            if found := re.fullmatch(r"(\w+)([<>]) (\{.*\})", line):
                name, direction, message = found.groups()
                (self._send if direction == ">" else self._expect)(name, message)
            else:
                self._do(line)

    def end(self) -> None:
        """Nothing that was started is left."""
        for program in self._programs.values():
            with program:
                program.kill()

    def _do(self, line: str) -> None:
        name, said = line.split(" ", 1)
        if said == "is started":
            self._programs[name] = subprocess.Popen(
                [sys.executable, "-P", "-m", "holdfast.reference_impl", "launch" if name == "launcher" else "adapter"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=self._variables,
                text=True,
            )
        elif said == "is killed":
            self._programs[name].kill()
            self._programs[name].wait(busy(LIMIT_S))
        elif said == "ends with 0":
            program = self._programs[name]
            assert program.stdin is not None
            assert program.stdout is not None
            program.stdin.close()
            assert (program.stdout.read(), program.wait(busy(LIMIT_S))) == ("", 0)
        elif said == "is there":
            ends = time.monotonic() + busy(LIMIT_S)
            while not Path(self._workdir, name).exists():
                assert time.monotonic() < ends, f"{name} is not there"
                time.sleep(0.01)
        else:
            assert said == "is made", line
            Path(self._workdir, name).touch()

    def _send(self, name: str, message: str) -> None:
        for stands, real in self._stands.items():
            message = message.replace(stands, real)
        self._workdir = json.loads(message).get("workdir", self._workdir)
        pipe = self._programs[name].stdin
        assert pipe is not None
        pipe.write(message + "\n")
        pipe.flush()

    def _expect(self, name: str, message: str) -> None:
        pipe = self._programs[name].stdout
        assert pipe is not None
        came, shown = json.loads(pipe.readline()), json.loads(message)
        came.pop("detail", None)
        if name == "launcher":
            self._stands["/path/to/template"] = came["config"]["template"]
            came = json.loads(json.dumps(came).replace(came["config"]["template"], "/path/to/template"))
        elif "ok" in came:
            came["ok"]["claims"] = [claim for claim in came["ok"]["claims"] if claim in shown["ok"]["claims"]]
        assert came == shown


def test_the_sessions_that_the_page_shows_are_those_of_the_reference(tmp_path: Path) -> None:
    player = Player(tmp_path)
    try:
        player.play()
    finally:
        player.end()
    kinds: set[Any] = {json.loads(line.split("< ")[1]).get("outcome") for line in player.lines if "< " in line}
    assert {"ok", "accepted", "refused", "fault"} <= kinds
