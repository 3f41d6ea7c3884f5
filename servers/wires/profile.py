"""`service.toml`: how a service is started and reached, and what it promises (docs/services.md)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, Struct, field

Words = Annotated[str, Meta(min_length=1)]
Seconds = Annotated[float, Meta(gt=0, le=86_400)]
Status = Annotated[int, Meta(ge=200, le=599)]
Headers = Mapping[str, str]


# What these wires are put around keeps this contract.
CONTRACT = "idempotency-key"
# The end of the name of a command that ends a fault of the store.
ENDS = "-end"


# Two principals, another credential of the first, and one that is refused.
PRINCIPALS = ("a", "b", "again", "refused")
# The one that a request without a principal is of.
FIRST = PRINCIPALS[0]


class ProfileError(ValueError):
    """The file cannot be used; the text says what was expected, what came, and what to do."""


class _Table(Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A table of the file. A key that is not known is an error."""


class Program(_Table, frozen=True):
    """How one instance is started, and what is run once before the first one of a session (`prepare`).

    `env` gives both their addresses: {port}, {sink}, {store} or {store_port}, {data}, {clock}.
    """

    start: Words | None = None
    prepare: Words | None = None
    url: Words | None = None
    env: Mapping[str, str] = {}
    ready: Annotated[str, Meta(pattern="^/")] | None = None
    start_s: Seconds = 20.0


class Store(_Table, frozen=True):
    """The store's server, if it is one. `address` is where it listens.

    `commands` are what only it can do to itself: NAME begins a fault, NAME-end ends it.
    """

    start: Words | None = None
    address: Words = "127.0.0.1:{port}"
    start_s: Seconds = 30.0
    commands: Mapping[Annotated[str, Meta(pattern="^[a-z][a-z0-9-]{0,31}$")], Words] = {}

    def faults(self) -> list[str]:
        """The faults that can be begun and ended."""
        return [name for name in self.commands if f"{name}{ENDS}" in self.commands]


class Route(_Table, frozen=True):
    """A route whose handler makes one request to the sink."""

    path: Annotated[str, Meta(pattern="^/")]
    method: Literal["POST", "PUT", "PATCH", "DELETE", "GET"] = "POST"
    key: Literal["required", "optional", "ignored"] = "required"


class Codes(_Table, frozen=True):
    """The status of each refusal."""

    malformed: Status = 400
    in_progress: Status = 409
    mismatch: Status = 422
    unavailable: Status = 503
    unknown: Status = 500
    unauthenticated: Status = 401
    duplicate: Status | None = None


class FailOpen(_Table, frozen=True):
    """Where the documentation says that a request is executed without protection."""

    lookup: bool = False
    save: bool = False


class Profile(_Table, frozen=True):
    """What the service promises where the draft leaves the choice to it."""

    header: Words = "Idempotency-Key"
    key_syntax: Literal["sf", "opaque", "uuid"] = "sf"
    key_pattern: Words | None = None
    max_key_length: Annotated[int, Meta(ge=1, le=4096)] | None = None
    fingerprint: tuple[Literal["body", "method", "path", "query", "content_type"], ...] = ("body",)
    json: Literal["raw", "canonical"] = "raw"
    in_progress: Literal["refuse", "wait"] = "refuse"
    duplicate: Literal["replay", "reject", "ack"] = "replay"
    handler: Literal["inside", "behind"] = "inside"
    final: tuple[Status, ...] = (402,)
    freed: tuple[Status, ...] = ()
    thrown: Literal["final", "unknown", "freed"] = "unknown"
    abandoned: Literal["unknown", "reexecute"] = "unknown"
    lifetime_s: Seconds | None = None
    lease_s: Seconds | None = None
    answer_s: Annotated[float, Meta(gt=0, le=25)] = 5.0
    settle_s: Seconds = 10.0
    scope: tuple[Literal["principal", "route"], ...] = ("principal", "route")
    answers: Literal["bytes", "text", "json"] = "bytes"
    largest_answer: Annotated[int, Meta(ge=1)] | None = None
    headers: tuple[str, ...] = ("Content-Type", "Location", "ETag", "Link")
    marker: Words | None = None
    problem_details: bool = True
    retry_after: bool = False
    secret: bool = False
    shared: bool = True
    durable: bool = True
    store_durable: bool = True
    fail_open: FailOpen = FailOpen()
    codes: Codes = Codes()


