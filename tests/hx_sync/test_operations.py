"""The model of hx-sync's operations, on states that are written out by hand."""

from __future__ import annotations

from random import Random
from typing import Any

from holdfast.conformance.suites.hx_sync import operations as op
from holdfast.conformance.suites.hx_sync.history import CHAPTERS, Deck
from holdfast.conformance.suites.hx_sync.model import Segment, Tombstone
from holdfast.conformance.suites.hx_sync.operations import Bad, Device, Lies, State

A, B = "a0a0a0a0-0a0a-4a0a-8a0a-a0a0a0a0a0a0", "b0b0b0b0-0b0b-4b0b-8b0b-b0b0b0b0b0b0"
S, X, Y = (f"00000000-0000-4000-8000-00000000000{digit}" for digit in "123")
NOW = "2026-01-01T00:00:00Z"


def batch(*seqs: int, node_id: str = A, second: int = 0) -> dict[str, Any]:
    rows = ({"seq": seq, "ts": f"2025-12-31T12:00:{second + seq:02d}Z", "kind": "note", "data": {}} for seq in seqs)
    return {"events": [{"node_id": node_id, "session_id": S, **row} for row in rows]}


def begun() -> State:
    return State({"a": Device(A), "b": Device(B)})


def published(state: State, segment_id: str, *seqs: int) -> tuple[State, str]:
    outcome = op.publish(state, "a", segment_id, batch(*seqs))
    key = outcome.value["key"]
    return op.learned(outcome.state, key, segment_id[-1] * 64), key


def seqs(state: State, name: str) -> list[int]:
    return [row["seq"] for row in state.devices[name].shown.state["events"]]


def test_what_was_published_is_an_earlier_result_and_another_content_is_refused() -> None:
    state, _ = published(begun(), X, 1, 2)
    assert op.publish(state, "a", X, batch(1, 2)).said == {"prior"}
    assert op.publish(state, "a", X, batch(1)).said == {"OBJECT_EXISTS"}
    assert op.publish(state, "b", X, batch(1)).said == {"SEGMENT_MALFORMED"}
    assert op.publish(state, "z", X, batch(1)).said == {"NODE_UNKNOWN"}
    assert op.publish(state, "a", Y, batch(1, 1)).said == {"SEGMENT_MALFORMED"}


def test_an_import_takes_all_that_is_whole_once_and_reports_the_rest() -> None:
    state, key = published(begun(), X, 1, 2)
    state, bad = published(state, Y, 3)
    state = state.lying(bad, Lies(Bad(frozenset({"OBJECT_MALFORMED"})), "f" * 64))
    first = op.import_all(state, "b")
    assert (first.said, first.counts["imported"]) == (frozenset({"new"}), (1, 1))
    assert first.rejected == {bad: frozenset({"OBJECT_MALFORMED"})}
    assert seqs(first.state, "b") == [1, 2]
    assert op.import_all(first.state, "b").said == {"prior"}
    other = first.state.lying(key, Lies(Segment(A, batch(1)), "e" * 64))
    assert op.import_object(other, "b", key).said == {"OBJECT_REPLACED"}


def test_a_window_ends_now_at_the_latest_and_stays_through_a_rebuild_without_its_object() -> None:
    state, _ = published(begun(), X, 1, 2, 3)
    state = op.import_all(state, "b").state
    asked = Tombstone(Y, "2025-12-31T12:00:02Z", "2030-01-01T00:00:00Z")
    outcome = op.forget(state, "b", asked, NOW)
    assert outcome.value["end_ts"] == "2026-01-01T00:00:00.000000Z"
    assert seqs(outcome.state, "b") == [1]
    gone = outcome.state.without(outcome.value["key"])
    assert seqs(op.rebuild(gone, "b").state, "b") == [1]
    told = op.import_all(gone, "b").state.devices["b"].told
    assert told is not None
    assert told.withheld == {outcome.value["key"]}
    inverted = Tombstone(Y, "2025-12-31T12:00:02Z", "2025-12-31T12:00:01Z")
    assert op.forget(state, "b", inverted, NOW).said == {"TOMBSTONE_MALFORMED"}


def test_a_manifest_is_new_where_the_segments_of_its_node_are_others() -> None:
    state, _ = published(begun(), X, 1)
    first = op.publish_manifest(state, "a")
    assert first.said == {"new"}
    assert op.publish_manifest(first.state, "a").said == {"prior"}
    more, _ = published(first.state, Y, 2)
    assert op.publish_manifest(more, "a").said == {"new"}


def test_histories_have_every_chapter_before_one_comes_again() -> None:
    deck, dice = Deck(together=3), Random("a seed")
    drawn = [step for _ in range(len(CHAPTERS) // 3) for step in deck.draw(dice)]
    due = {step.what for chapter in CHAPTERS.values() for step in chapter(Random("a seed"))}
    certain = {"publish", "import", "look", "rebuild", "manifest", "enroll", "damage", "mend", "litter", "lose index"}
    assert certain <= {step.what for step in drawn}
    assert certain <= due
