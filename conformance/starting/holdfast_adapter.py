"""What most adapters need: lines of JSON in and out, the frozen clock, failpoints, and the schemas of arguments.

It is yours: change it as you like, or do without it. It needs Python alone; with `pip install jsonschema-rs` it checks
arguments by methods.json.
"""

from __future__ import annotations

import contextlib
import json
import keyword
import os
import re
import sys
import time
import traceback
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

# How long a failpoint waits to be released, in seconds.
_HELD_S, _POLL_S = 20.0, 0.002
_MOST = 1 << 20


class NotYetError(Exception):
    """The method is not there yet. It has to be listed in NOT_YET, so that `hello` says so."""


class AbortedError(Exception):
    """The operation fails here, because a failpoint says so: refuse it, or answer indeterminate after the commit."""


class Session:
    """One session: a folder for its store, a frozen clock, and the config. A method is a method of the same name."""

    # Whether arguments that the schema forbids are refused as REQUEST_MALFORMED before the method is called.
    checks_arguments = True

    def __init__(self, request: Mapping[str, Any]) -> None:
        self.workdir = Path(request["workdir"])
        # `fresh` begins with nothing stored, `existing` finds what an earlier process left in the workdir.
        self.is_fresh = request["state"] == "fresh"
        # Without a surface nothing is configured: refuse everything that needs the store.
        self.has_surface = request["surface"] == "ready"
        self.config: Mapping[str, str] = request["config"]
        # RFC 3339, in UTC. Never ask the machine or the database for the time.
        self.now: str = request["clock"]
        self._armed: tuple[str, str] | None = None
        self.opened()

    def opened(self) -> None:
        """Make or open the store. What it raises is answered `fault`."""

    def closed(self) -> None:
        """Give back what the session holds. The process may go on with another session."""

    def arm(self, point: str, fault: str) -> None:
        """Note a failpoint of the next operation, for a provocation such as hold_at."""
        self._armed = (point, fault)

    def disarm(self) -> None:
        """Forget it, because the operation has ended."""
        self._armed = None

    def failpoint(self, point: str) -> None:
        """Stop here if that was asked for. Raises AbortedError. Call it where the method's page places the point."""
        armed, self._armed = self._armed, None if self._armed and self._armed[0] == point else self._armed
        if armed is None or armed[0] != point:
            return
        if armed[1] != "hold":
            raise AbortedError(point)
        folder = self.workdir / "hold"
        folder.mkdir(exist_ok=True)
        (folder / f"{point}.reached").touch()
        ends = time.monotonic() + _HELD_S
        while time.monotonic() < ends and not (folder / f"{point}.release").exists():
            time.sleep(_POLL_S)


def accepted(value: Mapping[str, Any], *, new: bool = True) -> dict[str, Any]:
    """An operation took effect now, or, if it is not new, has a durable earlier result."""
    return {"outcome": "accepted", "effect": "new" if new else "prior", "value": value}


def refused(reason: str, data: Mapping[str, Any] | None = None, detail: str = "") -> dict[str, Any]:
    """An operation was refused, for one of the reasons of its method."""
    return {
        "outcome": "refused",
        "reason": reason,
        **({"data": data} if data else {}),
        **({"detail": detail} if detail else {}),
    }