class Service(_Table, frozen=True):
    """The whole file."""

    service: Program
    route: Annotated[Mapping[str, Route], Meta(min_length=1)]
    store: Store = Store()
    credentials: Mapping[str, Headers] = {}
    # What the service itself calls a and b.
    names: Mapping[Literal["a", "b"], Words] = {}
    profile: Profile = Profile()
    # Of the file. Its commands are run there.
    folder: str = field(default=".", name="_folder")

    def said(self) -> dict[str, Any]:
        """What of it the evidence keeps: the promises, and which wires are there."""
        return {
            "profile": msgspec.to_builtins(self.profile),
            "routes": msgspec.to_builtins(self.route),
            "principals": [name for name in PRINCIPALS if name in self.credentials],
            "names": dict(self.names),
            "wires": self.wires(),
            "faults": self.store.faults(),
        }

    def wires(self) -> list[str]:
        """Which of the four wires there are, and whether the clock can be set."""
        started = self.service.start is not None
        given = " ".join(self.service.env.values()) + (self.service.start or "")
        found = {
            "sink": "{sink}" in given or not started,
            "process": started,
            "proxy": started and ("{store}" in given or "{store_port}" in given),
            "server": self.store.start is not None,
            "clock": "{clock}" in given,
            "data": "{data}" in given,
        }
        return [name for name, there in found.items() if there]


def whole(said: Mapping[str, Any]) -> dict[str, Any]:
    """What a service or an adapter says of itself, with the defaults of what it does not say. Raises ProfileError."""
    try:
        profile = msgspec.to_builtins(msgspec.convert(said.get("profile"), Profile))
    except msgspec.ValidationError as error:
        raise ProfileError(f"[profile]: {error}") from error
    route = {"path": "/", "method": "POST", "key": "required"}
    lists: dict[str, Any] = {name: [] for name in ("principals", "wires", "faults")}
    return {"routes": {"create": route}, "names": {}, **lists, **said, "profile": profile}


def read(path: Path) -> Service:
    """The service of a file. Raises ProfileError."""
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ProfileError(f"{path} cannot be read: {error.strerror}; give the path of a service.toml") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProfileError(f"{path}: expected TOML 1.0: {error}") from error
    try:
        service = msgspec.convert({**found, "_folder": str(path.absolute().parent)}, Service)
    except msgspec.ValidationError as error:
        raise ProfileError(f"{path}: {error}; docs/services.md has every table") from error
    for problem in _problems(service):
        raise ProfileError(f"{path}: {problem}")
    return service


def _problems(service: Service) -> list[str]:
    program, found = service.service, []
    if (program.start is None) == (program.url is None):
        found.append("[service]: expected one of `start`, a command, and `url`, a service that runs")
    if "create" not in service.route:
        found.append("[route.create]: expected the test route under this name")
    if program.start is not None and "sink" not in service.wires():
        found.append("[service]: no variable of `env` has {sink}; the handler has to be told where it makes its effect")
    found += [
        f"[store.commands] {name}: expected {name}{ENDS} beside it, the command that ends this fault"
        for name in service.store.commands
        if not name.endswith(ENDS) and name not in service.store.faults()
    ]
    if "proxy" in service.wires() and service.store.start is None and "{port}" in service.store.address:
        found.append("[store]: expected `start`, or the `address` of a store that runs")
    try:
        re.compile(service.profile.key_pattern or "")
    except re.error as error:
        found.append(f"[profile] key_pattern: expected a regular expression: {error}")
    found += [
        f"[credentials.{name}]: expected a, b, again or refused: two principals, another credential of the first, and "
        "one that is refused"
        for name in service.credentials.keys() - set(PRINCIPALS)
    ]
    return found
