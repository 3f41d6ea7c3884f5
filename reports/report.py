"""One report of a run: its data with a published schema, and the page that shows them, in one file without a network.

The page is a projection of the data, and the data are one of the evidence: `holdfast.conformance.cli.report` makes
them. Texts of an adapter are safe to show (`holdfast.reports.plain`), and what is long is cut: the evidence has it.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from msgspec import Meta

from holdfast.reports.evidence.model import CaseId, VerdictName
from holdfast.specs.typed import Count, Digest, Form, Instant, Text, about, definitions, json_of, one_of


class Call(Form, frozen=True):
    """One exchange of a finding, or something that the harness did."""

    n: Count
    worker: Count
    action: str
    sent: str
    came: str
    judged: bool
    begin: Annotated[int | None, about("Microseconds since the first call that is shown.")]
    end: Annotated[int | None, about("Microseconds since the first call that is shown.")]


class Shown(Form, frozen=True):
    """One case that does not conform, in full or by its first line alone."""

    case: CaseId
    title: str
    verdict: VerdictName
    clauses: tuple[Text, ...]
    detail: str
    excused: str | None
    expected: str = ""
    received: str = ""
    twin: Annotated[str, about("What the accepted sibling changes; empty if the case has none.")] = ""
    calls: Annotated[tuple[Call, ...], about("The exchanges that lead to the judged one.")] = ()
    left_out: Annotated[int, Meta(ge=0, description="How many exchanges of the case are not among the calls.")] = 0
    log: Annotated[tuple[str, ...], about("The last lines of standard error, where the adapter fell silent.")] = ()


class Finding(Form, frozen=True):
    """What has one cause, the gravest case first."""

    cause: str
    mends: Annotated[str, about("What usually mends it, where the contract says so.")]
    verdict: VerdictName
    contract: Text
    clause: Text
    section: str
    promise: Annotated[str, about("The clause in words.")]
    harm: str
    again: Annotated[str, about("The command that runs the first case once more.")]
    cases: tuple[Shown, ...]


class Untested(Form, frozen=True):
    """What was not tested, and why."""

    what: str
    why: str


class CaseLine(Form, frozen=True):
    """A case of a clause; `verdict` is null if it has no result."""

    case: CaseId
    title: str
    verdict: VerdictName | None


class ClauseLine(Form, frozen=True):
    """A clause with its cases, the planted bugs that must break it, and how many cases a baseline adapter passes."""

    contract: Text
    clause: Text
    level: Text
    basis: Text
    section: str
    text: str
    proof: Annotated[str, one_of("run", "fitness", "not testable")]
    why: Annotated[str, about("Why it cannot be tested; empty if it can.")]
    verdict: VerdictName | None
    cases: tuple[CaseLine, ...]
    bugs: tuple[str, ...]
    baselines: Mapping[str, int]


class CellLine(Form, frozen=True):
    """An attack on an operation: its cells, those with a case that conforms in this run, and those left out."""

    contract: Text
    operation: Text
    attack: Text
    cells: Count
    conform: Count
    left: tuple[str, ...]


class Report(Form, frozen=True):
    """A run as people look at it."""

    made: Instant
    can_proceed: Annotated[str, one_of("YES", "NO")]
    required: tuple[Text, ...]
    exit: int
    reasons: tuple[str, ...]
    notes: tuple[str, ...]
    not_asked: Annotated[tuple[str, ...], about("What the gate could have been asked as well.")]
    counts: Mapping[str, Count]
    planned: Count
    contracts: Mapping[str, str]
    run: Annotated[Mapping[str, str], about("What ran: kit, implementation, commit, seed, digests, times.")]
    environment: Mapping[str, str]
    evidence: Digest
    findings: tuple[Finding, ...]
    untested: tuple[Untested, ...]
    clauses: tuple[ClauseLine, ...]
    matrix: tuple[CellLine, ...]
    format: Literal[1] = 1


def data_of(report: Report) -> dict[str, Any]:
    """The report as JSON values (specs/schemas/report.schema.json)."""
    return json_of(report)


def report_schema() -> dict[str, Any]:
    """The published JSON Schema of the data."""
    parts = definitions([Report])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "https://holdfast.dev/schemas/report.schema.json",
        "title": "holdfast report json: a run as people look at it",
        **parts.pop(Report.__name__),
        "$defs": parts,
    }


def page(report: Report) -> str:
    """The report as one HTML file: no request leaves it, and a script that is not its own does not run."""
    # A third of a second, for which no other command should wait.
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    style, script = _part("page.css"), _part("page.js")
    policy = f"default-src 'none'; style-src {_digest(style)}; script-src {_digest(script)}"
    template = environment.from_string(_part("page.html.j2"))
    return template.render(report=report, style=style, script=script, policy=policy, lanes=lanes, words=_WORDS)


@cache
def _part(name: str) -> str:
    return files(__package__).joinpath("html", name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# The verdicts in words, for a reader who has never seen them.
_WORDS: Mapping[str, str] = {
    "kit_fault": "holdfast itself failed",
    "fail_open": "accepted what must be refused",
    "lost_durability": "lost what was acknowledged",
    "state_leak": "a refusal left a trace, or state was wrong",
    "no_verdict": "no answer that can be judged",
    "not_reached": "not reached",
    "indeterminate": "answered that it does not know",
    "unsupported": "declared absent",
    "wrong_reason": "another answer than is due",
    "over_refusal": "refused what must be accepted",
    "conforms": "conforms",
}


class Lane(Form, frozen=True):
    """The calls of one process as bars of a drawing of 1000 units; `y` is its line."""

    worker: int
    y: int
    bars: tuple[tuple[int, int, Call], ...]


def lanes(case: Shown) -> tuple[Lane, ...]:
    """The calls by process, where more than one was at work; a drawing of one would say no more than the list."""
    timed = [call for call in case.calls if call.begin is not None and call.end is not None]
    workers = sorted({call.worker for call in timed})
    if len(workers) < 2:
        return ()
    whole = max((call.end or 0) for call in timed) or 1
    return tuple(
        Lane(
            worker,
            24 * number + 12,
            tuple(
                (
                    1000 * (call.begin or 0) // whole,
                    max(4, 1000 * ((call.end or 0) - (call.begin or 0)) // whole),
                    call,
                )
                for call in timed
                if call.worker == worker
            ),
        )
        for number, worker in enumerate(workers)
    )
