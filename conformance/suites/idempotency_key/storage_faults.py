"""Stores in files: what a loss of power leaves, calls that fail, locks, and files that go away (IK-CRASH, IK-STORE).

An instance runs under holdfast's own tracer, which records what it does to {data}, or lets its calls fail.
"""

from __future__ import annotations

import errno
import math
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.cases.forms import value_form
from holdfast.conformance.cases.report import Report
from holdfast.conformance.faults.locks import locked
from holdfast.conformance.faults.metadata import Metadata
from holdfast.conformance.faults.model.plan import Plan
from holdfast.conformance.faults.model.survey import Stage
from holdfast.conformance.faults.probe import probe
from holdfast.conformance.faults.recording import Recording, Sync, Write
from holdfast.conformance.faults.report import Deadline, RunError
from holdfast.conformance.faults.runs import Promises, Run, read_whole
from holdfast.conformance.faults.subject import Asked, History, Op, Outcome, SubjectAnswer
from holdfast.conformance.suites.idempotency_key.client import (
    DECLARED,
    NO_FILES,
    ON_A_SERVER,
    PURGE,
    SMALL,
    Got,
    Service,
    service,
)
from holdfast.servers.wires.profile import ENDS

# A store that is out of reach, slow, or half there


# Number and size of the answers that fill a small store; number and length of the keys that do it in their place.
_FILLING, _LARGE = 200, 65_536
_AT_ONCE, _SAFE = 64, 120
_FAULTS = ("refused", "reset", "silent", "cut", "one-way")
_NOTHING_DONE = ("UNAVAILABLE", "UNKNOWN", "OTHER", "NO_ANSWER")


def _without(s: Service, tag: str, got: Got, fault: str, due: int, *, may_work: bool) -> None:
    """An answer while the store is away: nothing is executed, unless the store is what a consumer waits for."""
    which = f"{'a known key' if due else 'a new key'} with the store {fault}"
    if may_work and not due:
        s.at_most_one(tag, which, got)
    elif s.profile["handler"] == "behind":
        # A message may have come to the store although its answer was lost, and is consumed when the store is back.
        s.at_most_one(tag, which)
    elif s.effects(tag) > due:
        chosen = f": {DECLARED}" if s.profile["fail_open"]["lookup"] else ""
        s.fail("fail_open", f"{which} was executed{chosen}")
    elif got.accepted and not due:
        s.fail("fail_open", f"{which} got {got}")
    if not got.accepted and not s.means(got, (*_NOTHING_DONE, *(("DUPLICATE",) if due else s.unknown))):
        s.wrong("wrong_reason", f"{which}: expected UNAVAILABLE, got {got}", got)


@dataclass
class Outage:
    """A store that is away in one way: a known and a new key, then and behind it."""

    s: Service
    fault: str
    known: tuple[str, str]
    first: Got
    new: tuple[str, str]
    answers: list[Got] = field(default_factory=list)

    @classmethod
    def of(cls, s: Service, fault: str) -> Outage:
        """Before it begins: a key becomes known."""
        known, key = s.tag(), s.key()
        first = s.first(known, key)
        s.must_run()
        s.is_disturbed = True
        return cls(s, fault, (known, key), first, (s.tag(), s.key()))

    def asked(self, times: int = 2, *, may_work: bool = False) -> None:
        """While it lasts, both at once: what can be read is right to replay. `may_work`: it may take the new one."""
        for _ in range(times):
            found = self.s.burst([self.s.request(*self.known), self.s.request(*self.new)])
            self.answers.append(found[1])
            for (tag, _key), got, due in zip((self.known, self.new), found, (1, 0), strict=True):
                _without(self.s, tag, got, self.fault, due, may_work=may_work)

    def over(self) -> None:
        """Behind it: the known key has its answer. A claim may have come to the store although its answer was lost."""
        s, (tag, key), why = self.s, self.known, f"a known key behind a store that was {self.fault}"
        if "process" in s.wires and not s.instance("look"):
            s.must_run_undisturbed()
            s.wrong("over_refusal", f"the instance ended when its store was {self.fault}")
        s.retried(self.first, s.settles(s.request(tag, key), ("DUPLICATE",), why), why)
        s.one_effect(tag, why)
        s.behind_the_lease()
        (tag, key), why = self.new, f"a new key behind a store that was {self.fault}"
        # A store that worked on has taken it.
        taken = ("DUPLICATE",) if s.effects(tag) else ()
        s.at_most_one(tag, why, *self.answers, s.settles(s.request(tag, key), (*s.unknown, *taken), why))


