"""The result of `holdfast vectors verify` as evidence, and its parts as text.

A category conforms only if every one of its rows agrees, and there is one; without any it was not reached, and the run
is not a whole one. If rows are missing anywhere, no category conforms: their categories are unknown. Nor does one if
the runner died and no document can be blamed: the cause is unknown.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from holdfast import __version__
from holdfast.conformance.run.artefacts import Identity
from holdfast.conformance.run.kit import environment, kit_digest, pin_of
from holdfast.conformance.verdict import Exit, FailureMode, Verdict, exit_of, gravest, gravest_finding, worst
from holdfast.reports import evidence
from holdfast.reports.evidence import (
    AdapterIdentity,
    EvidenceFile,
    EvidenceWriter,
    Header,
    Implementation,
    KitIdentity,
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

CONTRACT = "jcs"
# Of a category without rows.
NO_ROWS = "no generated rows, so that nothing is proven about it"
# Longer documents are not printed; the reproduction command has its own way to them.
MAX_SHOWN = 120


def verdict_of(finding: str) -> Verdict:
    """What a `Meaning` amounts to, as in a run of the contract."""
    others = {"accepted_must_refuse": "fail_open", "wrong_bytes": "wrong_reason", "agree": "conforms"}
    return Verdict(others.get(finding, finding))


def verdict_of_row(result: Result, row: Row) -> Verdict:
    """The verdict of a category: the worst of its rows, never `conforms` while anything is unaccounted for, and
    `not_reached` if there is no generated row of it."""
    found = [verdict_of(finding) for finding, rows in row.counts.items() if rows]
    if row.category in result.without_rows:
        # The opening alone proves nothing, and hides nothing graver.
        found = [*(one for one in found if one is not Verdict.CONFORMS), Verdict.NOT_REACHED]
    return worst([*found, Verdict.NO_VERDICT] if result.unaccounted else found)


def exit_of_result(result: Result) -> Exit:
    """The exit status of a run: 13 if the runner never answered, else the gravest of all categories there are."""
    if not result.answered:
        return Exit.ADAPTER
    return gravest(exit_of(verdict_of_row(result, row)) for row in result.lines)


def record(result: Result, where: Path | EvidenceFile) -> Exit:
    """Write `run.jsonl` and return the exit status that it ends with. Raises EvidenceError."""
    status = exit_of_result(result)
    header, command = _header(result), result.target.command.words
    redactor = Redactor.knowing(command=command)
    with EvidenceWriter(where, redactor=redactor) as writer:
        writer.header(header)
        writer.write(line_of(result))
        verdicts = []
        for row in result.lines:
            verdict = verdict_of_row(result, row)
            verdicts.append(verdict)
            writer.write(_verdict_line(result, row, verdict))
        writer.write(Identity(command, started=header.started, redactor=redactor).conclude())
        writer.finish(verdict=gravest_finding(verdicts).value, exit_status=int(status))
        writer.confirm()
    return status


def _case(result: Result, row: Row) -> str:
    return f"vectors/{result.profile.value}/{row.category.value}"


def _header(result: Result) -> Header:
    target = result.target
    said = None
    if target.language:
        said = Implementation(f"{target.name} ({target.library})", target.version or "unknown", target.language)
    return Header(
        kit=KitIdentity("holdfast", __version__, kit_digest()),
        contracts=(pin_of(load_contract(CONTRACT)),),
        adapter=AdapterIdentity(
            command=target.command.words,
            commit=None,
            implementation=said,
            claims=(),
        ),
        environment=environment(),
        config={"profile": result.profile.value},
        seed=str(result.seed),
        seed_origin=SeedOrigin.CHOSEN,
        nonce=None,
        deadlines={"answer": target.command.deadline, "start": target.command.start},
        started=datetime.now(UTC),
        plan=tuple(_case(result, row) for row in result.lines),
        selection=Selection((CONTRACT,), None),
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
        opening=None if opened is None else Opening(opened.count, opened.digest, opened.missing, table),
        reached=tuple(
            Reached(category.value, measure.value, most)
            for category, measures in result.reached.items()
            for measure, most in measures.items()
        ),
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


def _verdict_line(result: Result, row: Row, verdict: Verdict) -> VerdictLine:
    counted = ", ".join(f"{rows} {finding.words}" for finding, rows in row.counts.items() if rows)
    if row.category in result.without_rows:
        counted = f"{counted}; {NO_ROWS}" if counted else NO_ROWS
    found = [found for found in result.counterexamples if found.category is row.category]
    first = found[0] if found else None
    # How large the documents were that were answered as expected.
    most = [f"{most:,} {measure.words}" for measure, most in result.reached.get(row.category, {}).items()]
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
        case=_case(result, row),
        clauses=tuple(sorted({one.clause for one in found})),
        verdict=verdict.value,
        silence=_silence(result, first, verdict),
        detail="; ".join([f"{row.category.title}: {counted}", *reached, *result.unaccounted]),
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
