"""calyx-replay: records whose keys are nearly the key of an envelope, and what is nearly a key."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from random import Random
from typing import Any

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.calyx_replay.envelopes import Envelopes, told
from holdfast.conformance.suites.calyx_replay.model import written
from holdfast.conformance.suites.digests import SHARED, near
from holdfast.conformance.suites.session import SuiteSession
from holdfast.vectors.neighbours.catalogue import neighbours

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
    dice = Random(f"{bench.seed}\x1f{bench.scope.case}")  # noqa: S311 - nothing is kept secret with it
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
