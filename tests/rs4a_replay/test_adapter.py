"""The adapter as a process: protocol v1 over a real pipe, and nothing else on it."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from holdfast.servers.serving import Launched
from tests.rs4a_replay.conftest import Pipe


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


@pytest.mark.parametrize("end", ["eof", "sigterm"])
def test_end_of_file_and_sigterm_end_it_cleanly(pipe: Pipe, sqlite: Launched, tmp_path: Path, end: str) -> None:
    pipe.open(tmp_path, sqlite.ready.config)
    if end == "sigterm":
        pipe.process.send_signal(signal.SIGTERM)
    out, log = pipe.process.communicate(timeout=60)
    assert (pipe.process.returncode, out, log) == (0, b"", b"")
