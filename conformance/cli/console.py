"""Consoles, and the one way to end a command with an error."""

from __future__ import annotations

from enum import Enum, unique
from typing import Any, NoReturn

import typer
from rich.console import Console

from conformance.verdict import Exit


@unique
class Format(Enum):
    """How a command prints."""

    TEXT = "text"
    JSON = "json"


# C0 and C1 controls but newline and tab, and the marks that turn the direction of text: an adapter's words must not
# be able to move the cursor, hide a line, or show a verdict that is none.
_TRICKS = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    for code in (
        *(code for code in range(0x20) if code not in (0x09, 0x0A)),
        *range(0x7F, 0xA0),
        *(0x061C, 0x200E, 0x200F, 0x2028, 0x2029),
        *range(0x202A, 0x202F),
        *range(0x2066, 0x206A),
    )
}


def plain(text: str) -> str:
    """Text that comes from an adapter, with everything that would play tricks on a terminal written out."""
    return text.translate(_TRICKS)


class PlainConsole(Console):
    """A console on which no printed text can play tricks; its own colours are rich's."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Like rich's, with every text made plain first."""
        super().print(*(plain(item) if isinstance(item, str) else item for item in objects), **options)


def out() -> Console:
    """Where results go. Lines are never broken to fit a pipe."""
    console = PlainConsole(highlight=False)
    return console if console.is_terminal else PlainConsole(highlight=False, width=160, soft_wrap=True)


def err() -> Console:
    """Where progress and errors go."""
    return PlainConsole(stderr=True, highlight=False, soft_wrap=True)


def stop(status: Exit, message: str) -> NoReturn:
    """End the command with `status` and an error that says what was expected, what came and what to do."""
    console = err()
    console.print("holdfast:", style="bold red", end=" ")
    console.print(message, markup=False)
    raise typer.Exit(int(status))
