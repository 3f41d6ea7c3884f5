"""Consoles, and the one way to end a command with an error. `reports.plain` defines the content of a line of output."""

from __future__ import annotations

import json
from collections.abc import Iterable
from enum import Enum, unique
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.text import Text

from holdfast.conformance.verdict import Exit
from holdfast.reports.plain import plain


@unique
class Format(Enum):
    """How a command prints."""

    TEXT = "text"
    JSON = "json"


class PlainConsole(Console):
    """A console on which every string is one line that can play no tricks; its own colours are rich's.

    Strings are made plain at each place where rich takes one: printed, in the cells of a table, in titles. So a line
    break that is part of a value is shown as `\\n`. Several lines are printed one by one (`print_lines`).
    """

    def render_str(self, text: str, **options: Any) -> Text:
        """Like rich's, with the text made plain first. A word between colons is no picture: `a.py:100:b` stays."""
        return super().render_str(plain(text), **{**options, "emoji": False})


def out() -> Console:
    """Where results go. Lines are never broken to fit a pipe."""
    console = PlainConsole(highlight=False)
    return console if console.is_terminal else PlainConsole(highlight=False, width=160, soft_wrap=True)


def err() -> Console:
    """Where progress and errors go."""
    return PlainConsole(stderr=True, highlight=False, soft_wrap=True)


def print_lines(console: Console, lines: Iterable[str], *, style: str | None = None) -> None:
    """Lines of the kit's own making, each printed as it is."""
    for line in lines:
        console.print(line, markup=False, style=style)


def print_json(value: object) -> None:
    """A result for programs, on one line. Every encoding can hold it, and no CI server takes it for a command."""
    # `##` occurs in strings only, where JSON has another way to write it.
    print(json.dumps(value).replace("##", "#\\u0023"))


def stop(status: Exit, message: str) -> NoReturn:
    """End the command with `status` and an error that says what was expected, what came and what to do."""
    console = err()
    console.print("holdfast:", style="bold red", end=" ")
    console.print(message, markup=False)
    raise typer.Exit(int(status))
