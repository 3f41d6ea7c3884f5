"""The reader: a whole run comes back as it was written; of a damaged one every defect is found."""

from __future__ import annotations

import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from holdfast.reports.evidence import (
    DefectKind,
    EvidenceError,
    EvidenceWriter,
    Header,
    Run,
    read_evidence,
    reader,
)
from holdfast.reports.evidence.reader import MAX_DEFECTS, MAX_LINE
from holdfast.specs import strictjson
from tests.forger import resealed

from .conftest import CASES, DIGEST, exchange, verdict

Lines = list[bytes]


def kinds(run: Run) -> list[DefectKind]:
    return [defect.kind for defect in run.defects]


def rewritten(path: Path, change: Callable[[Lines], Lines | None]) -> Run:
    """Read `path` after `change` to its lines."""
    lines = path.read_bytes().splitlines()
    changed = change(lines)
    path.write_bytes(b"".join(line + b"\n" for line in (lines if changed is None else changed)))
    return read_evidence(path)


def chained(lines: Lines) -> Lines:
    """The lines with a chain computed anew, as a forger would."""
    return resealed(map(json.loads, lines))


def edited(line: bytes, **members: Any) -> bytes:
    return strictjson.canonical({**json.loads(line), **members})


def test_a_run_comes_back_as_it_was_written(run_path: Path, header: Header) -> None:
    run = read_evidence(run_path)
    assert run.defects == ()
    assert run.header == header
    assert run.exchanges == tuple(exchange(case, n) for case in CASES for n in (0, 1))
    assert run.verdicts == tuple(verdict(case) for case in CASES)
    assert (len(run.logs), len(run.restarts)) == (1, 1)
    assert run.digest == strictjson.digest_bytes(run_path.read_bytes())
    assert run.sides()[CASES[0]]["main"] == (exchange(CASES[0], 0), exchange(CASES[0], 1))


def _only(number: int, **members: Any) -> Callable[[Lines], Lines]:
    """The change of one line."""
    return lambda lines: [edited(line, **members) if at == number else line for at, line in enumerate(lines)]


CHAIN, COUNT, ORDER, SCHEMA = DefectKind.CHAIN, DefectKind.COUNT, DefectKind.ORDER, DefectKind.SCHEMA
TWICE, NO_JSON = DefectKind.DUPLICATE, DefectKind.NOT_JSON
NO_WORDS: tuple[object, ...] = ([], {}, None, 7)
# What is done to the lines, and the kinds of the defects: with the chain as it was …
BLIND: dict[str, tuple[Callable[[Lines], Lines], set[DefectKind]]] = {
    "a line is gone": (lambda lines: lines[:6] + lines[7:], {CHAIN, COUNT}),
    "two change places": (lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]], {CHAIN, ORDER}),
    "one stands twice": (lambda lines: [*lines[:4], lines[3], *lines[4:]], {CHAIN, COUNT, TWICE}),
    "one is edited": (_only(3, verdict="conforms", detail="all is well"), {CHAIN}),
    "the first is edited": (_only(0, seed="other"), {CHAIN}),
    "the last is gone": (lambda lines: lines[:-1], {DefectKind.CUT_OFF}),
    "all stand twice": (lambda lines: lines + lines, {CHAIN, COUNT, TWICE, ORDER}),
    "it ended at another time": (_only(10, finished="2026-01-01T00:02:00.000000Z"), {CHAIN}),
    "it ended with another status": (_only(10, exit=12), {CHAIN}),
    "it has another seal": (_only(10, seal=DIGEST), {CHAIN}),
    "one is long": (lambda lines: [*lines[:7], b"x" * (2 * MAX_LINE), *lines[7:]], {CHAIN, COUNT, NO_JSON, SCHEMA}),
}
# … and with one that fits.
MENDED: dict[str, tuple[Callable[[Lines], Lines], set[DefectKind]]] = {
    "two runs": (lambda lines: lines + lines, {COUNT, TWICE, ORDER, SCHEMA}),
    "other counts": (_only(10, counts={"conforms": 3}), {COUNT}),
    "another number of lines": (_only(10, lines=8), {COUNT}),
    "an unknown verdict": (_only(3, verdict="splendid"), {COUNT, ORDER, DefectKind.UNKNOWN_VERDICT}),
    "a second verdict": (lambda lines: [*lines[:4], lines[3], *lines[4:]], {COUNT, TWICE}),
    "an exchange less": (lambda lines: lines[:1] + lines[2:], {COUNT, ORDER}),
    "an exchange after its verdict": (lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], {ORDER}),
    "a case within another": (lambda lines: [*lines[:3], *lines[4:6], lines[3], *lines[6:]], {ORDER}),
    "a twin first": (lambda lines: _only(1, side="twin")(_only(2, n=0)(lines)), {ORDER}),
    "a restart less": (lambda lines: [edited(x, count=2) if b'"restart"' in x else x for x in lines], {ORDER}),
    "artefacts twice": (lambda lines: [*lines[:-1], lines[-2], lines[-1]], {COUNT, ORDER}),
    "artefacts early": (lambda lines: [lines[0], lines[-2], *lines[1:-2], lines[-1]], {ORDER}),
    "artefacts have another digest": (_only(9, digest="sha256:" + "1" * 64), {COUNT}),
    "artefacts have no digest": (_only(9, digest=None), {COUNT}),
    "artefacts have no files": (_only(9, files=[]), {COUNT}),
    "an artefact is another": (_only(9, files=[{"path": "guard", "sha256": "1" * 64, "source": "command"}]), {COUNT}),
    **{f"{word!r} for a verdict": (_only(3, verdict=word), {COUNT, ORDER, SCHEMA}) for word in NO_WORDS},
    "an instant that does not exist": (_only(0, started="2026-02-31T00:00:00Z"), {SCHEMA}),
    "another schema": (_only(0, schema=1), {SCHEMA}),
}
SAID = {
    "one is edited": "line 5: the chain is broken; line 4 was changed",
    "the first is edited": "line 2: the chain is broken",
    "all stand twice": "nothing after the footer; two runs in one file; a second footer",
    "one is long": "line 8: expected at most",
    "other counts": "line 11: the footer counts 3 conforms, the verdict lines are 2 conforms",
    "an unknown verdict": "'splendid'",
    "an exchange less": "expected exchange 0 of toy/once/one (main), got 1",
    "an instant that does not exist": "expected an instant that exists",
    "another schema": "an older holdfast wrote this run",
}


