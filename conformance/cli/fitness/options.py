"""What the command line of `holdfast fitness` asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from holdfast.conformance.cli.console import Format, OutputFormat
from holdfast.conformance.fitness.deadline import TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for."""

    context: typer.Context
    dsn: Annotated[str, typer.Argument(metavar="DSN", help="postgresql://… or words of libpq, or a SQLite file")]
    effect: Annotated[str | None, typer.Option(metavar="SCHEMA.TABLE", help="relation of the consumed keys")] = None
    nonce: Annotated[str | None, typer.Option(metavar="SCHEMA.TABLE", help="relation of the consumed nonces")] = None
    audit: Annotated[str | None, typer.Option(metavar="SCHEMA.TABLE", help="relation of the failure audit")] = None
    writer: Annotated[str | None, typer.Option(metavar="ROLE", help="role that the registrar connects as")] = None
    policy: Annotated[Path | None, typer.Option(help="how the contract's words are spelled here, and more")] = None
    json_: Annotated[Path | None, typer.Option("--json", metavar="F", help="write the proof here")] = None
    html: Annotated[Path | None, typer.Option(metavar="F", help="write it as one page here")] = None
    probe_live: Annotated[
        bool, typer.Option("--probe-live", help="also try, and roll back, on the live tables; see below")
    ] = False
    live_dsn: Annotated[str | None, typer.Option(metavar="DSN", help="for --probe-live: a login of the writer")] = None
    challenge: Annotated[
        str | None, typer.Option(metavar="TEXT", help="stands in the proof; the gate asks for it with --challenge")
    ] = None
    format_: OutputFormat = Format.TEXT
    timeout: Annotated[float, typer.Option(metavar="SECONDS", min=1, help="wait no longer for any server")] = TIMEOUT_S
