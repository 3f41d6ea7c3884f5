"""`holdfast vectors sdk`: the SDK runners that the kit brings: list them, build them, be one of them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Column
from rich.text import Text

from holdfast.conformance.cli.console import (
    Format,
    OutputFormat,
    ending,
    err,
    in_style,
    out,
    print_json,
    stop,
    table_of,
)
from holdfast.conformance.verdict import Exit
from holdfast.reports.plain import plain
from holdfast.vectors.jcs import sdk as runners
from holdfast.vectors.jcs.sdk import DamagedError, ManifestError, UnknownSdkError, find, names


@contextlib.contextmanager
def looked_up() -> Iterator[None]:
    """Ends the command where a name or a `runner.toml` is wrong: 20 if it is one of the kit's own, which is damaged."""
    with ending(Exit.USAGE, ManifestError, UnknownSdkError), ending(Exit.KIT, DamagedError):
        yield


def list_(format_: OutputFormat = Format.TEXT) -> None:
    """List every runner, and what is missing of those that cannot run here."""
    with looked_up():
        found = [find(name) for name in names()]
    if format_ is Format.JSON:
        rows = [{**asdict(one), "missing": one.missing or None} for one in found]
        print_json({"sdks": rows})
        return
    table = table_of(Column("name", no_wrap=True), "language", "library", "version", "runs here")
    for one in found:
        state = (
            in_style("yes", "green")
            if one.command
            else Text.assemble(in_style("no:", "yellow"), " ", plain(one.missing))
        )
        table.add_row(one.name, one.language, one.library, one.version, state)
    out().print_table(table)


def build(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="all that can be built by default")
    ] = None,
    into: Annotated[Path | None, typer.Option("--into", help="folder for what is built")] = None,
) -> None:
    """Build runners from their locked versions. Exit 12 if one could not be built: it stays unproven."""
    failed = []
    with looked_up():
        for name in names or runners.names():
            try:
                one = runners.build(name, into)
            except runners.ManifestError:
                raise
            except runners.BuildError as error:
                failed.append(name)
                err().print(f"{name}: {error}")
                continue
            if one.command:
                out().print(f"{name}: {one.library} {one.version}")
            else:
                failed.append(name)
                err().print(f"{name}: {one.missing}")
    if failed:
        stop(Exit.INCOMPLETE, f"not built: {', '.join(failed)}")


def run(name: Annotated[str, typer.Argument(help="`holdfast vectors sdk list` names them")]) -> None:
    """Be the runner NAME: frames on standard input, frames on standard output, until end of file."""
    with looked_up():
        try:
            runners.exec_runner(name)
        except runners.ManifestError:
            raise
        except runners.BuildError as error:
            stop(Exit.INCOMPLETE, str(error))