@clause("IK-STORE-1", "IK-STORE-6", "IK-LIVE-2", provocations=("line",))
def test_nothing_is_executed_while_the_store_is_out_of_reach(bench: Bench) -> None:
    """A known and a new key, with each fault of the line; then the line is back, and both are asked again."""
    with service(bench, ON_A_SERVER) as s:
        for fault in _FAULTS:
            outage = Outage.of(s, fault)
            s.line(fault)
            outage.asked()
            s.line("none")
            outage.over()


@clause("IK-STORE-2", "IK-LIVE-1", provocations=("line", "hold"))
def test_a_store_that_is_lost_before_the_record_does_not_make_the_retry_an_effect(bench: Bench) -> None:
    """The line fails while the handler is held, and is back behind it."""
    with service(bench, ON_A_SERVER) as s:
        for fault in ("refused", "reset", "silent", "cut"):
            tag, key = s.tag(), s.key()
            s.hold(tag, when="after")
            s.begin("first", s.request(tag, key))
            s.line(fault)
            s.release(tag)
            first = s.finish("first")
            s.line("none")
            s.behind_the_lease()
            got = s.settles(s.request(tag, key), ("UNKNOWN", "DUPLICATE"), f"the store was {fault} at the save")
            chosen = f": {DECLARED}" if s.profile["abandoned"] == "reexecute" else ""
            s.one_effect(tag, f"a retry of a request whose save met a store that was {fault}{chosen}")
            saves = s.profile["duplicate"] == "replay" and not s.profile["fail_open"]["save"]
            if first.accepted and not got.accepted and saves:
                s.wrong("wrong_reason", f"a plain success was answered ({first}), although its save failed ({fault})")


@clause("IK-STORE-3", "IK-STORE-7", provocations=("line",))
def test_a_slow_store_is_not_taken_for_an_empty_one(bench: Bench) -> None:
    """Each piece of a reply comes late: a right answer that is late is right."""
    with service(bench, ON_A_SERVER) as s:
        for delay in (100, 1500):
            known, key = s.tag(), s.key()
            first = s.first(known, key)
            s.line("slow", delay)
            got = s.submit(s.request(known, key, within_ms=20_000))
            s.one_effect(known, f"a known key, with {delay} ms for each piece")
            if got.accepted or not s.means(got, _NOTHING_DONE):
                s.retried(first, got, "a known key with a slow store")
            new, other = s.tag(), s.key()
            got = s.submit(s.request(new, other, within_ms=20_000))
            s.line("none")
            s.behind_the_lease()
            again = s.settles(s.request(new, other), s.unknown, "a new key behind a slow store")
            s.at_most_one(new, "a new key with a slow store", got, again)


@clause("IK-STORE-3", "IK-STORE-7", provocations=("serve_store",))
def test_a_store_that_only_fails_in_part_is_not_taken_for_an_empty_one(bench: Bench) -> None:
    """Each fault that the store can make itself: read-only, full, a command that is forbidden."""
    with service(bench, ON_A_SERVER) as s:
        faults = [fault for fault in s.faults if fault not in (SMALL, PURGE)]
        s.must_promise(faults, "[store.commands] has no fault and its end")
        for fault in faults:
            outage = Outage.of(s, fault)
            s.session.provoke("serve_store", {"do": fault})
            outage.asked()
            s.session.provoke("serve_store", {"do": f"{fault}{ENDS}"})
            outage.over()