def ok(value: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """An observation or a provocation was done."""
    return {"outcome": "ok"} if value is None else {"outcome": "ok", "value": value}


def indeterminate(detail: str = "") -> dict[str, Any]:
    """Nobody knows whether the operation took effect. Never guess."""
    return {"outcome": "indeterminate", "detail": detail}


def fault(detail: str) -> dict[str, Any]:
    """An internal error: neither accepted nor refused."""
    return {"outcome": "fault", "detail": detail}


class _Adapter:
    def __init__(
        self, session: type[Session], hello: Mapping[str, Any], not_yet: Mapping[str, str], methods: Mapping[str, Any]
    ) -> None:
        self._kind, self._hello, self._not_yet = session, hello, not_yet
        self._session: Session | None = None
        self._methods = {name: _Method(entry) for name, entry in methods.items()}

    def answer(self, request: Mapping[str, Any]) -> dict[str, Any]:
        op = request["op"]
        if op == "hello":
            return {"ok": {**self._hello, "challenge": request["challenge"]}}
        try:
            return self._answered(op, request)
        except NotYetError:
            return {"outcome": "unsupported", "capability": request["method"]}
        except Exception as error:  # the harness gets an answer to everything
            traceback.print_exc(file=sys.stderr)
            return fault(f"{type(error).__name__}: {error}")

    def _answered(self, op: str, request: Mapping[str, Any]) -> dict[str, Any]:
        if op == "open":
            if "timezone" in request["config"]:
                os.environ["TZ"] = request["config"]["timezone"]
                time.tzset()
            self._session = self._kind(request)
        elif op == "clock" and self._session is not None:
            self._session.now = request["now"]
        elif op in ("close", "bye"):
            self.close()
        elif op == "call":
            return self._called(request["method"], request["args"])
        return ok()

    def close(self) -> None:
        """Close the session that is open, if there is one."""
        closing, self._session = self._session, None
        if closing is not None:
            closing.closed()

    def _called(self, name: str, args: Any) -> dict[str, Any]:
        if self._session is None:
            return fault("no session is open")
        if name in self._not_yet:
            raise NotYetError(name)
        known = self._methods.get(name)
        if known is None:
            return fault(f"unknown method {name!r}")
        problem = known.problem(args) if self._session.checks_arguments else ""
        if problem:
            return (
                refused("REQUEST_MALFORMED", detail=problem) if "REQUEST_MALFORMED" in known.reasons else fault(problem)
            )
        try:
            answer = getattr(self._session, f"{name}_" if keyword.iskeyword(name) else name)(args)
            return answer if isinstance(answer, dict) else fault(f"expected an answer from {name}, got {answer!r}")
        finally:
            if known.is_operation:
                # A failpoint is for the next operation alone.
                self._session.disarm()


class _Pattern:
    """The keyword `pattern`: in Python `$` also matches before a line break at the end."""

    def __init__(self, _: Any, pattern: str, __: Any) -> None:
        self._pattern = re.compile(f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern, re.ASCII)

    def validate(self, value: Any) -> None:
        if isinstance(value, str) and self._pattern.search(value) is None:
            raise ValueError(f"expected a text of the form {self._pattern.pattern}")


class _Method:
    def __init__(self, entry: Mapping[str, Any]) -> None:
        self.reasons, self.is_operation = entry["reasons"], entry["group"] == "operation"
        self._args = entry["args"]

    @cached_property
    def _schema(self) -> Any:
        with contextlib.suppress(ImportError):
            import jsonschema_rs

            return jsonschema_rs.Draft202012Validator(self._args, keywords={"pattern": _Pattern})
        return None

    def problem(self, args: Any) -> str:
        """Why the arguments do not fit; empty if they do, or if nothing can tell."""
        if self._schema is None or self._schema.is_valid(args):
            return ""
        return next(str(error.message) for error in self._schema.iter_errors(args))


def _line(message: Mapping[str, Any]) -> bytes:
    """An answer as a line; a fault in its place where it cannot be one."""
    try:
        line = json.dumps(message, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError) as error:
        return _line({"id": message["id"], **fault(f"the answer is no JSON: {error}")})
    if len(line) >= _MOST:
        return _line({"id": message["id"], **fault("the answer is longer than a line may be")})
    return line


def serve(
    session: type[Session],
    *,
    contract: str,
    version: str,
    name: str,
    not_yet: Mapping[str, str],
    workers: int = 16,
    methods: Mapping[str, Any] | None = None,
) -> None:
    """Answer requests until `bye`. `workers` is how many processes may share one workdir; `methods` are those of
    methods.json, if it does not lie beside this file."""
    hello = {
        "protocol": 1,
        "implementation": {"name": name, "version": "0.1.0", "language": "python"},
        "claims": [{"contract": contract, "version": version, "not_claimed": dict(not_yet)}],
        "limits": {"workers": workers},
    }
    if methods is None:
        methods = json.loads(Path(__file__).with_name("methods.json").read_text(encoding="utf-8"))
    adapter = _Adapter(session, hello, not_yet, methods)
    # Standard output is for answers alone: what a library prints goes to standard error.
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    try:
        for line in sys.stdin.buffer:
            request = json.loads(line)
            answers.write(_line({"id": request["id"], **adapter.answer(request)}) + b"\n")
            answers.flush()
            if request["op"] == "bye":
                return
    finally:
        adapter.close()