@pytest.mark.parametrize("what", [*BLIND, *MENDED])
def test_a_run_is_damaged_in_which(what: str, run_path: Path) -> None:
    change, due = BLIND.get(what) or MENDED[what]
    run = rewritten(run_path, lambda lines: chained(change(lines)) if what in MENDED else change(lines))
    said = "\n".join(map(str, run.defects))
    assert set(kinds(run)) == due, said
    assert all(words in said for words in SAID.get(what, "").split("; ")), said


@pytest.mark.parametrize("cut", [20, 1])
def test_a_last_line_without_its_end_means_that_the_run_was_cut_off(cut: int, run_path: Path) -> None:
    run_path.write_bytes(run_path.read_bytes()[:-cut])
    run = read_evidence(run_path)
    assert set(kinds(run)) == {DefectKind.CUT_OFF}
    assert run.footer is None


COMPRESS, NOT_ALL = zstandard.ZstdCompressor(write_checksum=True), {DefectKind.NOT_ZSTD, DefectKind.CUT_OFF}
# What a compressed file has instead of its bytes, of its plain ones, the kinds of the defects, and the first of them.
FRAMES: dict[str, tuple[Callable[[bytes, bytes], bytes], set[DefectKind], str]] = {
    "whole": (lambda raw, _: raw, set(), ""),
    "in two frames": (lambda _, run: COMPRESS.compress(run[:9]) + COMPRESS.compress(run[9:]), set(), ""),
    "behind an empty frame": (lambda raw, _: COMPRESS.compress(b"") + raw, set(), ""),
    "cut in its last block": (lambda raw, _: raw[:-20], {DefectKind.CUT_OFF}, "compressed file has no end"),
    "without its checksum": (lambda raw, _: raw[:-1], {DefectKind.CUT_OFF}, "compressed file has no end"),
    "another checksum": (lambda raw, _: raw[:-1] + bytes([raw[-1] ^ 1]), NOT_ALL, "doesn't match checksum"),
    "a block of no kind": (lambda raw, _: raw[:6] + bytes([raw[6] | 6]) + raw[7:], NOT_ALL, "any further: zstd"),
    "a line behind it": (lambda raw, _: raw + b'{"type":"superseded"}\n', {DefectKind.NOT_ZSTD}, "Unknown frame"),
    "a run behind it": (lambda raw, _: raw + raw, {CHAIN, COUNT, TWICE, ORDER}, "two runs in one file"),
    "plain behind it": (lambda raw, run: raw + run, {DefectKind.NOT_ZSTD}, "Unknown frame"),
    "no frame": (lambda raw, _: raw[:4], {DefectKind.CUT_OFF}, "compressed file has no end; the file is empty"),
    "an empty frame": (lambda *_: COMPRESS.compress(b""), {DefectKind.CUT_OFF}, "the file is empty"),
    # The header asks for a window of 1 GiB.
    "a large window": (lambda raw, _: raw[:4] + b"\x00\xa0" + raw[6:], NOT_ALL, "memory"),
}