@clause("IK-STORE-5", provocations=("serve_store",))
def test_a_store_that_is_full_frees_no_key(bench: Bench) -> None:
    """The store is made small, and filled until a request is refused: with large answers, or with keys alone."""
    with service(bench, ON_A_SERVER) as s:
        s.must_promise(SMALL in s.faults, f"[store.commands] has no {SMALL} and {SMALL}{ENDS}")
        outage = Outage.of(s, "full")
        s.session.provoke("serve_store", {"do": SMALL})
        keeps = s.profile["duplicate"] == "replay" and s.names_effects
        fill, what = (_answers, f"{_FILLING} answers") if keeps else (_keys, f"{_FILLING} times {_AT_ONCE} keys")
        is_full = any(fill(s) for _ in range(_FILLING))
        s.submit(s.request(*outage.known))
        s.one_effect(outage.known[0], "a known key in a store that was filled")
        if not is_full:
            s.not_reached(f"the store took {what}; let {SMALL} give it less room")
        s.session.provoke("serve_store", {"do": f"{SMALL}{ENDS}"})
        outage.over()


def _answers(s: Service) -> bool:
    """One more large answer; whether it was refused."""
    tag = s.tag()
    s.ending(tag, size=min(_LARGE, s.profile["largest_answer"] or _LARGE))
    return not s.submit(s.request(tag, s.key())).accepted


def _keys(s: Service) -> bool:
    """Many more keys; whether one was refused. A guard that keeps no answers keeps only these."""
    asked = [s.request(s.tag(), s.long_key(_SAFE)) for _ in range(_AT_ONCE)]
    return not all(got.accepted for got in s.burst(asked))


@clause("IK-STORE-4", provocations=("serve_store",))
def test_the_return_of_the_store_frees_no_key(bench: Bench) -> None:
    """The store's server is killed and started again."""
    with service(bench, ON_A_SERVER) as s:
        s.must_promise(s.profile["durable"] and s.profile["store_durable"], "keys do not outlive the store's server")
        for how in ("restart", "kill-and-restart"):
            tag, key = s.tag(), s.key()
            first, s.is_disturbed = s.first(tag, key), True
            s.session.provoke("serve_store", {"do": how})
            got = s.settles(s.request(tag, key), ("DUPLICATE",), f"the store's server: {how}")
            s.one_effect(tag, f"a retry behind a {how} of the store's server")
            s.retried(first, got, f"a retry behind a {how} of the store's server")


_DATA, _RECORDING = "data", "logs/recording"
# Below the words of a service's command.
_TRACER = "{python} -P -m holdfast.conformance.faults.tracer {logs}/recording%s {data} %s --"
_KEYS = 3
# States behind those at the acknowledgements, each of another kind.
_KINDS = 6
# Number of the calls that fail alone, and of the requests that are sent until one meets such a call.
_POINTS, _FILLED = 5, 4
# At most so many of the syncs of one request fail, each in a service of its own.
_SYNCS = 4
# Behind half of so many writes, at most, the rest is refused.
_HALVES = 2

# A request: when it was sent, when its answer came, and whether it was accepted; and its tag, key and answer.
_Span = tuple[int, int, bool]
_Asked = tuple[str, str, Got | None]


def _recorded(workdir: Path, spans: Sequence[_Span]) -> tuple[Recording, Promises]:
    asked = [
        Asked(Op(number, "a request", {}), SubjectAnswer(Outcome.OK if accepted else Outcome.ERROR, sent, came))
        for number, (sent, came, accepted) in enumerate(spans, start=1)
    ]
    out = workdir / _RECORDING
    run = Run(workdir / _DATA, out, read_whole(out, Deadline()), History(tuple(asked)))
    return run.recording, run.promises


