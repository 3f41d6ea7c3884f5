"""What `holdfast verify` prints at the end of a run: what was shown, the worst first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Column

from holdfast.conformance.cli.console import PlainConsole, in_style, members, out, styled, table_of
from holdfast.conformance.cli.verify.transcript import print_group
from holdfast.conformance.gate.model import some_of
from holdfast.conformance.run.artefacts import ALWAYS
from holdfast.conformance.run.baselines import Policy
from holdfast.conformance.run.findings import absent, finding_of, grouped
from holdfast.conformance.run.plan import PlannedCase
from holdfast.conformance.run.summary import ClauseRow, Summary
from holdfast.conformance.verdict import REPORTED, Exit, Verdict
from holdfast.reports.evidence import Artefacts
from holdfast.specs import Contract
from holdfast.specs.model import Proof

if TYPE_CHECKING:
    from holdfast.conformance.cli.verify.options import Options
    from holdfast.conformance.gate.decision import GateDecision
    from holdfast.conformance.run.xfail import Applied

# How many groups of failing cases are printed; the rest is in the evidence.
MAX_FAILURES = 12
MAX_REASONS = 5


def print_summary(
    summary: Summary,
    applied: Applied,
    final: Exit,
    *,
    decision: GateDecision,
    artefacts: Artefacts | None,
    options: Options,
    contracts: Sequence[Contract],
    plan: Sequence[PlannedCase],
    not_claimed: Mapping[str, Mapping[str, str]],
) -> None:
    """Everything `holdfast verify` says at the end: the gravest findings first, then the table, then the counts.

    `not_claimed` has by contract what hello says the adapter lacks, with its reasons.
    """
    console = out()
    by_id = {case.id: case for case in plan}
    by_name = {contract.name: contract for contract in contracts}
    results = {result.case: result for result in summary.results}
    groups = grouped(
        (
            finding_of(each.judgement, each.judged_side, by_id[each.case], by_name[by_id[each.case].contract])
            for each in summary.results
        ),
        contracts,
    )
    print_excused(console, applied)
    for group in groups[:MAX_FAILURES]:
        first = group.members[0]
        print_group(console, group, results[first.planned.id], by_name[first.planned.contract], options)
    if len(groups) > MAX_FAILURES:
        left = sum(len(group.members) for group in groups[MAX_FAILURES:])
        console.print(f"… and {left} more cases; all are in {options.evidence}")
        console.print()
    _print_absent(console, summary, by_id, not_claimed, options)
    for contract in contracts:
        print_clauses(console, contract, summary.rows, narrowed=bool(summary.missing))
    for line in summary.notes:
        console.print(f"note: {line}")
    for line in applied.problems:
        console.print(f"xfail: {line}", style="yellow")
    _print_counts(console, summary, contracts, options)
    console.print(f"evidence: {options.evidence}")
    console.print(f"adapter:  {artefacts_text(artefacts)}")
    console.print(f"CAN_PROCEED = {decision.can_proceed}", style="bold")
    for note in decision.notes:
        console.print(f"  note: {note}", style="dim")
    console.print_lines(reason_lines(decision))
    colour = "green" if final is Exit.OK else "red"
    console.print("verdict: ", styled(summary.of_claimed), "  exit", in_style(str(int(final)), colour))


def print_excused(console: PlainConsole, applied: Applied) -> None:
    """The failures that are expected, with who mends them until when."""
    for entry in applied.listed:
        excused = "excused, and open" if entry.verdict.is_open else "excused"
        said = f"{entry.verdict.value} {entry.id} ({entry.issue}, {entry.owner}, until {entry.expires})"
        console.print(in_style(excused, "bold red"), f": {said}", sep="")


def reason_lines(decision: GateDecision) -> Iterator[str]:
    """A line for each of the first reasons to hold a run, and one that says how many more there are."""
    yield from (f"  {reason.code.value}: {reason.text}" for reason in decision.reasons[:MAX_REASONS])
    if len(decision.reasons) > MAX_REASONS:
        yield f"  … and {len(decision.reasons) - MAX_REASONS} more; `holdfast gate` says them all"


def _print_absent(
    console: PlainConsole,
    summary: Summary,
    plan: Mapping[str, PlannedCase],
    not_claimed: Mapping[str, Mapping[str, str]],
    options: Options,
) -> None:
    """One line for all that hello or a profile declares absent; the reasons with --verbose."""
    lacking = [each for each in summary.results if each.judgement.verdict is Verdict.UNSUPPORTED]
    if not lacking:
        return
    counted = absent(((plan[each.case], each.judgement.detail) for each in lacking), not_claimed)
    named = Counter[str]()
    for (name, _), count in counted.items():
        named[name or "its profile or limits"] += count
    words = ", ".join(f"{name} ({count})" for name, count in named.most_common())
    more = "" if options.verbose else "; --verbose has the reasons"
    needed = "1 case needs" if len(lacking) == 1 else f"{len(lacking)} cases need"
    console.print(f"not claimed: {needed} what the adapter declares absent: {words}{more}")
    for (name, reason), count in counted.items() if options.verbose else ():
        console.print(f"  {name or 'declared'} ({count}): {reason}")
    console.print()


def artefacts_text(artefacts: Artefacts | None) -> str:
    """The digest of the adapter, and what it is of."""
    if artefacts is None or artefacts.digest is None:
        return "no digest, for no file of it was hashed; --adapter-file names what belongs to it"
    count = len(artefacts.files)
    left_out = [each.what for each in artefacts.not_hashed if each not in ALWAYS]
    beside = f"; not hashed: {some_of(left_out)}" if left_out else ""
    return f"{artefacts.digest} ({'1 file' if count == 1 else f'{count} files'}{beside})"


def print_clauses(console: PlainConsole, contract: Contract, rows: Sequence[ClauseRow], *, narrowed: bool) -> None:
    words = (Column(each, no_wrap=True) for each in ("clause", "basis", "verdict"))
    numbers = (Column(each, justify="right", no_wrap=True) for each in ("cases", *(policy.value for policy in Policy)))
    title = f"{contract.name} {contract.version}: {contract.title}"
    table = table_of(*words, *numbers, Column("text", no_wrap=True, max_width=70), title=title)
    for row in rows:
        narrowed_away = narrowed and row.ran == 0
        if row.clause.id not in contract.clauses or narrowed_away:
            continue
        clause = row.clause
        if clause.proof is Proof.FITNESS:
            verdict, count = in_style("needs fitness", "dim"), "-"
        elif clause.not_testable is not None:
            verdict, count = in_style("not testable", "dim"), "-"
        else:
            in_part = row.verdict is Verdict.CONFORMS and row.conforming < row.cases
            verdict = in_style("in part", "dim") if in_part else styled(row.verdict)
            count = f"{row.conforming}/{row.cases}"
        scores = ["-" if row.baseline[policy] is None else str(row.baseline[policy]) for policy in Policy]
        table.add_row(clause.id, clause.basis.value, verdict, count, *scores, clause.text)
    console.print_table(table)
    console.print()


def _print_counts(console: PlainConsole, summary: Summary, contracts: Sequence[Contract], options: Options) -> None:
    counts = ", ".join(
        f"{summary.counts[verdict]} {verdict.value}" for verdict in REPORTED if summary.counts.get(verdict)
    )
    console.print(f"cases:    {counts or 'none'}")
    mine = [row for row in summary.rows if row.clause.proof is Proof.RUN]
    proven = sum(row.verdict is Verdict.CONFORMS and row.conforming == row.cases for row in mine)
    narrowed = "" if options.narrowed is None else ", and the run was narrowed"
    clauses = [f"{proven} of {len(mine)} that a run can prove conform in every case{narrowed}"]
    for policy in Policy:
        scored = [row for row in mine if row.baseline[policy] is not None]
        if scored:
            full = sum(row.baseline[policy] == row.cases > 0 for row in scored)
            clauses.append(f"{policy.value}: {full}")
    console.print(f"clauses:  {'; '.join(clauses)}")
    self_reported = [c.name for c in contracts if c.inertness is not None and c.inertness.seen_by == "self-reported"]
    if self_reported:
        console.print(f"state:    self-reported by the adapter ({', '.join(self_reported)})")


def summary_json(
    summary: Summary, final: Exit, evidence: Path, *, applied: Applied, artefacts: Artefacts | None
) -> dict[str, Any]:
    """The summary as JSON (`specs/schemas/verify.schema.json`)."""
    return {
        "verdict": summary.verdict.value,
        "exit": int(final),
        "evidence": str(evidence),
        "adapter_digest": None if artefacts is None else artefacts.digest,
        "excused": [
            {"case": entry.id, **members(entry, "verdict", "issue", "owner", "expires")} for entry in applied.listed
        ],
        **members(summary, "counts"),
        "notes": [*summary.notes, *summary.of_roles],
        "not_asked": sorted(summary.not_asked),
        "clauses": [
            {
                "clause": row.clause.id,
                **members(row.clause, "basis", "level", "proof"),
                **members(row, "verdict", "cases", "ran", "conforming", "baseline"),
            }
            for row in summary.rows
        ],
        "cases": [
            {
                **members(result, "case", "clauses"),
                **members(result.judgement, "verdict", "silence", "side", "n", "detail"),
                "seconds": round(result.seconds, 4),
            }
            for result in summary.results
        ],
    }
