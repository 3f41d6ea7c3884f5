"""`holdfast vectors verify`: an SDK over millions of documents, what it got wrong, and the evidence."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Column, Table

from holdfast.conformance.cli.console import (
    Format,
    OutputFormat,
    PlainConsole,
    ending,
    in_style,
    number,
    out,
    print_json,
    stop,
)
from holdfast.conformance.cli.console import table_of as console_table
from holdfast.conformance.cli.outermost.older_runs import of_vectors
from holdfast.conformance.cli.places import put_drawn, unusable_drawn
from holdfast.conformance.cli.target import found_here
from holdfast.conformance.cli.vectors.evidence import (
    Asked,
    answer_text,
    conclude,
    identity_of,
    line_of,
    record,
    reproduction,
    shown,
    without_rows,
)
from holdfast.conformance.cli.vectors.spark import Master, Partitions, Work, seed_from, working
from holdfast.conformance.cli.verify.options import must_be_publishable
from holdfast.conformance.cli.verify.summary import print_excused
from holdfast.conformance.run import xfail
from holdfast.conformance.run.documents import CONTRACT, results_of_documents, stream_seed
from holdfast.conformance.run.settings import Caller
from holdfast.conformance.verdict import Exit
from holdfast.reports.earlier import EarlierError
from holdfast.reports.evidence import (
    EvidenceError,
    EvidenceFile,
    Redactor,
    SeedOrigin,
    read_evidence,
    seed_of_nonce,
)
from holdfast.reports.junit import junit_xml
from holdfast.reports.plain import difference
from holdfast.specs import load_contract
from holdfast.specs.typed import json_of
from holdfast.vectors.jcs.clauses import section_of
from holdfast.vectors.jcs.measures import Measure
from holdfast.vectors.jcs.opening import opening_of
from holdfast.vectors.jcs.sdk import Sdk, find, reference
from holdfast.vectors.jcs.spark.judge import Command
from holdfast.vectors.jcs.spark.manifest import read_manifest
from holdfast.vectors.jcs.spark.results import Counterexample, Generated, Result, Source, Stored, Target, VerifyRequest
from holdfast.vectors.jcs.spark.storage import Store, is_local, is_uri
from holdfast.vectors.jcs.spark.tally import Meaning
from holdfast.vectors.jcs.spark.verify import verify as run
from holdfast.vectors.taxonomy import Category, Profile

# A document that a runner works on for longer is hung: the largest has some 200 KiB, the deepest 5,000 levels.
DEADLINE_S = 10.0
START_S = 30.0


def verify(
    context: typer.Context,
    sdk: Annotated[str | None, typer.Option("--sdk", help="a runner that holdfast brings: `vectors sdk list`")] = None,
    count: Annotated[int | None, typer.Option("--count", min=1, max=10**12, help="how many rows are generated")] = None,
    folder: Annotated[str | None, typer.Option("--in", help="a folder that `vectors generate` wrote")] = None,
    seed: Annotated[
        str | None,
        typer.Option(metavar="N|random", help="0 by default; `random` picks one that no runner can be prepared for"),
    ] = None,
    name: Annotated[str | None, typer.Option(help="how reports call the SDK; else its program")] = None,
    category: Annotated[
        list[str] | None,
        typer.Option(metavar="P1…N9", help="only documents of this category; repeat. Never a pass of the whole"),
    ] = None,
    xfail_file: Annotated[
        Path | None, typer.Option("--xfail", help="file of expected failures; ids such as vectors/core/P5")
    ] = None,
    junitxml: Annotated[Path | None, typer.Option(help="JUnit XML goes here, a test for each category")] = None,
    nonce: Annotated[
        str | None, typer.Option(help="known to you alone before; the seed is derived from it, the gate can ask for it")
    ] = None,
    commit: Annotated[str | None, typer.Option(metavar="REV", help="revision that the SDK was built from")] = None,
    profile: Annotated[Profile, typer.Option("--profile", help="which reading the SDK claims")] = Profile.CORE,
    results: Annotated[
        str | None, typer.Option("--out", help=f"mismatches go here; {of_vectors('NAME')} by default")
    ] = None,
    evidence: Annotated[Path | None, typer.Option(help="run.jsonl; beside the mismatches by default")] = None,
    keep: Annotated[
        int, typer.Option("--keep", min=1, help="mismatches to keep of each task, category and finding")
    ] = 1000,
    deadline: Annotated[float, typer.Option(min=0.1, help="seconds without an answer that mean a hang")] = DEADLINE_S,
    master: Master = "local[*]",
    partitions: Partitions = None,
    format_: OutputFormat = Format.TEXT,
) -> Exit:
    """Verify an SDK on every row: `holdfast vectors verify --count 1000000 -- COMMAND…`, or `--sdk NAME`.

    COMMAND reads frames on standard input and answers with frames on standard output (docs/vectors.md). One process
    runs for each task. The committed vectors and the ladder of sizes go first. A crash or a hang costs the SDK only the
    document it happened on. The exit status is 0 only if every single row was answered as expected and every category
    has generated rows.

    Stored rows (--in) carry what is expected of them, and only some of their blocks are made again from the seed to
    see whether they are ours. Where another program wrote them, use --count.

    `holdfast gate RUN --require jcs/vectors` judges the evidence again.
    """
    command = _checked(context.args, sdk, count, folder, results, master)
    if sdk is not None and name is not None:
        stop(Exit.USAGE, "--name: expected `-- COMMAND…` beside it; a runner of --sdk has a name of its own")
    asked, number = _asked(seed, nonce, commit, xfail_file)
    categories = _categories(category or ())
    if junitxml is not None and (problem := unusable_drawn("--junitxml", junitxml)):
        stop(Exit.USAGE, problem)
    name = name or sdk or Path(command[0]).name
    own = results is None or is_uri(results)
    path = evidence or Path(of_vectors(name) if own else str(results)) / "run.jsonl"
    with place_of(path) as place:
        with working(master, format_) as work:
            target = replace(target_of(work, sdk, command, deadline), name=name)
            asked = replace(asked, identity=identity_of(target.command.words))
            where = results or of_vectors(name)
            source: Source
            if folder is not None:
                store = Store(work.spark, folder)
                source = Stored(store, read_manifest(store))
                asked = replace(asked, caller=replace(asked.caller, seed_origin=SeedOrigin.CHOSEN))
                asked = replace(asked, seed=str(source.seed))
            else:
                source = Generated(number, count or 0)
            request = VerifyRequest(
                target=target,
                source=source,
                profile=profile,
                reference=reference_command(work, profile),
                kept=keep,
                partitions=partitions,
                opening=opening_of(source.seed),
                categories=categories,
            )
            result = run(work.spark, request, where, listener=work.progress.show)
        status = recorded(result, place, asked)
    if junitxml is not None:
        with ending(Exit.INCOMPLETE, OSError, EarlierError, before="expected to write the JUnit file, got: "):
            shown = results_of_documents(read_evidence(path), load_contract(CONTRACT), status=status)
            put_drawn(junitxml, junit_xml(shown))
    if format_ is Format.JSON:
        print_json(result_json(result, status, path))
    else:
        print_result(result)
        applied = conclude(result, asked.expected).applied
        print_excused(out(), applied)
        for line in applied.problems:
            out().print(f"xfail: {line}", style="yellow")
        if status is Exit.OK and result.seed == 0:
            out().print("the rows of seed 0 are known beforehand to everybody; to audit a runner, use --seed random")
        out().print(f"evidence: {path}")
    if status is Exit.ADAPTER:
        words = [found.answered.body.decode("utf-8", "replace") for found in result.counterexamples]
        why = result.failure or next(iter(words), "no row came back")
        stop(status, f"the runner failed before any answer: {why}")
    return status


def place_of(path: Path) -> EvidenceFile:
    """Where the evidence goes, locked: should this run not come to its end, an earlier one must not stand for it."""
    with ending(Exit.USAGE, EvidenceError):
        return EvidenceFile(path)


def _asked(seed: str | None, nonce: str | None, commit: str | None, xfail_file: Path | None) -> tuple[Asked, int]:
    """What the caller says of the run, and the seed of its rows."""
    must_be_publishable(nonce, commit, Redactor())
    with ending(Exit.USAGE, xfail.XfailError):
        expected = () if xfail_file is None else xfail.read_xfail(xfail_file)
    if seed == "random" or (seed is None and nonce is not None):
        origin = SeedOrigin.FRESH if nonce is None else SeedOrigin.NONCE
        text = secrets.token_hex(16) if nonce is None else seed_of_nonce(nonce)
    else:
        origin, text = SeedOrigin.CHOSEN, str(seed_from(seed or "0"))
    number = stream_seed(text, origin)
    assert number is not None
    return Asked(Caller(origin, nonce, commit), text, expected), number


def _categories(named: Sequence[str]) -> tuple[Category, ...]:
    """The categories of these names, in their order; all if there are none."""
    known = [category.value for category in Category]
    if unknown := [each for each in named if each not in known]:
        known_text = ", ".join(f"{category.value} ({category.title})" for category in Category)
        stop(Exit.USAGE, f"--category: expected one of {known_text}, got {', '.join(unknown)}")
    return tuple(category for category in Category if not named or category.value in named)


def recorded(result: Result, place: EvidenceFile, asked: Asked | None = None) -> Exit:
    """Write the evidence. A result that cannot be written is not proven."""
    cannot = f"{place.path}: the evidence cannot be written, so nothing is proven: "
    with ending(Exit.INCOMPLETE, EvidenceError, OSError, before=cannot):
        return record(result, place, asked)


def _checked(
    rest: Sequence[str], sdk: str | None, count: int | None, folder: str | None, results: str | None, master: str
) -> tuple[str, ...]:
    if (sdk is None) is not bool(rest):
        stop(Exit.USAGE, "expected either --sdk NAME or `-- COMMAND…`, got " + ("both" if rest else "neither"))
    if (count is None) is (folder is None):
        stop(Exit.USAGE, "expected either --count N or --in DIR, got " + ("neither" if count is None else "both"))
    if results is None and not is_local(master):
        stop(Exit.USAGE, "expected --out on a cluster: its workers do not see the files of this machine")
    return tuple(rest)


def target_of(work: Work, sdk: str | None, command: Sequence[str], deadline: float) -> Target:
    """The runner called `sdk`, or the one behind `command`."""
    if sdk is None:
        # Workers run in folders of their own; those of a cluster on machines of their own.
        words = found_here(command) if is_local(work.spark.sparkContext.master) else tuple(command)
        run = Command(words, deadline, START_S, work.janitor.mark)
        return Target(Path(command[0]).name, "", "", "", run)
    found = runnable(sdk)
    run = Command(tuple(found.command), deadline, START_S, work.janitor.mark)
    return Target(found.name, found.language, found.library, found.version, run)


def runnable(sdk: str) -> Sdk:
    """The runner called `sdk`; the command ends if it cannot run here. Raises UnknownSdkError, ManifestError."""
    found = find(sdk)
    if not found.command:
        stop(Exit.INCOMPLETE, f"not proven: {found.name} cannot run here: {found.missing}")
    return found


def reference_command(work: Work, profile: Profile) -> Command:
    """The reference in `profile`, which says what is expected of documents that no construction made."""
    return Command(tuple(find(reference(profile)).command), DEADLINE_S, START_S, work.janitor.mark)


def result_json(result: Result, status: Exit, path: Path | None) -> dict[str, Any]:
    """What `--format json` prints (vectors-verify.schema.json)."""
    line = json_of(line_of(result))
    del line["type"]
    return {
        **line,
        "categories": [category.value for category in result.categories],
        "exit": int(status),
        "without_rows": [category.value for category in result.without_rows],
        "mismatches": result.mismatches,
        "evidence": None if path is None else str(path),
        "seconds": round(result.seconds, 3),
    }


def table_of(result: Result) -> Table:
    """The rows of each category, by what was found."""
    target = result.target
    about = " ".join(part for part in (target.language, target.library, target.version) if part)
    title = f"{target.name}{f' ({about})' if about else ''}, profile {result.profile.value}"
    # The rows that agree come first.
    rest = {each: "bold red" if each is Meaning.ACCEPTED else "yellow" for each in Meaning if each is not Meaning.AGREE}
    colours = {Meaning.AGREE: "green"} | rest
    counts = (number(finding.words) for finding in colours)
    table = console_table(Column("category", no_wrap=True), "about", number("rows"), *counts, title=title)
    for row in result.own():
        counted = ((row.counts[finding], colour) for finding, colour in colours.items())
        cells = (in_style(str(rows), colour if rows else "dim") for rows, colour in counted)
        table.add_row(row.category.value, row.category.title, str(row.rows), *cells)
    return table


def print_result(result: Result) -> None:
    """The table, the counterexamples, the worst first."""
    console = out()
    console.print_table(table_of(result))
    for found in result.counterexamples:
        print_counterexample(console, result, found)
    others = [profile for profile in Profile if profile is not result.profile]
    for profile in others:
        rows = [row for row in result.rows if row.profile is profile]
        agreeing = sum(row.counts[Meaning.AGREE] for row in rows)
        console.print(f"judged by {profile.value}, {agreeing} of {result.asked} rows would agree")
    if left_out := [category.value for category in Category if category not in result.categories]:
        console.print(
            f"not asked: {', '.join(left_out)}; the run is narrowed and no pass of the whole", style="bold red"
        )
    for words in result.unaccounted:
        console.print(f"{words}: nothing is proven", style="bold red")
    for words in without_rows(result.without_rows):
        console.print(words, style="bold red")
    if result.opened is not None:
        console.print(
            f"{result.opened.count} of the rows are the opening: committed vectors and the ladder of sizes, "
            f"root {result.opened.digest or 'none'}"
        )
        console.print(f"right up to {_greatest(result)}")
    console.print(
        f"{result.total(Meaning.AGREE)} of {result.asked} rows agree; stream {result.stream}, seed {result.seed}, "
        f"root {result.root or 'none'}; {result.seconds:.1f} s"
    )
    if result.total(Meaning.AGREE) != result.asked:
        console.print(f"mismatches: {result.mismatches}")


def _greatest(result: Result) -> str:
    """The greatest of each measure over all categories."""
    every = result.reached.values()
    most = {measure: max((line.get(measure, 0) for line in every), default=0) for measure in Measure}
    return ", ".join(f"{value:,} {measure.words}" for measure, value in most.items() if value) or "nothing"


def print_counterexample(console: PlainConsole, result: Result, found: Counterexample) -> None:
    """One cell: what was expected, what came, and the command that shows it again."""
    shrunk = ", shrunk" if found.shrunk else ""
    console.print(
        f"{found.category.value} {found.finding.words}: {found.rows} rows, {found.clause} "
        f"({section_of(found.clause)}), the smallest{shrunk}:"
    )
    if found.name is not None:
        console.print(f"    row       {found.name}")
    console.print(f"    document  {shown(found.document)}")
    console.print(f"    expected  {answer_text(found.expected)}")
    console.print(f"    answered  {answer_text(found.answered)}")
    if all(one.status.value == "canonical" for one in (found.expected, found.answered)):
        console.print(f"    parts     {difference(found.expected.body, found.answered.body)}")
    console.print(f"    again     {reproduction(result, found)}")
