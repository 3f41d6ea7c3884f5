"""Import: verified before applied, once, and nothing that is refused keeps the rest back."""

from __future__ import annotations

import hashlib
import os
import shutil
import sqlite3
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.reference_impl.hx_sync.factory import REFERENCE
from holdfast.reference_impl.hx_sync.terms import Kind
from holdfast.reference_impl.patience import Patience
from holdfast.specs.strictjson import canonical
from tests.hx_sync.devices import KEY, NODES, VAULT, Devices, artifact, at, event, opened, session, uuid


def seal(devices: Devices, number: int, payload: object, *, node: str = "a") -> bytes:
    """A segment with any payload."""
    own = {"node_id": NODES[node], "segment_id": uuid(number), "created_at": at(0)}
    data = payload if isinstance(payload, bytes) else canonical(payload)
    return devices.parts.publishing._envelope.seal(KEY, Kind.SEGMENT, own, data)


def place(devices: Devices, key: str, data: bytes) -> str:
    """Put bytes where the store has them, without a writer."""
    path = devices.parts.root / key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return key


def segment_key(number: int, node: str = "a") -> str:
    return f"{VAULT}/objects/segments/{NODES[node]}/{uuid(number)}.hxseg"


WRONG = event(1)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"[]",
        b'{"events":[],"events":[]}',
        {},
        {"events": {}},
        {"events": [], "sessions": None},
        {"events": [], "more": 1},
        {"events": [{**WRONG, "seq": -1}]},
        {"events": [{**WRONG, "seq": None}]},
        {"events": [{**WRONG, "seq": True}]},
        {"events": [{**WRONG, "seq": 1.5}]},
        {"events": [{**WRONG, "seq": "1"}]},
        {"events": [{**WRONG, "more": 1}]},
        {"events": [{**WRONG, "ts": "2026-01-01T00:00:00"}]},
        {"events": [{**WRONG, "ts": "2026-01-01T23:59:60Z"}]},
        {"events": [{**WRONG, "ts": "0000-01-01T00:00:00+01:00"}]},
        {"events": [{**WRONG, "node_id": NODES["b"]}]},
        {"events": [WRONG, {**WRONG, "data": {"n": 1}}]},
        {"events": [{name: value for name, value in WRONG.items() if name != "kind"}]},
        {"events": [WRONG], "pins": [{"node_id": NODES["a"], "session_id": uuid(1), "seq": 1, "pinned": 1}]},
        {"events": [WRONG], "artifacts": [{**artifact(1, 1, b""), "blob_hash": "00"}]},
        {"events": [WRONG], "sessions": [{**session(1), "started_at": "now"}]},
    ],
)
def test_a_segment_is_taken_whole_or_not_at_all(devices: Devices, payload: object) -> None:
    key = place(devices, segment_key(1), seal(devices, 1, payload))
    before = devices.state("a")

    assert devices.refused("import_object", node="a", key=key) == "SEGMENT_MALFORMED"
    assert devices.state("a") == before


def test_lists_that_nobody_knows_are_named_and_ignored(devices: Devices) -> None:
    key = place(devices, segment_key(1), seal(devices, 1, {"events": [WRONG], "notes": [1], "marks": []}))

    value = devices.accepted("import_object", node="a", key=key)
    assert value == {"effect": "new", "key": key, "ignored_lists": ["marks", "notes"]}
    assert devices.accepted("import_object", node="a", key=key) == {"effect": "prior", "key": key}


def test_what_is_refused_keeps_nothing_back_and_is_tried_again(devices: Devices) -> None:
    good, whole = devices.publish(1, events=[event(1)]), devices.publish(2, events=[event(2)])
    data = (devices.parts.root / whole).read_bytes()
    place(devices, whole, data[:-1])
    conflict = place(devices, good.replace(".hxseg", ".sync-conflict-1.hxseg"), data)

    value = devices.accepted("import", node="b")
    assert value == {
        "effect": "new",
        "imported": 1,
        "skipped": 0,
        "rejected": [{"key": whole, "reason": "OBJECT_UNAUTHENTIC"}],
        "foreign": [conflict],
    }
    status = devices.seen("status", node="b")
    assert status["rejected"] == value["rejected"]
    assert status["foreign"] == [conflict]

    place(devices, whole, data)
    assert devices.accepted("import", node="b")["imported"] == 1
    status = devices.seen("status", node="b")
    assert status["rejected"] == []
    assert status["segments"] == status["events"] == 2


