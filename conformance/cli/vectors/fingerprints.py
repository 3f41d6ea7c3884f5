"""`holdfast vectors fingerprints`: single-field mutations of requests by the million, and their fingerprints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer
from rich.table import Column

from holdfast.conformance.cli.console import Format, OutputFormat, number, out, print_json, table_of
from holdfast.conformance.cli.vectors.spark import Master, Seed, working
from holdfast.conformance.verdict import Exit
from holdfast.vectors.jcs.spark.fingerprints import Family, check_fingerprints


def fingerprints(
    count: Annotated[int, typer.Option("--count", min=1, max=10**12, help="how many requests")] = 1_000_000,
    seed: Seed = 0,
    master: Master = "local[*]",
    format_: OutputFormat = Format.TEXT,
) -> None:
    """Show that no two distinct requests share a fingerprint or key, and that no equal ones differ.

    Requests are changed in one field at a time, and spelled in other ways. Exit 0 if every request has one fingerprint
    and every fingerprint one request; 20 if not: the expected keys of the kit would be wrong; 12 if too few rows were
    asked for to show anything.
    """
    with working(master, format_) as work:
        families = check_fingerprints(work.spark, seed, count, listener=work.progress.show)
    status = _status(families)
    if format_ is Format.JSON:
        rows = [
            {
                "family": one.key,
                "requests": one.rows,
                "distinct": one.requests,
                "fingerprints": one.fingerprints,
                "shared": one.shared,
                "differing": one.differing,
                "example": one.examples[0] if one.examples else None,
            }
            for one in families
        ]
        print_json({"count": count, "seed": seed, "families": rows, "exit": int(status)})
        raise typer.Exit(int(status))
    numbers = ("requests", "distinct", "fingerprints", "shared by distinct", "differing for equal")
    cells = ((one.key, one.rows, one.requests, one.fingerprints, one.shared, one.differing) for one in families)
    console = out()
    console.print_table(table_of(Column("key"), *map(number, numbers), rows=(list(map(str, row)) for row in cells)))
    for one in families:
        for line in one.examples:
            console.print(f"{one.key}: {line}", style="bold red")
        if not one.shows:
            console.print(f"{one.key}: no equal and distinct requests among {one.rows}: not proven")
    console.print(f"{count} requests, seed {seed}")
    raise typer.Exit(int(status))


def _status(families: Sequence[Family]) -> Exit:
    if any(one.shared or one.differing for one in families):
        return Exit.KIT
    return Exit.OK if all(one.sound for one in families) else Exit.INCOMPLETE
