"""Consoles, and the one way to end a command with an error. `reports.plain` defines the content of a line of output."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import Enum, unique
from typing import Annotated, Any, NoReturn

import typer
from msgspec import to_builtins
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.containers import Lines
from rich.padding import Padding
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from holdfast.conformance.verdict import Exit, Verdict
from holdfast.reports.plain import plain


@unique
class Format(Enum):
    """How a command prints."""

    TEXT = "text"
    JSON = "json"


OutputFormat = Annotated[Format, typer.Option("--format", help="text or json")]


_STYLE = {
    Verdict.CONFORMS: "green",
    Verdict.KIT_FAULT: "bold magenta",
    Verdict.FAIL_OPEN: "bold red",
    Verdict.STATE_LEAK: "bold red",
    Verdict.LOST_DURABILITY: "bold red",
    Verdict.WRONG_REASON: "yellow",
    Verdict.OVER_REFUSAL: "yellow",
}
# A column that is cut needs so many cells to say anything, and a space or line stands between two columns.
_LEAST, _BETWEEN = 24, 3
# An id is broken after one of these.
_JOINTS = re.compile(r"[/-]")


class _Words(Text):
    """Text in which a word that is longer than a line, such as the id of a case, is broken at its joints."""

    __slots__ = ()

    def wrap(self, console: Console, width: int, **options: Any) -> Lines:
        """Like rich's, with long words divided first."""
        cuts: list[int] = []
        for word in re.finditer(
            r"\S+", "" if options.get("no_wrap") or options.get("overflow") == "ignore" else str(self)
        ):
            start, end = word.span()
            if end - start > width:
                cuts.append(start)
            while end - start > width:
                joints = [found.end() for found in _JOINTS.finditer(str(self), start + 1, start + width)]
                start = joints[-1] if joints else start + width
                cuts.append(start)
        lines = Lines()
        for part in self.divide(sorted({*cuts} - {0})) if cuts else [self]:
            lines.extend(Text.wrap(part, console, width, **options))
        return lines


