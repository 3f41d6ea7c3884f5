"""The writer: what it leaves behind, in good times and in bad."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from holdfast.conformance.verdict import Exit, FailureMode, Verdict
from holdfast.reports.evidence import EvidenceError, EvidenceWriter, Header, read_evidence
from holdfast.reports.evidence.chain import evidence_schema
from holdfast.specs import schema

from .conftest import CASES, exchange, verdict


def partial(path: Path) -> Path:
    """Where a run stands until it has come to its end."""
    return path.with_name(path.name + ".partial")


def test_each_line_carries_the_digest_of_the_raw_bytes_before_it(run_path: Path) -> None:
    lines = run_path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert json.loads(lines[0])["prev"] is None
    for before, line in itertools.pairwise(lines):
        assert json.loads(line)["prev"] == "sha256:" + hashlib.sha256(before).hexdigest()


def test_a_line_is_in_the_file_before_the_next_one_is_asked_for(tmp_path: Path, header: Header) -> None:
    path = tmp_path / "run.jsonl"
    with EvidenceWriter(path) as writer:
        writer.header(header)
        writer.write(exchange(CASES[0], 0))
        assert len(partial(path).read_bytes().splitlines()) == 2


def test_a_run_that_is_closed_without_finish_has_no_footer_and_not_its_name(tmp_path: Path, header: Header) -> None:
    path = tmp_path / "run.jsonl"
    with EvidenceWriter(path) as writer:
        writer.header(header)
    assert not path.exists()
    assert read_evidence(partial(path)).footer is None


def test_a_run_that_wrote_nothing_leaves_nothing(tmp_path: Path) -> None:
    EvidenceWriter(tmp_path / "run.jsonl").close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["/dev/null", "/dev/full", "/dev/stdout", "/proc/self/fd/1", "/dev/null/run.jsonl"])
def test_a_device_a_stream_or_a_path_that_takes_no_file_is_no_place_for_evidence(name: str) -> None:
    with pytest.raises(EvidenceError, match="name another file with --evidence"):
        EvidenceWriter(Path(name))
    assert Path("/dev/null").is_char_device()


def test_a_full_disk_says_what_to_do(tmp_path: Path, header: Header, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int, _data: memoryview) -> int:
        raise OSError(28, "No space left on device")

    with EvidenceWriter(tmp_path / "run.jsonl") as writer:
        monkeypatch.setattr(os, "write", full)
        with pytest.raises(EvidenceError, match=r"No space left on device.*run again"):
            writer.header(header)


def test_after_a_failed_line_there_is_never_a_footer(
    tmp_path: Path, header: Header, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.jsonl"
    writer = EvidenceWriter(path)
    writer.header(header)
    real, room = os.write, [40]

    def almost_full(descriptor: int, data: memoryview) -> int:
        if room[0] == 0:
            raise OSError(28, "No space left on device")
        written = real(descriptor, data[: room[0]])
        room[0] -= written
        return written

    monkeypatch.setattr(os, "write", almost_full)
    with pytest.raises(EvidenceError, match="No space left"):
        writer.write(exchange(CASES[0], 0))
    # There is room again, but the run is beyond repair.
    monkeypatch.setattr(os, "write", real)
    with pytest.raises(EvidenceError, match="no complete run"):
        writer.write(verdict(CASES[0]))
    with pytest.raises(EvidenceError, match="no complete run"):
        writer.finish(verdict="conforms", exit_status=0)
    writer.close()
    run = read_evidence(partial(path))
    assert run.footer is None
    assert run.defects


def test_a_short_write_is_continued(tmp_path: Path, header: Header, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:7]))
    path = tmp_path / "run.jsonl"
    with EvidenceWriter(path) as writer:
        writer.header(header)
        writer.finish(verdict="not_reached", exit_status=12)
    monkeypatch.undo()
    assert read_evidence(path).defects == ()


def test_a_line_that_json_cannot_hold_spoils_the_run(tmp_path: Path, header: Header) -> None:
    with EvidenceWriter(tmp_path / "run.jsonl") as writer:
        writer.header(header)
        with pytest.raises(EvidenceError, match="is not JSON"):
            writer.write(replace(exchange(CASES[0], 0), request={"op": "\ud800"}))
        with pytest.raises(EvidenceError):
            writer.finish(verdict="conforms", exit_status=0)


def test_the_header_comes_first_and_once_and_nothing_follows_the_footer(tmp_path: Path, header: Header) -> None:
    with EvidenceWriter(tmp_path / "run.jsonl") as writer:
        with pytest.raises(EvidenceError, match="exactly one header, first; got a verdict"):
            writer.write(verdict(CASES[0]))
        writer.header(header)
        with pytest.raises(EvidenceError, match="exactly one header, first; got a header"):
            writer.header(header)
        writer.finish(verdict="not_reached", exit_status=12)
        with pytest.raises(EvidenceError, match="no more lines"):
            writer.write(verdict(CASES[0]))


# The published schema against the words that the code knows.


def test_the_schema_knows_exactly_the_verdicts_silences_and_exits_of_the_code() -> None:
    defs = schema.published_schema("evidence")["$defs"]
    assert set(defs["verdict"]["properties"]["verdict"]["enum"]) == {verdict.value for verdict in Verdict}
    silences, null = defs["verdict"]["properties"]["silence"]["anyOf"]
    assert set(silences["enum"]) == {silence.value for silence in FailureMode}
    assert null == {"type": "null"}
    assert set(defs["footer"]["properties"]["exit"]["enum"]) == {int(code) for code in Exit}


def test_the_published_schema_is_the_one_that_the_types_of_the_lines_make() -> None:
    assert schema.published_schema("evidence") == evidence_schema()


def test_every_line_that_is_written_fits_the_published_schema(run_path: Path) -> None:
    validator = schema.published_validator("evidence")
    lines = [json.loads(line) for line in run_path.read_bytes().splitlines()]
    assert {line["type"] for line in lines} == {
        "header",
        "exchange",
        "verdict",
        "log",
        "restart",
        "artefacts",
        "footer",
    }
    assert [schema.explain(validator, line) for line in lines] == [None] * len(lines)
