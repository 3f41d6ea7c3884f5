"""What others say, in what the kit prints: no line of its own, no trick on a terminal, no command to a CI server."""

from __future__ import annotations

import io
import json
import re
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rich.table import Table

from holdfast.conformance.cli.console import out, print_json
from holdfast.conformance.cli.outermost.streams import Output
from holdfast.reports.plain import disarmed, line_after, plain
from tests.hostile.verify import adapter, holdfast, temp_folder

# Commands of CI servers, in pieces too, so that several values in a row can form one.
PIECES = (
    "::error file=x::", "::set-output name=a::b", "::add-mask::x", "::stop-commands::x", ":", "::", "##[group]x",
    "##vso[task.complete result=Failed]", "##teamcity[buildStatus text='x']", "#", "##", "##vs", "o[", "teamcity[", "[",
    "--- x", "+++ ", "~~~ x", "^^^ +++", "-", "--", "section_start:1:x\r\x1b[0K", "\n", "\r", "\r\n", "\u2028", "\x85",
    " ", "\t", "\u00a0", "CAN_PROCEED = YES", "\x1b[2J", "\u202e", "[bold]", "[/", "\\", "x",
)  # fmt: skip
FOREIGN = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=8).map("".join)
COMMAND = re.compile(r"^\s*(::|(---|\+\+\+|~~~|\^\^\^)(\s|$))|##\w*\[")


def lines_of(text: str) -> list[str]:
    """Lines as a CI server splits them, some by less than Python does."""
    return re.split(r"[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text)


def commands_in(text: str) -> list[str]:
    """The lines that a CI server would take for a command."""
    return [line for line in lines_of(text) if COMMAND.search(line)]


def written(parts: list[str]) -> str:
    """What a stream of the kit holds after these writes."""
    held = io.BytesIO()
    stream = Output(io.TextIOWrapper(held, encoding="utf-8"))
    for part in parts:
        stream.write(part)
    stream.flush()
    return held.getvalue().decode("utf-8")


@given(FOREIGN)
def test_a_value_is_one_line_and_plays_no_tricks(text: str) -> None:
    shown = plain(text)
    assert lines_of(shown) == [shown]
    assert "\x1b" not in shown
    assert "\u202e" not in shown


@given(st.lists(FOREIGN, max_size=5))
@example(["##", "o["])
def test_no_line_of_an_output_is_a_command_however_it_is_put_together(parts: list[str]) -> None:
    shown = written(parts)
    assert not commands_in(shown)
    assert len(lines_of(shown)) == len(lines_of("".join(parts)))


@given(st.text(alphabet="ab :[]=#-", max_size=30))
def test_what_is_no_command_is_printed_as_it_is(text: str) -> None:
    if not commands_in(text):
        assert disarmed(text) == text


@given(st.lists(FOREIGN, max_size=4))
def test_what_was_printed_of_a_line_is_remembered_however_long_it_is(parts: list[str]) -> None:
    line = ""
    for part in parts:
        line = line_after(part, line=line)
        assert len(line) <= 201
    whole = line_after("".join(parts))
    assert bool(re.match(r"\s*$", line)) == bool(re.match(r"\s*$", whole))


@example("[/b]", "[bold]no tag of rich[/]")
@given(FOREIGN, FOREIGN)
def test_console_and_tables_print_a_value_on_lines_of_the_kit(value: str, other: str) -> None:
    held = io.BytesIO()
    before, sys.stdout = sys.stdout, Output(io.TextIOWrapper(held, encoding="utf-8"))
    try:
        console = out()
        console.print(value, other)
        console.print(f"run:      {value}")
        sys.stdout.flush()
        assert len(lines_of(held.getvalue().decode())) == 3
        table = Table(show_edge=False)
        table.add_column("name", overflow="fold")
        table.add_column("found", overflow="fold")
        table.add_row(value, other)
        console.print(table)
        print_json({"name": value, "##": [other]})
        sys.stdout.flush()
        shown = held.getvalue().decode()
    finally:
        sys.stdout = before
    assert not commands_in(shown)
    assert json.loads(shown.splitlines()[-1]) == {"name": value, "##": [other]}


def test_names_of_an_adapter_make_no_lines_no_tricks_and_no_commands_in_any_output(tmp_path: Path) -> None:
    words = ("--", *adapter("ci_commands"))
    with temp_folder() as temp:
        seen = [
            holdfast("verify", "--contract", "toy", "--slow", "0.5", *words, temp=temp, cwd=tmp_path),
            holdfast("doctor", "--contract", "toy", "--slow", "0.5", *words, temp=temp, cwd=tmp_path),
            holdfast("gate", "holdfast-out/run.jsonl.zst", "--require", "toy", temp=temp, cwd=tmp_path),
            holdfast("verify", "--slow", "\n::error::x", *words, temp=temp, cwd=tmp_path),
            holdfast("gate", "\r\n##vso[x]", "--require", "toy", temp=temp, cwd=tmp_path),
        ]
    for ended in seen:
        said = f"{ended.stdout}\n{ended.stderr}"
        assert ended.returncode in (0, 12, 64), said
        assert "Traceback" not in said
        assert not commands_in(said)
        assert not [name for name in ("\x1b", "\x07", "\u202e", "\r") if name in said]
        # A line of its own could be taken for a line of the kit.
        assert "CAN_PROCEED = YES" not in [line.strip() for line in lines_of(said)], said


def test_a_word_between_colons_stays_a_word(capsys: pytest.CaptureFixture[str]) -> None:
    out().print("killed codec.py:100:guard", markup=False)
    assert "codec.py:100:guard" in capsys.readouterr().out
