"""`holdfast vectors generate`, `es6` and `fingerprints`: what Spark makes and checks without an SDK of others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Column

from holdfast.conformance.cli.console import Format, OutputFormat, number, out, print_json, stop, table_of
from holdfast.conformance.cli.vectors.evidence import shown
from holdfast.conformance.cli.vectors.spark import Master, Partitions, Seed, working
from holdfast.conformance.cli.vectors.verify import DEADLINE_S, target_of
from holdfast.conformance.run.documents import VERDICT_OF
from holdfast.conformance.verdict import Exit, exit_of, gravest
from holdfast.specs.typed import written
from holdfast.vectors.jcs.spark.fingerprints import Family, check_fingerprints
from holdfast.vectors.jcs.spark.generate import GenerateRequest, Mode
from holdfast.vectors.jcs.spark.generate import generate as generate_rows
from holdfast.vectors.jcs.spark.tally import Meaning
from holdfast.vectors.taxonomy import Category

if TYPE_CHECKING:
    from holdfast.vectors.jcs.es6.job import Es6Result
    from holdfast.vectors.jcs.spark.numbers import NumberResult


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
        manifest = generate_rows(
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


def es6(
    lines: Annotated[int, typer.Option("--lines", min=1, max=10**10, help="how many lines of the stream")],
    sdk: Annotated[
        str | None, typer.Option("--sdk", help="also hold this runner's number text against the stream")
    ] = None,
    master: Master = "local[*]",
    format_: OutputFormat = Format.TEXT,
) -> Exit:
    """Make the first N lines of the published ECMAScript number stream and compare their SHA-256.

    Digests are published for 1000 lines and every power of ten up to 100000000. Exit 0 says MATCH, 20 that the kit's
    own number text is wrong, 12 that nothing is published for this number of lines, or that lines did not come. With
    --sdk the numbers also go through that runner, spelled another way; 10 says that it writes some of them otherwise.
    """
    from holdfast.vectors.jcs.es6.job import environment, run
    from holdfast.vectors.jcs.es6.stream import StreamBrokenError, StreamLostError

    numbers: NumberResult | None = None
    # A session for the digest alone starts faster; one that also runs an SDK is like any other.
    with working(master, format_, environment(os.environ) if sdk is None else None) as work:
        from holdfast.vectors.jcs.spark.numbers import verify_numbers

        target = None if sdk is None else target_of(work, sdk, (), DEADLINE_S)
        try:
            result = run(lines, spark=work.spark, progress=work.progress.show)
        except StreamLostError as error:
            stop(Exit.INCOMPLETE, f"not proven: {error}")
        except StreamBrokenError as error:
            stop(Exit.KIT, f"the stream is broken, which is a fault of the kit: {error}")
        if target is not None:
            numbers = verify_numbers(work.spark, lines, target.command, listener=work.progress.show)
    if format_ is Format.JSON:
        print_json(_es6_json(result, sdk, numbers))
    else:
        for line in result.summary():
            out().print(line)
        if numbers is not None:
            _print_numbers(sdk or "", numbers)
    return gravest([Exit(result.comparison.exit_code), *([] if numbers is None else [_exit_of(numbers)])])


def _exit_of(numbers: NumberResult) -> Exit:
    if numbers.counts[Meaning.NO_VERDICT] + numbers.missing == numbers.lines:
        return Exit.ADAPTER
    unknown = [Exit.INCOMPLETE] if numbers.missing or numbers.restarts else []
    return gravest([*unknown, *(exit_of(VERDICT_OF[found]) for found, rows in numbers.counts.items() if rows)])


def _print_numbers(name: str, numbers: NumberResult) -> None:
    console = out()
    counted = ", ".join(f"{rows:,} {found.words}" for found, rows in numbers.counts.items() if rows)
    console.print(f"{name}: {counted or numbers.failure or 'no answer'}")
    if numbers.restarts:
        console.print(
            f"{numbers.restarts:,} processes of the runner failed on no number in particular: nothing is proven",
            style="bold red",
        )
    if numbers.missing:
        console.print(f"{numbers.missing:,} lines have no result: nothing is proven", style="bold red")
    for found in Meaning:
        departure = numbers.first.get(found)
        if departure is not None:
            console.print(
                f"first {found.words}, line {departure.line}: {shown(departure.document)} must become "
                f"{shown(departure.canonical)}, got {departure.said[:200]}; "
                f"holdfast vectors show hex:{departure.document.hex()} --sdk {name}"
            )


def _es6_json(result: Es6Result, sdk: str | None, numbers: NumberResult | None) -> dict[str, Any]:
    said: dict[str, Any] | None = None
    if numbers is not None:
        first = next((numbers.first[found] for found in Meaning if found in numbers.first), None)
        said = {
            "name": sdk,
            "rows": numbers.lines - numbers.missing,
            "restarts": numbers.restarts,
            **{found.value: rows for found, rows in numbers.counts.items() if found.value != "accepted_must_refuse"},
            "first": None
            if first is None
            else f"line {first.line}: {shown(first.document)} became {first.said[:200]}, not {shown(first.canonical)}",
        }
    return {
        "lines": result.lines,
        "bytes": result.octets,
        "sha256": result.sha256,
        "published": result.published,
        "result": result.comparison.value,
        "partitions": result.partitions,
        "seconds": round(result.seconds, 3),
        "sdk": said,
    }


def fingerprints(
    count: Annotated[int, typer.Option("--count", min=1, max=10**12, help="how many requests")] = 1_000_000,
    seed: Seed = 0,
    master: Master = "local[*]",
    format_: OutputFormat = Format.TEXT,
) -> Exit:
    """Show that no two distinct requests share a fingerprint or key, and that no equal ones differ.

    Requests are changed in one field at a time, and spelled in other ways. Exit 0 if every request has one fingerprint
    and every fingerprint one request; 20 if not: the expected keys of the kit would be wrong; 12 if too few rows were
    asked for to show anything.
    """
    with working(master, format_) as work:
        families = check_fingerprints(work.spark, seed, count, listener=work.progress.show)
    status = _status_of(families)
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
        return status
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
    return status


def _status_of(families: Sequence[Family]) -> Exit:
    if any(one.shared or one.differing for one in families):
        return Exit.KIT
    return Exit.OK if all(one.sound for one in families) else Exit.INCOMPLETE
