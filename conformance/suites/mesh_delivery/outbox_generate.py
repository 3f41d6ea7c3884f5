"""The steps of a daemon's history, drawn without a look at what has become of those before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites.mesh_delivery.broker_answers import ANSWERS, SLOW
from holdfast.conformance.suites.mesh_delivery.generate import BODIES, MESHES, Step
from holdfast.conformance.suites.mesh_delivery.outbox_model import IN_USE, NOT_DEAD, Args

# Few names, so that sends meet; every collation has them in this order.
NAMES = ("five %35", "four+4", "one", "three/ü", "two")
_POINTS = ("in_flight", "answered")
# Steps in which a round waits at one of them.
_HOLDING = ("die", "beside", "overlap")
_SPANS = ("+1s", "+0.4s", "+1m", "+10m", "+10m", "+1h", "+5h", "+5h", "+30h", "+9d", "+60d", "-1s", "-10m", "-7h")
# From the moment at which a row has its max age.
_EDGES = ("-3600", "-1", "-0.001", "0", "0.001", "1", "3600")
# What has no fingerprint, or is no call, by the reason of its refusal.
WRONG: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "UNKNOWN_VALUE": ("send", {"priority": "soon"}),
    "REFERENCE_INVALID": ("send", {"destination_kind": "dm"}),
    "NUL_IN_FIELD": ("send", {"destination_ref": "a\0b"}),
    "META_INVALID": ("send", {"meta": base64url(b'{"a":1,"a":1}')}),
    "REQUEST_MALFORMED": ("send", {"envelope_version": 0}),
}
MALFORMED: Mapping[str, Args] = {
    "requeue": {"client_message_id": "one", "new_id": ""},
    "deliver": {"limit": 1},
}


# What leads to states that single steps seldom reach, and how often one of these is drawn in the place of a step.
_SCENES = (
    ("send", "conflict", "requeue", "again", "deliver"),
    ("send", "conflict", "requeue", "restart", "again", "first", "again"),
    ("send", "conflict", "again", "deliver"),
    ("send", "first", "again", "again", "deliver"),
    ("send", "unavailable", "back", "deliver", "clock", "deliver", "again"),
    ("send", "unavailable", "restart", "deliver"),
    ("send", "send", "send", "deliver", "deliver"),
    ("send", "edge", "deliver"),
    ("send", "unavailable", "edge", "deliver", "edge", "deliver"),
    ("send", "conflict", "refused", "deliver"),
    ("send", "unavailable", "again", "deliver"),
    ("send", "first", "weeks", "deliver", "again"),
)
# The same with a second process.
_TOGETHER = (
    ("send", "beside", "again", "deliver"),
    ("send", "beside", "first"),
    ("send", "send", "overlap", "deliver"),
    ("send", "overlap", "clock", "deliver"),
    ("send", "conflict", "race", "deliver"),
)
_SCENE = 0.25


def draw(dice: Random, length: int, workers: int) -> list[Step]:
    """The steps of one history. Where a step names a row, it is by its place among those that there are then."""
    kinds = {
        "send": 16,
        "again": 16,
        "deliver": 26,
        "clock": 12,
        "edge": 6,
        "requeue": 12,
        "refused": 8,
        "restart": 3,
        "kill": 3,
        **({"beside": 10, "race": 8, "overlap": 8} if workers > 1 else {"die": 6}),
    }
    steps: list[Step] = []
    while len(steps) < length:
        if dice.random() < _SCENE:
            steps += _scene(dice, f"row{len(steps):03}", workers)
            continue
        what, worker = dice.choices(tuple(kinds), tuple(kinds.values()))[0], dice.randrange(workers)
        point = dice.choice(_POINTS) if what in _HOLDING else ""
        steps.append(Step(what, worker, tuple(_about(dice, what, steps).items()), point))
    return steps


def _scene(dice: Random, name: str, workers: int) -> list[Step]:
    """Steps about one send, whose id no other has; of a round, a kind of answer names all of its answers."""
    args = {**_send(dice), "client_message_id": name}
    steps: list[Step] = []
    for what in dice.choice(_TOGETHER if workers > 1 and dice.random() < 0.5 else _SCENES):
        worker, point = dice.randrange(workers), dice.choice(_POINTS) if what in _HOLDING else ""
        if what in ANSWERS:
            steps.append(Step("deliver", worker, (("answers", (what,) * len(NAMES)),)))
        elif what == "requeue":
            steps.append(Step(what, worker, (("of", (name, f"new-{name}")),)))
        elif what == "weeks":
            steps.append(Step("clock", worker, (("to", "+9d"),)))
        elif what in ("send", "again"):
            steps.append(Step("send", worker, (("send", args if what == "again" or not steps else _send(dice)),)))
        else:
            steps.append(Step(what, worker, tuple(_about(dice, what, steps).items()), point))
    return steps


def _about(dice: Random, what: str, before: Sequence[Step]) -> dict[str, Any]:
    match what:
        case "send":
            return {"send": _send(dice)}
        case "again":
            return {"send": _again(dice, before)}
        case "deliver" | "die":
            return {"answers": _answers(dice)}
        case "clock":
            return {"to": dice.choice(_SPANS)}
        case "back":
            return {"to": dice.choice(("-10m", "-7h"))}
        case "edge":
            return {"row": dice.randrange(len(NAMES)), "seconds": dice.choice(_EDGES)}
        case "requeue":
            return {"of": _rotation(dice)}
        case "refused":
            return {"why": dice.choice((*WRONG, *MALFORMED, NOT_DEAD, IN_USE))}
        case "beside":
            return {"answers": _answers(dice), "other": _asked(dice, before)}
        case "overlap":
            # Two rounds with one answer would agree by chance.
            answers = dice.choices(("first", "retry", "unavailable", "conflict"), (1, 1, 2, 1), k=2 * len(NAMES))
            return {"answers": tuple(answers), "span": dice.choice(("+0s", "+10m", "+5h"))}
        case "race":
            if dice.random() < 0.25:
                return {"deliver": True}
            return {"one": _asked(dice, before), "other": _asked(dice, before)}
    return {}


def _rotation(dice: Random) -> tuple[int, str]:
    """The place of a row, and the id that it shall have."""
    return dice.randrange(len(NAMES)), dice.choice((*NAMES, "six", "seven", "eight", "nine"))


def _asked(dice: Random, before: Sequence[Step]) -> tuple[str, Any]:
    """A send, or a requeue."""
    if dice.random() < 0.5:
        return "requeue", _rotation(dice)
    return "send", _send(dice) if dice.random() < 0.4 else _again(dice, before)


def _answers(dice: Random) -> tuple[str, ...]:
    names, weights = tuple(ANSWERS), tuple(each.weight for each in ANSWERS.values())
    drawn = dice.choices(names, weights, k=dice.choice((0, 1, 2, 3, 5, 5)))
    slow = [at for at, name in enumerate(drawn) if name in SLOW]
    return tuple("unavailable" if at in slow[1:] else name for at, name in enumerate(drawn))


def _send(dice: Random) -> dict[str, Any]:
    kind = dice.choice(("topic", "queue"))
    request: dict[str, Any] = {
        "envelope_version": dice.choice((1, 1, 2)),
        "destination_kind": kind,
        "destination_ref": dice.choice(("alerts", "Alerts")),
        "body": dice.choice(BODIES),
    }
    if dice.random() < 0.4:
        request["priority"] = dice.choice(("now", "next"))
    if dice.random() < 0.4:
        request["meta"] = base64url(dice.choice((b'{ "b": 1.0, "a": "x" }', b"{}")))
    named = {"client_message_id": dice.choice(NAMES)} if dice.random() < 0.9 else {}
    return {"mesh_id": dice.choice(MESHES), **named, "request": request}


def _again(dice: Random, before: Sequence[Step]) -> dict[str, Any]:
    """A send from before, or one that differs from it in one member."""
    sends = [dict(step.args)["send"] for step in before if step.what in ("send", "again")]
    if not sends:
        return _send(dice)
    args, other = sends[-1] if dice.random() < 0.5 else dice.choice(sends), _send(dice)
    if dice.random() < 0.7:
        return dict(args)
    if dice.random() < 0.3:
        return {**args, "mesh_id": other["mesh_id"]}
    name = dice.choice(tuple(other["request"]))
    return {**args, "request": {**args["request"], name: other["request"][name]}}


def every_answer(dice: Random) -> list[Step]:
    """A round for every few kinds of answer, each to a send of its own: to its first attempt, or to its second."""
    kinds, steps = dice.sample(tuple(ANSWERS), len(ANSWERS)), list[Step]()
    for at in range(0, len(kinds), len(NAMES)):
        group = tuple(kinds[at : at + len(NAMES)])
        sends = [{**_send(dice), "client_message_id": f"row-{kind}"} for kind in group]
        steps += [Step("send", 0, (("send", args),)) for args in sends]
        if dice.random() < 0.5:
            steps.append(Step("deliver", 0, (("answers", ("unavailable",) * len(ANSWERS)),)))
            steps.append(Step("clock", 0, (("to", "+10m"),)))
        steps.append(Step("deliver", 0, (("answers", group),)))
    return steps