def _lost(workdir: Path, operand: Mapping[str, Any]) -> dict[str, Any]:
    """Put a state that a loss of power leaves in the place of the files, if one is named.

    `kept` are the requests that were answered before it; `answered`, `writes` and `syncs` are operations of the
    recording. `struck` says whether the fault that was asked for met one.
    """
    try:
        recording, promises = _recorded(workdir, operand["spans"])
    except RunError as error:
        nothing: dict[str, list[int]] = {"kept": [], "answered": [], "writes": [], "syncs": []}
        return {"error": str(error), "states": 0, "struck": False, **nothing}
    answered = [promises.acknowledged[number] for number in sorted(promises.acknowledged)]
    plan = Plan(recording, acknowledgements=answered, idle=promises.idle)
    states = list(
        takewhile(
            lambda one: one.due or one.stage in (Stage.ACKNOWLEDGED, Stage.REPLACED), plan.before(None, kinds=_KINDS)
        )
    )
    kept: list[int] = []
    if operand["state"] is not None:
        candidate = states[operand["state"]]
        shutil.rmtree(workdir / _DATA)
        (workdir / _DATA).mkdir()
        Metadata(recording).write(candidate, workdir / _DATA)
        kept = sorted(promises.must(*candidate.numbers))
    kinds = {
        name: [one.number for one in recording.operations if isinstance(one.action, kind)]
        for name, kind in (("writes", Write), ("syncs", Sync))
    }
    struck = recording.ending.fired
    return {"error": None, "states": len(states), "struck": struck, "kept": kept, "answered": answered, **kinds}


# What holds the locks of a session, until it is told to let go.
_HOLDING: dict[Path, ExitStack] = {}


def _lock(workdir: Path, operand: Mapping[str, Any]) -> dict[str, Any]:
    """Let another process lock these files, until no file is named. `count` are those that it has locked."""
    _HOLDING.pop(workdir, ExitStack()).close()
    files = [workdir / path for path in operand["files"]]
    if not files:
        return {"count": 0}
    holding = _HOLDING[workdir] = ExitStack()
    return {"count": holding.enter_context(locked(files))}


LOCK = Report(name="lock", do=_lock, schema=value_form(count={"type": "integer", "minimum": 0}))
_NUMBERS = {"type": "array", "items": {"type": "integer", "minimum": 0}}
LOSE_POWER = Report(
    name="lose-power",
    do=_lost,
    schema=value_form(
        error={"type": ["string", "null"]},
        states={"type": "integer", "minimum": 0},
        struck={"type": "boolean"},
        kept=_NUMBERS,
        answered=_NUMBERS,
        writes=_NUMBERS,
        syncs=_NUMBERS,
    ),
)


def _must_have_files(s: Service) -> None:
    if "data" not in s.wires:
        s.unsupported(NO_FILES)
    s.must_promise(s.profile["durable"], "keys do not outlive the process")


def _must_trace(s: Service) -> None:
    _must_have_files(s)
    refused = probe().tracer
    if refused:
        s.not_reached(f"instances cannot be traced here: {refused}")


def _power_lost(s: Service, spans: Sequence[_Span], state: int | None) -> dict[str, Any]:
    found = s.session.report(LOSE_POWER, str(state or 0), {"spans": [list(span) for span in spans], "state": state})
    if found["error"] is not None:
        s.not_reached(f"nothing is known of what a loss of power leaves: {found['error']}")
    return found


def _answered(s: Service, fault: str = "") -> tuple[list[_Asked], list[_Span]]:
    """Keys that a traced instance has answered, and when; the last one without an answer has had its effect then.

    With a fault some may be refused, and none is held.
    """
    asked: list[_Asked] = []
    spans: list[_Span] = []
    if not s.instance("start", under=_TRACER % ("", fault)):
        s.not_reached("the instance does not start under the tracer")
    for _ in range(_KEYS):
        tag, key = s.tag(), s.key()
        sent = time.monotonic_ns()
        got = s.submit(s.request(tag, key, within_ms=20_000))
        spans.append((sent, time.monotonic_ns(), got.accepted))
        if not got.accepted and not fault:
            s.not_reached(f"a first request under the tracer got {got}")
        asked.append((tag, key, got))
    # The last one is held behind its effect: what is under way then is not forgotten either.
    held = s.tag() if s.profile["handler"] == "inside" and not fault else None
    if held is not None:
        key = s.key()
        s.hold(held, when="after")
        sent = time.monotonic_ns()
        s.begin("held", s.request(held, key))
        spans.append((sent, time.monotonic_ns(), True))
        asked.append((held, key, None))
    s.instance("end")
    if held is not None:
        s.release(held)
        s.finish("held")
    return asked, spans


