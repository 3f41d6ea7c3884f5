"""What the command line of `holdfast verify` asks for."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import typer

from holdfast.conformance.cli.console import Format, OutputFormat, stop
from holdfast.conformance.cli.outermost.older_runs import EVIDENCE
from holdfast.conformance.cli.places import unusable
from holdfast.conformance.cli.target import Service, TargetOptions, known_contracts
from holdfast.conformance.run.plan import ALL_FORMS, Form, PlannedCase
from holdfast.conformance.run.settings import FAULT_SECONDS, Caller, RunSettings
from holdfast.conformance.verdict import Exit
from holdfast.reports.evidence import Redactor, SeedOrigin, seed_of_nonce
from holdfast.servers.processors import processors

# What --no-faults and --quick leave of a run, and how the evidence calls that.
WITHOUT_FAULTS, QUICK = frozenset({Form.SCRIPT, Form.SUITE}), frozenset({Form.SCRIPT})
_NARROWED = {ALL_FORMS: None, WITHOUT_FAULTS: "not faults", QUICK: "scripts alone"}

# One more process costs a start and a launcher, which is worth it for this number of cases.
CASES_EACH = 40
MOST = 64
DEFAULT_EVIDENCE = Path(EVIDENCE)
# Beside the evidence: states of a disk that broke a promise, as tar files with their recordings.
_STATES = "faults"
# What a caller may say of a run: enough for any revision, and for any random number in any spelling.
_MAX_SEED, _MAX_NONCE, _MAX_COMMIT = 128, 128, 64


@dataclass(frozen=True, kw_only=True)
class Options(TargetOptions):
    """What the command line asks for."""

    contract: Annotated[list[str] | None, typer.Option("--contract", help="only this contract; repeat for more")] = None
    expression: Annotated[str | None, typer.Option("-k", help="only cases whose id or clause fits (pytest -k)")] = None
    clause: Annotated[list[str] | None, typer.Option("--clause", help="only cases of this clause; repeat for more")] = (
        None
    )
    case: Annotated[
        list[str] | None,
        typer.Option("--case", help="only this case; repeat for more"),
    ] = None
    faults: Annotated[
        bool,
        typer.Option(
            "--faults/--no-faults",
            help="let faults strike; without, the gate will not take the run",
        ),
    ] = True
    quick: Annotated[
        bool,
        typer.Option("--quick", help="only the scripted cases, within seconds; the gate will not take the run"),
    ] = False
    evidence: Annotated[Path, typer.Option(help="where the evidence goes")] = DEFAULT_EVIDENCE
    xfail_file: Annotated[Path | None, typer.Option("--xfail", help="file of expected failures")] = None
    seed: Annotated[
        str | None, typer.Option(help="fixes every random suffix; the gate takes such a run only with --allow-seed")
    ] = None
    nonce: Annotated[
        str | None, typer.Option(help="known to you alone before; the seed is derived from it, the gate can ask for it")
    ] = None
    commit: Annotated[str | None, typer.Option(metavar="REV", help="revision that the adapter was built from")] = None
    adapter_file: Annotated[
        list[Path] | None,
        typer.Option(metavar="FILE", help="file or folder that is part of the adapter; its digest counts; repeat"),
    ] = None
    jobs: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, help="processes that run cases; by default one more than there are processors"),
    ] = None
    exit_first: Annotated[bool, typer.Option("-x", help="stop at the first failure")] = False
    fault_seconds: Annotated[
        float,
        typer.Option(min=0, max=1_000_000, help="time for each layer of faults; its floor is tried in any case"),
    ] = FAULT_SECONDS
    thorough: Annotated[
        float, typer.Option(min=1, max=1000, metavar="FACTOR", help="factor on floors of faults, and histories")
    ] = 1.0
    workdir: Annotated[Path | None, typer.Option(help="parent of the workdirs; must lie on a disk")] = None
    service: Service = None
    junitxml: Annotated[Path | None, typer.Option(help="JUnit XML goes here")] = None
    html: Annotated[Path | None, typer.Option(help="a page for people goes here (`holdfast report html`)")] = None
    alluredir: Annotated[Path | None, typer.Option(help="Allure results go into this folder")] = None
    verbose: Annotated[bool, typer.Option("--verbose", help="also print why cases are not claimed")] = False
    format_: OutputFormat = Format.TEXT

    @cached_property
    def settings(self) -> RunSettings:
        """The settings of the run, the same at each call. Ends with a usage error for what cannot be one."""
        return self.settings_for(
            known_contracts(self.contract or ()),
            seed=self._seed(),
            workdir=None if self.workdir is None else str(_usable(self.workdir)),
            fault_seconds=self.fault_seconds,
            thorough=self.thorough,
            keep=str((self.evidence.parent / _STATES).absolute()),
            forkserver=self.target.forkserver,
        )

    def _seed(self) -> str:
        if self.seed is not None:
            _must_be_printable("--seed", self.seed, most=_MAX_SEED)
            return self.seed
        if self.nonce is not None:
            _must_be_printable("--nonce", self.nonce, most=_MAX_NONCE)
            return seed_of_nonce(self.nonce)
        return secrets.token_hex(16)

    @property
    def caller(self) -> Caller:
        """Where the seed came from, and what the caller says of the run."""
        of_nonce = SeedOrigin.FRESH if self.nonce is None else SeedOrigin.NONCE
        return Caller(of_nonce if self.seed is None else SeedOrigin.CHOSEN, self.nonce, self.commit)

    @property
    def forms(self) -> frozenset[Form]:
        """The forms of the cases that run."""
        return QUICK if self.quick else ALL_FORMS if self.faults else WITHOUT_FAULTS

    @property
    def narrowed(self) -> str | None:
        """What narrows the run, as its evidence says it; None if nothing does."""
        groups = [[] if self.expression is None else [self.expression], self.clause or (), self.case or ()]
        parts = [" or ".join(group) for group in groups if group]
        form = _NARROWED[self.forms]
        parts += [] if form is None else [form]
        joined = [f"({part})" if len(parts) > 1 and " " in part else part for part in parts]
        return " and ".join(joined) or None

    def selects(self, planned: PlannedCase) -> bool:
        """Whether a case runs, as far as `-k` has it. Each option leaves out what it does not name."""
        named = not self.clause or not {*self.clause}.isdisjoint(planned.clauses)
        return named and planned.form in self.forms and (not self.case or planned.id in self.case)

    @property
    def redactor(self) -> Redactor:
        """Knows the secrets that the user handed to this run."""
        return self.settings.redactor

    def must_be_publishable(self) -> None:
        """End the command unless what the caller says is short text and no secret: it stands in the evidence."""
        must_be_publishable(self.nonce, self.commit, self.redactor)


def must_be_publishable(nonce: str | None, commit: str | None, redactor: Redactor) -> None:
    """End the command unless what the caller says of a run is short text and no secret."""
    for option, text, most in (("--nonce", nonce, _MAX_NONCE), ("--commit", commit, _MAX_COMMIT)):
        if text is None:
            continue
        _must_be_printable(option, text, most=most)
        if redactor.free(text) != text:
            stop(Exit.USAGE, f"{option}: expected something that may be published, got what looks like a secret")


def _must_be_printable(option: str, text: str, *, most: int) -> None:
    """End the command unless the value of an option is short and printable."""
    if not text.strip() or not text.isascii() or not text.isprintable() or len(text) > most:
        stop(Exit.USAGE, f"{option}: expected 1 to {most} printable ASCII characters, got {text!r}")


def _usable(folder: Path) -> Path:
    if not folder.is_dir():
        stop(Exit.USAGE, f"--workdir: expected a folder, got {folder}; make it first")
    if why := unusable(folder):
        stop(Exit.USAGE, f"--workdir: {why}; give a folder you may write to")
    return folder.resolve()


def default_jobs(cases: int) -> int:
    """How many processes run the cases, where `--jobs` does not say it. Verdicts do not depend on it.

    One more than the machine has processors, because many cases wait; at most as many as `cases` are worth.
    """
    return max(1, min(processors() + 1, cases // CASES_EACH, MOST))