def test_other_bytes_at_a_known_id_are_told_and_change_nothing(devices: Devices) -> None:
    key = devices.publish(1, events=[event(1)])
    devices.accepted("import", node="a")
    before = devices.state("a")
    place(devices, key, seal(devices, 1, {"events": [event(2)]}))

    assert devices.refused("import_object", node="a", key=key) == "OBJECT_REPLACED"
    assert devices.accepted("import", node="a")["rejected"] == [{"key": key, "reason": "OBJECT_REPLACED"}]
    assert devices.state("a") == before


def test_what_one_node_calls_by_the_id_of_another_is_another_segment(devices: Devices) -> None:
    devices.publish(1, events=[event(1)])
    devices.publish(1, node="b", events=[event(1, node="b")])

    assert devices.accepted("import", node="c")["imported"] == 2


def test_with_another_key_everything_is_refused_and_with_the_right_one_nothing_is_missed(tmp_path: Path) -> None:
    with opened(tmp_path) as devices:
        key = devices.publish(1, events=[event(1)])
    with opened(tmp_path, vault_key="ff" * 32) as devices:
        assert devices.refused("import_object", node="b", key=key) == "OBJECT_UNAUTHENTIC"
        assert devices.accepted("import", node="b")["imported"] == 0
    with opened(tmp_path) as devices:
        assert devices.accepted("import", node="b")["imported"] == 1
    with opened(tmp_path, vault_key="ff" * 32) as devices:
        # What was imported is no proof of a key either.
        assert devices.refused("import_object", node="b", key=key) == "OBJECT_UNAUTHENTIC"


def test_an_object_lies_where_its_header_says(devices: Devices) -> None:
    raw = seal(devices, 1, {"events": []})
    for key in (segment_key(2), segment_key(1, "b"), f"{VAULT}/objects/tombstones/{uuid(1)}.hxtomb"):
        assert devices.refused("import_object", node="a", key=place(devices, key, raw)) == "OBJECT_MISPLACED"
    for key in (
        segment_key(1).replace("objects", "tmp/objects"),
        segment_key(1).upper(),
        segment_key(1) + ".partial",
        f"{VAULT}/objects/../objects/segments/{NODES['a']}/{uuid(1)}.hxseg",
        segment_key(1).replace(VAULT, f"HXSync/vaults/{uuid(5)}"),
        f"{VAULT}/objects/blobs/00/00/{'ab' * 32}.hxblob",
    ):
        assert devices.refused("import_object", node="a", key=key) == "OBJECT_MISPLACED"
    assert devices.refused("import_object", node="a", key=segment_key(3)) == "OBJECT_MISSING"


def test_a_blob_comes_back_once_an_event_that_is_there_has_it(devices: Devices) -> None:
    blob = b"shared"
    blob_hash = hashlib.sha256(blob).hexdigest()
    devices.blob(blob)
    devices.publish(1, events=[event(1)], artifacts=[artifact(1, 1, blob)])
    devices.accepted("import", node="b")
    devices.forget(1, 1, 1)
    devices.accepted("import", node="b")
    file = devices.parts.root / "nodes/b/blobs" / blob_hash
    assert devices.seen("blob", node="b", blob_hash=blob_hash) == {"found": False, "bytes": None}
    assert not file.exists()

    key = devices.publish(2, events=[event(2)], artifacts=[artifact(2, 2, blob)])
    devices.accepted("import_object", node="b", key=key)
    assert devices.seen("blob", node="b", blob_hash=blob_hash)["found"]
    assert file.read_bytes() == blob
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_lost_or_damaged_cache_is_told_and_mended(devices: Devices) -> None:
    blob_hash = hashlib.sha256(b"blob").hexdigest()
    devices.blob(b"blob")
    devices.accepted("import", node="a")
    file = devices.parts.root / "nodes/a/blobs" / blob_hash
    for break_it in (file.unlink, lambda: file.write_bytes(b"other")):
        break_it()
        with pytest.raises(AssertionError):
            devices.seen("blob", node="a", blob_hash=blob_hash)
        assert devices.accepted("import", node="a")["imported"] == 1
        assert devices.seen("blob", node="a", blob_hash=blob_hash)["found"]


