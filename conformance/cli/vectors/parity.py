"""`holdfast vectors parity`: all SDKs found on this machine, one matrix, for people and for programs."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table
from rich.text import Text

from holdfast.conformance.cli.console import Format, OutputFormat, ending, in_style, out, print_json, stop
from holdfast.conformance.cli.places import put
from holdfast.conformance.cli.vectors.evidence import (
    answer_text,
    parity_json,
    reproduction,
    shown,
    without_rows,
)
from holdfast.conformance.cli.vectors.sdk import looked_up
from holdfast.conformance.cli.vectors.spark import Master, Partitions, Seed, Work, working
from holdfast.conformance.cli.vectors.verify import (
    DEADLINE_S,
    place_of,
    print_counterexample,
    recorded,
    reference_command,
    target_of,
)
from holdfast.conformance.verdict import Exit
from holdfast.reports.evidence import EvidenceFile
from holdfast.vectors.jcs import sdk as runners
from holdfast.vectors.jcs.opening import opening_of
from holdfast.vectors.jcs.spark.java import NotAvailableError, find_java
from holdfast.vectors.jcs.spark.parity import LETTERS, NotFound, Parity, gravest, page, percent, profile_of
from holdfast.vectors.jcs.spark.results import Counterexample, Generated, Result, VerifyRequest
from holdfast.vectors.jcs.spark.storage import is_local
from holdfast.vectors.jcs.spark.tally import Meaning
from holdfast.vectors.jcs.spark.verify import verify
from holdfast.vectors.taxonomy import Category

_OUTPUT = "holdfast-out/parity"
_PAGE, _DATA = "parity.html", "parity.json"


def parity(
    count: Annotated[int, typer.Option("--count", min=1, max=10**12, help="how many documents")] = 1_000_000,
    seed: Seed = 0,
    sdk: Annotated[list[str] | None, typer.Option("--sdk", help="only these runners; repeat. All by default")] = None,
    build: Annotated[bool, typer.Option("--build", help="build what is not built yet first")] = False,
    results: Annotated[str, typer.Option("--out", help="mismatches and the pages go here")] = _OUTPUT,
    counterexamples: Annotated[
        bool, typer.Option("--counterexamples/--matrix-only", help="print a document for each departure")
    ] = True,
    deadline: Annotated[float, typer.Option(min=0.1, help="seconds without an answer that mean a hang")] = DEADLINE_S,
    master: Master = "local[*]",
    partitions: Partitions = None,
    format_: OutputFormat = Format.TEXT,
) -> Exit:
    """Compare all canonicalisers found on this machine over the same generated documents.

    Ends with the matrix, and writes it as parity.html and parity.json, with one run.jsonl for each runner. Libraries
    may depart, that is what is shown; the exit status says whether the comparison stands: 0 if the reference is right
    on every row and every row of every runner is accounted for, 12 if something is missing (rows, a category without
    any, an explanation why a runner's process failed), 20 if the reference is not right.
    """
    if not is_local(master):
        stop(Exit.USAGE, "parity compares the runners of this machine: use --master local[N]")
    try:
        find_java()
    except NotAvailableError as error:
        stop(Exit.INCOMPLETE, f"not proven: {error}")
    with looked_up():
        wanted = _wanted(sdk, build)
    folder = Path(results)
    with contextlib.ExitStack() as stack:
        places = _cleared(folder, wanted[0], stack)
        work = stack.enter_context(working(master, format_))
        found = _run(work, wanted, count, seed, deadline, places, partitions)
    status = _status(found, asked=sdk or ())
    document = parity_json(found, status)

    _written(folder / _PAGE, page(found, describe))
    _written(folder / _DATA, json.dumps(document, ensure_ascii=False) + "\n")
    if format_ is Format.JSON:
        print_json(document)
    else:
        if counterexamples:
            _print_counterexamples(found)
        _print_matrix(found)
        out().print(f"{folder / _PAGE}, {folder / _DATA}")
    return status


def _cleared(folder: Path, names: Collection[str], stack: contextlib.ExitStack) -> dict[str, EvidenceFile]:
    """No result of an earlier run stands in `folder`: should this one not come to its end, it must not count for it.

    The places of the evidence by runner; `stack` lets go of them.
    """
    places = {name: stack.enter_context(place_of(folder / name / "run.jsonl")) for name in names}
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in (_PAGE, _DATA):
            (folder / name).unlink(missing_ok=True)
    except OSError as error:
        stop(Exit.USAGE, f"{folder}: expected a folder that can be written, got: {error}; name another --out")
    return places


def _written(path: Path, text: str) -> None:
    with ending(Exit.INCOMPLETE, OSError, before=f"{path}: the result cannot be written, so nothing is proven: "):
        put(path, text.encode())


def _wanted(sdk: list[str] | None, build: bool) -> tuple[list[str], list[NotFound]]:
    """The runners that can run, the references first, and those that cannot."""
    usable: list[str] = []
    missing: list[NotFound] = []
    for name in dict.fromkeys([*(n for n in runners.names() if n.startswith("reference")), *(sdk or runners.names())]):
        try:
            one = runners.find(name)
            if not one.command and build:
                one = runners.build(name)
        except runners.UnknownSdkError as error:
            stop(Exit.USAGE, str(error))
        except runners.BuildError as error:
            missing.append(NotFound(name, one.language, one.library, str(error)))
            continue
        if one.command:
            usable.append(name)
        else:
            missing.append(NotFound(name, one.language, one.library, one.missing))
    return usable, missing


def _run(
    work: Work,
    wanted: tuple[list[str], list[NotFound]],
    count: int,
    seed: int,
    deadline: float,
    places: Mapping[str, EvidenceFile],
    partitions: int | None,
) -> Parity:
    found = []
    opening = opening_of(seed)
    for name in wanted[0]:
        profile = profile_of(name)
        request = VerifyRequest(
            target=target_of(work, name, (), deadline),
            source=Generated(seed, count),
            profile=profile,
            reference=reference_command(work, profile),
            partitions=partitions,
            opening=opening,
        )
        place = places[name]
        result = verify(work.spark, request, str(place.path.parent), listener=work.progress.show)
        recorded(result, place)
        work.progress.say(f"{name}: {result.total(Meaning.AGREE)} of {result.asked} agree, {result.seconds:.1f} s")
        found.append(result)
    return Parity(tuple(found), tuple(wanted[1]))


def _status(found: Parity, asked: Collection[str]) -> Exit:
    """Whether the comparison stands; a runner that was `asked` for by name has to be in it."""
    if found.faults:
        return Exit.KIT
    if any(one.name in asked for one in found.not_found):
        return Exit.INCOMPLETE
    complete = all(result.answered for result in found.results) and not found.unproven and not found.without_rows
    return Exit.OK if complete and found.references and found.libraries else Exit.INCOMPLETE


def describe(result: Result, found: Counterexample) -> dict[str, Any]:
    """A counterexample as text for the page."""
    return {
        "document": shown(found.document),
        "expected": answer_text(found.expected),
        "answered": answer_text(found.answered),
        "again": reproduction(result, found),
    }


def _print_counterexamples(found: Parity) -> None:
    console = out()
    for result in found.results:
        if result.counterexamples:
            console.print(in_style(result.target.name, "bold"), f"({result.target.library})")
            for one in result.counterexamples:
                print_counterexample(console, result, one)


def _print_matrix(found: Parity) -> None:
    """Categories down, SDKs across by number: so that it fits a terminal, and a log."""
    console = out()
    table = Table(title="rows that do not agree", title_justify="left", show_edge=False, pad_edge=False, box=None)
    table.add_column("", no_wrap=True)
    for number in range(1, len(found.results) + 1):
        table.add_column(str(number), justify="right", no_wrap=True)
    for category in Category:
        table.add_row(category.value, *(_square(result, category) for result in found.results))
    console.print_table(table)
    words = ", ".join(f"{LETTERS[finding] or '·'} {finding.words}" for finding in Meaning)
    console.print(f"{words}, ? not proven; per cent of the category's rows")
    names = Table(show_edge=False, pad_edge=False, box=None)
    for column in ("", "SDK", "library", "version", "judged by"):
        names.add_column(column, overflow="fold")
    names.add_column("rows that agree", justify="right")
    for number, result in enumerate(found.results, 1):
        target = result.target
        about = [target.name, f"{target.library} ({target.language})", target.version, result.profile.value]
        names.add_row(str(number), *about, f"{result.total(Meaning.AGREE)} of {result.asked}")
    console.print_table(names)
    for missing in found.not_found:
        console.print(f"not proven: {missing.name} ({missing.language}): {missing.why}", style="yellow")
    for result in found.unproven:
        why = "; ".join(result.unaccounted)
        console.print(f"not proven: {result.target.name} ({result.target.language}): {why}", style="yellow")
    for line in without_rows(found.without_rows):
        console.print(line, style="yellow")
    for fault in found.faults:
        console.print(f"the reference is not right: {fault}", style="bold red")
    first = found.results[0]
    console.print(
        f"{len(found.departing)} of {len(found.libraries)} library pipelines depart; the reference is right on "
        f"{'every row' if not found.faults else 'not every row'}; stream {first.stream}, seed {first.seed}, "
        f"{first.count} rows, root {first.root}"
    )


def _square(result: Result, category: Category) -> Text:
    """One cell: the gravest finding's letter and the share of the rows that depart."""
    row = result.row(category)
    worst = gravest(result, row)
    if worst is None:
        return in_style("?", "magenta")
    if worst is Meaning.AGREE:
        return in_style("·", "green")
    return in_style(f"{LETTERS[worst]}{percent(row)}", "bold red" if worst is Meaning.ACCEPTED else "yellow")
