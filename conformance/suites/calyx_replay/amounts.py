"""calyx-replay: amounts that no fixed number stands for: how far ahead, how long, how many.

The seed decides, around the powers of two and the contract's own values.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.record import Judgement, NonConformance
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.suites.calyx_replay.data_at_rest import Remaining
from holdfast.conformance.suites.calyx_replay.envelopes import FORGERIES, Envelopes, LeftBehind, told
from holdfast.conformance.suites.calyx_replay.model import written
from holdfast.conformance.verdict import Verdict
from holdfast.servers.pace import scaled

_SOON = timedelta(seconds=1)
_UNAVAILABLE = "STORE_UNAVAILABLE"
# The reasons with which a migrated letter may be refused when its time comes.
_KNOWN = ("REPLAY_DUPLICATE", "MSG_ID_BLOCKED", "REPLAY_UNPROVABLE")
# Letters from ahead lie 2^9 to 2^24 s ahead: from the window to more than half a year.
_EXPONENTS = range(9, 25)
# After the time of how many of them they are migrated again: it lies more than the shortest retention ahead.
_AGAIN = 3
# A few minutes before the end of the calendar: less than a window, and more than this test takes.
_LATE = "9999-12-31T23:57:00Z"
# More than any limit that comes to mind, and short enough for the answer, which names nearly all of them.
_LISTED = 10_240
# How many records a mailbox has to show in one answer, and how many it has to hold: more than SQLite has variables for.
_SHOWN, _HELD = 2_001, 32_801
_MEMBERS = 1_100
# How often what takes long is asked for, and from how many seconds on an answer took long: a mailbox that gives up
# after so long, and in time for the two seconds of a call, may have had no processor.
_TRIES, _LONG_S = 5, 0.75
_SIZES = (4096, 8192, 16_384, 32_768, 65_536, 131_072, 262_144)


def _left(bench: Bench, session: SuiteSession, letters: Envelopes) -> LeftBehind:
    parameters = bench.contract.parameters
    return LeftBehind(
        session,
        letters,
        listed=str(parameters["seen_cache_path"].value),
        envelopes=str(parameters["envelopes_path"].value),
    )


def _patiently(bench: Bench, session: SuiteSession, method: str, args: Mapping[str, Any] | None = None) -> Answer:
    """Call what takes long, and again where the store was unavailable: that changed nothing, so it can be repeated.

    A machine that is busy may make it take too long each time. That is no finding, and no pass.
    """
    quick = False
    for _ in range(_TRIES):
        answer = session.call(method, args)
        if answer.reason != _UNAVAILABLE:
            return answer
        record = bench.records[-1]
        quick = quick or (record.received_us or 0) - (record.sent_us or 0) < scaled(_LONG_S) * 1e6
    if quick:
        return answer
    detail = f"{method} was refused as {_UNAVAILABLE} {_TRIES} times, each after {scaled(_LONG_S)} s or more"
    raise NonConformance(Judgement(Verdict.NOT_REACHED, detail=detail, n=answer.n))


def _migrate(bench: Bench, session: SuiteSession, due: int) -> None:
    answer = _patiently(bench, session, "migrate")
    if answer.outcome != "accepted" or answer.value["migrated"] != due:
        bench.fail("over_refusal", f"{due} envelopes of version 0", expected=f"{due} migrated", received=str(answer))


@clause("CALYX-MIG-8")
def test_a_migrated_envelope_from_ahead_is_refused_whenever_its_time_comes(bench: Bench) -> None:
    """From minutes to months ahead; the mailbox prunes meanwhile, by itself and when it is asked, and restarts."""
    dice = bench.dice()
    ahead = [300, 301, 86_400, 86_700, *(2**exponent + dice.randrange(-1, 2**exponent) for exponent in _EXPONENTS)]
    with bench.session() as session:
        letters = Envelopes(session)
        left = _left(bench, session, letters)
        made = [letters.make(seconds) for seconds in sorted(ahead)]
        for letter in made:
            left.leave_one(letter, found=True, more=True)
        _migrate(bench, session, len(made))
        for number, letter in enumerate(made):
            distance = dice.choice((0, 300, -300, dice.uniform(-300, 300)))
            moment = max(timedelta(), letter.at - letters.now + timedelta(seconds=distance))
            session.clock(f"+{moment.total_seconds():.6f}s")
            what = dice.randrange(4)
            if what == 0:
                session.call("prune", {"retention_hours": dice.choice((600 / 3600, 1, 23.5, 24, 48))})
            elif what == 1:
                session.restart()
            elif what == 2:
                session.call("accept", {"envelope": letters.make(0).data})
            if number == _AGAIN:
                # Records go, or stay for those that are to come. What was taken over before is taken over all the same.
                session.call("prune", {"retention_hours": 600 / 3600})
                bench.must_be(_patiently(bench, session, "migrate"), "accepted", "a second migration")
            told(bench, session, letter, *_KNOWN, what="a migrated envelope whose time comes")


@clause("CALYX-MIG-4", "CALYX-ALG-3", "CALYX-ALG-8")
def test_near_the_end_of_the_calendar_mail_is_received_and_migrated(bench: Bench) -> None:
    """Less than a window before it: a block, a record and a window that end behind it end never."""
    with bench.session() as session:
        session.clock(_LATE)
        letters = Envelopes(session)
        left = _left(bench, session, letters)
        came, found, lost = (letters.make(seconds) for seconds in (0, 60, -60))
        told(bench, session, came, "new", what="an envelope of the last minutes")
        left.leave_one(found, found=True, more=True)
        left.leave_one(lost, found=False, more=True)
        _migrate(bench, session, 1)
        for _ in range(2):
            told(bench, session, came, "REPLAY_DUPLICATE", what="a copy in the last minutes")
            told(bench, session, found, "REPLAY_DUPLICATE", what="a copy of what was migrated in the last minutes")
            told(bench, session, lost, "MSG_ID_BLOCKED", what="what was lost in the last minutes")
            session.clock("+80s")
            session.restart()
        told(bench, session, letters.make(-350), "TIMESTAMP_OUT_OF_WINDOW", what="an envelope that is too old")


@clause("CALYX-MIG-2", "CALYX-MIG-6", "CALYX-MIG-1")
def test_envelopes_of_every_length_are_migrated(bench: Bench) -> None:
    """Up to the longest that the contract allows, to the byte."""
    dice, most = bench.dice(), int(bench.contract.parameters["max_envelope_bytes"].value or 0)
    with bench.session() as session:
        letters = Envelopes(session)
        left = _left(bench, session, letters)
        sizes = [most, *(size + dice.randrange(-1, 2) for size in dice.sample(_SIZES, 4)), dice.randrange(900, most)]
        made = [letters.long(size) for size in sizes]
        for letter, size in zip(made, sizes, strict=True):
            assert len(from_base64url(letter.data)) == size
            left.leave_one(letter, found=True, more=True)
        _migrate(bench, session, len(made))
        for letter in made:
            what = f"a migrated envelope of {len(from_base64url(letter.data))} bytes"
            bench.must_be(session.call("accept", {"envelope": letter.data}), "refused REPLAY_DUPLICATE", what)


@clause("CALYX-KEY-1", "CALYX-KEY-4b", "CALYX-ALG-3", "CALYX-ALG-10", "CALYX-LOC-4")
def test_long_envelopes_differ_wherever_they_differ(bench: Bench) -> None:
    """Two of one long text, which stands before the header, and one of a thousand members in its header; forged too."""
    dice, most = bench.dice(), int(bench.contract.parameters["max_envelope_bytes"].value or 0)
    with bench.session() as session:
        letters = Envelopes(session)
        word = session.rand("a long text")
        text = word * (most // 2 // len(word))
        members = {f"x-{number}": str(number) for number in range(_MEMBERS + dice.randrange(100))}
        made = [letters.make(0, text=text), letters.make(0, text=text), letters.make(0, more=members)]
        remaining = Remaining(bench, session)
        for letter in made:
            size = len(from_base64url(letter.data))
            told(bench, session, letter, "new", what=f"an envelope of {size} bytes")
            remaining.received(letter)
            got = session.observe("replay_key", {"envelope": letter.data})["replay_key"]
            bench.same(got, letter.key, "fail_open", f"the key of an envelope of {size} bytes")
        for letter in made:
            told(bench, session, letter, "REPLAY_DUPLICATE", what="a copy of a long envelope")
            for way, reason in FORGERIES.items():
                told(bench, session, letters.forged(letter, way), reason, what=f"a long envelope with its {way} forged")
        remaining.inspect()


@clause("CALYX-MIG-1", "CALYX-MIG-4")
def test_lists_of_any_length_are_read_to_their_end(bench: Bench) -> None:
    """A long one, of more than ten thousand: an id at its beginning, at its end or between is blocked."""
    dice = bench.dice()
    with bench.session() as session:
        letters = Envelopes(session)
        left = _left(bench, session, letters)
        count = _LISTED + dice.randrange(2)
        first, *lost = (letters.make(0) for _ in range(4))
        left.leave_many(first, lost, count, digits=session.hex64)
        answer = _patiently(bench, session, "migrate")
        got = answer.value or {}
        untold = got.get("unmigrated", [])
        if (got.get("listed"), got.get("migrated"), len(untold)) != (count, 1, count - 1):
            bench.report(
                "wrong_reason", f"a list of {count} ids, one of them with its envelope", received=str(answer)[:300]
            )
        if untold[-1:] != [lost[-1].msg_id]:
            verdict = "wrong_reason" if untold else "fail_open"
            bench.weigh(verdict, f"number {count} of a list", expected=lost[-1].msg_id, received=str(untold[-1:]))
        told(bench, session, first, "REPLAY_DUPLICATE", what=f"the first of {count} that are listed")
        for letter in lost:
            told(bench, session, letter, "MSG_ID_BLOCKED", what=f"one of {count} that are listed")


@clause("CALYX-ALG-3", "CALYX-ALG-2", "CALYX-PRN-10", "CALYX-PRN-2")
def test_no_number_of_records_is_too_many(bench: Bench) -> None:
    """Thousands are all shown. Of tens of thousands the oldest still blocks its copy, and a prune removes them all."""
    dice = bench.dice()
    shown, held = _SHOWN + dice.randrange(100), _HELD + dice.randrange(100)
    with bench.session() as session:
        letters = Envelopes(session)
        oldest = letters.make(0)
        told(bench, session, oldest, "new")
        begin = letters.now
        session.clock("+200s")
        _fill(session, letters, 0, shown, begin)
        found = len(session.observe("state")["replay_state"])
        if found != shown + 1:
            bench.fail("state_leak", f"a mailbox of {shown + 1} records", expected="all shown", received=f"{found}")
        _fill(session, letters, shown, held, begin)
        told(bench, session, letters.make(0), "new")
        told(bench, session, oldest, "REPLAY_DUPLICATE")
        session.clock("+2h")
        answer = _patiently(bench, session, "prune", {"retention_hours": 1})
        if answer.outcome == "refused":
            bench.fail("over_refusal", f"a prune of {held + 2} records", expected="all removed", received=str(answer))
        # A prune that was refused before has removed none of them.
        counts = {name: (answer.value or {}).get(name) for name in ("removed", "kept")}
        if counts != {"removed": held + 2, "kept": 0}:
            bench.fail("state_leak", f"a prune of {held + 2} records", expected="all removed", received=str(answer))
        told(bench, session, letters.make(0), "new")


def _fill(session: SuiteSession, letters: Envelopes, first: int, last: int, begin: datetime) -> None:
    """Records of these numbers, all from between the beginning and now."""
    rows = letters.rows(last - first, first, begin + _SOON, letters.now - begin - _SOON)
    session.insert("replay_state", *({**row, "seen_at": written(at)} for row, at in rows))
