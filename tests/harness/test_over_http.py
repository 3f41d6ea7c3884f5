"""Protocol v1 over HTTP: the reference behind a URL, servers that answer wrongly, and what a URL alone cannot show."""

from __future__ import annotations

import json
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from holdfast.conformance.adapter.bridge import LOOPBACK, Bridge, LostError, Server
from holdfast.reference_impl.over_http import OverHttp
from holdfast.reference_impl.registry import Deferred
from holdfast.specs.schema import explain, published_validator
from tests import warm
from tests.hostile.verify import LIMIT_S, assert_nothing_remains, environment, temp_folder

Answers = Callable[[str], tuple[int, bytes]]
HELLO = {"op": "hello", "protocol": 1, "kit": "holdfast/test", "challenge": "9" * 32}
SERVE = f"{sys.executable} -P -m holdfast.reference_impl serve --contract jcs --port {{port}}"
LAUNCH = f"{sys.executable} -P -m holdfast.reference_impl launch"
# Cases of calyx-replay, and their verdicts where only a URL is known.
PROCESSES = {
    "alg-2/a-copy-is-refused-with-the-whole-key": "conforms",
    "hard-4/a-kill-before-the-commit-leaves-nothing": "unsupported",
    "hard-5/what-one-process-accepted-all-others-refuse": "unsupported",
    "faults/kill": "unsupported",
    "suite/any-envelope-has-the-derived-key-in-every-process": "unsupported",
}
QUICK = ("verify", "--contract", "jcs", "--quick", "--clause", "JCS-PROF-01", "--format", "json")


def opening(workdir: Path) -> dict[str, Any]:
    asked = {"op": "open", "contract": "jcs", "state": "fresh", "surface": "ready", "workdir": str(workdir)}
    return {**asked, "clock": "2026-01-01T00:00:00Z", "seed": "s", "config": {}}


@pytest.fixture(scope="module")
def reference() -> Iterator[str]:
    """The reference of two contracts at a URL."""
    service = OverHttp({name: Deferred(name) for name in ("jcs", "calyx-replay")})
    server = uvicorn.Server(uvicorn.Config(service.application(), log_level="error", lifespan="off"))
    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        server.should_exit = True
        thread.join()
    service.close()


@pytest.fixture
def answering() -> Iterator[Callable[[Answers], str]]:
    """Starts a server with these answers: its URL."""
    servers: list[ThreadingHTTPServer] = []

    def start(answers: Answers) -> str:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                status, body = answers(self.path)
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - as the library calls it
                """Nothing is logged."""

        servers.append(ThreadingHTTPServer(("127.0.0.1", 0), Handler))
        threading.Thread(target=servers[-1].serve_forever, args=(0.02,), daemon=True).start()
        return f"http://127.0.0.1:{servers[-1].server_address[1]}"

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def test_a_session_over_http_answers_as_one_over_pipes(reference: str, tmp_path: Path) -> None:
    with Server(reference, ()) as server:
        bridge = Bridge(server, alone=True)
        assert bridge.answer({"op": "close"})["outcome"] == "fault"
        assert bridge.answer(opening(tmp_path)) == {"outcome": "ok"}
        right = {"op": "call", "method": "canonicalise", "args": {"document": "eyJiIjoxLCJhIjoyfQ", "profile": "core"}}
        told = bridge.answer(right)
        assert (told["outcome"], told["effect"]) == ("accepted", "new")
        assert bridge.answer({**right, "args": {"document": "ew", "profile": "core"}})["reason"] == "SYNTAX"
        wrong: list[Any] = [[], None, {"document": 7}]
        for args in wrong:
            assert bridge.answer({**right, "args": args})["reason"] == "REQUEST_MALFORMED"
        assert bridge.answer({**right, "method": "no_such_method"})["outcome"] == "fault"
        assert bridge.answer({"op": "clock", "now": "2026-01-02T00:00:00Z"}) == {"outcome": "ok"}
        assert bridge.answer({"op": "close"}) == {"outcome": "ok"}
        assert bridge.answer(right)["outcome"] == "fault"


def test_a_url_alone_claims_no_processes_and_a_command_does(reference: str) -> None:
    with Server(reference, ()) as server:
        for alone in (True, False):
            told = Bridge(server, alone=alone).answer(HELLO)
            assert explain(published_validator("protocol-hello"), {"id": "1", **told}) is None
            for claim in told["ok"]["claims"]:
                assert claim["not_claimed"].keys() == ({"kill", "concurrency"} if alone else set())