def test_what_a_crash_left_in_a_cache_goes(tmp_path: Path) -> None:
    with opened(tmp_path) as devices:
        devices.accepted("import", node="a")
    left = tmp_path / "nodes/a/blobs"
    left.mkdir(parents=True)
    (left / ("abcd" + "0" * 60)).write_bytes(b"left behind")
    with opened(tmp_path):
        assert not list(left.iterdir())


def test_what_the_store_lost_is_told(devices: Devices) -> None:
    segment, blob = devices.publish(1, events=[event(1)]), devices.blob(b"blob")
    devices.accepted("publish_manifest", node="a")
    tombstone = devices.forget(1, 5, 6)
    devices.accepted("import", node="b")
    for key in (segment, blob, tombstone):
        (devices.parts.root / key).unlink()

    devices.accepted("import", node="b")
    devices.accepted("import", node="c")
    assert devices.seen("status", node="b")["withheld"] == sorted([segment, blob, tombstone])
    assert devices.seen("status", node="c")["withheld"] == [segment]
    assert len(devices.state("b")["events"]) == 1
    assert len(devices.state("b")["tombstones"]) == 1


def test_what_was_forgotten_stays_so_without_its_object_and_through_a_rebuild(devices: Devices) -> None:
    devices.publish(1, events=[event(1), event(2)])
    devices.accepted("import", node="a")
    tombstone = devices.forget(1, 1, 1)
    (devices.parts.root / tombstone).unlink()

    devices.accepted("rebuild", node="a")
    # A content of the same event outside of the window comes too late.
    devices.publish(2, events=[event(1, seconds=100)])
    devices.accepted("import", node="a")
    assert [each["seq"] for each in devices.state("a")["events"]] == [2]
    status = devices.seen("status", node="a")
    assert (status["forgotten"], status["tombstones"], status["segments"]) == (1, 1, 2)


