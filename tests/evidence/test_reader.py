"""The reader: a whole run comes back as it was written; of a damaged one every defect is found."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

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

from .conftest import CASES, exchange, verdict

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


def test_a_deleted_line_breaks_the_chain_and_the_count(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: lines[:6] + lines[7:])
    assert DefectKind.CHAIN in kinds(run)
    assert DefectKind.COUNT in kinds(run)


def test_two_lines_in_each_others_place_break_the_chain(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: [*lines[:4], lines[5], lines[4], *lines[6:]])
    assert kinds(run).count(DefectKind.CHAIN) == 3


def test_a_line_that_stands_twice_is_found(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: [*lines[:4], lines[3], *lines[4:]])
    assert {DefectKind.CHAIN, DefectKind.DUPLICATE} <= set(kinds(run))


def test_one_edited_line_is_one_break_and_names_the_line(run_path: Path) -> None:
    def edit(lines: Lines) -> None:
        lines[3] = edited(lines[3], verdict="conforms", detail="all is well")

    run = rewritten(run_path, edit)
    assert kinds(run) == [DefectKind.CHAIN]
    assert run.defects[0].line == 5
    assert "line 4 was changed" in run.defects[0].text


def test_an_edited_first_line_breaks_the_chain(run_path: Path, header: Header) -> None:
    run = rewritten(run_path, lambda lines: [edited(lines[0], seed="other"), *lines[1:]])
    assert kinds(run) == [DefectKind.CHAIN]
    assert run.header is not None
    assert run.header != header


def test_a_missing_footer_means_that_the_run_was_cut_off(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: lines[:-1])
    assert kinds(run) == [DefectKind.CUT_OFF]
    assert run.footer is None


def test_a_last_line_without_an_end_means_that_the_run_was_cut_off(run_path: Path) -> None:
    run_path.write_bytes(run_path.read_bytes()[:-20])
    assert set(kinds(read_evidence(run_path))) == {DefectKind.CUT_OFF}


def test_a_file_that_lost_only_its_last_newline_is_not_whole(run_path: Path) -> None:
    run_path.write_bytes(run_path.read_bytes()[:-1])
    run = read_evidence(run_path)
    assert set(kinds(run)) == {DefectKind.CUT_OFF}
    assert run.footer is None


def test_an_empty_file_is_no_run(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    path.write_bytes(b"")
    run = read_evidence(path)
    assert [str(defect) for defect in run.defects] == ["the file is empty"]


def test_two_runs_in_one_file_are_not_one_run(run_path: Path, header: Header) -> None:
    run = rewritten(run_path, lambda lines: lines + lines)
    texts = "\n".join(map(str, run.defects))
    assert "two runs in one file" in texts
    assert "a second footer" in texts
    assert "nothing after the footer" in texts
    assert run.header == header


def test_two_runs_with_one_chain_are_still_not_one_run(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: chained(lines + lines))
    assert DefectKind.CHAIN not in kinds(run)
    assert DefectKind.ORDER in kinds(run)


def test_counts_of_the_footer_that_do_not_fit_the_verdicts_are_found_whatever_the_chain(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: chained([*lines[:-1], edited(lines[-1], counts={"conforms": 3})]))
    assert [str(defect) for defect in run.defects] == [
        "line 11: the footer counts 3 conforms, the verdict lines are 2 conforms"
    ]


def test_a_line_count_of_the_footer_that_does_not_fit_is_found(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: chained([*lines[:-1], edited(lines[-1], lines=8)]))
    assert kinds(run) == [DefectKind.COUNT]


def test_an_unknown_verdict_is_named(run_path: Path) -> None:
    def edit(lines: Lines) -> Lines:
        lines[3] = edited(lines[3], verdict="splendid")
        return chained(lines)

    run = rewritten(run_path, edit)
    assert DefectKind.UNKNOWN_VERDICT in kinds(run)
    assert "'splendid'" in run.defects[0].text
    assert [line.case for line in run.verdicts] == [CASES[1]]


def test_a_second_verdict_of_a_case_is_found_whatever_the_chain(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: chained([*lines[:4], lines[3], *lines[4:]]))
    assert DefectKind.DUPLICATE in kinds(run)


def test_an_exchange_that_was_taken_out_is_missed_whatever_the_chain(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: chained(lines[:1] + lines[2:]))
    assert "expected exchange 0 of toy/once/one (main), got 1" in str(run.defects[0])


def test_an_exchange_after_its_verdict_is_found(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: chained([*lines[:2], lines[3], lines[2], *lines[4:]]))
    assert set(kinds(run)) == {DefectKind.ORDER}


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


def test_an_instant_that_does_not_exist_is_a_defect(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: chained([edited(lines[0], started="2026-02-31T00:00:00Z"), *lines[1:]]))
    assert run.header is None
    assert "expected an instant that exists" in str(run.defects[0])


def test_a_line_of_many_megabytes_is_not_taken_in(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: [*lines[:7], b"x" * (2 * MAX_LINE), *lines[7:]])
    assert "expected at most" in str(run.defects[0])


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


def test_any_change_of_the_footer_breaks_its_seal(run_path: Path) -> None:
    last = json.loads(run_path.read_bytes().splitlines()[-1])
    for member, value in (("finished", "2026-01-01T00:02:00.000000Z"), ("exit", 12), ("seal", "sha256:" + "0" * 64)):
        run = rewritten(run_path, lambda lines: [*lines[:-1], strictjson.canonical({**last, member: value})])  # noqa: B023
        assert DefectKind.CHAIN in kinds(run), member


def test_a_run_of_another_schema_says_to_run_again(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: chained([edited(lines[0], schema=1), *lines[1:]]))
    assert "an older holdfast wrote this run" in str(run.defects[0])
    assert (run.header, len(run.verdicts)) == (None, 2)


@pytest.mark.parametrize(
    "change",
    [
        {"digest": "sha256:" + "1" * 64},
        {"digest": None},
        {"files": []},
        {"files": [{"path": "guard", "sha256": "1" * 64, "source": "command"}]},
    ],
)
def test_artefacts_whose_digest_is_not_theirs_are_a_defect(run_path: Path, change: dict[str, Any]) -> None:
    run = rewritten(run_path, lambda lines: chained([*lines[:-2], edited(lines[-2], **change), lines[-1]]))
    assert kinds(run) == [DefectKind.COUNT]


def test_artefacts_stand_once_and_last(run_path: Path) -> None:
    twice = rewritten(run_path, lambda lines: chained([*lines[:-1], lines[-2], lines[-1]]))
    assert DefectKind.ORDER in kinds(twice)


def test_artefacts_before_a_case_are_a_defect(run_path: Path) -> None:
    early = rewritten(run_path, lambda lines: chained([lines[0], lines[-2], *lines[1:-2], lines[-1]]))
    assert DefectKind.ORDER in kinds(early)


def test_exchanges_and_verdict_of_a_case_stand_together(run_path: Path) -> None:
    # The second case's exchanges before the first one's verdict, both in their own order.
    run = rewritten(run_path, lambda lines: chained([*lines[:3], *lines[4:6], lines[3], *lines[6:]]))
    assert set(kinds(run)) == {DefectKind.ORDER}


def test_the_main_side_stands_before_its_twin(run_path: Path) -> None:
    def twin_first(lines: Lines) -> Lines:
        return chained([lines[0], edited(lines[1], side="twin"), edited(lines[2], n=0), *lines[3:]])

    assert kinds(rewritten(run_path, twin_first)) == [DefectKind.ORDER]


def test_a_restart_that_was_taken_out_is_missed(run_path: Path) -> None:
    run = rewritten(run_path, lambda lines: chained([edited(x, count=2) if b'"restart"' in x else x for x in lines]))
    assert kinds(run) == [DefectKind.ORDER]


@pytest.mark.parametrize("verdict", [[], {}, None, 7])
def test_a_verdict_that_is_no_word_is_a_defect(run_path: Path, verdict: object) -> None:
    run = rewritten(run_path, lambda lines: chained([*lines[:3], edited(lines[3], verdict=verdict), *lines[4:]]))
    assert DefectKind.SCHEMA in kinds(run)


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
