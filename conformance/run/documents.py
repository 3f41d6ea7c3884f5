"""What the evidence of `holdfast vectors verify` amounts to: for the run, for the gate, and for other tools.

A category conforms only if every one of its rows agrees, and there is one; without any it was not reached, and the run
is not a whole one. If rows are missing anywhere, no category conforms: their categories are unknown. Nor does one if
the runner died and no document can be blamed: the cause is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from holdfast.conformance.run.results import missing_of, outcome_of, with_cases
from holdfast.conformance.verdict import Exit, Verdict, can_be_excused, exit_of, gravest, worst
from holdfast.reports.evidence import Counterexample, Header, Run, SdkAnswer, SeedOrigin, TableRow, Vectors, VerdictLine
from holdfast.reports.results import Result, Results
from holdfast.specs import Contract
from holdfast.vectors.taxonomy import Category

CONTRACT = "jcs"
# What a column of the table amounts to, as in a run of the contract.
VERDICT_OF: Mapping[str, Verdict] = {
    "accepted_must_refuse": Verdict.FAIL_OPEN,
    "wrong_bytes": Verdict.WRONG_REASON,
    "no_verdict": Verdict.NO_VERDICT,
    "over_refusal": Verdict.OVER_REFUSAL,
    "agree": Verdict.CONFORMS,
}
# The part of a seed of 32 hexadecimal digits that a stream is made from: 52 bits.
_DIGITS = 13
# Why a category is not proven where no document shows it.
_UNPROVEN = {
    Verdict.NO_VERDICT.value: "rows are missing, or the runner failed on no document in particular",
    Verdict.NOT_REACHED.value: "no generated rows",
}
# Of a long document or answer so many digits are shown in a report; the evidence has all of them.
_SHOWN = 4096


def is_of_documents(run: Run) -> bool:
    """Whether `holdfast vectors verify` wrote this evidence."""
    plan = () if run.header is None else run.header.plan
    return bool(run.vectors and plan) and all(case.startswith("vectors/") for case in plan)


def case_of(profile: str, category: Category) -> str:
    """The id of a category in evidence and in files of expected failures."""
    return f"vectors/{profile}/{category.value}"


def stream_seed(seed: str, origin: SeedOrigin) -> int | None:
    """The seed of the stream of a run with this seed; None if there is none."""
    try:
        return int(seed) if origin is SeedOrigin.CHOSEN else int(seed[:_DIGITS], 16)
    except ValueError:
        return None


def rows_of(line: Vectors, category: Category) -> tuple[TableRow | None, TableRow | None]:
    """Of the run's own profile: the category's line of the generated rows, and that of the opening."""
    tables = (line.table, () if line.opening is None else line.opening.table)
    named = (category.value, line.profile)
    generated, opened = (next((row for row in table if (row.category, row.profile) == named), None) for table in tables)
    return generated, opened


def verdict_of(line: Vectors, category: Category) -> Verdict:
    """The verdict of a category: the worst of its rows."""
    rows = rows_of(line, category)
    found = [verdict for row in rows if row is not None for name, verdict in VERDICT_OF.items() if getattr(row, name)]
    if rows[0] is None or not rows[0].rows:
        # The opening alone proves nothing, and hides nothing graver.
        found = [*(one for one in found if one is not Verdict.CONFORMS), Verdict.NOT_REACHED]
    lost = line.missing or line.restarts or (line.opening is not None and line.opening.missing)
    return worst([*found, Verdict.NO_VERDICT] if lost else found)


def exit_of_documents(line: Vectors, asked: Sequence[Category], excused: Collection[str]) -> Exit:
    """The exit status of a run: 13 if the runner never answered, else the gravest of all categories that were asked.

    `excused` are cases whose failure is expected. A narrowed run is never a whole one.
    """
    counted = [row for category in asked for row in rows_of(line, category) if row is not None]
    if not sum(row.rows - row.no_verdict for row in counted):
        return Exit.ADAPTER
    verdicts = {case_of(line.profile, category): verdict_of(line, category) for category in asked}
    counts = (verdict for case, verdict in verdicts.items() if not (case in excused and can_be_excused(verdict)))
    narrowed = [Exit.INCOMPLETE] if len(asked) < len(Category) else []
    return gravest([*map(exit_of, counts), *narrowed])


def results_of_documents(run: Run, contract: Contract, *, status: Exit) -> Results:
    """The results of a run for other tools, one for each category that was asked; a failure has its counterexamples."""
    header, lines = run.header, {line.case: line for line in run.verdicts}
    assert header is not None
    cases = [
        _result(header, run.vectors[0], Category(case.rpartition("/")[2]), lines, contract)
        for case in header.plan
        if case in lines or header.selection.expression is None
    ]
    found = with_cases(run, header, cases, status=status)
    return replace(found, properties={**found.properties, "stream_seed": str(run.vectors[0].seed)})


def _result(
    header: Header, line: Vectors, category: Category, verdicts: Mapping[str, VerdictLine], contract: Contract
) -> Result:
    case = case_of(line.profile, category)
    found = [each for each in line.counterexamples if each.category == category.value]
    clauses = tuple(dict.fromkeys(each.clause for each in found if each.clause)) or (category.clause,)
    judged = verdicts.get(case)
    if judged is None:
        return missing_of(case, contract.name, clauses, category.title)
    shown = [text for each in found for text in _counterexample(line, each)]
    first = contract.clauses[clauses[0]]
    return Result(
        case=case,
        contract=contract.name,
        clauses=clauses,
        title=category.title,
        outcome=outcome_of(Verdict(judged.verdict), judged, binds=True),
        verdict=judged.verdict,
        severity="critical",
        message=judged.detail,
        text="\n".join([f"{judged.verdict}: {category.title}", *shown, f"advice: {judged.advice}"]),
        cause=f"{first.id}: {first.text.partition('. ')[0]}" if found else _UNPROVEN.get(judged.verdict, ""),
        excused=judged.excused,
        started=header.started,
    )


def _counterexample(line: Vectors, found: Counterexample) -> Sequence[str]:
    named = f"index {found.index}" if found.name is None else f"row {found.name} of the opening"
    shrunk = ", shrunk" if found.shrunk else ""
    return (
        f"{found.finding.replace('_', ' ')} ({found.clause}, {found.rows} rows): seed {line.seed}, {named}{shrunk}",
        f"  input: {_cut(found.document)}",
        f"  expected: {_answer(found.expected)}",
        f"  got: {_answer(found.answered)}",
        f"  again: {found.reproduce}",
    )


def _answer(answer: SdkAnswer) -> str:
    return f"{answer.status} {answer.detail}".strip() if answer.hex is None else f"{answer.status} {_cut(answer.hex)}"


def _cut(data: str) -> str:
    return f"hex:{data}" if len(data) <= _SHOWN else f"hex:{data[:_SHOWN]}… ({len(data) // 2} bytes)"
