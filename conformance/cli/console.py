"""Consoles, and the one way to end a command with an error."""

from __future__ import annotations

from enum import Enum, unique
from typing import NoReturn

import typer
from rich.console import Console

from conformance.verdict import Exit


@unique
class Format(Enum):
    """How a command prints."""

    TEXT = "text"
    JSON = "json"


def out() -> Console:
    """Where results go. Lines are never broken to fit a pipe."""
    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=160, soft_wrap=True)


def err() -> Console:
    """Where progress and errors go."""
    return Console(stderr=True, highlight=False, soft_wrap=True)


def stop(status: Exit, message: str) -> NoReturn:
    """End the command with `status` and an error that says what was expected, what came and what to do."""
    console = err()
    console.print("holdfast:", style="bold red", end=" ")
    console.print(message, markup=False)
    raise typer.Exit(int(status))
