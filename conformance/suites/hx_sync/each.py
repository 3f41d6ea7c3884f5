"""hx-sync: every operation of the contract under the same attacks, so that none is hardly attacked.

The steps stand here, one for each operation and attack. What is due follows from the pure model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.hx_sync.history import Step
from holdfast.conformance.suites.hx_sync.lost import asked_of
from holdfast.conformance.suites.hx_sync.play import playing
from holdfast.conformance.suites.hx_sync.sets import World
from holdfast.conformance.suites.session import SuiteSession

_T = TypeVar("_T")
# Each operation by the step that asks for it. Who imports is another device than the one that publishes.
EACH: Mapping[str, Step] = {
    "publish": Step("publish", draft=1),
    "publish_blob": Step("publish_blob", draft=2),
    "put": Step("put", draft=3),
    "import_object": Step("import one", node="b"),
    "import": Step("import", node="b"),
    "publish_manifest": Step("manifest"),
    "forget": Step("forget", draft=4),
    "rebuild": Step("rebuild", node="b"),
    "enroll": Step("enroll", node="d"),
}
# Here, through another process, later, in a process that was started since, and earlier than it was done.
_AGAIN = (
    Step("repeat", 0),
    Step("repeat", 1),
    Step("clock", seconds=0.5),
    Step("restart", 0),
    Step("repeat", 0),
    Step("clock", seconds=-3600),
    Step("repeat", 1),
    Step("clock", seconds=3600),
)
# Operations that meet in the same rows or objects.
RIVALS = (
    *((name, name) for name in EACH),
    ("publish", "publish_manifest"),
    ("publish", "forget"),
    ("publish", "import"),
    ("publish_blob", "import"),
    ("publish_manifest", "import"),
    ("put", "import"),
    ("forget", "import_object"),
    ("forget", "import"),
    ("forget", "rebuild"),
    ("import_object", "import"),
    ("import_object", "rebuild"),
    ("import", "rebuild"),
)
# How many share a session, which has a limit of time.
_TOGETHER = 4
# More rows than any page or batch of a thousand.
_MANY = 1005


def _shares(every: Iterable[_T]) -> Iterator[list[_T]]:
    """All of them, those of one session at a time."""
    left = iter(every)
    while some := list(islice(left, _TOGETHER)):
        yield some


@clause("HX-P3", "HX-P2", whole=True, written=True)
def test_every_operation_is_known_when_it_is_asked_for_again(bench: Bench) -> None:
    """By the same process, by another, after a restart, and with the clock stepped forward and back."""
    for some in _shares(EACH.values()):
        with playing(bench, []) as play:
            # Something to import, to list and to rebuild.
            play.step(EACH["publish"])
            for step in some:
                play.step(step)
                for again in _AGAIN:
                    play.step(again)
            play.compare()


@clause("HX-P4", "HX-P3", "HX-P2", whole=True, written=True)
def test_every_operation_beside_itself_and_its_rivals_is_explained_by_some_order(bench: Bench) -> None:
    """Two processes ask at once; what both answer and what is there then must come of one order of the two."""
    for some in _shares(enumerate(RIVALS)):
        with playing(bench, []) as play:
            for number, (one, other) in some:
                play.step(Step("publish", draft=100 + number))
                play.step(Step(f"race {one} {other}", number % 2, "b", draft=1000 + 10 * number))
            play.compare()


@clause("HX-P5", "HX-P4", whole=True, written=True)
def test_every_operation_works_among_a_thousand_events(bench: Bench) -> None:
    """A device that holds them is observed before each."""
    with playing(bench, []) as play:
        play.step(Step("publish", node="a", how="many", draft=_MANY))
        play.step(Step("import", node="b"))
        for step in EACH.values():
            play.step(Step("look", 1, "b"))
            play.step(step)
        play.compare()


# Refusals


@clause("HX-REQ-1", "HX-P7", whole=True, written=True)
def test_every_operation_that_is_refused_leaves_everything_as_it_was(bench: Bench) -> None:
    """Arguments that lack a member or have one too many, and a device that is not there."""
    with bench.session(workers=2) as session:
        world = World(bench, session, "refused")
        canary = session.rand("canary")
        asked = {**asked_of(world, "a", "refused"), "enroll": {"node": "d", "node_id": world.node_id("d")}}
        before = _everything(session)
        for method, args in asked.items():
            for wrong, reason in _wrong(args, canary):
                answer = session.call(method, wrong)
                if answer.reason != reason:
                    verdict = "fail_open" if answer.outcome == "accepted" else "wrong_reason"
                    bench.fail(verdict, f"{method} {sorted(wrong)}", expected=reason, received=str(answer.reason))
                after = _everything(session)
                if after != before:
                    bench.fail("state_leak", f"{method} was refused and left something", received=repr(after)[:600])
        for folder in ("HXSync", "nodes"):
            if found := session.search(folder, [canary]):
                bench.fail("state_leak", "what was refused can be read", received=repr(found))


def _wrong(args: Mapping[str, Any], canary: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    yield {**args, "surplus": canary}, "REQUEST_MALFORMED"
    yield {name: value for name, value in args.items() if name != next(iter(args))}, "REQUEST_MALFORMED"
    if "node" in args and "node_id" not in args:
        yield {**args, "node": "nobody"}, "NODE_UNKNOWN"


def _everything(session: SuiteSession) -> Any:
    """What the devices show, by the process that refuses nothing, and the files of the store."""
    files = sorted(row["path"] for row in session.tree("HXSync") if row["kind"] == "file")
    return session.observe("state", worker=1), session.observe("objects", worker=1), files
