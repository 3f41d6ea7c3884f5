"""The store as a folder: atomic, never in place of another, and nothing is acknowledged that may not be durable."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.reference_impl.hx_sync.disk import Disk
from holdfast.reference_impl.hx_sync.folder import FolderStore
from holdfast.reference_impl.hx_sync.layout import Layout
from holdfast.reference_impl.hx_sync.storage import Put, TooLargeError
from holdfast.reference_impl.sqlite import StoreError, UncertainError
from tests.hx_sync.devices import VAULT, uuid

LAYOUT = Layout("HXSync", VAULT.rpartition("/")[2])
KEY = LAYOUT.tombstone(uuid(1))


class FailingDisk(Disk):
    """Fails at the syncs with these numbers, from 1 on; a call that fails writes nothing."""

    def __init__(self, *failing: int) -> None:
        self.failing = set(failing)
        self.syncs = 0

    def sync(self, handle: int) -> None:
        self.syncs += 1
        if self.syncs in self.failing:
            raise OSError(errno.EIO, "told to fail")
        super().sync(handle)


class AcrossFilesystems(Disk):
    def publish(self, partial: str, folder: int, name: str, into: int) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))


def store(root: Path, disk: Disk | None = None) -> FolderStore:
    root.mkdir(exist_ok=True)
    FolderStore(root, LAYOUT, Disk(), max_object_bytes=1000).make()
    return FolderStore(root, LAYOUT, disk or Disk(), max_object_bytes=1000)


def files(root: Path) -> list[str]:
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def test_an_object_is_put_once_and_keeps_its_bytes(tmp_path: Path) -> None:
    made = store(tmp_path)

    assert made.get(KEY) is None
    assert made.put_atomic(KEY, b"one") is Put.NEW
    assert made.put_atomic(KEY, b"one") is Put.SAME
    assert made.put_atomic(KEY, b"two") is Put.OTHER
    assert made.get(KEY) == b"one"
    assert files(tmp_path) == [KEY]
    assert (tmp_path / KEY).stat().st_mode & 0o777 == 0o600


def test_no_bytes_are_not_the_same_as_none(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.put_atomic(KEY, b"")

    assert made.get(KEY) == b""
    assert made.get(LAYOUT.tombstone(uuid(2))) is None


def test_what_is_too_long_is_told_and_not_read(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.put_atomic(KEY, bytes(1001))

    with pytest.raises(TooLargeError):
        made.get(KEY)


def test_a_store_that_is_not_there_is_an_error_and_not_empty(tmp_path: Path) -> None:
    made = FolderStore(tmp_path, LAYOUT, Disk(), max_object_bytes=1000)

    calls: list[Callable[[], object]] = [
        made.check,
        lambda: made.list("HXSync"),
        lambda: made.get(KEY),
        lambda: made.put_atomic(KEY, b""),
        lambda: made.replace(KEY, b""),
    ]
    for call in calls:
        with pytest.raises(StoreError):
            call()


def test_only_what_lies_under_objects_is_listed_by_parts_of_the_path(tmp_path: Path) -> None:
    made = store(tmp_path)
    one, other = LAYOUT.segment(uuid(1), uuid(2)), LAYOUT.segment(uuid(1), uuid(3))
    for key in (one, other, KEY):
        made.put_atomic(key, b"x")
    partial = tmp_path / LAYOUT.partial(one, "abc")
    partial.parent.mkdir(parents=True, exist_ok=True)
    partial.write_bytes(b"x")
    (tmp_path / f"{one}.partial").write_bytes(b"x")

    listing = made.list("")
    assert listing.keys == sorted([one, other, KEY])
    assert listing.strays == [f"{one}.partial"]
    assert made.list(LAYOUT.objects).keys == listing.keys
    assert made.list(f"{LAYOUT.objects}/segments/{uuid(1)}").keys == sorted([one, other])
    assert made.list(f"{LAYOUT.objects}/segments/{uuid(1)[:-1]}").keys == []
    assert made.list(one).keys == [one]
    for nowhere in ("HX", "..", "HXSync/../nodes", "/HXSync/vaults/..", LAYOUT.partials, f"{LAYOUT.objects}/seg"):
        assert not made.list(nowhere).keys


def test_links_are_not_followed_and_told(tmp_path: Path) -> None:
    made, outside = store(tmp_path / "s"), tmp_path / "outside"
    outside.mkdir()
    (outside / f"{uuid(1)}.hxtomb").write_bytes(b"x")
    folder = tmp_path / "s" / LAYOUT.objects
    (folder / "tombstones").symlink_to(outside)
    (folder / "file.hxseg").symlink_to(outside / f"{uuid(1)}.hxtomb")

    assert made.get(KEY) is None
    assert made.list("").keys == []
    assert made.list("").strays == [f"{LAYOUT.objects}/file.hxseg", f"{LAYOUT.objects}/tombstones"]
    with pytest.raises(StoreError):
        made.put_atomic(LAYOUT.tombstone(uuid(2)), b"x")
    assert len(list(outside.iterdir())) == 1


def test_a_name_that_is_no_text_is_told(tmp_path: Path) -> None:
    made = store(tmp_path)
    (tmp_path / os.fsdecode(os.fsencode(LAYOUT.objects) + b"/\xff.hxseg")).write_bytes(b"x")

    assert made.list("").strays == [f"{LAYOUT.objects}/\\xff.hxseg"]


def test_every_sync_that_fails_keeps_an_object_from_being_acknowledged(tmp_path: Path) -> None:
    counting = FailingDisk()
    store(tmp_path / "whole", counting).put_atomic(KEY, b"x")
    for number in range(1, counting.syncs + 1):
        disk = FailingDisk(number)
        made = store(tmp_path / str(number), disk)

        with pytest.raises(StoreError) as caught:
            made.put_atomic(KEY, b"x")
        assert made.get(KEY) is None
        # Only the last one fails once the object has its name.
        assert isinstance(caught.value, UncertainError) == (number == counting.syncs)
        before = disk.syncs
        assert made.put_atomic(KEY, b"x") is Put.NEW
        assert disk.syncs > before


def test_what_is_there_is_synced_again_before_it_is_told_to_be_there(tmp_path: Path) -> None:
    store(tmp_path).put_atomic(KEY, b"x")
    disk = FailingDisk(1)
    made = store(tmp_path, disk)
    inode = (tmp_path / KEY).stat().st_ino

    with pytest.raises(StoreError):
        made.put_atomic(KEY, b"x")
    # A second sync of the same file may succeed without having written: the bytes are written anew.
    assert made.put_atomic(KEY, b"x") is Put.SAME
    assert (tmp_path / KEY).stat().st_ino != inode
    assert made.get(KEY) == b"x"
    assert files(tmp_path) == [KEY]


def test_nothing_is_copied_across_filesystems(tmp_path: Path) -> None:
    made = store(tmp_path, AcrossFilesystems())

    with pytest.raises(StoreError):
        made.put_atomic(KEY, b"x")
    assert files(tmp_path) == []


def test_a_manifest_is_replaced_in_one_step(tmp_path: Path) -> None:
    made = store(tmp_path)
    made.replace(KEY, b"one")
    made.replace(KEY, b"two")

    assert made.get(KEY) == b"two"
    assert files(tmp_path) == [KEY]
