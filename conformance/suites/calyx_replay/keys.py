"""calyx-replay: records whose keys are nearly the key of an envelope."""

from __future__ import annotations

from holdfast.conformance.suites import clause
from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.calyx_replay.letters import Letters, told
from holdfast.conformance.suites.calyx_replay.model import written
from holdfast.conformance.suites.digests import near


@clause("CALYX-ALG-3", "CALYX-ALG-2", "CALYX-KEY-1")
def test_a_record_with_nearly_its_key_makes_no_copy_of_an_envelope(bench: Bench) -> None:
    """Records of keys that share digits at the beginning or at the end; then the envelope comes, and comes again."""
    with bench.session() as session:
        letters = Letters(session)
        for shared, _ in near("0" * 64):
            letter, beside = letters.make(0), letters.make(0)
            row = {**beside.row, "replay_key": dict(near(letter.key))[shared], "seen_at": written(letters.now)}
            session.insert("replay_state", row)
            what = f"an envelope of whose key {shared} are on record"
            told(bench, session, letter, "new", what=what)
            told(bench, session, letter, "REPLAY_DUPLICATE", what=what)
