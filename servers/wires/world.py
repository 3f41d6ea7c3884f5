"""One session around a service: its sink, the line to its store, its processes, and the requests under way."""

from __future__ import annotations

import base64
import contextlib
import os
import shlex
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from holdfast.servers.pace import scaled
from holdfast.servers.wires.client import ClientRequest, Exchange, Response
from holdfast.servers.wires.instances import EndedError, Running, free_port
from holdfast.servers.wires.profile import FIRST, Profile, Service
from holdfast.servers.wires.proxy import LineFault, Proxy
from holdfast.servers.wires.sink import Ending, Sink, encoded

# What a response means: the handler's own answer, now or from before, or a refusal by a reason of the contract

ACCEPTED, REFUSED = "accepted", "refused"
# Header names that evidence keeps.
_KEPT = ("content-type", "location", "etag", "link", "set-cookie", "retry-after", "date", "x-handler")


def outcome_of(
    response: Response, profile: Profile, answers: Sequence[tuple[int, bytes]], *, ran: bool
) -> dict[str, Any]:
    """An object {outcome, effect, reason, status, headers, body, marked}.

    `answers` is what the sink told handlers of this tag to answer. `ran`: a handler was at the sink for this request.
    """
    marked = profile.marker is not None and response.header(profile.marker) is not None
    seen = {
        "status": response.status,
        "headers": [[name.lower(), value] for name, value in response.headers if name.lower() in _KEPT],
        "body": encoded(response.body[:65_536]),
        "size": len(response.body),
        "marked": marked,
        "lost": response.lost[:160],
    }
    if response.lost:
        return {"outcome": REFUSED, "reason": "HANG" if response.lost == "hang" else "NO_ANSWER", **seen}
    if profile.handler == "behind":
        own, ran = published(response, profile), ran or not answers
    else:
        # A handler that was told to answer without a body is known by its status alone.
        own = any(response.status == status and (response.body == body or status == 204) for status, body in answers)
    if own:
        return {"outcome": ACCEPTED, "effect": "new" if ran else "prior", **seen}
    return {"outcome": REFUSED, "reason": _reason(response.status, profile), **seen}


def published(response: Response, profile: Profile) -> bool:
    """Whether an effect is due after this answer, where effects come after the answers."""
    return 200 <= response.status < 300 and response.status != profile.codes.duplicate


def _reason(status: int, profile: Profile) -> str:
    codes = profile.codes
    named: Mapping[str, Sequence[int | None]] = {
        "UNAUTHENTICATED": (codes.unauthenticated, 403),
        "MALFORMED": (codes.malformed,),
        "DUPLICATE": (codes.duplicate,),
        "IN_PROGRESS": (codes.in_progress,),
        "MISMATCH": (codes.mismatch,),
        "UNAVAILABLE": (codes.unavailable,),
        "UNKNOWN": (codes.unknown,),
    }
    return next((reason for reason, known in named.items() if status in known), "OTHER")


# How long `begin` waits for the request to come to the sink, or to be answered.
_ARRIVES_S = 5.0
_STEP_S = 0.005
# How long nothing more has to come where effects come after the answers.
_QUIET_S = 0.3
# The header in which a service at a URL is given the address of the sink.
SINK = "Holdfast-Sink"
# Stands in a body for letters, of which there are more than a line of the protocol holds.
_FILL = b"%FILL%"


class UseError(ValueError):
    """The wires cannot do what was asked; the text says why."""


