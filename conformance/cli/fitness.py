"""`holdfast fitness DSN`: is this live surface fit to hold consumed keys?"""

from __future__ import annotations

import re
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from holdfast.conformance.cli.console import (
    Format,
    OutputFormat,
    PlainConsole,
    ending,
    err,
    in_style,
    out,
    print_json,
    stop,
    table_of,
)
from holdfast.conformance.cli.group import with_options
from holdfast.conformance.cli.places import unusable_file
from holdfast.conformance.fitness import view
from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.deadline import TIMEOUT_S
from holdfast.conformance.fitness.errors import FitnessError
from holdfast.conformance.fitness.model import FitnessJudgement, Reason, Standing, Status
from holdfast.conformance.fitness.policy import Policy, PolicyError, read_policy
from holdfast.conformance.fitness.proof import ProofError, proof_json, write
from holdfast.conformance.fitness.sqlite.live import path_of
from holdfast.conformance.run.kit import installed_kit
from holdfast.conformance.verdict import Exit
from holdfast.reports.plain import cut
from holdfast.servers.janitor import JanitorLostError

# The last statement decides, and the one before it mostly names what it inspects. The proof has all of them.
_TRIED_SHOWN = 2
_LONGEST_SHOWN = 400
_COLOUR = {Standing.PROVEN: "green", Standing.REFUTED: "bold red", Standing.UNPROVEN: "yellow"}
# A text for a command line, not longer than a nonce needs.
_CHALLENGE = re.compile(r"[ -~]{1,256}")
# The suffixes of SQLite's files beside a database, and the first bytes of a database.
_BESIDE = ("-wal", "-shm", "-journal")
_DATABASE = b"SQLite format 3\0"


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

    @property
    def outputs(self) -> Mapping[str, Path]:
        """The files to write, by option."""
        named = {"--json": self.json_, "--html": self.html}
        return {option: path for option, path in named.items() if path is not None}


@with_options(Options)
def fitness(options: Options) -> Exit:
    """Prove a live table fit to hold consumed keys, or refuse it. Exit 0 only if all of (a) to (i) are proven.

    The database is only read. What must be tried is tried on a copy of its schema on a scratch server. Relations that
    are not named are searched for. With --probe-live some of it is tried on the live tables too, by a session that logs
    in as the writer (--live-dsn), and rolled back: that takes locks, fires triggers and moves sequences, and can hold
    up real requests meanwhile.

    Give the address of the server itself, not of a connection pooler such as PgBouncer: nothing is looked at through
    one.
    """
    # The drivers of databases may not be installed, and the help needs none.
    from holdfast.conformance.fitness.target import scrubbed

    dsn = options.dsn
    try:
        return assess_and_print(options)
    except KeyboardInterrupt:
        stop(Exit.INCOMPLETE, "interrupted; nothing was proven")
    except (typer.Exit, JanitorLostError, MemoryError):
        raise
    except Exception:
        # As `main` does for every command, but a traceback may hold the DSN.
        err().print_lines(scrubbed(scrubbed(traceback.format_exc(), dsn), options.live_dsn or dsn).splitlines())
        stop(Exit.KIT, "this is a fault of the kit itself, please report it")


def assess_and_print(options: Options) -> Exit:
    """Assess and print the result. Ends the command if the assessment is impossible."""
    from holdfast.conformance.fitness.gather import Names, assess

    if options.context.args:
        # Not shown: with wrong quotes this may be a half of a DSN.
        stop(Exit.USAGE, f"expected one DSN, got {len(options.context.args)} words more; put the DSN in quotes")
    _must_hold_no_secret(options)
    for option, path in options.outputs.items():
        if why := unusable_file(path):
            stop(Exit.USAGE, f"{option}: {why}; give a file in a folder that you may write to")
    _must_be_ours(options)
    if options.challenge is not None and not _CHALLENGE.fullmatch(options.challenge):
        stop(Exit.USAGE, "--challenge: expected 1 to 256 printable ASCII characters, as `openssl rand -hex 16` makes")
    with ending(Exit.USAGE, PolicyError, before="--policy: "):
        policy = Policy() if options.policy is None else read_policy(options.policy)
    names = Names(options.effect, options.nonce, options.audit, options.writer)
    if options.live_dsn is not None and not options.probe_live:
        stop(Exit.USAGE, "--live-dsn: it is for --probe-live, which is not there; ask for both or for neither")
    live = (options.live_dsn or options.dsn) if options.probe_live else None
    if live is not None:
        err().print(f"the live tables will be probed: {view.TO_COME}")
    # The moment before the first inspection, so that a proof is never younger than its evidence.
    made = datetime.now(UTC)
    with ending(Exit.USAGE, FitnessError, ProofError):
        assessment = assess(options.dsn, names, policy, live=live, timeout=options.timeout)
        document = proof_json(assessment, kit=installed_kit(), made=made, challenge=options.challenge)
        if options.json_ is not None:
            write(document, options.json_)
    if options.html is not None:
        _write_page(options.html, view.page(assessment, document))
    status = exit_of(assessment.judgement)
    if options.format_ is Format.JSON:
        print_json(document)
        return status
    _print(out(), assessment, document, status)
    for what, file in (("proof", options.json_), ("page", options.html)):
        if file is not None:
            out().print(f"{what}:{' ' * (7 - len(what))}{file}")
    return status