# What comes of a response, by the method that was called: no answer ("nothing"), a fault, or an answer.
RESPONSES: dict[str, list[tuple[int, bytes, str]]] = {
    "accept": [
        (202, b'{"canonical":"e30"}', "nothing"),
        (200, b"", "nothing"),
        (200, b"[]", "nothing"),
        (200, b"<html>", "nothing"),
        (400, b"<html>", "nothing"),
        (409, b'{"error":"NO_SUCH_REASON"}', "nothing"),
        (409, b"{}", "nothing"),
        (404, b'{"detail":"Not Found"}', "nothing"),
        (301, b"", "nothing"),
        (428, b"{}", "nothing"),
        # A status of one reason alone, as a proxy or a framework says it.
        (400, b"", "nothing"),
        (400, b"{}", "nothing"),
        (503, b"", "nothing"),
        (503, b'{"detail":"no upstream"}', "nothing"),
        (500, b"it broke", "fault"),
        (502, b"it broke", "fault"),
    ],
    # It has no result.
    "hold_at": [
        (200, b"", "ok"), (200, b"<html>", "nothing"), (200, b'{"a":1,"a":1}', "nothing"), (503, b"it broke", "fault"),
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("method", "status", "body", "due"), [(method, *row) for method, rows in RESPONSES.items() for row in rows]
)
def test_a_response_is_an_answer_of_its_route_or_none(
    answering: Callable[[Answers], str], tmp_path: Path, method: str, status: int, body: bytes, due: str
) -> None:
    def answers(path: str) -> tuple[int, bytes]:
        return (200, b'{"outcome":"ok"}') if path.endswith("/open") else (status, body)

    with Server(answering(answers), ()) as server:
        bridge = Bridge(server, alone=True)
        bridge.answer({**opening(tmp_path), "contract": "calyx-replay"})
        told = bridge.answer({"op": "call", "method": method, "args": {}})
    is_answer = explain(published_validator("protocol-answer"), {"id": "1", **told}) is None
    assert (told["outcome"] if is_answer else "nothing") == due, told


def test_a_server_that_ends_before_it_listens_is_told_with_its_status() -> None:
    with pytest.raises(LostError, match="status 3"), Server("http://127.0.0.1:{port}", ["sh", "-c", "exit 3"]):
        pass


def test_a_server_gets_a_port_that_nobody_has_and_ends_with_its_worker(tmp_path: Path) -> None:
    start = [sys.executable, "-m", "http.server", "--directory", str(tmp_path), "--bind", "127.0.0.1", "{port}"]
    with Server(LOOPBACK, start) as first:
        with Server(LOOPBACK, start) as second:
            # What is no server of the protocol answers, too.
            assert [each.ask("GET", "/", {}, {})[0] for each in (first, second)] == [200, 200]
            assert first.url != second.url
        with pytest.raises(LostError):
            second.ask("GET", "/", {}, {})
        assert first.ask("GET", "/", {}, {})[0] == 200


def test_verify_runs_over_http_with_a_server_for_each_worker_and_leaves_none(tmp_path: Path) -> None:
    with temp_folder() as temp:
        ended = warm.run((*QUICK, "--start", SERVE), cwd=tmp_path, env=environment(temp), limit=LIMIT_S)
        assert_nothing_remains(temp)
    cases = json.loads(ended.stdout)["cases"]
    assert cases, ended.stderr
    assert {case["verdict"] for case in cases} == {"conforms"}


def test_verify_gives_what_a_launcher_says_to_the_sessions_of_a_server(tmp_path: Path) -> None:
    with temp_folder() as temp:
        words = ("verify", "--contract", "calyx-replay", "--launcher", LAUNCH, "--format", "json")
        serve = SERVE.replace("jcs", "calyx-replay")
        case = "calyx-replay/alg-2/a-copy-is-refused-with-the-whole-key"
        ended = warm.run((*words, "--start", serve, "--case", case), cwd=tmp_path, env=environment(temp), limit=LIMIT_S)
        assert_nothing_remains(temp)
    assert [(each["case"], each["verdict"]) for each in json.loads(ended.stdout)["cases"]] == [(case, "conforms")]


def test_verify_at_a_url_proves_nothing_that_needs_processes(reference: str, tmp_path: Path) -> None:
    with temp_folder() as temp:
        cases = [word for case in PROCESSES for word in ("--case", f"calyx-replay/{case}")]
        words = ("verify", "--contract", "calyx-replay", "--launcher", LAUNCH, "--format", "json", *cases)
        ended = warm.run((*words, "--url", reference), cwd=tmp_path, env=environment(temp), limit=LIMIT_S)
        assert_nothing_remains(temp)
    found = {case["case"]: case["verdict"] for case in json.loads(ended.stdout)["cases"]}
    assert found == {f"calyx-replay/{case}": verdict for case, verdict in PROCESSES.items()}, ended.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["--url", "ftp://127.0.0.1:1"],
        ["--url", "http://127.0.0.1:1/path"],
        ["--url", "http://127.0.0.1:wrong"],
        ["--url", "http://127.0.0.1:{port}"],
        ["--url", "http://127.0.0.1:1", "--start", "true"],
        ["--start", "'"],
        ["--start", "true", "--", "./adapter"],
    ],
)
def test_a_url_or_a_command_that_makes_no_sense_is_a_usage_error(words: list[str], tmp_path: Path) -> None:
    with temp_folder() as temp:
        ended = warm.run(("verify", *words), cwd=tmp_path, env=environment(temp), limit=LIMIT_S)
    assert ended.returncode == 64
    assert "expected" in ended.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--url", "http://127.0.0.1:1"], "ConnectionRefusedError"),
        (["--start", "no-such-program {port}"], "no-such-program"),
        # It answers 501 to each POST.
        (["--start", f"{sys.executable} -m http.server --bind 127.0.0.1 {{port}}"], "status 501"),
    ],
)
def test_a_server_that_cannot_be_asked_is_one_line(words: list[str], said: str, tmp_path: Path) -> None:
    with temp_folder() as temp:
        asked = ("verify", "--contract", "calyx-replay", *words)
        ended = warm.run(asked, cwd=tmp_path, env=environment(temp), limit=LIMIT_S)
        assert_nothing_remains(temp)
    assert ended.returncode == 13
    assert [said in line for line in ended.stderr.splitlines() if line.startswith("holdfast:")] == [True]
