"""What the command line of `holdfast verify` asks for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from holdfast.conformance.cli.console import Format
from holdfast.conformance.run.plan import ALL_FORMS, Form, PlannedCase, is_selected
from holdfast.conformance.run.settings import Caller, RunSettings
from holdfast.reports.evidence import Redactor
from holdfast.servers.processors import processors

# What --no-faults and --quick leave of a run, and how the evidence calls that.
WITHOUT_FAULTS, QUICK = frozenset({Form.SCRIPT, Form.SUITE}), frozenset({Form.SCRIPT})
_NARROWED = {ALL_FORMS: None, WITHOUT_FAULTS: "not faults", QUICK: "scripts alone"}

# One more process costs a start and a launcher, which is worth it for this number of cases.
CASES_EACH = 40
MOST = 64


@dataclass(frozen=True, slots=True)
class Options:
    """What the command line asks for."""

    settings: RunSettings
    evidence: Path
    expression: str | None
    clauses: tuple[str, ...]
    cases: tuple[str, ...]
    forms: frozenset[Form]
    xfail: Path | None
    # None: as many as `default_jobs` says.
    jobs: int | None
    exit_first: bool
    junitxml: Path | None
    alluredir: Path | None
    caller: Caller
    adapter_files: tuple[Path, ...]
    format: Format
    # Whether `reference` was to be verified, by that word.
    reference: bool = False
    # See `Target`.
    is_server: bool = False
    typed: tuple[str, ...] = ()
    # Whether the reasons of what is declared absent are printed.
    verbose: bool = False

    @property
    def narrowed(self) -> str | None:
        """What narrows the run, as its evidence says it; None if nothing does."""
        groups = [[] if self.expression is None else [self.expression], self.clauses, self.cases]
        parts = [" or ".join(group) for group in groups if group]
        form = _NARROWED[self.forms]
        parts += [] if form is None else [form]
        joined = [f"({part})" if len(parts) > 1 and " " in part else part for part in parts]
        return " and ".join(joined) or None

    def selects(self, planned: PlannedCase) -> bool:
        """Whether a case runs, as far as `-k` has it."""
        clauses, cases = frozenset(self.clauses), frozenset(self.cases)
        return is_selected(planned, clauses=clauses, cases=cases, forms=self.forms)

    @property
    def redactor(self) -> Redactor:
        """Knows the secrets that the user handed to this run."""
        return self.settings.redactor


def default_jobs(cases: int) -> int:
    """How many processes run the cases, where `--jobs` does not say it. Verdicts do not depend on it.

    One more than the machine has processors, because many cases wait; at most as many as `cases` are worth.
    """
    return max(1, min(processors() + 1, cases // CASES_EACH, MOST))
