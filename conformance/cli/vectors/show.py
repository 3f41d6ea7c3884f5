"""`holdfast vectors show` and `export`: documents, and what each profile expects of them. They need no Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.conformance.cli.console import Format, OutputFormat, ending, out, print_json, stop
from holdfast.conformance.cli.vectors.evidence import answer_json
from holdfast.conformance.cli.vectors.sdk import looked_up
from holdfast.conformance.cli.vectors.spark import Seed
from holdfast.conformance.cli.vectors.verify import runnable
from holdfast.conformance.run.documents import VERDICT_OF
from holdfast.conformance.verdict import Exit, Verdict, exit_of, gravest
from holdfast.reports.plain import bytes_as_text
from holdfast.servers.janitor import Janitor
from holdfast.specs import SpecError
from holdfast.vectors.jcs.construct import Row, row
from holdfast.vectors.jcs.export import MOST
from holdfast.vectors.jcs.export import export as export_rows
from holdfast.vectors.jcs.frames import Answered, StartError, Status, run
from holdfast.vectors.jcs.frames.process import scrubbed_environment
from holdfast.vectors.jcs.ladder import rung
from holdfast.vectors.jcs.opening import may_be_too_deep
from holdfast.vectors.jcs.sdk import reference
from holdfast.vectors.jcs.spark.tally import Meaning, disagreement
from holdfast.vectors.record import Canonical, load
from holdfast.vectors.taxonomy import Category, Profile

_ROW = re.compile(r"([0-9]{1,19}):([0-9]{1,19})\Z")
_RUNG = re.compile(r"ladder:([0-9]{1,19}):(.+)\Z")
_HEX = re.compile(r"hex:((?:[0-9a-fA-F]{2})*)\Z")
_DEADLINE_S = 10.0
# A document longer than this is cut on a terminal; `--format json` has it whole.
_MAX_SHOWN = 4096


@dataclass(frozen=True, slots=True)
class Shown:
    """A document and what is expected of it; `category` is None for a document of the user's own.

    `note` says what is wrong with it, `twin` is the document without that.
    """

    name: str
    document: bytes
    category: str | None
    expected: dict[Profile, Answered]
    note: str = ""
    twin: bytes | None = None


def show(
    context: typer.Context,
    which: Annotated[
        str,
        typer.Argument(
            metavar="SEED:INDEX | ID | ladder:SEED:NAME | hex:BYTES",
            help="a generated row, a committed vector, a rung of the ladder of sizes, bytes",
        ),
    ],
    sdk: Annotated[str | None, typer.Option("--sdk", help="ask this runner as well")] = None,
    profile: Annotated[
        Profile, typer.Option("--profile", help="hold the SDK's answer against this one")
    ] = Profile.CORE,
    format_: OutputFormat = Format.TEXT,
) -> Exit:
    """Show one document, what each profile expects of it, and with `--sdk NAME` or `-- COMMAND…` what an SDK answers.

    A generated row is rebuilt alone from its seed and index. For bytes of your own the reference says what is expected.
    With an SDK the exit status is that of `vectors verify` for this one document.
    """
    command = tuple(context.args)
    if sdk is not None and command:
        stop(Exit.USAGE, "expected --sdk NAME or `-- COMMAND…`, got both")
    with looked_up(), Janitor() as janitor:
        found = _find(which, janitor)
        failed: list[str] = []
        if sdk is not None:
            command = tuple(runnable(sdk).command)
        answered = _ask(command, found.document, janitor, failed.append) if command else None
    finding = None if answered is None else _finding(found, profile, answered)
    if finding == "agree" and failed:
        # A runner that answers and fails has not passed.

        answered, finding = Answered(Status.CRASHED, failed[0].encode()), "no_verdict"
    if format_ is Format.JSON:
        print_json(_json(found, answered, finding, profile))
    else:
        _print(found, answered, finding, profile)
        for what in failed if finding != "no_verdict" else ():
            out().print(f"and a process of the runner failed: {what}", style="bold red")
    verdict = Verdict.CONFORMS if finding is None else VERDICT_OF[finding]
    return gravest([exit_of(verdict), *([Exit.INCOMPLETE] if failed else [])])


def export(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="new folder")],
    count: Annotated[int, typer.Option("--count", min=0, max=MOST, help="how many generated rows")] = 10_000,
    seed: Seed = 0,
) -> None:
    """Write committed vectors, the ladder of sizes and generated rows as JSON lines, for tests in any language.

    With them come a schema, the versions, SHA-256 digests and the licence. It needs no Spark.
    """
    with ending(Exit.USAGE, ValueError, OSError, before="expected to write a new folder, got: "):
        counts = export_rows(folder, count=count, seed=seed)
    for name, rows in counts.items():
        out().print(f"{folder / name}: {rows} documents")
    out().print(f"`cd {folder} && sha256sum -c SHA256SUMS` checks them; schema.json says what a line holds")


def _find(which: str, janitor: Janitor) -> Shown:
    if place := _ROW.match(which):
        return _made(f"{int(place[1])}:{int(place[2])}", row, place[1], int(place[2]))
    if step := _RUNG.match(which):
        return _made(f"ladder:{int(step[1])}:{step[2]}", rung, step[1], step[2])
    given = _HEX.match(which)
    if given is not None:
        document = bytes.fromhex(given[1])
        commands = {profile: runnable(reference(profile)).command for profile in Profile}
        expected = {profile: _ask(words, document, janitor) for profile, words in commands.items()}
        return Shown(which, document, None, expected)

    try:
        record = next((one for one in load() if one.id == which), None)
    except SpecError as error:
        stop(Exit.KIT, str(error))
    if record is None:
        stop(
            Exit.USAGE,
            f"expected SEED:INDEX, ladder:SEED:NAME, hex:BYTES or the id of a committed vector, got {which!r}",
        )
    expected = {
        profile: Answered(Status.CANONICAL, answer.body)
        if isinstance(answer, Canonical)
        else Answered(Status.REFUSED, answer.reason.encode())
        for profile, answer in record.expected.items()
    }
    twin = next((one.document for one in load() if one.id == record.twin), None)
    return Shown(record.id, record.document, record.category.value, expected, note=record.note, twin=twin)


def _made(which: str, make: Callable[..., Row], seed: str, which_one: int | str) -> Shown:
    try:
        with ending(Exit.USAGE, ValueError):
            made = make(int(seed), which_one)
    except KeyError:
        said = f"expected the name of a rung of the ladder, got {which_one!r}; `vectors verify` prints them"
        stop(Exit.USAGE, said)
    refused = Answered(Status.REFUSED, (made.reason or "").encode())
    canonical = Answered(Status.CANONICAL, made.canonical or b"")
    expected = {profile: refused if made.refused_by & profile.bit else canonical for profile in Profile}
    return Shown(which, made.document, made.category.value, expected, note=made.note, twin=made.twin)


def _ask(
    words: Sequence[str], document: bytes, janitor: Janitor, unexplained: Callable[[str], None] = lambda _: None
) -> Answered:
    environment = {**scrubbed_environment(), **janitor.mark}
    try:
        answers = run(words, [document], deadline=_DEADLINE_S, env=environment, unexplained=unexplained)
        return next(iter(list(answers)))
    except StartError as error:
        stop(Exit.ADAPTER, str(error))


def _finding(found: Shown, profile: Profile, answered: Answered) -> str:
    finding = disagreement(found.expected[profile], answered)
    if finding is Meaning.OVER_REFUSAL and may_be_too_deep(found.document):
        return Meaning.AGREE.value
    return finding.value


def _json(found: Shown, answered: Answered | None, finding: str | None, profile: Profile) -> dict[str, Any]:
    return {
        "name": found.name,
        "category": found.category,
        "document": found.document.hex(),
        "note": found.note,
        "twin": None if found.twin is None else found.twin.hex(),
        "expected": {one.value: answer_json(answer) for one, answer in found.expected.items()},
        "profile": profile.value,
        "answered": None if answered is None else answer_json(answered),
        "finding": finding,
    }


def _print(found: Shown, answered: Answered | None, finding: str | None, profile: Profile) -> None:
    console = out()
    about = "" if found.category is None else f": {found.category}, {Category(found.category).title}"
    console.print(f"{found.name[:200]}{about}")
    lines = [("document", _text(found.document)), ("", f"hex {found.document[:_MAX_SHOWN].hex()}")]
    if found.note:
        lines.append(("note", found.note))
    if found.twin is not None:
        lines.append(("without it", _text(found.twin)))
    lines += [(one.value, _answer(answer)) for one, answer in found.expected.items()]
    if answered is not None:
        lines.append(("answered", _answer(answered)))
    for label, text in lines:
        console.print(f"  {label:<14} {text}")
    if finding is not None:
        words = finding.replace("_", " ")
        console.print(f"{words} ({profile.value})", style="green" if finding == "agree" else "bold red")


def _text(data: bytes) -> str:
    return bytes_as_text(data, most=_MAX_SHOWN)


def _answer(answer: Answered) -> str:
    if answer.status.value == "canonical":
        return _text(answer.body)
    return f"{answer.status.value}: {_text(answer.body)}"
