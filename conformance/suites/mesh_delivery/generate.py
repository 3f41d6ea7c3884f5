"""The steps of a broker's history, drawn without a look at what has become of those before."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.mesh_delivery.model import Mesh

MESHES = ("5b1d8a52-6f0e-4c3b-9a77-2f4c1e0d9b60", "7c9e6679-7425-40de-944b-e07fc1f90ae7")
MEMBERS = tuple(f"{digit}" * 64 for digit in "abc")
TOPICS, QUEUES = ("alerts", "Alerts"), ("jobs",)
# Each mesh has a member, a topic and a queue that the other has not.
MADE = {
    MESHES[0]: Mesh((*MEMBERS, "d" * 64), (*TOPICS, "here"), (*QUEUES, "nearby")),
    MESHES[1]: Mesh((*MEMBERS, "e" * 64), (*TOPICS, "there"), (*QUEUES, "far")),
}
# The last of them is no member of any mesh; few names, so that sends meet.
SENDERS = (*MEMBERS, "d" * 64, "e" * 64, "f" * 64)
NAMES = ("one", "two", "One", "1")
BODIES = tuple(base64url(text) for text in (b"", b"hello", b"hello "))
POINTS = ("before_dedupe", "after_dedupe", "after_message", "before_commit", "after_commit")
_SPANS = ("+1s", "+1h", "+3d", "+8d", "+31d")
# A clock may be put back, too.
_STEPS = (*_SPANS, "-5d")
WORKERS = 2


@dataclass(frozen=True, slots=True)
class Step:
    """One step: its kind, the worker that does it, and what it is about."""

    what: str
    worker: int = 0
    args: tuple[tuple[str, Any], ...] = ()
    point: str = ""

    def __str__(self) -> str:
        about = " ".join(f"{name}={str(value)[:12]}" for name, value in self.args)
        return " ".join(filter(None, (self.what, f"w{self.worker}", self.point, about)))


def draw(dice: Random, length: int) -> list[Step]:
    """The steps of one history. Most are sends, and many of these are sent before."""
    steps: list[Step] = []
    for _ in range(length):
        what = dice.choices(
            (
                "send",
                "again",
                "clock",
                "expire",
                "prune",
                "orphans",
                "lose",
                "flag",
                "restart",
                "kill",
                "die",
                "delete",
                "migrate",
            ),
            (30, 30, 6, 5, 4, 4, 2, 3, 3, 2, 8, 1, 1),
        )[0]
        worker = dice.randrange(WORKERS)
        if what in ("again", "die"):
            sent = [step for step in steps if step.what in ("send", "again", "die")]
            args = _changed(dice, dict(dice.choice(sent).args)) if sent else _send(dice)
            steps.append(Step(what, worker, _kept(args), dice.choice(POINTS) if what == "die" else ""))
        elif what == "send":
            steps.append(Step(what, worker, _kept(_send(dice))))
        else:
            amount = {"clock": dice.choice(_STEPS), "prune": dice.choice(_SPANS), "flag": dice.choice(("on", "off"))}
            steps.append(Step(what, worker, (("to", amount.get(what, dice.randrange(len(MESHES)))),)))
    return steps


def _send(dice: Random) -> dict[str, Any]:
    kind = dice.choice(("topic", "dm", "queue"))
    names = {
        "topic": (*TOPICS, *TOPICS, "here", "there", "ALERTS", "nowhere"),
        "dm": (*MEMBERS, *SENDERS, MEMBERS[0].upper()),
        "queue": (*QUEUES, *QUEUES, "nearby", "far", "Jobs", *TOPICS),
    }[kind]
    return {
        "mesh_id": dice.choice(MESHES),
        "sender": dice.choices(SENDERS, (6, 6, 6, 2, 2, 1))[0],
        "client_message_id": dice.choice(NAMES),
        "version": dice.choice((1, 1, 2)),
        "kind": kind,
        "reference": dice.choice(names),
        "priority": dice.choice((None, "now", "next")),
        "meta": dice.choice((None, "{}", '{"k":1}')),
        "body": dice.choice(BODIES),
    }


def _changed(dice: Random, args: dict[str, Any]) -> dict[str, Any]:
    """The same send again, or with one member of another send."""
    if dice.random() < 0.5:
        return args
    other, name = _send(dice), dice.choice(("mesh_id", "sender", "version", "kind", "priority", "meta", "body"))
    return {**args, name: other[name], **({"reference": other["reference"]} if name == "kind" else {})}


def _kept(args: Mapping[str, Any]) -> tuple[tuple[str, Any], ...]:
    return tuple(args.items())


def asked(step: Step) -> dict[str, Any]:
    """The arguments of `accept`."""
    args = dict(step.args)
    request: dict[str, Any] = {
        "envelope_version": args["version"],
        "destination_kind": args["kind"],
        "destination_ref": args["reference"],
        "body": args["body"],
    }
    if args["priority"] is not None:
        request["priority"] = args["priority"]
    if args["meta"] is not None:
        request["meta"] = base64url(args["meta"].encode())
    return {**{name: args[name] for name in ("mesh_id", "sender", "client_message_id")}, "request": request}
