"""The result of `holdfast vectors verify` as evidence, and its parts as text."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import structs

from holdfast.conformance.cases.record import CaseResult, Judgement
from holdfast.conformance.run.artefacts import Identity
from holdfast.conformance.run.documents import CONTRACT, case_of, exit_of_documents, verdict_of
from holdfast.conformance.run.kit import environment, installed_kit, pin_of
from holdfast.conformance.run.settings import Caller
from holdfast.conformance.run.xfail import Applied, Expectation, apply
from holdfast.conformance.verdict import Exit, FailureMode, Verdict, gravest, gravest_finding
from holdfast.reports import evidence
from holdfast.reports.evidence import (
    AdapterIdentity,
    Answers,
    EvidenceFile,
    EvidenceWriter,
    Header,
    Implementation,
    Opening,
    Reached,
    Redactor,
    SdkAnswer,
    SdkIdentity,
    SeedOrigin,
    Selection,
    TableRow,
    Vectors,
    VerdictLine,
)
from holdfast.specs import load_contract
from holdfast.specs.typed import json_of, written
from holdfast.vectors.jcs.clauses import section_of
from holdfast.vectors.jcs.frames import Answered
from holdfast.vectors.jcs.opening import argument_of
from holdfast.vectors.jcs.spark.blocks import BLOCK_ROWS
from holdfast.vectors.jcs.spark.parity import Parity
from holdfast.vectors.jcs.spark.results import Counterexample, Result
from holdfast.vectors.jcs.spark.tally import Row
from holdfast.vectors.taxonomy import Category, Profile

# Of a category without rows.
NO_ROWS = "no generated rows, so that nothing is proven about it"
# Longer documents are not printed; the reproduction command has its own way to them.
MAX_SHOWN = 120


@dataclass(frozen=True, slots=True)
class Asked:
    """What the caller of a run asks for: who asks, the text of the seed, and which failures are expected.

    `identity` holds the files of the SDK as they are before the run.
    """

    caller: Caller
    seed: str
    expected: tuple[Expectation, ...] = ()
    identity: Identity | None = None

    @classmethod
    def plainly(cls, seed: int) -> Asked:
        """A seed that was chosen, and nothing else."""
        return cls(Caller(SeedOrigin.CHOSEN), str(seed))


@dataclass(frozen=True, slots=True)
class Concluded:
    """What a run amounts to: its line, its verdicts, expected failures, the exit status."""

    line: Vectors
    verdicts: tuple[VerdictLine, ...]
    applied: Applied
    status: Exit


def conclude(result: Result, expected: Sequence[Expectation] = ()) -> Concluded:
    """Judge each category that was asked, in the light of the failures that are `expected`."""
    line = line_of(result)
    lines = [_verdict_line(result, category, verdict_of(line, category)) for category in result.categories]
    judged = [CaseResult(each.case, each.clauses, Judgement.of(each), (), (), 0) for each in lines]
    plan = {case_of(line.profile, category) for category in Category}
    applied = apply(expected, judged, datetime.now(UTC).date(), not_run=plan - {each.case for each in lines})
    excused = {case: entry.issue for case, entry in applied.excused.items()}
    status = gravest([exit_of_documents(line, result.categories, excused), applied.exit])
    lines = [structs.replace(each, excused=excused.get(each.case)) for each in lines]
    return Concluded(line, tuple(lines), applied, status)


def exit_of_result(result: Result) -> Exit:
    """The exit status of a run of which no failure is expected."""
    return conclude(result).status


def record(result: Result, where: Path | EvidenceFile, asked: Asked | None = None) -> Exit:
    """Write `run.jsonl` and return the exit status that it ends with. Raises EvidenceError."""
    asked = asked or Asked.plainly(result.seed)
    command = result.target.command.words
    redactor = Redactor.knowing(command=command)
    identity = asked.identity or identity_of(command)
    header = _header(result, asked, identity.started)
    found = conclude(result, asked.expected)
    with EvidenceWriter(where, redactor=redactor) as writer:
        writer.header(header)
        writer.write(found.line)
        for line in found.verdicts:
            writer.write(line)
        writer.write(identity.conclude())
        verdict = gravest_finding(Verdict(line.verdict) for line in found.verdicts)
        writer.finish(verdict=verdict.value, exit_status=int(found.status))
        writer.confirm()
    return found.status


def identity_of(command: Sequence[str]) -> Identity:
    """The files of an SDK as they are now."""
    return Identity(command, started=datetime.now(UTC), redactor=Redactor.knowing(command=command))


def _header(result: Result, asked: Asked, started: datetime) -> Header:
    target, caller = result.target, asked.caller
    name = f"{target.name} ({target.library})" if target.library else target.name
    said = Implementation(name, target.version or "unknown", target.language or "unknown")
    left_out = [category for category in Category if category not in result.categories]
    asked_only = " or ".join(category.value for category in result.categories) if left_out else None
    return Header(
        kit=installed_kit(),
        contracts=(pin_of(load_contract(CONTRACT)),),
        adapter=AdapterIdentity(
            command=target.command.words,
            commit=caller.commit,
            implementation=said,
            claims=(),
        ),
        environment=environment(),
        config={"profile": result.profile.value},
        seed=asked.seed,
        seed_origin=caller.seed_origin,
        nonce=caller.nonce,
        deadlines={"answer": target.command.deadline, "start": target.command.start},
        started=started,
        plan=tuple(case_of(result.profile.value, category) for category in Category),
        selection=Selection((CONTRACT,), asked_only),
    )


def line_of(result: Result) -> Vectors:
    """The table and the counterexamples as a line of evidence."""
    target, opened = result.target, result.opened
    table = () if opened is None else tuple(map(_row, opened.rows))
    return Vectors(
        stream=result.stream,
        seed=result.seed,
        count=result.count,
        block_rows=BLOCK_ROWS,
        root=result.root,
        profile=result.profile.value,
        sdk=SdkIdentity(target.name, target.language, target.library, target.version),
        missing=result.missing,
        restarts=result.restarts,
        table=tuple(map(_row, result.generated)),
        counterexamples=tuple(_counterexample(result, found) for found in result.counterexamples),
        opening=None
        if opened is None
        else Opening(opened.count, opened.digest, opened.missing, table, opened.left_out),
        reached=tuple(
            Reached(category.value, measure.value, most)
            for category, measures in result.reached.items()
            for measure, most in measures.items()
        ),
        answers=tuple(Answers(category.value, digest) for category, digest in result.answers.items()),
        left_out=result.left_out,
    )


def _row(row: Row) -> TableRow:
    counts = {finding.value: rows for finding, rows in row.counts.items()}
    return TableRow(row.category.value, row.profile.value, row.rows, **counts)


def _counterexample(result: Result, found: Counterexample) -> evidence.Counterexample:
    return evidence.Counterexample(
        category=found.category.value,
        finding=found.finding.value,
        rows=found.rows,
        index=found.index,
        document=found.document.hex(),
        shrunk=found.shrunk,
        expected=_answer(found.expected),
        answered=_answer(found.answered),
        reproduce=reproduction(result, found),
        name=found.name,
        clause=found.clause,
        section=section_of(found.clause),
    )


def _answer(answer: Answered) -> SdkAnswer:
    canonical = answer.status.value == "canonical"
    # An SDK may put anything into its reason.
    detail = "" if canonical else answer.body[:500].decode("utf-8", "replace")
    return SdkAnswer(answer.status.value, answer.body.hex() if canonical else None, detail)


def parity_json(found: Parity, status: Exit) -> dict[str, Any]:
    """The matrix for programs (vectors-parity.schema.json)."""
    first = found.results[0]
    return {
        "schema": 1,
        "stream": first.stream,
        "seed": first.seed,
        "count": first.count,
        "root": first.root,
        "exit": int(status),
        "categories": [{"category": one.value, "title": one.title} for one in Category],
        "without_rows": [one.value for one in found.without_rows],
        "sdks": [_sdk(result) for result in found.results],
        "not_proven": [asdict(one) for one in found.not_found],
        "faults": list(found.faults),
    }


def _sdk(result: Result) -> dict[str, Any]:
    """A column of the matrix: what the evidence says of the runner, and how many rows agree."""
    line = json_of(line_of(result))
    own = [row["agree"] for row in line["table"] if row["profile"] == line["profile"]]
    return {
        **line["sdk"],
        "command": list(result.target.command.words),
        "profile": line["profile"],
        "agree": sum(own),
        "missing": line["missing"],
        "restarts": line["restarts"],
        "seconds": round(result.seconds, 3),
        **{name: line[name] for name in ("table", "counterexamples", "opening", "reached")},
    }


def answer_json(answer: Answered) -> dict[str, Any]:
    """An answer as reports have it."""
    return written(_answer(answer))


def _verdict_line(result: Result, category: Category, verdict: Verdict) -> VerdictLine:
    row = result.row(category)
    counted = ", ".join(f"{rows} {finding.words}" for finding, rows in row.counts.items() if rows)
    if category in result.without_rows:
        counted = f"{counted}; {NO_ROWS}" if counted else NO_ROWS
    found = [found for found in result.counterexamples if found.category is category]
    first = found[0] if found else None
    # How large the documents were that were answered as expected.
    most = [f"{most:,} {measure.words}" for measure, most in result.reached.get(category, {}).items()]
    reached = [f"right up to {', '.join(most)}"] if most else []
    expected, received, advice = (
        ("", "", "")
        if first is None
        else (
            f"{answer_text(first.expected)} for {shown(first.document)} ({first.clause}, {section_of(first.clause)})",
            answer_text(first.answered),
            f"run {reproduction(result, first)}",
        )
    )
    return VerdictLine(
        case=case_of(result.profile.value, category),
        clauses=tuple(sorted({one.clause for one in found})),
        verdict=verdict.value,
        silence=_silence(result, first, verdict),
        detail="; ".join([f"{category.title}: {counted}", *reached, *result.unaccounted]),
        expected=expected,
        received=received,
        advice=advice,
        excused=None,
        seconds=0,
        side=None,
        n=None,
    )


def without_rows(categories: Iterable[Category]) -> list[str]:
    """A line for each category without rows."""
    names = ", ".join(category.value for category in categories)
    return [f"no rows of {names}: nothing is proven about them; more rows are needed (--count)"] if names else []


def _silence(result: Result, found: Counterexample | None, verdict: Verdict) -> str | None:
    if verdict is not Verdict.NO_VERDICT:
        return None
    if result.lost:
        return FailureMode.MISSING.value
    words = {"crashed": FailureMode.CRASH, "hung": FailureMode.HANG, "garbled": FailureMode.GARBAGE}
    silence = None if found is None else words.get(found.answered.status.value)
    if silence is None and result.restarts:
        silence = FailureMode.CRASH
    return None if silence is None else silence.value


def shown(data: bytes) -> str:
    """Bytes for people: as text if they are printable, else in hexadecimal; cut if they are long."""
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError:
        text = ""
    if text and text.isprintable():
        return text if len(text) <= MAX_SHOWN else f"{text[:MAX_SHOWN]}… ({len(data)} bytes)"
    word = f"hex:{data[: MAX_SHOWN // 2].hex()}"
    readable = data.decode("utf-8", "backslashreplace") if len(data) <= MAX_SHOWN // 2 else ""
    if len(data) > MAX_SHOWN // 2:
        return f"{word}… ({len(data)} bytes)"
    return f"{word}  {readable!a}" if readable else word


def answer_text(answer: Answered) -> str:
    """An answer in one line."""
    if answer.status.value == "canonical":
        return shown(answer.body)
    # The text of a runner. A line of its own could be taken for a line of the report.
    words = answer.body.decode("utf-8", "replace")[:200]
    return f"{answer.status.value}: {''.join(one if one.isprintable() else ascii(one)[1:-1] for one in words)}"


def reproduction(result: Result, found: Counterexample) -> str:
    """One command that asks the SDK about the document again, and says what is expected."""
    document = f"hex:{found.document.hex()}"
    if len(found.document) > MAX_SHOWN:
        document = f"{result.seed}:{found.index}" if found.name is None else argument_of(result.seed, found.name)
    words = ["holdfast", "vectors", "show", document]
    if result.profile is not Profile.CORE:
        words += ["--profile", result.profile.value]
    named = bool(result.target.language)
    words += ["--sdk", result.target.name] if named else ["--", *result.target.command.words]
    return shlex.join(words)
