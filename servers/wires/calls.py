"""The methods of `idempotency-key`, carried out by the wires around a service."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from holdfast.servers.wires.profile import Service
from holdfast.servers.wires.world import ServiceEnvironment, pause


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


def answer(world: ServiceEnvironment, service: Service, method: str, args: Mapping[str, Any]) -> dict[str, Any]:
    """The members of the answer to a call. Raises UseError, EndedError."""
    if method in not_claimed(service):
        return {"outcome": "unsupported", "capability": method}
    if method == "submit":
        return _of_operation(world.submit(args))
    known: Mapping[str, Callable[[], dict[str, Any] | None]] = {
        "profile": service.said,
        "effects": lambda: {"tags": world.sink.totals()},
        "seen": lambda: world.seen(args["tag"]),
        "begin": lambda: world.begin(args["name"], args["request"]),
        "finish": lambda: world.finish(args["name"]),
        "cut": lambda: world.cut(args["name"]),
        "burst": lambda: {"answers": world.burst(args["requests"])},
        "hold": lambda: world.hold(args["tag"], args["count"], args["when"]),
        "release": lambda: world.sink.release(args["tag"]),
        "ending": lambda: world.ending(args["tag"], args["ending"]),
        "instance": lambda: world.instance(args["number"], args["do"], args.get("under", "")),
        "line": lambda: world.line(args["fault"], args.get("delay_ms", 0)),
        "serve_store": lambda: world.store(args["do"]),
        "pause": lambda: pause(args["ms"]),
        "pass_time": lambda: world.pass_time(args["ms"]),
    }
    if method not in known:
        return {"outcome": "fault", "detail": f"unknown method {method!r}"}
    value = known[method]()
    return {"outcome": "ok"} if value is None else {"outcome": "ok", "value": value}


def _of_operation(found: Mapping[str, Any]) -> dict[str, Any]:
    seen = {name: value for name, value in found.items() if name not in ("outcome", "effect", "reason")}
    if found["outcome"] == "accepted":
        return {"outcome": "accepted", "effect": found["effect"], "value": seen}
    return {"outcome": "refused", "reason": found["reason"], "data": seen}
