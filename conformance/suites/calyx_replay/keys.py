"""calyx-replay: records whose keys are nearly the key of an envelope, and what is nearly a key."""

from __future__ import annotations

import re

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.calyx_replay.letters import Letters, told
from holdfast.conformance.suites.calyx_replay.model import written
from holdfast.conformance.suites.digests import SHARED, near
from holdfast.vectors.neighbours.catalogue import neighbours

_KEY = re.compile("[0-9a-f]{64}")


@clause("CALYX-ALG-3", "CALYX-ALG-2", "CALYX-KEY-1")
def test_a_record_with_nearly_its_key_makes_no_copy_of_an_envelope(bench: Bench) -> None:
    """Records of keys that share digits at the beginning or at the end; then the envelope comes, and comes again."""
    with bench.session() as session:
        letters = Letters(session)
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
        letters = Letters(session)
        told(bench, session, letters.make(0), "new")
        row = {**letters.make(0).row, "seen_at": written(letters.now)}
        if not session.probe("replay_state", row)["inserted"]:
            bench.fail("over_refusal", "a row of another envelope", expected="inserted", received="refused")
        for miss in neighbours("key", row["replay_key"]).values():
            if not isinstance(miss.value, str | int) or _KEY.fullmatch(str(miss.value)):
                continue
            if session.probe("replay_state", {**row, "replay_key": miss.value})["inserted"]:
                bench.fail("fail_open", f"a key: {miss.name} ({miss.source})", expected="refused", received="inserted")