def _must_hold_no_secret(options: Options) -> None:
    """Names are shown in errors and stand in the proof: a DSN that slipped into one would be, too."""
    from holdfast.conformance.fitness.target import holds_secret

    files = {**({} if options.policy is None else {"--policy": options.policy}), **options.outputs}
    named = {"--effect": options.effect, "--nonce": options.nonce, "--audit": options.audit, "--writer": options.writer}
    given = {**named, "--challenge": options.challenge, **{option: str(path) for option, path in files.items()}}
    if path_of(options.dsn) is not None:
        given["DSN"] = options.dsn
    for option, word in given.items():
        if word is not None and holds_secret(word):
            expected = "the path of a file" if option in files or option == "DSN" else "a name"
            stop(
                Exit.USAGE,
                f"{option}: expected {expected}, got something that may hold a password, so it is not shown; was it "
                "meant for another place? A DSN stands first, in quotes and without an option",
            )


def _must_be_ours(options: Options) -> None:
    """Check that the output does not overwrite the inspected files or the policy."""
    for option, path in options.outputs.items():
        if any(path.name.endswith(each) for each in _BESIDE):
            stop(Exit.USAGE, f"{option}: {path} is what SQLite calls a file beside a database; choose another name")
        if path.is_file() and _begins(path) == _DATABASE:
            stop(Exit.USAGE, f"{option}: {path} is a SQLite database, which would be lost; choose another name")
        if options.policy is not None and path.resolve() == options.policy.resolve():
            stop(Exit.USAGE, f"{option}: {path} is the policy, which would be lost; choose another name")
    if len({path.resolve() for path in options.outputs.values()}) < len(options.outputs):
        stop(Exit.USAGE, "--json and --html: expected two files, got one name for both")


def _begins(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(len(_DATABASE))
    except OSError:
        # A file that cannot be read is not overwritten by mistake: the write itself will report the obstacle.
        return b""


def exit_of(judgement: FitnessJudgement) -> Exit:
    """0 if the surface is fit, 10 if any criterion is refuted, 12 if some are only unproven or there is no surface."""
    if judgement.status is Status.FIT:
        return Exit.OK
    refuted = any(finding.standing is Standing.REFUTED for finding in judgement.findings)
    return Exit.FAIL_OPEN if refuted else Exit.INCOMPLETE


def _write_page(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        stop(Exit.USAGE, f"--html: {path} cannot be written: {error.strerror}; name another file")


def _print(console: PlainConsole, assessment: Assessment, document: Mapping[str, Any], status: Exit) -> None:
    judgement = assessment.judgement
    fit = judgement.status is Status.FIT
    console.print(judgement.status.value, style="bold green" if fit else "bold red")
    if assessment.surface is not None:
        surface = assessment.surface
        parts = ", ".join(f"{part.value} {relation}" for part, relation in surface.parts.items())
        console.print(f"surface {surface.name}: {parts}, writer {surface.writer or 'unknown'}")
    console.print(f"in {assessment.target}")
    if assessment.server is not None:
        console.print(f"server: {assessment.server.name}")
    table = table_of("", "what must be proven", "standing", "why not")
    reasons = view.reasons(assessment)
    for finding in judgement.findings:
        codes = ", ".join(dict.fromkeys(reason.code for reason in finding.reasons))
        standing = in_style(finding.standing.value, _COLOUR[finding.standing])
        title = view.TITLES[finding.criterion]
        table.add_row(f"({finding.criterion.value})", title, standing, codes)
    console.print_table(table)
    # Without a surface the reason of each criterion is the same one.
    for finding in judgement.findings[:1] if assessment.surface is None else judgement.findings:
        for reason, text in reasons[finding.criterion]:
            _print_reason(console, assessment, reason, text)
    for note in view.notes(assessment):
        console.print(f"note: {note}", style="dim")
    if rows := view.candidates(assessment):
        table = table_of("relation", "as", "why it is not one", title="what was looked at")
        for name, part, why in rows:
            table.add_row(name, part, why)
        console.print_table(table)
    if document["digest"] is not None:
        console.print(f"digest: {document['digest']}")
    console.print(f"exit:   {int(status)}")


def _print_reason(console: PlainConsole, assessment: Assessment, reason: Reason, text: str) -> None:
    console.print(in_style(f"({reason.criterion.value}) {reason.code}", _COLOUR[reason.standing]), f": {text}", sep="")
    for row in view.rows(reason.rows):
        console.print(f"      catalogue  {row}")
    for probe in view.probes(assessment, reason.probes):
        tried = list(view.tried(probe))
        if probe.failed:
            console.print(f"      probe      {probe.name}: could not be tried: {probe.failed}")
        elif tried:
            console.print(f"      probe      {probe.name} ({probe.evidence.value})")
            for who, sql, answer in tried[-_TRIED_SHOWN:]:
                console.print(f"                 {who}: {cut(sql, _LONGEST_SHOWN)}")
                console.print(f"                 -> {cut(answer, _LONGEST_SHOWN)}")
