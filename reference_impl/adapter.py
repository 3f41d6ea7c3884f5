"""Adapter protocol v1 over standard input and output, the same for every contract (docs/adapter-protocol.md)."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import IO, Any, NoReturn

from holdfast import __version__
from holdfast.reference_impl.answers import Answer, Fault, Ok, Refused, to_message
from holdfast.reference_impl.instants import InstantError, parse_instant
from holdfast.reference_impl.registry import Deferred
from holdfast.reference_impl.session import (
    OpenError,
    OpenRefusedError,
    OpenRequest,
    Session,
    StateWanted,
    SurfaceWanted,
)
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import canonical, loads

PROTOCOL = 1
# docs/adapter-protocol.md: at most 1 MiB a line.
MAX_LINE = 1 << 20
# The number of workers that this process was tested with. More on one workdir would be a claim without proof.
MAX_WORKERS = 16


class RequestError(ValueError):
    """A member of a request is missing, or the protocol does not allow its value."""


def _member(request: Mapping[str, Any], name: str) -> str:
    value = request.get(name)
    if not isinstance(value, str):
        raise RequestError(f"expected text in the member {name!r}, got {value!r}; see docs/adapter-protocol.md")
    return value


def _instant(request: Mapping[str, Any], name: str) -> datetime:
    try:
        return parse_instant(_member(request, name))
    except InstantError as error:
        raise RequestError(f"member {name!r}: {error}") from error


def _open_request(request: Mapping[str, Any]) -> OpenRequest:
    config = request.get("config", {})
    if not isinstance(config, dict) or not all(isinstance(value, str) for value in config.values()):
        raise RequestError("expected an object of texts in the member 'config'; write numbers as text")
    try:
        state = StateWanted(_member(request, "state"))
        surface = SurfaceWanted(request.get("surface", SurfaceWanted.READY.value))
    except ValueError as error:
        raise RequestError(f"open: {error}; state is fresh or existing, surface is ready or absent") from error
    workdir = Path(_member(request, "workdir"))
    if not workdir.is_dir():
        raise RequestError(f"expected an existing folder as workdir, got {str(workdir)!r}; make it before `open`")
    return OpenRequest(state, surface, workdir, _instant(request, "clock"), config)


class Adapter:
    """The server loop. One session at a time; every request gets exactly one answer, in order."""

    def __init__(self, implementations: Mapping[str, Deferred]) -> None:
        self._implementations = implementations
        self._session: Session | None = None

    def serve(self, requests: IO[bytes], answers: IO[bytes]) -> None:
        """Answer line for line until `bye` or end of file, then close what is open."""
        try:
            while line := requests.readline(MAX_LINE + 1):
                message, ended = self._answer_line(line, requests)
                answers.write(canonical(message) + b"\n")
                answers.flush()
                if ended:
                    return
        finally:
            self.close()
            for implementation in self._implementations.values():
                implementation.shut_down()

    def _answer_line(self, line: bytes, requests: IO[bytes]) -> tuple[dict[str, Any], bool]:
        if len(line) > MAX_LINE:
            while line and not line.endswith(b"\n"):
                line = requests.readline(MAX_LINE)
            return {"id": "", **to_message(Fault(f"expected lines of at most {MAX_LINE} bytes"))}, False
        try:
            request = loads(line)
        except StrictJsonError as error:
            return {"id": "", **to_message(Fault(f"expected one I-JSON object in a line: {error}"))}, False
        if not isinstance(request, dict) or not isinstance(request.get("id"), str):
            return {"id": "", **to_message(Fault("expected an object with a text member 'id'"))}, False
        return {"id": request["id"], **self.answer(request)}, request.get("op") == "bye"

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to one request, both without their id."""
        return self._hello(request) if request.get("op") == "hello" else to_message(self.answer_of(request))

    def _hello(self, request: Mapping[str, Any]) -> dict[str, Any]:
        if request.get("protocol") != PROTOCOL:
            return to_message(Fault(f"expected protocol {PROTOCOL}, got {request.get('protocol')!r}"))
        claims = [
            {"contract": name, "version": implementation.version, "not_claimed": dict(implementation.not_claimed)}
            for name, implementation in self._implementations.items()
        ]
        return {
            "ok": {
                "protocol": PROTOCOL,
                "challenge": request.get("challenge"),
                "implementation": {"name": "holdfast-reference", "version": __version__, "language": "python"},
                "claims": claims,
                "limits": {"workers": MAX_WORKERS},
            }
        }

    def answer_of(self, request: Mapping[str, Any]) -> Answer:
        """The same before it is put into words, for every request but `hello`."""
        actions: dict[Any, Callable[[Mapping[str, Any]], Answer]] = {
            "open": self._open,
            "call": self._call,
            "clock": self._clock,
            "close": lambda _: self.close(),
            "bye": lambda _: Ok(),
        }
        action = actions.get(request.get("op"))
        if action is None:
            return Fault(f"unknown op {request.get('op')!r}; known: hello, {', '.join(actions)}")
        try:
            return action(request)
        except OpenRefusedError as error:
            return Refused(error.reason, detail=error.detail)
        except (RequestError, OpenError) as error:
            return Fault(str(error))
        except Exception as error:  # after any error the harness gets an answer, and stderr gets the trace
            traceback.print_exc(file=sys.stderr)
            return Fault(f"internal error: {type(error).__name__}: {error}")

    def _open(self, request: Mapping[str, Any]) -> Answer:
        if self._session is not None:
            raise RequestError("a session is open; send `close` first")
        name = _member(request, "contract")
        if name not in self._implementations:
            raise RequestError(f"unknown contract {name!r}; claimed: {', '.join(self._implementations)}")
        self._session = self._implementations[name].open(_open_request(request))
        place = self._session.place
        # Only a session that listens at a socket has one.
        endpoint = getattr(self._session, "endpoint", None)
        said = {
            **({} if place is None else {"surface": dict(place)}),
            **({} if endpoint is None else {"endpoint": endpoint}),
        }
        return Ok(said) if said else Ok()

    def _opened(self) -> Session:
        if self._session is None:
            raise RequestError("no session is open; send `open` first")
        return self._session

    def _call(self, request: Mapping[str, Any]) -> Answer:
        return self._opened().call(_member(request, "method"), request.get("args", {}))

    def _clock(self, request: Mapping[str, Any]) -> Answer:
        self._opened().set_clock(_instant(request, "now"))
        return Ok()

    def close(self) -> Answer:
        """Close the session, if one is open."""
        session, self._session = self._session, None
        if session is not None:
            session.close()
        return Ok()


def _terminate(_signal: int, _frame: object) -> NoReturn:
    raise SystemExit(0)


def serve_stdio(implementations: Mapping[str, Deferred]) -> None:
    """Serve on this process's standard streams until `bye`, end of file or SIGTERM."""
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, _terminate)
    # From now on all other output to standard output goes to the log and cannot garble an answer.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError), answers:
        Adapter(implementations).serve(sys.stdin.buffer, answers)
