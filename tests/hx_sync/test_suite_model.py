"""The model that suites of `hx-sync` hold devices against, on sets whose state is written out by hand."""

from __future__ import annotations

import hashlib
import itertools
from typing import Any

import pytest

from holdfast.conformance.suites.hx_sync.model import Blob, Object, Segment, Tombstone, model, normal
from holdfast.specs.strictjson import canonical

A, B = "aaaaaaaa-0000-4000-8000-000000000000", "bbbbbbbb-0000-4000-8000-000000000000"
S, R = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
X = "00000000-0000-4000-8000-00000000000f"
HASH, OTHER = "1" * 64, "2" * 64


def event(seq: int, second: int, node: str = A, **more: Any) -> dict[str, Any]:
    ts = f"2026-01-01T00:00:{second:02d}Z"
    return {"node_id": node, "session_id": S, "seq": seq, "ts": ts, "kind": "note", "data": {}, **more}


def window(start: int, end: int, scope: str | None = None, name: str = X) -> Tombstone:
    return Tombstone(name, f"2026-01-01T00:00:{start:02d}Z", f"2026-01-01T00:00:{end:02d}Z", scope)


def artifact(seq: int, blob_hash: str, name: str = "x") -> dict[str, Any]:
    return {"artifact_id": X, "session_id": S, "seq": seq, "blob_hash": blob_hash, "name": name}


def seqs(objects: list[Object]) -> list[int]:
    return [row["seq"] for row in model(objects).state["events"]]


def test_events_of_all_segments_stand_there_once_less_those_in_a_window() -> None:
    one, two = Segment(A, {"events": [event(1, 1), event(2, 2)]}), Segment(A, {"events": [event(2, 2), event(3, 3)]})
    assert seqs([one, two, one]) == [1, 2, 3]
    assert seqs([one, two, window(2, 2)]) == [1, 3]
    assert seqs([one, two, window(2, 3)]) == [1]
    assert seqs([one, two, window(2, 3, B)]) == [1, 2, 3]
    assert model([one, two, window(2, 3)]).forgotten == {(A, S, 2), (A, S, 3)}


def test_edges_are_compared_as_instants_to_the_microsecond() -> None:
    told = [event(1, 0, ts="2026-01-01T01:00:02+01:00"), event(2, 0, ts="2026-01-01T00:00:02.000001Z")]
    assert seqs([Segment(A, {"events": told}), window(1, 2)]) == [2]
    assert normal("2026-01-01T01:00:02+01:00") == "2026-01-01T00:00:02.000000Z"


def test_of_several_contents_the_lowest_digest_is_shown_and_one_in_a_window_forgets_all() -> None:
    contents = [event(1, second) for second in (1, 5, 9)]
    segments: list[Object] = [Segment(A, {"events": [content]}) for content in contents]
    found = model(segments)
    lowest = min(contents, key=lambda content: hashlib.sha256(canonical(content)).hexdigest())
    assert [row["ts"] for row in found.state["events"]] == [normal(lowest["ts"])]
    assert found.conflicts == {f"{A}/{S}/1": 3}
    gone = model([*segments, window(5, 5)])
    assert (gone.state["events"], gone.conflicts, gone.forgotten) == ([], {}, {(A, S, 1)})


def test_what_hangs_on_an_event_comes_and_goes_with_it() -> None:
    batch = {
        "events": [event(1, 1), event(2, 9)],
        "artifacts": [artifact(1, HASH)],
        "pins": [
            {"node_id": A, "session_id": S, "seq": 1, "pinned": True},
            {"node_id": A, "session_id": S, "seq": 2, "pinned": False},
            {"node_id": A, "session_id": S, "seq": 7, "pinned": True},
        ],
        "sessions": [
            {"session_id": S, "started_at": "2026-01-01T00:00:05Z", "title": "shown"},
            {"session_id": R, "started_at": "2026-01-01T00:00:05Z", "title": "without an event"},
        ],
    }
    objects: list[Object] = [Segment(A, batch), Blob(HASH), Blob(OTHER)]
    state = model(objects).state
    assert [row["title"] for row in state["sessions"]] == ["shown"]
    assert [row["seq"] for row in state["pins"]] == [1]
    assert [(row["node_id"], row["seq"]) for row in state["artifacts"]] == [(A, 1)]
    assert [row["blob_hash"] for row in state["blobs"]] == [HASH, OTHER]
    state = model([*objects, window(1, 1)]).state
    assert (state["artifacts"], state["pins"]) == ([], [])
    assert [row["blob_hash"] for row in state["blobs"]] == [OTHER]
    assert state["sessions"]
    state = model([*objects, window(1, 5)]).state
    assert ([row["seq"] for row in state["events"]], state["sessions"]) == ([2], [])
    kept = model([*objects, Segment(B, {"events": [event(4, 30, B)], "artifacts": [artifact(4, HASH)]}), window(1, 1)])
    assert [row["blob_hash"] for row in kept.state["blobs"]] == [HASH, OTHER]


def test_of_an_artifact_the_lowest_content_is_shown_whose_event_is_there() -> None:
    rows = [artifact(1, HASH), artifact(2, HASH, "y"), artifact(3, OTHER, "z")]
    lowest = min(rows[:2], key=lambda row: hashlib.sha256(canonical(row)).hexdigest())
    found = model([Segment(A, {"events": [event(1, 1), event(2, 2)], "artifacts": rows})])
    assert found.state["artifacts"] == [{**lowest, "node_id": A}]


def test_rows_stand_in_order_and_the_digest_is_over_them() -> None:
    objects: list[Object] = [
        Segment(A, {"events": [event(10, 1), event(9, 2)]}),
        window(50, 51, B, R),
        window(40, 41),
        Blob(OTHER),
        Blob(HASH),
    ]
    digests = {model(order).digest for order in itertools.permutations(objects)}
    assert len(digests) == 1
    state = model(objects).state
    for rows in state.values():
        assert rows == sorted(rows, key=canonical)
    text = canonical(state)
    assert digests == {hashlib.sha256(text).hexdigest()}
    assert state["tombstones"][0] == {
        "tombstone_id": X,
        "node_id": None,
        "start_ts": "2026-01-01T00:00:40.000000Z",
        "end_ts": "2026-01-01T00:00:41.000000Z",
    }


@pytest.mark.parametrize("scope", [None, A])
def test_a_session_is_forgotten_by_its_own_beginning(scope: str | None) -> None:
    titles = [("2026-01-01T00:00:05Z", "inside"), ("2026-01-01T00:00:06Z", "outside")]
    sessions = [{"session_id": S, "started_at": at, "title": title} for at, title in titles]
    objects: list[Object] = [Segment(A, {"events": [event(1, 9)], "sessions": sessions}), window(5, 5, scope)]
    assert [row["title"] for row in model(objects).state["sessions"]] == ["outside"]
