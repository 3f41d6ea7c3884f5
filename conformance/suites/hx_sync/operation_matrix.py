"""hx-sync: every operation of the contract under the same attacks, so that none is hardly attacked.

The steps stand here, one for each operation and attack. What is due follows from the pure model.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, TypeVar

from holdfast.conformance.cases.values import base64url
from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.hx_sync.generate import Step
from holdfast.conformance.suites.hx_sync.permutations import ObjectBuilder
from holdfast.conformance.suites.hx_sync.runner import playing
from holdfast.conformance.suites.hx_sync.store_faults import asked_of
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.hx_sync.objects.drafts import VAULT_KEY

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
    # Over what cannot be opened: it is refused, or written anew where that is what the operation does.
    Step("spoil", how="flipped"),
    Step("repeat", 0),
    Step("unspoil"),
    Step("repeat", 1),
)
# What a device has imported, and then the store has not: one object is gone, and another is sealed anew.
_GONE = (
    Step("publish", how="now", draft=60),
    Step("publish_blob", draft=61),
    Step("import", node="b"),
    Step("damage", how="replaced"),
    Step("import one", node="b"),
    Step("import", 1, node="b"),
    Step("remove"),
)
# A device that has something to report, and is enrolled again.
_REPORTING = (
    Step("place", node="z", draft=50),
    Step("damage", how="flipped"),
    Step("litter", how="copy"),
    Step("import", node="c"),
    Step("enroll", 1, node="c"),
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


def _shares(every: Iterable[_T]) -> Iterator[list[_T]]:
    """All of them, those of one session at a time."""
    left = iter(every)
    while some := list(islice(left, _TOGETHER)):
        yield some


@clause("HX-P3", "HX-P2", whole=True, written=True)
def test_every_operation_is_known_when_it_is_asked_for_again(bench: Bench) -> None:
    """By the same process, by another, after a restart, with the clock stepped, and over what cannot be opened."""
    for some in _shares(EACH.values()):
        with playing(bench, []) as play:
            # Something to import, to list and to rebuild.
            for step in (EACH["publish"], *_GONE, *_REPORTING):
                play.step(step)
            for step in some:
                for each in (step, *_AGAIN):
                    play.step(each)
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


# A race that shows in one round of sixteen is nearly always found in this number of rounds.
_ROUNDS = 48
# Fewer rounds for operations that several cases race.
_OTHERS = ("publish", "publish_blob", "put", "import_object", "forget")


@clause("HX-LOC-2", "HX-P4", whole=True, written=True)
def test_of_many_who_enroll_a_device_at_once_one_makes_it(bench: Bench) -> None:
    """Two processes in many rounds, with one id and with two. The others get what the first one made."""
    with playing(bench, []) as play:
        for number in range(_ROUNDS):
            kinds = "enroll contradiction" if number % 3 == 2 else "enroll enroll"
            play.step(Step(f"rush {kinds}", number % 2, f"d{number}"))
        play.compare()


@clause("HX-P4", "HX-P3", "HX-P2", whole=True, written=True)
def test_of_many_who_ask_for_the_same_at_once_one_does_it(bench: Bench) -> None:
    """Each operation that does something once, by two processes in many rounds."""
    for some in (_OTHERS[:3], _OTHERS[3:]):
        with playing(bench, []) as play:
            for number in range(_ROUNDS // 3):
                for one in some:
                    if one == "import_object":
                        play.step(Step("place", node="z", draft=5000 + number))
                    play.step(Step(f"rush {one} {one}", number % 2, "abc"[number % 3], draft=6000 + 10 * number))
            play.compare()


# Refusals


@clause("HX-REQ-1", "HX-P7", whole=True, written=True)
def test_every_operation_that_is_refused_leaves_everything_as_it_was(bench: Bench) -> None:
    """Arguments that lack a member or have one too many, and a device that is not there."""
    with bench.session(workers=2) as session:
        world = ObjectBuilder(bench, session, "refused")
        canary = session.rand("canary")
        asked = {**asked_of(world, "a", "refused"), "enroll": {"node": "d", "node_id": world.node_id("d")}}
        before = _everything(session)
        for method, args in asked.items():
            for wrong, reason in _wrong(args, canary):
                answer = session.call(method, wrong)
                if answer.reason != reason:
                    verdict = "fail_open" if answer.outcome == "accepted" else "wrong_reason"
                    bench.weigh(verdict, f"{method} {sorted(wrong)}", expected=reason, received=str(answer.reason))
                after = _everything(session)
                if after != before:
                    bench.fail("state_leak", f"{method} was refused and left something", received=repr(after)[:600])
        for folder in ("HXSync", "nodes"):
            if found := session.search(folder, [canary]):
                bench.fail("state_leak", "what was refused can be read", received=repr(found))
    for spelled in (VAULT_KEY.upper(), f" {VAULT_KEY}", f"{VAULT_KEY}0", VAULT_KEY[:-2]):
        _unkept(bench, spelled)


def _unkept(bench: Bench, spelled: str) -> None:
    """No file holds a key that was given in this spelling, regardless of what a session does with it."""
    with bench.session(config={"vault_key": spelled}) as session:
        asked = asked_of(ObjectBuilder(bench, session, "mistyped"), "a", "mistyped")
        for method, args in asked.items():
            session.call(method, args)
        given = {spelled, spelled.strip(), spelled.strip().lower(), VAULT_KEY, VAULT_KEY[:-2]}
        wanted = [*sorted(given), {"bytes": base64url(bytes.fromhex(VAULT_KEY[:-2]))}]
        for folder in ("HXSync", "nodes"):
            if found := session.search(folder, wanted):
                bench.fail("state_leak", "a mistyped key of the vault can be read", received=repr(found))


def _wrong(args: Mapping[str, Any], canary: str) -> Iterator[tuple[Mapping[str, Any], str]]:
    yield {**args, "surplus": canary}, "REQUEST_MALFORMED"
    yield {name: value for name, value in args.items() if name != next(iter(args))}, "REQUEST_MALFORMED"
    if "node" in args and "node_id" not in args:
        yield {**args, "node": "nobody"}, "NODE_UNKNOWN"


def _everything(session: SuiteSession) -> Any:
    """What the devices show, by the process that refuses nothing, and the files of the store."""
    files = sorted(row["path"] for row in session.tree("HXSync") if row["kind"] == "file")
    return session.observe("state", worker=1), session.observe("objects", worker=1), files
