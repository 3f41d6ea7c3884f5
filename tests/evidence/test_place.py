"""Where evidence comes to stand: what is set aside, what is left alone, who else may write there, what is its own."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from holdfast.reports.evidence import EvidenceError, EvidenceFile, EvidenceWriter, read_evidence


def entries(folder: Path) -> set[str]:
    """The names in a folder."""
    return {path.name for path in folder.iterdir()}


def started(path: Path) -> EvidenceFile:
    """A place to which a run writes."""
    place = EvidenceFile(path)
    place.write(b'{"adapter":1}\n')
    return place


def ended(place: EvidenceFile, meanwhile: Callable[[], object] = lambda: None) -> None:
    """Complete a run and confirm it; `meanwhile` happens between."""
    place.complete()
    meanwhile()
    place.confirm()


# What stood there before


@pytest.mark.parametrize("kind", ["text", "folder", "pipe", "loop"])
@pytest.mark.parametrize("suffix", ["", ".partial"])
def test_what_is_not_evidence_is_left_alone(kind: str, suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"run.jsonl{suffix}"
    make: dict[str, Callable[[], object]] = {
        "text": lambda: path.write_text("mine"),
        "folder": path.mkdir,
        "pipe": lambda: os.mkfifo(path),
        "loop": lambda: path.symlink_to(path),
    }
    make[kind]()
    before = path.lstat()
    with pytest.raises(EvidenceError, match=r"--evidence|name a file in it") as told:
        EvidenceFile(tmp_path / "run.jsonl")
    assert ("got a folder" in str(told.value)) is (kind == "folder" and not suffix)
    assert path.lstat().st_ino == before.st_ino
    assert entries(tmp_path) == {path.name}


def test_the_root_is_a_folder_too() -> None:
    with pytest.raises(EvidenceError, match="got a folder"):
        EvidenceFile(Path("/"))


def test_a_file_of_others_under_the_name_of_an_older_run_is_left_alone(write_run: Callable[[], Path]) -> None:
    path = write_run()
    mine = path.with_name("run.jsonl.previous")
    mine.write_text("mine")
    write_run()
    assert mine.read_text() == "mine"
    assert not read_evidence(path.with_name("run.jsonl.2.previous")).defects


@pytest.mark.parametrize("cut", [None, 30, 20, 3])
@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.zst"])
def test_the_rest_of_a_dead_run_is_replaced(name: str, cut: int | None, tmp_path: Path) -> None:
    path, partial = tmp_path / name, tmp_path / f"{name}.partial"
    started(path).close()
    raw = partial.read_bytes()
    if name.endswith(".zst"):
        raw = zstandard.ZstdDecompressor().decompressobj().decompress(raw)
    assert raw == b'{"adapter":1}\n', "each line is there before the next one"
    os.truncate(partial, min(cut or 99, partial.stat().st_size))
    with started(path) as place:
        place.complete()
    assert entries(tmp_path) == {name}


@pytest.mark.parametrize(("name", "older"), [("a.jsonl", "a.jsonl.zst"), ("a.jsonl.zst", "a.jsonl")])
def test_evidence_in_the_other_form_is_set_aside_and_its_appearance_not_confirmed(
    name: str, older: str, write_run: Callable[..., Path], tmp_path: Path
) -> None:
    write_run(older)
    with started(tmp_path / name) as place:
        assert entries(tmp_path) == {f"{name}.partial", f"{older}.previous"}
        place.complete()
        (tmp_path / f"{older}.previous").rename(tmp_path / older)
        with pytest.raises(EvidenceError, match=f"other evidence stands beside it, {older}"):
            place.confirm()
    assert entries(tmp_path) == {f"{name}.previous", f"{older}.previous"}


def test_a_link_leads_to_the_place(tmp_path: Path, write_run: Callable[[], Path]) -> None:
    old = write_run()
    link = tmp_path / "elsewhere" / "latest.jsonl"
    link.parent.mkdir()
    link.symlink_to(old)
    with started(link) as place:
        assert not link.exists()
        place.complete()
        place.confirm()
    assert link.is_symlink()
    assert old.read_bytes() == b'{"adapter":1}\n'


@pytest.mark.parametrize("name", ["run.jsonl", "run.jsonl.zst"])
def test_an_older_run_in_a_folder_that_takes_no_names_is_complete_no_longer(
    name: str, write_run: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_run(name)

    def refused(_old: str, _new: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "replace", refused)
    with pytest.raises(EvidenceError):
        EvidenceFile(path)
    assert read_evidence(path).defects


# Two runs in one folder


def test_two_runs_do_not_write_in_one_folder_and_the_second_says_who_is_there(tmp_path: Path) -> None:
    with EvidenceFile(tmp_path / "one.jsonl"):
        with pytest.raises(EvidenceError, match=re.escape(f"process {os.getpid()} writes to")):
            EvidenceFile(tmp_path / "two.jsonl")
        assert entries(tmp_path) == {"one.jsonl.partial"}
    EvidenceFile(tmp_path / "two.jsonl").close()


def test_a_lock_ends_with_its_process_and_leaves_no_file(tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        started(tmp_path / "run.jsonl")
        os._exit(0)
    os.waitpid(child, 0)
    assert entries(tmp_path) == {"run.jsonl.partial"}
    EvidenceFile(tmp_path / "run.jsonl").close()


# Its own, whole, on the disk


def swapped(path: Path) -> None:
    """Another file of evidence in the place of the one that is written."""
    other = path.with_name("other")
    other.write_bytes(b'{"adapter":1}\n')
    other.replace(path)


def swapped_for_a_link(path: Path) -> None:
    """A link to another file of equal bytes."""
    swapped(path)
    path.rename("kept")
    path.symlink_to("kept")


def swapped_for_a_pipe(path: Path) -> None:
    """A pipe in the place of the file."""
    path.unlink()
    os.mkfifo(path)


def in_the_way(path: Path) -> None:
    """A folder in the place of the file."""
    path.unlink()
    path.mkdir()


SPOILT: dict[str, Callable[[Path], object]] = {
    "swapped for equal bytes": swapped,
    "swapped for a link to equal bytes": swapped_for_a_link,
    "swapped for a pipe": swapped_for_a_pipe,
    "cut": lambda path: os.truncate(path, 3),
    "emptied": lambda path: os.truncate(path, 0),
    "changed": lambda path: path.write_bytes(b'{"adapter":2}\n'),
    "longer": lambda path: path.write_bytes(b'{"adapter":1}\n\n'),
    "removed": Path.unlink,
    "in the way": in_the_way,
}


@pytest.mark.parametrize("when", ["while it ran", "afterwards"])
@pytest.mark.parametrize("what", SPOILT)
def test_a_run_is_not_confirmed_whose_file_was(
    what: str, when: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "run.jsonl"
    with started(path) as place:
        if when == "while it ran":
            SPOILT[what](tmp_path / "run.jsonl.partial")
        with pytest.raises((EvidenceError, OSError)):
            ended(place, lambda: SPOILT[what](path) if when == "afterwards" else None)


def test_evidence_of_others_does_not_stay_under_the_name_of_a_run(
    tmp_path: Path, write_run: Callable[[], Path]
) -> None:
    good = write_run()
    path = tmp_path / "here" / "run.jsonl"
    with started(path) as place:
        place.complete()
        good.replace(path)
        with pytest.raises(EvidenceError, match="another file stands there"):
            place.confirm()
    assert not path.exists()


def test_evidence_that_appears_while_a_run_goes_on_is_set_aside(tmp_path: Path, write_run: Callable[[], Path]) -> None:
    good = write_run()
    path = tmp_path / "here" / "run.jsonl"
    with started(path) as place:
        good.replace(path)
        place.complete()
        place.confirm()
    assert not read_evidence(path.with_name("run.jsonl.previous")).defects
    assert path.read_bytes() == b'{"adapter":1}\n'


def test_a_folder_that_moved_while_a_run_went_on_keeps_no_evidence_under_its_name(tmp_path: Path) -> None:
    path = tmp_path / "here" / "run.jsonl"
    with started(path) as place:
        path.parent.rename(tmp_path / "there")
        with pytest.raises((EvidenceError, OSError)):
            ended(place)


def test_what_is_read_back_is_what_was_written(tmp_path: Path, write_run: Callable[[], Path]) -> None:
    whole, path = write_run().read_bytes(), tmp_path / "not" / "there" / "run.jsonl"
    writer = EvidenceWriter(place := EvidenceFile(path))
    with writer:
        place.write(whole)
        place.complete()
        assert not writer.reread().defects
        path.write_bytes(whole[:-1] + b" ")
        with pytest.raises(EvidenceError):
            writer.reread()