def spoil(index: Path, how: str) -> None:
    """What may become of an index."""
    if how == "missing":
        index.unlink()
    elif how == "empty":
        index.write_bytes(b"")
    elif how == "truncated":
        index.write_bytes(index.read_bytes()[: index.stat().st_size // 2])
    elif how == "corrupt":
        index.write_bytes(os.urandom(4096) + index.read_bytes()[4096:])
    elif how == "foreign":
        index.unlink()
        connection = sqlite3.connect(index)
        connection.execute("CREATE TABLE events (x)")
        connection.close()
    elif how == "read-only":
        index.chmod(0o400)
    elif how == "of another vault":
        connection = sqlite3.connect(index)
        connection.execute("UPDATE vault_config SET vault_id = 'x'")
        connection.commit()
        connection.close()


@pytest.mark.parametrize(
    "how", ["missing", "empty", "truncated", "corrupt", "foreign", "read-only", "of another vault"]
)
def test_an_index_that_cannot_be_asked_is_never_an_empty_one(tmp_path: Path, how: str) -> None:
    with opened(tmp_path) as devices:
        key = devices.publish(1, events=[event(1)])
        devices.accepted("import", node="a")
    spoil(tmp_path / "nodes/a/index.db", how)

    with opened(tmp_path) as devices:
        assert devices.refused("import", node="a") == "STORE_UNAVAILABLE"
        assert devices.refused("import_object", node="a", key=key) == "STORE_UNAVAILABLE"
        assert devices.refused("rebuild", node="a") == "STORE_UNAVAILABLE"
        for method, args in (("state", {}), ("state", {"node": "a"}), ("status", {"node": "a"})):
            with pytest.raises(AssertionError, match="fault"):
                devices.seen(method, **args)
        assert devices.accepted("import", node="b")["imported"] == 1
        if how == "missing":
            assert devices.accepted("enroll", node="a", node_id=NODES["a"])["effect"] == "new"
            assert devices.accepted("import", node="a")["imported"] == 1
            assert devices.digest("a") == devices.digest("b")
        else:
            assert devices.refused("enroll", node="a", node_id=NODES["a"]) == "STORE_UNAVAILABLE"


class Hasty(Patience):
    def __init__(self) -> None:
        super().__init__(0.1)


def test_a_locked_index_refuses_and_publishes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path, replace(REFERENCE, patience=Hasty)) as devices:
        devices.publish(1, events=[event(1)])
        other = sqlite3.connect(tmp_path / "nodes/a/index.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        before = devices.seen("objects")
        args = {"node": "a", "tombstone_id": uuid(1), "start_ts": at(0), "end_ts": at(9)}
        assert devices.refused("import", node="a") == "STORE_UNAVAILABLE"
        assert devices.refused("forget", **args) == "STORE_UNAVAILABLE"
        assert devices.seen("objects") == before
        other.execute("ROLLBACK")
        other.close()
        assert devices.accepted("import", node="a")["imported"] == 1


def test_a_store_that_is_not_there_is_never_an_empty_one(tmp_path: Path) -> None:
    with opened(tmp_path) as devices:
        devices.accepted("import", node="a")
        shutil.rmtree(tmp_path / "HXSync")

        assert devices.refused("import", node="a") == "STORE_UNAVAILABLE"
        assert devices.refused("publish", node="a", segment_id=uuid(1), batch={"events": []}) == "STORE_UNAVAILABLE"
        assert devices.refused("put", key=segment_key(1), bytes="") == "STORE_UNAVAILABLE"
        with pytest.raises(AssertionError, match="fault"):
            devices.seen("list", prefix="")


def test_a_retry_of_forget_is_the_same_although_the_clock_went_on(devices: Devices) -> None:
    args = {"node": "a", "tombstone_id": uuid(1), "start_ts": at(0), "end_ts": "2030-01-01T00:00:00Z"}
    first = devices.accepted("forget", **args)
    assert first["end_ts"] == "2026-01-01T00:00:00.000000Z"

    devices.service.set_clock(devices.service._now.replace(year=2027))
    assert devices.accepted("forget", **args) == {**first, "effect": "prior"}
    assert devices.refused("forget", **{**args, "start_ts": at(1)}) == "OBJECT_EXISTS"
    assert devices.refused("forget", **{**args, "tombstone_id": uuid(2), "start_ts": "2028-01-01T00:00:00Z"}) == (
        "TOMBSTONE_MALFORMED"
    )


def test_of_many_who_enrol_a_device_one_makes_it(devices: Devices) -> None:
    root = devices.parts.root

    def enrol(_: int) -> str:
        with opened(root) as other:
            return str(other.accepted("enroll", node="d", node_id=uuid(4))["effect"])

    with ThreadPoolExecutor(6) as pool:
        found = sorted(pool.map(enrol, range(6)))
    assert found == ["new", *["prior"] * 5]
    assert sorted(path.name for path in (root / "nodes/d").iterdir() if "partial" in path.name) == []


def test_what_is_forgotten_is_on_the_disk_of_a_device_no_more(devices: Devices) -> None:
    canary = "seven swans a-swimming"
    devices.publish(1, events=[event(1, text=canary)], sessions=[session(1, seconds=1, title=canary)])
    for node in "ab":
        devices.accepted("import", node=node)

    def found() -> str:
        # In another process: a handle that is closed here takes SQLite's locks along.
        words = ["grep", "-rlaF", canary, str(devices.parts.root / "nodes")]
        return subprocess.run(words, capture_output=True, text=True, check=False).stdout

    assert "nodes/b/index.db-wal" in found()
    devices.forget(1, 0, 9)
    devices.accepted("import", node="b")
    assert found() == ""
