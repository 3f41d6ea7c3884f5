"""What generated histories of devices are made of: scenarios, each about one thing that goes wrong, in any order.

A schedule orders the scenarios, so that each comes up in every run. Within a scenario the dice decide which device and
which process does it, with what, and where it is interrupted. A step names an object by its age: 0 is the last that
was made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random

from holdfast.conformance.attacks.histories import Deck

WORKERS = 2
DEVICES = ("a", "b", "c", "d")
# How long a call may have gone on when its process is killed, in seconds.
_WITHIN = 0.03


@dataclass(frozen=True, slots=True)
class Step:
    """One step: `what` is done by a worker for a device, with an object, over a time in seconds.

    `how` says in which way it is unusual. `draft` decides what a new object holds.
    """

    what: str
    worker: int = 0
    node: str = "a"
    which: int = 0
    seconds: float = 0
    how: str = ""
    draft: int = 0

    def __str__(self) -> str:
        if self.what == "clock":
            return f"clock {self.seconds:+f} s"
        words = [self.what, *([self.how] if self.how else [])]
        words += [f"number {self.which}"] if self.which else []
        words += [f"draft {self.draft}"] if self.draft else []
        return " ".join((*words, f"for {self.node} by worker {self.worker}"))


Scenario = Callable[[Random], Sequence[Step]]
# What makes an object, and what a device does with it.
MADE = ("publish", "publish_blob", "forget")
# Two calls at once, one by each worker.
RACES = (
    "publish publish",
    "publish contradiction",
    "publish import",
    "put put",
    "import import",
    "import forget",
    "import rebuild",
    "forget forget",
    "forget rebuild",
    "publish_manifest import",
    "enroll enroll",
    "publish_blob publish_blob",
)
# Bytes at a place that are no object of it.
LITTER = ("copy", "dotfile", "dot folder", "upper case", "long")
# What makes any object one that cannot be opened, and other bytes that come in the place of one.
BENT = ("flipped", "cut", "longer", "empty")
DAMAGES = (*BENT, "of another", "malformed", "byte order mark", "replaced")


def _one(dice: Random, what: str, **more: object) -> Step:
    """A step by either worker for any device, with content of its own."""
    drawn = {"worker": dice.randrange(WORKERS), "node": dice.choice("abc"), "draft": dice.randrange(1, 1_000_000)}
    return Step(what, **{**drawn, **more})  # type: ignore[arg-type]


def _any(dice: Random) -> Step:
    """Something that makes an object."""
    return _one(dice, dice.choice(("publish", "publish", "put", "place", "publish_blob", "forget")))


def _everywhere(dice: Random) -> list[Step]:
    """Every device imports, by either worker, and is observed by the other."""
    steps = []
    for node in dice.sample(DEVICES, len(DEVICES)):
        worker = dice.randrange(WORKERS)
        steps += [Step("import", worker, node), Step("look", 1 - worker, node)]
    return steps


def _published(dice: Random) -> list[Step]:
    """Each operation, its exact retry here and elsewhere, and the same id with other content."""
    first = _one(dice, "publish")
    steps = [first, Step("again", 1 - first.worker, first.node), _one(dice, "contradict", node=first.node)]
    blob = _one(dice, "publish_blob")
    steps += [blob, Step("again", 1 - blob.worker, dice.choice("abc")), _one(dice, "put"), Step("put again", 1)]
    steps += [_one(dice, "publish_blob", how="long"), _one(dice, "put another", which=1)]
    steps += [_one(dice, "put", how="long"), _one(dice, "put another")]
    steps += [_one(dice, "publish", node="z"), _one(dice, "publish", how="of another"), _one(dice, "import_object")]
    return [*steps, Step("restart", dice.randrange(WORKERS)), _one(dice, "again"), _one(dice, "import_object", which=2)]


def _imported(dice: Random) -> list[Step]:
    steps = [_any(dice) for _ in range(dice.randrange(3, 7))]
    ones = [_one(dice, "import_object", which=dice.randrange(6)) for _ in range(4)]
    again = _one(dice, "import")
    return [*steps, *ones, again, again, Step("import", 1 - again.worker, again.node), *_everywhere(dice)]


def _forgotten(dice: Random) -> list[Step]:
    """What is forgotten stays so: late and contradicting segments, pins, a removed tombstone, a rebuild."""
    steps = [_one(dice, "publish"), _one(dice, "put"), _one(dice, "import"), _one(dice, "forget")]
    forgot = steps[-1]
    steps += [Step("again", 1 - forgot.worker, forgot.node), _one(dice, "publish"), _one(dice, "place")]
    steps += [_one(dice, "remove") if dice.randrange(2) else _one(dice, "restart"), _one(dice, "import")]
    return [*steps, _one(dice, "rebuild"), _one(dice, "forget", how="inverted"), *_everywhere(dice)]


def _in_time(dice: Random) -> list[Step]:
    """Events beside the clock, to the microsecond, and a window that reaches into the future."""
    node, worker = dice.choice("abc"), dice.randrange(WORKERS)
    steps = [Step("clock", seconds=round(dice.uniform(0.000001, 5), 6)), _one(dice, "publish", node=node, how="now")]
    steps += [Step("import", worker, node), Step("forget", worker, node, how="into the future", draft=1)]
    steps += [Step("clock", seconds=dice.choice((0.5, -0.000001, 86400.25, -3600))), Step("again", 1 - worker, node)]
    steps += [_one(dice, "publish", node=node, how="now"), Step("import", 1 - worker, node), Step("look", worker)]
    # Now is what the clock says, in a process that has seen a later time as well.
    steps += [Step("clock", seconds=-round(dice.uniform(2, 7200), 6)), _one(dice, "publish", node=node, how="now")]
    return [*steps, Step("forget", worker, node, how="into the future", draft=2), Step("import", 1 - worker, node)]


def _manifests(dice: Random) -> list[Step]:
    node = dice.choice("abc")
    own = partial(_one, dice, node=node)
    steps = [
        own("publish_manifest"),
        own("publish_manifest"),
        own("publish"),
    ]
    steps += [
        # Beside the segments that it lists.
        Step("litter", how=dice.choice(LITTER)),
        own("publish_manifest"),
        Step("spoil", how=dice.choice(BENT)),
        own("publish_manifest"),
    ]
    steps += [_one(dice, "import"), own("publish_manifest"), _one(dice, "publish_manifest", node="z")]
    # As many objects as the last manifest lists, and not the same.
    steps += [
        own("publish", how="now"),
        own("publish_manifest"),
        _one(dice, "remove"),
    ]
    steps += [own("publish", how="now"), own("publish_manifest")]
    steps += [own("put at the manifest"), _one(dice, "import")]
    return [*steps, _one(dice, "import"), _one(dice, "remove"), _one(dice, "import"), _one(dice, "look")]


def _hostile(dice: Random) -> list[Step]:
    """Bytes at a place that cannot be imported, or that are another object; then the whole one again."""
    node = dice.choice("abc")
    steps: list[Step] = [_any(dice), _one(dice, "place"), _any(dice), Step("import", dice.randrange(WORKERS), node)]
    for how in ("replaced", *dice.sample(DAMAGES, 3)):
        which, worker = dice.randrange(3), dice.randrange(WORKERS)
        steps += [Step("damage", 0, node, which, how=how), Step("import", worker, node)]
        # Another device knows nothing of what this one has imported, even if the process remembers it.
        steps += [Step("import", worker, dice.choice([other for other in "abc" if other != node]))]
        steps += [
            _one(dice, "import_object", node=node, which=which),
            _one(dice, "enroll", node=node),
            Step("again", 0, node, which),
            Step("mend", 0, node, which),
        ]
        steps += [_one(dice, "import", node=node)]
    # An operator looks at what cannot be opened.
    steps += [_one(dice, "publish", node=node), Step("spoil", how="cut"), _one(dice, "command verify", node=node)]
    litter = [Step("litter", which=which, how=how) for which, how in enumerate(LITTER)]
    return [*steps, *litter, *_everywhere(dice)]


def _strangers(dice: Random) -> list[Step]:
    steps = [_one(dice, "place", node="z"), _one(dice, "put", node="z"), _one(dice, "import"), _one(dice, "forget")]
    steps += [
        _one(dice, "enroll", node="d"),
        _one(dice, "enroll", node="d", how="with another id"),
        _one(dice, "enroll"),
    ]
    return [*steps, _one(dice, "publish", node="d"), _one(dice, "import", node="d"), _one(dice, "import", node="z")]


def _operator(dice: Random) -> list[Step]:
    """The command line changes what running workers must see."""
    node = dice.choice("abc")
    commands = dice.sample(("forget", "import", "status", "verify"), 3)
    steps = [_one(dice, "publish"), _one(dice, "put"), Step("look", 0, node), Step("look", 1, node)]
    for command in commands:
        steps += [_one(dice, f"command {command}", node=node), Step("look", 0, node), Step("look", 1, node)]
    steps += [_one(dice, "command forget", node=node, how="ahead")]
    return [*steps, Step("import", 0, node), Step("look", 1, node), *_everywhere(dice)]


def _rivals(dice: Random) -> list[Step]:
    steps = [_any(dice), _one(dice, "publish"), _one(dice, "import")]
    for kinds in dice.sample(RACES, 4):
        steps += [_one(dice, f"race {kinds}"), *([_one(dice, "publish")] if dice.randrange(2) else [])]
    return [*steps, *_everywhere(dice)]


def _killed(dice: Random) -> list[Step]:
    """A process is killed within an operation, and so is the one that goes on with it, or with other content."""
    steps = [_one(dice, "publish"), _one(dice, "put"), _one(dice, "place")]
    within = dice.sample((*MADE[:2], "put", "publish_manifest", "forget", "import", "rebuild", "enroll"), 3)
    steps += [_one(dice, f"kill {what}", seconds=round(dice.uniform(0, _WITHIN), 6)) for what in within]
    for what in ("import", "rebuild", dice.choice(("import", "rebuild", "enroll"))):
        steps += [_one(dice, "put"), _one(dice, f"leave {what}", seconds=round(dice.uniform(0.002, _WITHIN), 6))]
    return [*steps, _one(dice, "publish"), _one(dice, "kill"), *_everywhere(dice)]


def _lost_index(dice: Random) -> list[Step]:
    """The index of a device is deleted while processes have it open, and made again.

    What lies in the store already is then asked for once more: it is applied to the new index.
    """
    node, worker = dice.choice("abc"), dice.randrange(WORKERS)
    steps = [_one(dice, "publish", node=node), _one(dice, "forget", node=node)]
    # Each process knows then what it has imported.
    steps += [Step("import", each, node) for each in range(WORKERS)] * 2
    steps += [Step("look", 1, node)]
    steps += [Step("lose index", worker, node, how=dice.choice(("import", "forget", "import_object", "rebuild")))]
    steps += [Step("again", worker, node), Step("look", 1 - worker, node)]
    return [*steps, Step("import", 1 - worker, node), Step("look", worker, node)]


SCENARIOS: Mapping[str, Scenario] = {
    "published": _published,
    "imported": _imported,
    "imported again": _imported,
    "forgotten": _forgotten,
    "forgotten again": _forgotten,
    "in time": _in_time,
    "manifests": _manifests,
    "hostile": _hostile,
    "hostile again": _hostile,
    "strangers": _strangers,
    "operator": _operator,
    "rivals": _rivals,
    "rivals again": _rivals,
    "killed": _killed,
    "lost index": _lost_index,
}


def volume(dice: Random) -> list[Step]:
    """More than a thousand events and a mebibyte: imported whole, interrupted, left, and forgotten in part."""
    many = dice.randrange(1001, 1100)
    steps = [Step("publish", 0, "a", how="many", draft=many), Step("place", how="large", draft=many)]
    steps += [Step("publish_blob", 1, "a", how="long", draft=many)]
    steps += [Step("kill import", 0, "b", seconds=round(dice.uniform(0, 0.3), 6)), Step("import", 1, "c")]
    steps += [Step("leave rebuild", 1, "c", draft=many, seconds=round(dice.uniform(0, 0.3), 6))]
    steps += [Step("kill forget", 0, "b", how="half of many", draft=many, seconds=round(dice.uniform(0, 0.3), 6))]
    return [*steps, Step("import", 1, "c")]


def scheduled(*first: str) -> Scenario:
    """Draws histories of three scenarios, of which each comes up as often as any other, `first` these."""
    deck = Deck(SCENARIOS, first)
    return lambda dice: [step for _ in range(3) for step in SCENARIOS[deck.deal(dice)](dice)]