@clause("IK-CRASH-2", provocations=("instance",))
def test_a_loss_of_power_keeps_every_key_that_was_answered(bench: Bench) -> None:
    """Each state that the files may be in when an answer had come, and others: an instance starts on it."""
    for session in ("in a first session", "in a second session", "behind the end of older keys"):
        with service(bench) as s:
            _must_trace(s)
            lifetime = s.profile["lifetime_s"]
            if "older" in session and (lifetime is None or "clock" not in s.wires):
                return
            if "first" not in session:
                # What a store arranges only when it makes its files is not arranged for this one.
                s.first(s.tag(), s.key())
                s.instance("end")
            if "older" in session:
                # What is swept then may take what is kept along.
                s.pass_time(lifetime + 1)
            if not _lose_power(s, session, *_answered(s)):
                s.not_reached("no state of the files is one behind an answer")
            _is_in_the_files(s)


@clause("IK-CRASH-2", provocations=("instance",))
def test_a_sync_that_failed_has_saved_no_key(bench: Bench) -> None:
    """One sync of a request fails, and the power is lost behind an answer since: what failed is on no disk."""
    with service(bench) as s:
        _must_trace(s)
        _, spans = _answered(s)
        found = _power_lost(s, spans, None)
        first, second = found["answered"][:2]
        syncs = [number for number in found["syncs"] if first < number < second]
        if not syncs:
            s.unsupported("a request makes no sync that could fail")
    tried = 0
    chosen = _spread(syncs, _SYNCS)
    for number in chosen:
        with service(bench) as s:
            asked, spans = _answered(s, f"error={errno.EIO} at={number} once=true")
            if _power_lost(s, spans, None)["struck"]:
                tried += _lose_power(s, f"when a sync had failed (operation {number} of the recording)", asked, spans)
            if number == chosen[-1] and not tried:
                s.not_reached("no sync failed before an answer")


def _lose_power(s: Service, which: str, asked: Sequence[_Asked], spans: Sequence[_Span]) -> int:
    """Retries on each state of the files; how many there were."""
    behind = s.profile["handler"] == "behind"
    state, states, tried = 0, 1, 0
    while state < states:
        found = _power_lost(s, spans, state)
        states, state = found["states"], state + 1
        kept = [asked[number - 1] for number in found["kept"]]
        if not kept:
            continue
        why = f"the power was lost {which} behind {len(kept)} requests (state {state} of {states})"
        if not s.instance("start"):
            s.fail("lost_durability", f"{why}: the instance does not start")
        if behind:
            # A message that was not consumed yet at that moment comes again.
            _is_consumed(s, [tag for tag, _, _ in asked])
        for tag, key, first in kept:
            due = s.effects(tag) if behind else 1
            got = s.submit(s.request(tag, key))
            what = "a retry" if first else "a retry of a request whose effect was there and whose answer was not"
            chosen = f": {DECLARED}" if not first and s.profile["abandoned"] == "reexecute" else ""
            s.one_effect(tag, f"{what}; {why}{chosen}", due)
            is_told = got.accepted or (first is not None and got.has_body_of(first))
            if first and not is_told and s.profile["duplicate"] == "replay":
                s.wrong("lost_durability", f"{what}; {why}: it got {got}", got)
            elif first:
                s.retried(first, got, f"{what}; {why}")
            tried += 1
        s.instance("end")
    return tried


def _is_consumed(s: Service, tags: Sequence[str]) -> None:
    """Wait until a consumer has made the effects of what is in its queue: a message may come again."""
    found: list[int] = []
    while (now := [s.effects(tag) for tag in tags]) != found:
        found = now
        s.rest(s.settle_ms)
    for tag, effects in zip(tags, found, strict=True):
        s.may_have(tag, effects)


