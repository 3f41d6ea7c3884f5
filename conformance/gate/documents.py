"""What the gate asks of a run of `holdfast vectors verify`: that every document was answered as expected.

The rows of a seed, what is expected of them, and how many there are of each category follow from the installed kit, so
all of them are made again here. What an SDK answered is compared by its digest.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.conformance.gate.cases import by_verdict
from holdfast.conformance.gate.model import Expected, Findings, GateReason, ReasonCode, Requirement, held, some_of
from holdfast.conformance.run.documents import VERDICT_OF, case_of, rows_of, stream_seed, verdict_of
from holdfast.conformance.verdict import Verdict, can_be_excused
from holdfast.reports.evidence import Counterexample, Header, Run, SdkAnswer, Vectors, VerdictLine
from holdfast.vectors.jcs.construct import STREAM, row
from holdfast.vectors.jcs.frames import Answered, Status
from holdfast.vectors.jcs.opening import opening_of
from holdfast.vectors.jcs.spark.blocks import BLOCK_ROWS, block_count, block_of, leaf, root
from holdfast.vectors.jcs.spark.tally import (
    CATEGORIES,
    CELLS,
    Outcome,
    Row,
    chained,
    count,
    digests,
    disagreement,
    table,
)
from holdfast.vectors.taxonomy import Category, Profile

# Some minutes on one core.
MOST_ROWS = 100_000_000
_FINDINGS = tuple(name for name, verdict in VERDICT_OF.items() if verdict is not Verdict.CONFORMS)


def of_documents(run: Run, header: Header, requirement: Requirement, expected: Expected) -> Findings:
    """Every reason that the documents of the required profile give."""
    name, lines = requirement.name, run.vectors
    if len(lines) != 1 or run.exchanges or run.attempts or run.surfaces:
        text = f"{name}: expected one line of documents and no session of an adapter; run again"
        return Findings((held(ReasonCode.EXTRA_RESULTS, text),), ())
    (line,) = lines
    groups: defaultdict[tuple[Verdict, bool], list[str]] = defaultdict(list)
    asked = tuple(_asked(header, line, requirement, expected))
    if asked:
        for each in run.verdicts:
            groups[Verdict(each.verdict), each.excused is not None].append(each.case)
        return Findings((*by_verdict(requirement, groups), *asked), ())
    made = _made(line)
    assert line.opening is not None
    # With rows missing nothing is proven, and there is nothing to compare.
    lost = bool(line.missing or line.opening.missing)
    wrong = [] if lost else [*_compared(line, made)]
    comparable = not lost and not wrong
    results = {each.case: each for each in run.verdicts}
    missing, otherwise, notes = [], [], []
    for category in Category:
        case = case_of(line.profile, category)
        due, result = verdict_of(line, category), results.get(case)
        wrong += _contradictions(line, category, made) if comparable else ()
        if result is None:
            missing.append(case)
            continue
        if result.verdict != due.value or not _is_plain(result, due):
            otherwise.append(case)
        if result.excused is not None and can_be_excused(due) and expected.allow_excused:
            notes.append(f"{case} is {due.value}, excused by {result.excused}")
        else:
            groups[due, result.excused is not None].append(case)
    reasons = [*by_verdict(requirement, groups)]
    if not missing and [each.case for each in run.verdicts] != [*header.plan]:
        wrong.append("the verdicts stand in another order")
    if missing:
        text = f"{name}: {len(missing)} of {len(Category)} categories have no result ({some_of(missing)}); run again"
        reasons.append(held(ReasonCode.MISSING_RESULTS, text, tuple(missing)))
    if otherwise:
        text = f"{name}: the table calls for other verdicts than the run has ({some_of(otherwise)}); run again"
        reasons.append(held(ReasonCode.JUDGED_OTHERWISE, text, tuple(otherwise)))
    if wrong:
        text = f"{name}: the run is not one of the documents of seed {line.seed}: {some_of(wrong)}; run again"
        reasons.append(held(ReasonCode.JUDGED_OTHERWISE, text))
    opened = made.tables[1].count
    notes.append(f"{name}: {line.count:,} rows of seed {line.seed} and the {opened:,} before them were made again")
    notes.append(f"{name}: documents prove no clause of the contract; `holdfast verify` does, with an adapter")
    return Findings(tuple(reasons), tuple(notes))


def _is_plain(line: VerdictLine, due: Verdict) -> bool:
    """Whether a verdict names no exchange, and says nothing more where all is as expected."""
    if line.side is not None or line.n is not None:
        return False
    said = (line.clauses, line.silence, line.excused, line.expected, line.received, line.advice)
    return due is not Verdict.CONFORMS or not any(said)


def _asked(header: Header, line: Vectors, requirement: Requirement, expected: Expected) -> Iterator[GateReason]:
    """Why the documents are not those that are required."""
    name = requirement.name
    if line.profile != requirement.profile:
        text = f"{name}: the run is judged in the profile {line.profile}; run with --profile {requirement.profile}"
        yield held(ReasonCode.NOT_IN_RUN, text)
    if header.selection.contracts != (requirement.contract.name,):
        yield held(ReasonCode.DAMAGED, f"{name}: the run names other contracts; run again")
    if header.plan != tuple(case_of(line.profile, category) for category in Category):
        text = f"{name}: the plan of the run is not every category of {line.profile}; run again"
        yield held(ReasonCode.OTHER_PLAN, text)
    if line.seed != stream_seed(header.seed, header.seed_origin):
        yield held(ReasonCode.DAMAGED, f"{name}: the documents are of another seed than the run; run again")
    if (line.stream, line.block_rows) != (str(STREAM), BLOCK_ROWS):
        text = f"{name}: the run has rows of stream {line.stream}, installed is {STREAM}; run again"
        yield held(ReasonCode.OTHER_KIT, text)
    if line.opening is None:
        yield held(ReasonCode.MISSING_RESULTS, f"{name}: the committed vectors were not asked; run again")
    if line.count < expected.rows:
        text = f"{name}: {line.count:,} rows were generated, {expected.rows:,} are asked for"
        yield held(ReasonCode.NOT_PROVEN, f"{text}; run with --count {expected.rows}, or ask for fewer with --rows")
    if line.count > MOST_ROWS:
        text = f"{name}: {line.count:,} rows cannot be made again here; run with --count {MOST_ROWS} at most"
        yield held(ReasonCode.NOT_PROVEN, text)


@dataclass(frozen=True, slots=True)
class _Table:
    """Rows that were made again, and the table of an SDK that answers all of them as expected."""

    count: int
    root: str
    rows: Mapping[tuple[str, str], Row]


@dataclass(frozen=True, slots=True)
class _Made:
    """The generated rows, then the opening; and by category the digest of the expected answers."""

    tables: tuple[_Table, _Table]
    answers: Mapping[Category, str]


def _made(line: Vectors) -> _Made:
    profile, opening, said = Profile(line.profile), opening_of(line.seed), list[bytes]()
    opened = _table((opening.rows(piece) for piece in range(opening.slices)), profile, said)
    blocks = (block_of(line.seed, number, line.count).rows for number in range(block_count(line.count)))
    return _Made((_table(blocks, profile, said), opened), chained(said))


def _table(parts: Iterable[pa.RecordBatch], profile: Profile, said: list[bytes]) -> _Table:
    """The table of these rows; the digests of their expected answers are added to `said`."""
    names = pa.array([category.value for category in CATEGORIES])
    cells, leaves, number = np.zeros(CELLS, dtype=np.int64), [], 0
    for rows in parts:
        categories = pc.index_in(rows.column("category"), value_set=names).to_numpy(zero_copy_only=False)
        categories = categories.astype(np.int64)
        refused_by = rows.column("refused_by").to_numpy(zero_copy_only=False)
        codes = np.where(refused_by & profile.bit, Outcome.REFUSED, Outcome.EXPECTED_BYTES).astype(np.int8)
        canonical = rows.column("canonical")
        cells += count(categories, refused_by, codes)
        leaves.append(leaf(rows))
        said.append(digests(canonical, codes, canonical, categories))
        number += rows.num_rows
    return _Table(number, root(leaves), {(each.category.value, each.profile.value): each for each in table(cells)})


def _compared(line: Vectors, made: _Made) -> Iterator[str]:
    """What contradicts the rows as a whole."""
    opening = line.opening
    assert opening is not None
    given = ((line.count, line.root, line.table), (opening.count, opening.digest, opening.table))
    for what, (number, digest, rows), due in zip(("rows", "opening"), given, made.tables, strict=True):
        if (number, digest) != (due.count, due.root):
            yield f"the {what} have another number or digest"
        if [(row.category, row.profile) for row in rows] != [*due.rows]:
            yield f"the table of the {what} does not have one line for each category and profile"
        elif any(not row.counted == row.rows == due.rows[row.category, row.profile].rows for row in rows):
            yield f"the table of the {what} counts other rows"
    if [each.category for each in line.answers] != [*Category]:
        yield "the digests of the answers are not those of every category"


def _contradictions(line: Vectors, category: Category, made: _Made) -> Iterator[str]:
    """Where what is said of a category does not fit its answers."""
    own = [each for each in rows_of(line, category) if each is not None]
    departing = {name: number for name in _FINDINGS if (number := sum(getattr(each, name) for each in own))}
    (digest,) = (each.sha256 for each in line.answers if each.category == category.value)
    agrees = digest == made.answers[category]
    if agrees is bool(departing):
        yield f"{category.value}: its answers are not those that its table counts"
    assert line.opening is not None
    if agrees:
        for rows, due in zip((line.table, line.opening.table), made.tables, strict=True):
            for each in rows:
                counts = due.rows[each.category, each.profile].counts
                if each.category == category.value and any(getattr(each, name) != n for name, n in counts.items()):
                    yield f"{category.value}: its table in {each.profile} does not follow from its answers"
    found = [each for each in line.counterexamples if each.category == category.value]
    if sorted((each.finding, each.rows) for each in found) != sorted(departing.items()):
        yield f"{category.value}: expected one document for each finding of its table"
    yield from (f"{category.value}: a document is not as it is said" for each in found if not _holds(line, each))


def _holds(line: Vectors, found: Counterexample) -> bool:
    """Whether a document departs as it is said; one that was not shrunk is made again."""
    expected, answered = _answer(found.expected), _answer(found.answered)
    if disagreement(expected, answered).value != found.finding:
        return False
    made = _row(line, found)
    if made is None or str(made["category"]) != found.category:
        return False
    refused = bool(made["refused_by"] & Profile(line.profile).bit)
    due = Answered(Status.REFUSED, b"") if refused else Answered(Status.CANONICAL, bytes(made["canonical"]))
    as_made = (made["document"].hex(), due.status, due.body if due.status is Status.CANONICAL else b"")
    return found.shrunk or as_made == (found.document, expected.status, expected.body)


def _row(line: Vectors, found: Counterexample) -> Mapping[str, Any] | None:
    if found.name is None:
        made = row(line.seed, found.index) if found.index < line.count else None
        names = ("category", "document", "canonical", "refused_by")
        return None if made is None else {name: getattr(made, name) for name in names}
    opening = opening_of(line.seed)
    if found.index >= opening.count:
        return None
    of_opening = opening.row(found.index)
    return of_opening if of_opening["name"] == found.name else None


def _answer(answer: SdkAnswer) -> Answered:
    return Answered(Status(answer.status), bytes.fromhex(answer.hex or ""))