@pytest.mark.parametrize("what", FRAMES)
def test_a_compressed_run_is_read_where_it_is(what: str, write_run: Callable[..., Path], run_path: Path) -> None:
    change, due, words = FRAMES[what]
    path, plain = write_run("one.jsonl.zst"), run_path.read_bytes()
    raw = path.read_bytes()
    assert zstandard.ZstdDecompressor().decompressobj().decompress(raw) == plain
    path.write_bytes(change(raw, plain))
    # The name without its end finds the file, which is known by its first bytes.
    run = read_evidence(path.with_suffix(""))
    said = "\n".join(map(str, run.defects))
    assert set(kinds(run)) == due, said
    assert all(each in said for each in words.split("; ")), said
    assert run.digest == strictjson.digest_bytes(path.read_bytes())


def test_a_small_file_of_many_bytes_is_refused_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "bomb.jsonl.zst"
    # Blocks of one repeated byte: 4 bytes of the file stand for 128 KiB, together for 2 GiB.
    path.write_bytes(b"\x28\xb5\x2f\xfd\x00\x58" + b"\x02\x00\x10x" * (1 << 14))
    tracemalloc.start()
    with pytest.raises(EvidenceError, match="more than 536870912 bytes of lines"):
        read_evidence(path)
    assert tracemalloc.get_traced_memory()[1] < 128 * 1024 * 1024
    tracemalloc.stop()


def test_an_empty_file_is_no_run(run_path: Path) -> None:
    assert [str(defect) for defect in rewritten(run_path, lambda _: []).defects] == ["the file is empty"]


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b"", DefectKind.NOT_JSON),
        (b"not json", DefectKind.NOT_JSON),
        (b"[]", DefectKind.NOT_JSON),
        (b'{"type":"log","type":"log"}', DefectKind.NOT_JSON),
        (b"\xff\xfe", DefectKind.NOT_JSON),
        (b'{"type":"gossip"}', DefectKind.SCHEMA),
        (b'{"type":7}', DefectKind.SCHEMA),
        (b"{}", DefectKind.SCHEMA),
        (b'{"prev":null,"text":"","type":"log"}', DefectKind.SCHEMA),
        (b'{"type": "log"}', DefectKind.NOT_CANONICAL),
    ],
)
def test_a_line_that_is_none_is_a_defect_and_the_rest_is_read(run_path: Path, raw: bytes, kind: DefectKind) -> None:
    run = rewritten(run_path, lambda lines: [*lines[:7], raw, *lines[7:]])
    assert kind in kinds(run)
    assert {defect.line for defect in run.defects} >= {8, 9}
    assert run.footer is not None


def test_a_file_of_another_kind_ends_in_a_bounded_list(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    path.write_bytes(b"GET / 200\n" * 5000)
    run = read_evidence(path)
    assert len(run.defects) <= MAX_DEFECTS + 5
    assert "the rest was not examined" in str(run.defects[-1])
    assert run.digest == strictjson.digest_bytes(path.read_bytes())


def test_a_missing_file_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(EvidenceError, match=r"expected the evidence of a run .*No such file"):
        read_evidence(tmp_path / "none.jsonl")


@pytest.mark.parametrize("growing", [True, False])
def test_a_file_beyond_the_limit_or_that_grows_beyond_it_is_refused(
    run_path: Path, monkeypatch: pytest.MonkeyPatch, growing: bool
) -> None:
    size = run_path.stat().st_size
    assert read_evidence(run_path).defects == ()
    monkeypatch.setattr(reader, "MAX_EVIDENCE", size - 1)
    if growing:
        # As if it had been small enough when it was opened.
        monkeypatch.setattr(reader, "open_regular", lambda path, **_: path.open("rb"))
    with pytest.raises(EvidenceError, match="expected the evidence of a run"):
        read_evidence(run_path)


def test_reading_ends_when_its_time_is_over(run_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "MAX_SECONDS", -1.0)
    with pytest.raises(EvidenceError):
        read_evidence(run_path)


def test_a_pipe_is_refused_without_waiting_for_a_writer(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "run.jsonl")
    with pytest.raises(EvidenceError, match="a pipe where a regular file is expected"):
        read_evidence(tmp_path / "run.jsonl")


def test_a_run_of_ten_thousand_exchanges_is_read_in_seconds(tmp_path: Path, header: Header) -> None:
    path = tmp_path / "run.jsonl"
    with EvidenceWriter(path) as writer:
        writer.header(header)
        for n in range(10_000):
            writer.write(exchange(CASES[0], n))
        writer.finish(verdict="not_reached", exit_status=12)
    run = read_evidence(path)
    assert run.defects == ()
    assert len(run.exchanges) == 10_000
