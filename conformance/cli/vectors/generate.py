"""`holdfast vectors generate`: documents with their expected canonical bytes."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Column

from holdfast.conformance.cli.console import Format, OutputFormat, number, out, print_json, table_of
from holdfast.conformance.cli.vectors.spark import Master, Partitions, Seed, working
from holdfast.specs.typed import written
from holdfast.vectors.jcs.spark.generate import GenerateRequest, Mode
from holdfast.vectors.jcs.spark.generate import generate as run
from holdfast.vectors.taxonomy import Category


def generate(
    count: Annotated[int, typer.Option("--count", min=1, max=10**12, help="how many rows")],
    folder: Annotated[str, typer.Option("--out", help="new folder: a path, or a URI of any Hadoop file system")],
    seed: Seed = 0,
    master: Master = "local[*]",
    partitions: Partitions = None,
    resume: Annotated[bool, typer.Option("--resume", help="finish a half-written folder")] = False,
    format_: OutputFormat = Format.TEXT,
) -> None:
    """Generate documents with their expected canonical bytes, as Parquet with a manifest.

    The Merkle root that is printed depends on seed, count and the version of the stream only: the same on every
    machine, however many cores or partitions there are.
    """
    with working(master, format_) as work:
        mode = Mode.RESUME if resume else Mode.FRESH
        manifest = run(
            work.spark, GenerateRequest(seed, count, partitions), folder, mode=mode, listener=work.progress.show
        )
    if format_ is Format.JSON:
        print_json(written(manifest))
        return
    rows = ((each.value, each.title, str(manifest.categories.get(each.value, 0))) for each in Category)
    console = out()
    console.print_table(table_of(Column("category", no_wrap=True), Column("about"), number("rows"), rows=rows))
    size = sum(part.size for part in manifest.parts)
    console.print(f"{manifest.count} rows in {len(manifest.parts)} files, {size} bytes: {folder}")
    console.print(f"stream {manifest.stream}, seed {manifest.seed}, root {manifest.root}")
