"""`holdfast vectors`: canonicalisation vectors by the million, and what SDKs make of them."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.table import Table

from holdfast.conformance.cli.console import Format, out, print_json
from holdfast.conformance.cli.vectors_data import lint, regenerate, show
from holdfast.conformance.cli.vectors_fingerprints import fingerprints
from holdfast.conformance.cli.vectors_numbers import es6
from holdfast.conformance.cli.vectors_parity import parity
from holdfast.conformance.cli.vectors_sdk import sdk
from holdfast.conformance.cli.vectors_session import Master, OutputFormat, Partitions, Seed, working
from holdfast.conformance.cli.vectors_verify import verify
from holdfast.vectors.taxonomy import Category

app = typer.Typer(
    name="vectors",
    help="Canonicalisation vectors (RFC 8785) by the million: generate them, and verify SDKs in any language on them.",
    no_args_is_help=True,
)
_REST = {"allow_extra_args": True, "ignore_unknown_options": False}


@app.command()
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
        from holdfast.vectors.jcs.spark.generate import Mode, Request
        from holdfast.vectors.jcs.spark.generate import generate as run

        mode = Mode.RESUME if resume else Mode.FRESH
        manifest = run(work.spark, Request(seed, count, partitions), folder, mode=mode, listener=work.face.show)
    if format_ is Format.JSON:
        print_json(manifest.as_json())
        return
    table = Table(show_edge=False)
    table.add_column("category", no_wrap=True)
    table.add_column("about")
    table.add_column("rows", justify="right")
    for category in Category:
        table.add_row(category.value, category.title, str(manifest.categories.get(category.value, 0)))
    console = out()
    console.print(table)
    size = sum(part.size for part in manifest.parts)
    console.print(f"{manifest.count} rows in {len(manifest.parts)} files, {size} bytes: {folder}", markup=False)
    console.print(f"stream {manifest.stream}, seed {manifest.seed}, root {manifest.root}", markup=False)


app.command(context_settings=_REST)(verify)
app.command()(es6)
app.command()(parity)
app.command(context_settings=_REST)(show)
app.add_typer(sdk)
app.command()(lint)
app.command()(regenerate)
app.command()(fingerprints)