class PlainConsole(Console):
    """A console on which every string is one line that can play no tricks. Colours are those of `in_style` and `style`.

    Strings are made plain at each place where rich takes one: printed, in the cells of a table, in titles. So a line
    break that is part of a value is shown as `\\n`. Several lines are printed one by one (`print_lines`).
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, markup=False, **options)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Like rich's; text is broken where it may be."""
        if isinstance(renderable, str) and options is not None:
            renderable = self.render_str(renderable, highlight=options.highlight, markup=options.markup)
        if type(renderable) is Text:
            renderable = renderable.copy()
            renderable.__class__ = _Words
        return super().render(renderable, options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Like rich's, with the text made plain first. A word between colons is no picture: `a.py:100:b` stays."""
        return super().render_str(plain(text), **{**options, "emoji": False})

    def print_lines(self, lines: Iterable[str], *, style: str | None = None) -> None:
        """Lines of the kit's own making, each printed as it is."""
        for line in lines:
            self.print(line, style=style)

    def print_table(self, table: Table) -> None:
        """A table, readable at any width: what has no room beside the other columns stands below its row.

        A column that is to be cut (`overflow="ellipsis"`) gets the room that is left.
        """
        widths = {id(one): max(map(self._cells, (one.header, *one.cells))) for one in table.columns}

        def least(one: Column) -> int:
            whole = one is table.columns[0] or (one.no_wrap and one.overflow != "ellipsis")
            return widths[id(one)] if whole else min(widths[id(one)], _LEAST)

        def room() -> int:
            return self.width - sum(least(one) + _BETWEEN for one in columns)

        columns = list(table.columns)
        while room() < 0 and len(columns) > 1:
            columns.remove(max(reversed(columns[1:]), key=lambda one: widths[id(one)]))
        below = [one for one in table.columns if one not in columns]
        if not below:
            for one in columns:
                if one.overflow == "ellipsis":
                    one.max_width = min(one.max_width or self.width, least(one) + room())
            self.print(table)
            return
        if table.title:
            self.print(table.title, style="italic")
        self._print_row(columns, widths, [one.header for one in columns], style="bold")
        for cells, rest in zip(_rows(columns), _rows(below), strict=True):
            self._print_row(columns, widths, cells)
            for one, cell in zip(below, rest, strict=True):
                if str(cell) not in ("", "-"):
                    label = f"{one.header}: " if one.header else ""
                    self.print(Padding.indent(Text.assemble(label, self._text(cell)), 4))

    def _print_row(
        self, columns: Sequence[Column], widths: Mapping[int, int], cells: Sequence[RenderableType], style: str = ""
    ) -> None:
        row = Table.grid(padding=(0, 2, 0, 0))
        for one in columns:
            row.add_column(min_width=min(widths[id(one)], self.width), justify=one.justify, style=style)
        row.add_row(*cells)
        self.print(row)

    def _cells(self, cell: RenderableType) -> int:
        """How wide a cell is, on one line."""
        return cell_len(str(self._text(cell)))

    def _text(self, cell: RenderableType) -> Text:
        return cell if isinstance(cell, Text) else self.render_str(str(cell))


def _rows(columns: Sequence[Column]) -> Iterator[tuple[RenderableType, ...]]:
    return zip(*(one.cells for one in columns), strict=True)


def out() -> PlainConsole:
    """Where results go. Lines are never broken to fit a pipe."""
    console = PlainConsole()
    return console if console.is_terminal else PlainConsole(width=160, soft_wrap=True)


def err() -> PlainConsole:
    """Where progress and errors go."""
    return PlainConsole(stderr=True, soft_wrap=True)


def style_of(verdict: Verdict) -> str:
    """The colour of a verdict."""
    return _STYLE.get(verdict, "cyan")


def in_style(text: str, style: str) -> Text:
    """A word with its colour, for a line or a cell."""
    return Text(plain(text), style=style)


def styled(verdict: Verdict | None) -> Text:
    """A verdict with its colour."""
    return in_style("-", "dim") if verdict is None else in_style(verdict.value, style_of(verdict))


def table_of(*columns: str | Column, title: str | None = None, rows: Iterable[Sequence[str | Text]] = ()) -> Table:
    """A table with these columns. Cells of one that is a word alone are broken where they have no room."""
    made = (Column(each, overflow="fold") if isinstance(each, str) else each for each in columns)
    table = Table(*made, title=title, title_justify="left", show_edge=False)
    for row in rows:
        table.add_row(*row)
    return table


def number(header: str) -> Column:
    """A column of numbers."""
    return Column(header, justify="right")


@contextlib.contextmanager
def ending(status: Exit, *errors: type[Exception], before: str = "") -> Iterator[None]:
    """End the command with `status` where one of these errors is raised: its text, with `before` in front."""
    try:
        yield
    except errors as error:
        stop(status, f"{before}{error}")


def members(value: object, *names: str) -> dict[str, Any]:
    """These attributes of a value as JSON has them, in this order; null for each if there is no value."""
    return {name: None if value is None else as_json(getattr(value, name)) for name in names}


def as_json(value: object) -> Any:
    """A value as a reader of its JSON gets it: lists for tuples, and the values of enumerations."""
    return json.loads(json.dumps(to_builtins(sorted(value) if isinstance(value, Set) else value)))


def print_json(value: object) -> None:
    """A result for programs, on one line. Every encoding can hold it, and no CI server takes it for a command."""
    # `##` occurs in strings only, where JSON has another way to write it.
    print(json.dumps(value).replace("##", "#\\u0023"))


class Stopped(typer.Exit):
    """The end of a command by an error that was printed; `message` is its text."""

    def __init__(self, status: Exit, message: str) -> None:
        super().__init__(int(status))
        self.message = message


def stop(status: Exit, message: str) -> NoReturn:
    """End the command with `status` and an error that says what was expected, what came and what to do."""
    console = err()
    console.print("holdfast:", style="bold red", end=" ")
    console.print(message)
    raise Stopped(status, message)