def decoded(text: str) -> bytes:
    """Bytes from base64url without padding."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def not_claimed(service: Service) -> dict[str, str]:
    """The provocations for which a wire is missing, each with what is missing."""
    wires = service.wires()
    needs = {
        "instance": ("process", "[service] has no `start`: nothing is started or ended"),
        "line": ("proxy", "no variable of [service.env] has {store}: the store cannot be cut off"),
        "serve_store": ("server", "[store] has no `start` and no `commands`: nothing can be done to it"),
        "pass_time": ("clock", "no variable of [service.env] has {clock}: the time cannot be set"),
        "hold": ("sink", "no variable of [service.env] has {sink}"),
    }
    lacking = {name: why for name, (wire, why) in needs.items() if wire not in wires}
    if service.store.commands:
        lacking.pop("serve_store", None)
    if service.profile.handler == "behind":
        lacking |= dict.fromkeys(("hold", "ending"), "the profile says that the effect comes after the answer")
    return lacking


class ServiceEnvironment:
    """A session. `folder` is what survives of the service: its store on disk, its clock, its log."""

    def __init__(
        self, service: Service, folder: Path, *, fresh: bool, now: int, given: Mapping[str, str] | None = None
    ) -> None:
        """`now` is the time of the instances in milliseconds; `given` are further names that stand in braces."""
        self._service, self._given = service, given or {}
        self._data, self._logs = folder / "data", folder / "logs"
        if fresh:
            shutil.rmtree(self._data, ignore_errors=True)
        self._data.mkdir(exist_ok=True)
        self._logs.mkdir(exist_ok=True)
        self._clock = folder / "clock"
        self.set_clock(now)
        self._instances: dict[int, tuple[Running | None, str, int]] = {}
        self._under_way: dict[str, tuple[Exchange, str, int]] = {}
        self._store: Running | None = None
        self._store_port = free_port()
        self.sink = Sink()
        self._proxy: Proxy | None = None
        try:
            self._start_store()
            if "proxy" in service.wires():
                self._proxy = Proxy(self._filled(service.store.address))
            if fresh:
                self._prepare()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End everything that this session started."""
        for exchange, _, _ in self._under_way.values():
            exchange.cut()
        self.sink.close()
        for running, _, _ in self._instances.values():
            if running is not None:
                running.end(kill=True)
        if self._proxy is not None:
            self._proxy.close()
        if self._store is not None:
            self._store.end(kill=True)

    def set_clock(self, milliseconds: int) -> None:
        """What the instances take for the time, where they can be told."""
        self._now = milliseconds
        partial = self._clock.with_suffix(".new")
        partial.write_text(str(milliseconds))
        partial.replace(self._clock)

    def answer(self, method: str, args: Mapping[str, Any]) -> dict[str, Any]:
        """The members of the answer to a call of a method of the contract. Raises UseError, EndedError."""
        if method in not_claimed(self._service):
            return {"outcome": "unsupported", "capability": method}
        if method == "submit":
            return _of_operation(self.submit(args))
        known: Mapping[str, Callable[[], dict[str, Any] | None]] = {
            "profile": self._service.said,
            "effects": lambda: {"tags": self.sink.totals()},
            "seen": lambda: self.seen(args["tag"]),
            "begin": lambda: self.begin(args["name"], args["request"]),
            "finish": lambda: self.finish(args["name"]),
            "cut": lambda: self.cut(args["name"]),
            "burst": lambda: {"answers": self.burst(args["requests"])},
            "hold": lambda: self.sink.hold(args["tag"], args["count"], after=args["when"] == "after"),
            "release": lambda: self.sink.release(args["tag"]),
            "ending": lambda: self.ending(args["tag"], args["ending"]),
            "instance": lambda: self.instance(args["number"], args["do"], args.get("under", "")),
            "line": lambda: self.line(args["fault"], args.get("delay_ms", 0)),
            "serve_store": lambda: self.store(args["do"]),
            "pause": lambda: time.sleep(args["ms"] / 1000),
            "pass_time": lambda: self.set_clock(self._now + args["ms"]),
        }
        if method not in known:
            return {"outcome": "fault", "detail": f"unknown method {method!r}"}
        value = known[method]()
        return {"outcome": "ok"} if value is None else {"outcome": "ok", "value": value}

    # Processes

    def _filled(self, text: str, port: int | None = None) -> str:
        found = {
            "port": str(self._store_port if port is None else port),
            "store_port": "" if self._proxy is None else str(self._proxy.port),
            "python": sys.executable,
            "sink": self.sink.url,
            "store": "" if self._proxy is None else self._proxy.address,
            "data": str(self._data),
            "logs": str(self._logs),
            "clock": str(self._clock),
            **self._given,
        }
        for name, value in found.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def _start_store(self) -> None:
        store = self._service.store
        if store.start is None:
            return
        self._store = Running(
            "the store",
            self._filled(store.start),
            folder=Path(self._service.folder),
            env=os.environ,
            log=self._logs / "store",
        )
        self._store.await_port(self._filled(store.address), store.start_s)

    def _prepare(self) -> None:
        program = self._service.service
        if program.prepare is None:
            return
        if failure := self._failure_of(program.prepare, program.start_s, self._environment(0)):
            raise EndedError(f"[service] prepare {failure}")

    def _failure_of(self, command: str, seconds: float, environment: Mapping[str, str] | None = None) -> str:
        """Run a command to its end; how it ended if not well, in words."""
        done = subprocess.run(
            shlex.split(self._filled(command)),
            cwd=self._service.folder,
            env=environment,
            capture_output=True,
            timeout=scaled(seconds),
            check=False,
        )
        said = (done.stderr or done.stdout)[-600:].decode("utf-8", "replace").strip() or "it printed nothing"
        return f"ended with status {done.returncode}: {said}" if done.returncode else ""

    def _environment(self, port: int) -> dict[str, str]:
        own = self._service.service.env.items()
        return {**os.environ, **{name: self._filled(value, port) for name, value in own}}

    def _reach(self, number: int) -> tuple[str, int]:
        """Where an instance listens; it is started if it was not asked before. Raises EndedError."""
        if number not in self._instances:
            self.start(number)
        _, host, port = self._instances[number]
        return host, port

    def start(self, number: int, under: str = "") -> None:
        """Start an instance that does not run; `under` are words that go before its command."""
        program = self._service.service
        if program.start is None:
            place = urlsplit(program.url or "")
            self._instances[number] = (None, place.hostname or "127.0.0.1", place.port or 80)
            return
        port = free_port()
        command = self._filled(f"{under} {program.start}".strip(), port)
        log = self._logs / f"instance-{number}"
        running = Running(
            f"instance {number}", command, folder=Path(self._service.folder), env=self._environment(port), log=log
        )
        self._instances[number] = (running, "127.0.0.1", port)
        running.await_port(f"127.0.0.1:{port}", program.start_s, program.ready)

    def instance(self, number: int, what: str, under: str = "") -> dict[str, Any]:
        """Kill, end, start, or look at an instance: {runs}."""
        if what == "start":
            if number not in self._instances or not self._process(number).is_running:
                with contextlib.suppress(EndedError):
                    self.start(number, under)
        elif what in ("kill", "end"):
            self._process(number).end(kill=what == "kill")
        return {"runs": self._process(number).is_running}

    def _process(self, number: int) -> Running:
        self._reach(number)
        running = self._instances[number][0]
        if running is None:
            raise UseError("a service at a URL has no process that holdfast could start or end")
        return running

    # The store

    def line(self, fault: str, delay_ms: int) -> None:
        """Let the line to the store fail, or no more."""
        if self._proxy is None:
            raise UseError("the service is not given the address of its store ({store} in [service.env])")
        self._proxy.fail(LineFault(fault), delay_s=delay_ms / 1000)

    def store(self, command: str) -> None:
        """A command of service.toml, or `restart` and `kill-and-restart` of the store's server."""
        store = self._service.store
        if command in ("restart", "kill-and-restart"):
            if self._store is None:
                raise UseError("[store] has no `start`")
            self._store.end(kill=command != "restart")
            self._start_store()
            return
        if command not in store.commands:
            raise UseError(f"[store.commands] has no {command}")
        if failure := self._failure_of(store.commands[command], 20.0):
            raise UseError(f"[store.commands] {command} {failure}")

    # Requests

    def begin(self, name: str, asked: Mapping[str, Any], *, wait: bool = True) -> dict[str, Any]:
        """Send a request and wait until it is held at the sink, or answered: {at}."""
        tag = asked["tag"]
        before = self.sink.of(tag).attempts
        held = self.sink.of(tag).held
        exchange = Exchange(*self._reach(asked.get("instance", 0)), self._request(asked), self._patience(asked))
        self._under_way[name] = (exchange, tag, before)
        if not wait:
            return {"at": "sent"}
        until = time.monotonic() + scaled(_ARRIVES_S)
        while time.monotonic() < until:
            if self.sink.of(tag).held > held:
                return {"at": "sink"}
            if exchange.is_done:
                return {"at": "answered"}
            time.sleep(_STEP_S)
        return {"at": "nowhere"}

    def finish(self, name: str) -> dict[str, Any]:
        """What came of a request that was begun."""
        if name not in self._under_way:
            raise UseError(f"no request {name!r} was begun")
        exchange, tag, before = self._under_way.pop(name)
        response = exchange.wait(scaled(self._service.profile.answer_s + 60.0))
        self._await_effects([(tag, response)])
        known = self.sink.of(tag)
        return outcome_of(response, self._service.profile, known.answers, ran=known.attempts > before)

    def cut(self, name: str) -> None:
        """The client of a request that was begun goes away."""
        exchange, _, _ = self._under_way[name]
        exchange.cut()

    def submit(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Send a request and wait for its answer."""
        self.begin("submit", asked, wait=False)
        return self.finish("submit")

    def burst(self, asked: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Send requests at once; what came of each. None of them is told apart by the sink, so `effect` is of all."""
        for each in asked:
            self._reach(each.get("instance", 0))
        ready = threading.Barrier(len(asked))
        found: list[dict[str, Any]] = [{}] * len(asked)
        came: list[tuple[str, Response]] = []

        def one(index: int) -> None:
            each = asked[index]
            request, place = self._request(each), self._reach(each.get("instance", 0))
            ready.wait()
            response = Exchange(*place, request, self._patience(each)).wait(scaled(60.0))
            came.append((each["tag"], response))
            found[index] = outcome_of(response, self._service.profile, self.sink.of(each["tag"]).answers, ran=False)

        threads = [threading.Thread(target=one, args=(index,)) for index in range(len(asked))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._await_effects(came)
        return found

    def _await_effects(self, came: Sequence[tuple[str, Response]]) -> None:
        """Where effects come after the answers: wait for those that are due, and for those that are not."""
        profile = self._service.profile
        if profile.handler == "behind":
            due = [tag for tag, response in came if published(response, profile)]
            until = time.monotonic() + scaled(profile.settle_s)
            while time.monotonic() < until and not all(self.sink.of(tag).attempts for tag in due):
                time.sleep(_STEP_S)
            time.sleep(scaled(_QUIET_S))

    def _patience(self, asked: Mapping[str, Any]) -> float:
        return scaled(asked.get("within_ms", 1000 * self._service.profile.answer_s) / 1000)

    def _request(self, asked: Mapping[str, Any]) -> ClientRequest:
        service = self._service
        route = service.route.get(asked.get("route", "create"))
        if route is None:
            raise UseError(f"[route] has no {asked.get('route')!r}")
        headers = [("Host", "service"), ("Content-Type", asked.get("content_type", "application/json"))]
        headers += [(service.profile.header, value) for value in asked.get("keys", ())]
        headers += list(service.credentials.get(asked.get("principal", FIRST), {}).items())
        headers += [(name, value) for name, value in asked.get("headers", ())]
        if service.service.start is None:
            # A service that runs already has no other way to know it.
            headers.append((SINK, self.sink.url))
        headers += [("Connection", "close")]
        body = decoded(asked["body"]).replace(_FILL, b"x" * asked.get("fill", 0))
        target = asked.get("path", route.path) + (f"?{asked['query']}" if asked.get("query") else "")
        return ClientRequest(
            asked.get("method") or route.method,
            target,
            headers,
            body,
            asked.get("chunked", False),
            asked.get("half", False),
            "latin-1" if asked.get("latin1") else "utf-8",
        )

    # The sink

    def ending(self, tag: str, asked: Mapping[str, Any]) -> None:
        """How the handlers of a tag end from now on."""
        body = asked.get("body")
        size = asked.get("size")
        filled = None if size is None else b'"' + b"x" * (size - 2) + b'"'
        self.sink.of(tag).ending = Ending(
            status=asked.get("status", 201),
            headers=dict(asked.get("headers", {})),
            body=filled if body is None else decoded(body),
            throw=asked.get("throw", False),
            cut=asked.get("cut", False),
            effect=asked.get("effect", True),
        )

    def seen(self, tag: str) -> dict[str, Any]:
        """What the sink saw of a tag: {effects, attempts, held}."""
        known = self.sink.of(tag)
        return {name: getattr(known, name) for name in ("effects", "attempts", "held")}


def _of_operation(found: Mapping[str, Any]) -> dict[str, Any]:
    seen = {name: value for name, value in found.items() if name not in ("outcome", "effect", "reason")}
    if found["outcome"] == "accepted":
        return {"outcome": "accepted", "effect": found["effect"], "value": seen}
    return {"outcome": "refused", "reason": found["reason"], "data": seen}
