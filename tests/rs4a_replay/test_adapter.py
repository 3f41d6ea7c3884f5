"""The adapter as a process: protocol v1 over a real pipe, and nothing else on it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.reference_impl.registry import contract_names
from holdfast.servers.serving import Launched
from holdfast.specs import schema
from tests.rs4a_replay.conftest import WINDOW, submission

ROOT = Path(__file__).resolve().parents[2]


class Pipe:
    """One adapter process."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-P", "-m", "holdfast.reference_impl", "adapter", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        self.count = 0

    def send(self, op: str, **members: Any) -> None:
        self.count += 1
        self.send_line(json.dumps({"id": str(self.count), "op": op, **members}).encode() + b"\n")

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def ask(self, op: str, **members: Any) -> dict[str, Any]:
        self.send(op, **members)
        answer = self.answer()
        assert answer.pop("id") == str(self.count)
        return answer

    def open(self, workdir: Path, config: Any) -> dict[str, Any]:
        return self.ask(
            "open",
            contract="rs4a-replay",
            state="fresh",
            surface="ready",
            workdir=str(workdir),
            clock="2026-01-01T00:00:00Z",
            seed="s",
            config=dict(config),
        )


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    made = Pipe()
    yield made
    made.process.kill()
    made.process.communicate()


def test_a_whole_conversation_ends_with_status_zero(pipe: Pipe, sqlite: Launched, tmp_path: Path) -> None:
    hello = pipe.ask("hello", protocol=1, kit="holdfast/0", challenge="c-1")["ok"]
    assert (hello["protocol"], hello["challenge"], hello["limits"]) == (1, "c-1", {"workers": 16})
    assert [claim["contract"] for claim in hello["claims"]] == list(contract_names())
    opened = pipe.open(tmp_path, sqlite.ready.config)
    assert opened["outcome"] == "ok"
    # The place of the session's store, for an inspection from outside (docs/adapter-protocol.md).
    place = opened["value"]["surface"]
    assert schema.explain(schema.published_validator("surface"), place) is None
    assert (tmp_path / place["file"]).is_file()
    args = {"binding": {"principal": "agent-1"}, "window": WINDOW}
    nonce = pipe.ask("call", method="issue_nonce", args=args)["value"]["nonce"]
    registered = pipe.ask("call", method="register", args=submission(nonce))
    assert (registered["outcome"], registered["effect"]) == ("accepted", "new")
    assert pipe.ask("clock", now="2026-01-01T02:00:00Z") == {"outcome": "ok"}
    stale = pipe.ask("call", method="register", args=submission(nonce))
    assert (stale["outcome"], stale["reason"], stale["data"]) == ("refused", "REQUEST_STALE", {"replay_blocked": True})
    assert pipe.ask("close") == {"outcome": "ok"}
    assert pipe.ask("bye") == {"outcome": "ok"}
    assert pipe.process.wait(5) == 0


def test_pipelined_calls_are_answered_in_order(pipe: Pipe, sqlite: Launched, tmp_path: Path) -> None:
    pipe.open(tmp_path, sqlite.ready.config)
    for _ in range(50):
        pipe.send("call", method="gate", args={})
    assert [pipe.answer()["id"] for _ in range(50)] == [str(number) for number in range(2, 52)]


@pytest.mark.parametrize(
    "line",
    [
        b"not json\n",
        b"[]\n",
        b'{"op":"bye"}\n',
        b'{"id":"1","id":"2","op":"bye"}\n',
        b'{"id":"1","op":"dance"}\n',
        b'{"id":"1","op":"call","method":"register","args":{}}\n',
        b'{"id":"1","op":"open","contract":"nope","state":"fresh","workdir":"/","clock":"2026-01-01T00:00:00Z"}\n',
        b'{"id":"1","op":"open","contract":"rs4a-replay","state":"fresh","workdir":"/nowhere","clock":"x"}\n',
        b'{"id":"1","op":"hello","protocol":2,"challenge":"c"}\n',
        b'"' + b"x" * (1 << 20) + b'"\n',
    ],
    ids=["text", "array", "no-id", "twice", "op", "no-session", "contract", "workdir", "protocol", "long"],
)
def test_a_request_that_makes_no_sense_is_a_fault_and_the_next_one_is_answered(pipe: Pipe, line: bytes) -> None:
    pipe.send_line(line)
    assert pipe.answer()["outcome"] == "fault"
    assert pipe.ask("hello", protocol=1, kit="k", challenge="c")["ok"]["challenge"] == "c"


def test_a_bad_config_is_a_fault_that_says_what_to_do(pipe: Pipe, tmp_path: Path) -> None:
    answer = pipe.open(tmp_path, {"store": "sqlite"})
    assert answer["outcome"] == "fault"
    assert "run `python -m holdfast.reference_impl launch`" in answer["detail"]


@pytest.mark.parametrize("end", ["eof", "sigterm"])
def test_end_of_file_and_sigterm_end_it_cleanly(pipe: Pipe, sqlite: Launched, tmp_path: Path, end: str) -> None:
    pipe.open(tmp_path, sqlite.ready.config)
    if end == "sigterm":
        pipe.process.send_signal(signal.SIGTERM)
    out, log = pipe.process.communicate(timeout=5)
    assert (pipe.process.returncode, out, log) == (0, b"", b"")


def test_an_unknown_mutant_is_a_usage_error() -> None:
    made = Pipe("--mutant", "no-such-bug")
    _, log = made.process.communicate(timeout=10)
    assert made.process.returncode == 64
    assert b"no mutant is called 'no-such-bug'" in log
