"""`holdfast vectors es6`: the published number stream, made again, and what an SDK makes of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.conformance.cli.console import Format, OutputFormat, out, print_json, stop
from holdfast.conformance.cli.vectors.evidence import shown, verdict_of
from holdfast.conformance.cli.vectors.spark import Master, working
from holdfast.conformance.cli.vectors.verify import DEADLINE_S, target_of
from holdfast.conformance.verdict import Exit, exit_of, gravest
from holdfast.vectors.jcs.spark.tally import Meaning

if TYPE_CHECKING:
    from holdfast.vectors.jcs.es6.job import Es6Result
    from holdfast.vectors.jcs.spark.numbers import NumberResult


def es6(
    lines: Annotated[int, typer.Option("--lines", min=1, max=10**10, help="how many lines of the stream")],
    sdk: Annotated[
        str | None, typer.Option("--sdk", help="also hold this runner's number text against the stream")
    ] = None,
    master: Master = "local[*]",
    format_: OutputFormat = Format.TEXT,
) -> None:
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
        print_json(_json(result, sdk, numbers))
    else:
        for line in result.summary():
            out().print(line)
        if numbers is not None:
            _print(sdk or "", numbers)
    raise typer.Exit(int(gravest([Exit(result.comparison.exit_code), *([] if numbers is None else [_exit(numbers)])])))


def _exit(numbers: NumberResult) -> Exit:
    if numbers.counts[Meaning.NO_VERDICT] + numbers.missing == numbers.lines:
        return Exit.ADAPTER
    unknown = [Exit.INCOMPLETE] if numbers.missing or numbers.restarts else []
    return gravest([*unknown, *(exit_of(verdict_of(found)) for found, rows in numbers.counts.items() if rows)])


def _print(name: str, numbers: NumberResult) -> None:
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


def _json(result: Es6Result, sdk: str | None, numbers: NumberResult | None) -> dict[str, Any]:
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
