"""calyx-replay: what a script cannot say. Many processes on one mailbox, days of traffic, any envelope."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.histories import DRAWN, run_histories
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.cases.values import base64url, from_base64url
from holdfast.conformance.suites.calyx_replay.envelopes import Envelopes, told
from holdfast.conformance.suites.calyx_replay.generate import Step
from holdfast.conformance.suites.calyx_replay.model import written
from holdfast.conformance.suites.calyx_replay.runner import playing
from holdfast.conformance.suites.spans import SHARED, around, near
from holdfast.vectors.derive import derive
from holdfast.vectors.neighbours.catalogue import neighbours

_RIVALS = 8


def _accept(session: SuiteSession, sent: str, worker: int = 0) -> Answer:
    return session.call("accept", {"envelope": sent}, worker)


def _must_accept(bench: Bench, session: SuiteSession, sent: str, what: str, worker: int = 0) -> None:
    bench.must_be(_accept(session, sent, worker), "accepted", f"{what} was not accepted")


def _rows(session: SuiteSession) -> int:
    return len(session.observe("state")["replay_state"])


# Many processes


@clause("CALYX-HARD-5", "CALYX-HARD-3")
def test_of_many_processes_that_receive_one_envelope_one_accepts_it(bench: Bench) -> None:
    """Eight processes, two hundred envelopes, each handed to all of them at once."""
    for _ in range(4):
        with bench.session(workers=_RIVALS) as session:
            letters = Envelopes(session)
            for _ in range(50):
                sent = letters.make(0).data
                answers = session.race([("accept", {"envelope": sent})] * _RIVALS)
                accepted = sum(answer.outcome == "accepted" for answer in answers)
                if accepted != 1:
                    bench.fail(
                        "fail_open" if accepted else "over_refusal",
                        f"{accepted} of {_RIVALS} processes accepted the same envelope",
                        expected="one accepted",
                        received=", ".join(f"{answer.outcome} {answer.reason or ''}" for answer in answers),
                    )
            rows, delivered = _rows(session), len(session.observe("deliveries")["delivered"])
            if (rows, delivered) != (50, 50):
                bench.fail("state_leak", f"50 envelopes left {rows} rows and {delivered} deliveries")


@clause("CALYX-HARD-7")
def test_who_loses_the_race_for_an_envelope_is_told_that_it_is_a_replay(bench: Bench) -> None:
    """Four processes; nothing else holds the database, so that no loser has a reason to wait for long."""
    with bench.session(workers=4) as session:
        letters = Envelopes(session)
        for _ in range(25):
            sent = letters.make(0).data
            answers = session.race([("accept", {"envelope": sent})] * 4)
            losers = [answer for answer in answers if answer.outcome != "accepted"]
            wrong = [answer for answer in losers if answer.reason != "REPLAY_DUPLICATE"]
            if len(losers) != 3 or wrong:
                bench.weigh(
                    "fail_open" if len(losers) < 3 else "wrong_reason",
                    "not all the losers of a race were told REPLAY_DUPLICATE",
                    expected="one accepted, three REPLAY_DUPLICATE",
                    received=", ".join(f"{answer.outcome} {answer.reason or ''}" for answer in answers),
                )


# Days of traffic


_BY_HAND = 5


@clause("CALYX-PRN-10", "CALYX-PRN-6a")
def test_ten_days_of_traffic_leave_no_more_than_the_retention_allows(bench: Bench) -> None:
    """Forty messages a day. By itself a mailbox may keep two days, because it prunes once a day; asked, one.

    From the sixth day on an operator prunes often, and keeps more: what is due by itself is due all the same.
    """
    with bench.session() as session:
        letters = Envelopes(session)
        for day in range(10):
            for _ in range(4):
                for _ in range(10):
                    _must_accept(bench, session, letters.make(0).data, "a new envelope")
                if day >= _BY_HAND:
                    session.call("prune", {"retention_hours": 240.5})
                session.clock("+6h")
            kept = _rows(session)
            if kept > 2 * 40:
                bench.fail("state_leak", f"after day {day + 1} there are {kept} rows of 40 messages a day")
        answer = session.call("prune")
        kept = _rows(session)
        if answer.outcome != "accepted" or kept > 40:
            bench.fail("state_leak", f"after a prune there are {kept} rows of 40 messages a day, {answer.outcome}")


@clause("CALYX-PRN-6c")
def test_a_mailbox_prunes_by_itself_no_more_than_once_a_day(bench: Bench) -> None:
    """Four days with a message every hour to one of two processes, restarts among them; half a second less, or more."""
    day = timedelta(seconds=int(bench.contract.parameters["prune_interval_seconds"].value or 0))
    with bench.session(workers=2) as session:
        letters, pruned = Envelopes(session), list[datetime]()
        for hour in range(98):
            _must_accept(bench, session, letters.make(0).data, "a new envelope", worker=hour % 2)
            times, now = session.observe("pruned")["automatic"], datetime.fromisoformat(session.now)
            pruned += [now] * (times - len(pruned))
            if any(later - earlier < day for earlier, later in pairwise(pruned)):
                received = " and ".join(map(str, pruned[-2:]))
                bench.fail("state_leak", "it pruned twice within a day", expected="once a day", received=received)
            session.clock({23: "+3599.5s", 47: "+3599.5s", 71: "+3599.5s", 95: "+3600.5s"}.get(hour, "+1h"))
            if hour % 20 == 10:
                session.restart(hour // 20 % 2)
        if len(pruned) < 2:
            bench.fail("state_leak", f"in four days it pruned {len(pruned)} times", expected="once a day")


# Any envelope

_TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20)
# In UTF-16 the last but one comes behind the last, in UTF-8 before it.
_NAMES = st.text(st.sampled_from("abcxyz_-\u00e9\u4e2d\ufb33\U0001f4a1"), min_size=1, max_size=8).map(
    lambda name: f"x-{name}"
)
_EXTRAS = st.dictionaries(_NAMES, _TEXT, max_size=4)
_BOTH_ORDERS = {"x-\ufb33": "one", "x-\U0001f4a1": "two", "x-\u00e9": "three"}


@clause("CALYX-KEY-3", "CALYX-KEY-1", "CALYX-KEY-2", drawn=True)
def test_any_envelope_has_the_derived_key_in_every_process(bench: Bench) -> None:
    """Keys are compared with those that holdfast derives itself, in two processes one after the other."""
    with bench.session(workers=2) as session:
        letters = Envelopes(session)

        @settings(DRAWN, max_examples=30)
        @example(_BOTH_ORDERS)
        @given(_EXTRAS)
        def run(extra: dict[str, str]) -> None:
            sent = letters.make(0, more=extra).data
            _must_accept(bench, session, sent, f"an envelope with the header {extra!r}")
            due = derive("calyx.replay_key", sent)
            got = [session.observe("replay_key", {"envelope": sent}, worker)["replay_key"] for worker in (0, 1)]
            if got != [due, due]:
                bench.fail("fail_open", f"header {extra!r} has another key", expected=due, received=repr(got))

        run()


def _respelled(sent: str, ways: int) -> bytes:
    """The same envelope in another spelling: order of members, whitespace, escapes; chosen by bits of `ways`."""
    told = json.loads(from_base64url(sent))
    if ways & 1:
        told = dict(reversed(told.items()))
    if ways & 2:
        told["header"] = dict(reversed(told["header"].items()))
    spaces = (", ", ": ") if ways & 4 else (",", ":")
    text = json.dumps(
        told, separators=spaces, ensure_ascii=False, sort_keys=not ways & 3, indent=1 if ways & 8 else None
    )
    if ways & 16:
        text = text.replace("calyx", "\\u0063alyx", 1)
    if ways & 32:
        text += "\n"
    return text.encode()


@clause("CALYX-KEY-6", "CALYX-KEY-3", drawn=True)
def test_no_other_spelling_of_an_envelope_is_a_second_one(bench: Bench) -> None:
    """Some spellings come after the envelope, some before it; at most one of the two is ever delivered."""
    with bench.session() as session:
        letters = Envelopes(session)

        @settings(DRAWN, max_examples=60)
        @given(st.integers(1, 63), st.booleans(), _EXTRAS)
        def run(ways: int, first: bool, extra: dict[str, str]) -> None:  # noqa: FBT001
            sent = letters.make(0, more=extra).data
            other = _respelled(sent, ways)
            if other == from_base64url(sent):
                return
            both = [sent, base64url(other)]
            answers = [_accept(session, each) for each in (reversed(both) if first else both)]
            accepted = [answer for answer in answers if answer.outcome == "accepted"]
            if len(accepted) > 1:
                bench.fail("fail_open", f"the spelling {other[:200]!r} of an envelope was delivered beside it")
            if not accepted or (not first and answers[0].outcome != "accepted"):
                bench.fail(
                    "over_refusal", f"an envelope was refused because of another spelling of it, {other[:200]!r}"
                )

        run()


@clause("CALYX-KEY-6")
def test_an_envelope_is_as_long_as_the_contract_allows_and_no_longer(bench: Bench) -> None:
    """The limit is `max_envelope_bytes` of the contract. It counts bytes, for characters of one to four bytes."""
    most = int(bench.contract.parameters["max_envelope_bytes"].value or 0)
    for letter in ("x", "\u00e9", "\U0001f512"):
        with bench.session() as session:
            letters = Envelopes(session)
            room = most - len(from_base64url(letters.long(0).data))
            count, rest = divmod(room, len(letter.encode()))
            longest, longer = (
                letters.make(0, more={"x-filler": letter * count + "x" * (rest + more)}).data for more in (0, 1)
            )
            what = f"an envelope of {most + 1} bytes, most of them of {letter!r}"
            bench.must_be(_accept(session, longer), "refused ENVELOPE_MALFORMED", what)
            if _rows(session):
                bench.fail("state_leak", f"an envelope of {most + 1} bytes was refused and left a row")
            _must_accept(bench, session, longest, f"an envelope of {most} bytes, most of them of {letter!r}")


@clause("CALYX-KEY-4c", "CALYX-KEY-4b", "CALYX-KEY-4d")
def test_no_altered_envelope_has_the_key_of_the_envelope(bench: Bench) -> None:
    """A bit at any place of the bytes: what can still be read as an envelope has another key, the rest has none."""
    with bench.session() as session:
        sent = Envelopes(session).make(0, more={"x-subject": "a subject"}).data
        data = from_base64url(sent)
        known = session.observe("replay_key", {"envelope": sent})["replay_key"]
        if known != derive("calyx.replay_key", sent):
            bench.fail("fail_open", "the envelope itself has another key than due")
        _must_accept(bench, session, sent, "the envelope")
        for place in range(0, len(data), max(1, len(data) // 80)):
            bad = bytearray(data)
            bad[place] ^= 1 << place % 7
            answer = _accept(session, base64url(bytes(bad)))
            if answer.outcome == "accepted":
                bench.fail("fail_open", f"with a bit changed at byte {place} it was accepted")
            if answer.reason == "REPLAY_DUPLICATE":
                bench.report("wrong_reason", f"with a bit changed at byte {place} it passed for the envelope itself")


# Any instant around the edges of the window


@clause("CALYX-ALG-7", "CALYX-ALG-6", whole=True)
def test_the_window_is_closed_and_ends_at_the_microsecond(bench: Bench) -> None:
    """Timestamps at any distance, above all around the edges and where a counter comes round, in both directions."""
    edge, far = 300_000_000, 700_000_000

    def draw(dice: Random) -> list[Step]:
        near = [side * edge + dice.randint(-3, 3) for side in (-1, 1) for _ in range(13)]
        drawn = [*near, *(dice.randint(-far, far) for _ in range(14))]
        return [Step("send", seconds=each / 1e6) for each in (*around(-edge, edge), *drawn)]

    run_histories(bench, count=1, draw=draw, begin=playing(bench))


# Records whose keys are nearly the key of an envelope, and what is nearly a key


_KEY = re.compile("[0-9a-f]{64}")
# How a statement can put a row there, beside a plain INSERT.
_REPLACE, _CHANGES = "insert or replace", ("update", "update or replace", "upsert")
_WAYS = (_REPLACE, *_CHANGES)


@clause("CALYX-ALG-3", "CALYX-ALG-2", "CALYX-KEY-1")
def test_a_record_with_nearly_its_key_makes_no_copy_of_an_envelope(bench: Bench) -> None:
    """Records of keys that share digits at the beginning or at the end; then the envelope comes, and comes again."""
    with bench.session() as session:
        letters = Envelopes(session)
        for shared in SHARED:
            letter, beside = letters.make(0), letters.make(0)
            row = {**beside.row, "replay_key": near(letter.key)[shared], "seen_at": written(letters.now)}
            session.insert("replay_state", row)
            what = f"an envelope of whose key {shared} are on record"
            told(bench, session, letter, "new", what=what)
            told(bench, session, letter, "REPLAY_DUPLICATE", what=what)


@clause("CALYX-SCH-12")
def test_no_near_miss_of_a_key_can_be_stored(bench: Bench) -> None:
    """Each is put into a copy of the store, past the code of the mailbox."""
    with bench.session() as session:
        letters = Envelopes(session)
        told(bench, session, letters.make(0), "new")
        row = {**letters.make(0).row, "seen_at": written(letters.now)}
        if not session.probe("replay_state", row)["inserted"]:
            bench.fail("over_refusal", "a row of another envelope", expected="inserted", received="refused")
        for what, key in _misses(row["replay_key"]):
            if session.probe("replay_state", {**row, "replay_key": key})["inserted"]:
                bench.fail("fail_open", what, expected="refused", received="inserted")


@clause("CALYX-SCH-16")
def test_no_statement_makes_a_row_that_no_insert_may_make(bench: Bench) -> None:
    """Every column unset, every near miss of a key, and the key of another row: by UPDATE, upsert and REPLACE."""
    dice = bench.dice()
    with bench.session() as session:
        letters = Envelopes(session)
        there = letters.make(0)
        told(bench, session, there, "new")
        row = {**letters.make(0).row, "seen_at": written(letters.now)}
        tried: list[tuple[str, Mapping[str, Any], str]]
        # OR REPLACE puts the default of a column in the place of NULL, where it has one.
        tried = [(f"a row without {name}", {name: None}, how) for name in row for how in ("update", "upsert")]
        tried += [("a key in upper case", {"replay_key": row["replay_key"].upper()}, how) for how in _WAYS]
        tried += [(what, {"replay_key": key}, dice.choice(_WAYS)) for what, key in _misses(row["replay_key"])]
        # OR REPLACE takes the other row away, which is no second one.
        tried += [("the key of another row", {"replay_key": there.key}, how) for how in ("update", "upsert")]
        for what, to, how in tried:
            if _stored(session, row, to, how):
                bench.fail("fail_open", f"{what}, by {how}", expected="refused", received="stored")


def _misses(key: str) -> Iterator[tuple[str, str | int]]:
    """What is nearly a key, each with what it is."""
    for miss in neighbours("key", key).values():
        if isinstance(miss.value, str | int) and not _KEY.fullmatch(str(miss.value)):
            yield f"a key: {miss.name} ({miss.source})", miss.value


def _stored(session: SuiteSession, row: Mapping[str, Any], to: Mapping[str, Any], how: str) -> bool:
    """Whether a copy of the store has the row with these cells behind such a statement."""
    if how == _REPLACE:
        return bool(session.probe("replay_state", {**row, **to}, or_replace=True)["inserted"])
    return bool(session.probe_change("replay_state", row, to, how)["inserted"])