def _is_in_the_files(s: Service) -> None:
    """What the keys are kept in lies in {data}: without its files a key is not known."""
    s.instance("start")
    tag, key = s.tag(), s.key()
    s.first(tag, key)
    s.instance("end")
    s.lose_files()
    if s.instance("start"):
        s.must_have_lost(s.submit(s.request(tag, key)))


@clause("IK-STORE-5", "IK-STORE-3", "IK-STORE-7", provocations=("instance",))
def test_a_disk_that_is_full_frees_no_key(bench: Bench) -> None:
    """A call that changes a file fails, alone or behind half of a write, or each from one on; then there is room."""
    with service(bench) as s:
        _must_trace(s)
        _, spans = _answered(s)
        # An instance that does the same makes about as many calls until its answers.
        found = _power_lost(s, spans, None)
        _, first, second = found["answered"][:_KEYS]
        writes = [number for number in found["writes"] if first < number < second]
    with service(bench) as s:
        step = max(1, (second - first) // _POINTS)
        struck = [_full(s, f"at={at} once=true") for at in range(first + 1, second, step)]
        struck += [_full(s, f"short={at} at={at + 1} once=true") for at in _spread(writes, _HALVES)]
        struck.append(_full(s, f"at={second}"))
        # Behind the last one each call fails.
        if not struck[-1]:
            s.not_reached("no request met the disk that was full")


def _spread(numbers: Sequence[int], most: int) -> Sequence[int]:
    """At most so many of them, with equal steps between."""
    return numbers[:: max(1, math.ceil(len(numbers) / most))]


def _full(s: Service, where: str) -> bool:
    """Requests to an instance whose disk becomes full at a call, and their retries; whether it refused one of them."""
    if not s.instance("start", under=_TRACER % ("-full", f"error={errno.ENOSPC} {where}")):
        return False
    asked: list[tuple[str, str, Got]] = []
    while len(asked) < _FILLED and (not asked or asked[-1][2].accepted):
        tag, key = s.tag(), s.key()
        asked.append((tag, key, s.submit(s.request(tag, key))))
    for tag, key, got in asked:
        why = f"a retry on a disk that is full, of what got {got}"
        again = s.submit(s.request(tag, key))
        s.at_most_one(tag, why, got, again)
        if got.accepted and again.accepted:
            s.same(got, again, why)
    s.instance("end")
    if not s.instance("start"):
        s.fail("over_refusal", "an instance does not start behind a disk that was full")
    s.behind_the_lease()
    for tag, key, got in asked:
        why = f"a retry behind a disk that was full, of what got {got}"
        last = s.settles(s.request(tag, key), ("UNKNOWN", "DUPLICATE"), why)
        s.at_most_one(tag, why, got, last)
        if got.accepted:
            s.retried(got, last, why)
    s.instance("end")
    return not asked[-1][2].accepted


@clause("IK-STORE-3", "IK-STORE-7", provocations=("instance",))
def test_files_that_are_locked_or_gone_are_not_taken_for_an_empty_store(bench: Bench) -> None:
    """While the instance runs, another process locks all its files; later its folder is somewhere else."""
    with service(bench) as s:
        _must_have_files(s)
        outage = Outage.of(s, "locked")
        files = [found["path"] for found in s.session.tree(_DATA) if found["kind"] == "file"]
        if not s.session.report(LOCK, "", {"files": files})["count"]:
            s.not_reached("no lock could be had on any file of the store")
        try:
            # A store that takes no locks works on, and what it does then is kept.
            outage.asked(1, may_work=True)
        finally:
            s.session.report(LOCK, "no more", {"files": []})
        outage.over()
        outage = Outage.of(s, "somewhere else")
        s.session.move(_DATA, "aside")
        tag, key = outage.known
        s.submit(s.request(tag, key))
        s.one_effect(tag, "a known key, whose store was somewhere else")
        s.session.move("aside", _DATA)
        outage.over()
        _is_in_the_files(s)
