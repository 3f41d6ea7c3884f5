"""Allure results of a run, written through Allure's own library: one result for each case, and one for the run.

A case that failed is `failed`; `broken` is only what has no verdict. Contract and clause are labels and suites, the
cause that findings share is their story, an excused failure is marked as known, and the transcript is an attachment.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

from allure_commons.logger import AllureFileLogger
from allure_commons.model2 import Attachment, Label, Link, Status, StatusDetails, TestResult
from allure_commons.types import AttachmentType, LabelType, LinkType
from allure_commons.utils import md5

from holdfast.reports.results import Outcome, Result, Results

# By this label a result file is known as holdfast's own (`holdfast.reports.earlier`).
FRAMEWORK = "holdfast"
_STATUS = {
    Outcome.PASSED: Status.PASSED,
    Outcome.FAILED: Status.FAILED,
    Outcome.ERROR: Status.BROKEN,
    Outcome.SKIPPED: Status.SKIPPED,
}


def write_allure(results: Results, folder: Path) -> None:
    """Write the results into `folder`, made where it is missing. Raises OSError."""
    logger = AllureFileLogger(str(folder))
    for case in results.cases:
        logger.report_result(_result(case, results.started, logger))
    logger.report_result(_result(results.whole(), results.started, logger))


def _result(case: Result, begun: datetime, logger: AllureFileLogger) -> TestResult:
    started = case.started or begun
    excused = case.excused is not None and case.outcome is not Outcome.PASSED
    # An expected failure is a failure all the same; Allure marks it as known.
    status = Status.FAILED if excused else _STATUS[case.outcome]
    found = TestResult(
        uuid=str(uuid.uuid4()),
        name=case.case,
        fullName=case.case,
        historyId=md5(case.case),
        testCaseId=md5(case.case),
        description=case.title,
        status=status,
        stage="finished",
        start=_milliseconds(started),
        stop=_milliseconds(started + timedelta(seconds=case.seconds)),
        labels=list(_labels(case, excused=excused)),
    )
    if case.outcome is not Outcome.PASSED:
        found.statusDetails = StatusDetails(message=f"{case.verdict}: {case.message}", trace=case.text, known=excused)
    if case.excused is not None:
        found.links.append(Link(type=LinkType.ISSUE, url=case.excused, name=case.excused))
    if case.transcript:
        source = f"{uuid.uuid4()}-attachment.{AttachmentType.TEXT.extension}"
        logger.report_attached_data(case.transcript, source)
        found.attachments.append(Attachment(name="transcript", source=source, type=AttachmentType.TEXT.mime_type))
    return found


def _labels(case: Result, *, excused: bool) -> Iterator[Label]:
    yield Label(LabelType.FRAMEWORK, FRAMEWORK)
    yield Label(LabelType.SEVERITY, case.severity)
    yield Label(LabelType.PARENT_SUITE, case.contract)
    yield Label(LabelType.EPIC, case.contract)
    yield Label("contract", case.contract)
    for clause in case.clauses[:1]:
        yield Label(LabelType.SUITE, clause)
    for clause in case.clauses:
        yield Label(LabelType.FEATURE, clause)
        yield Label("clause", clause)
    yield Label("verdict", case.verdict)
    if case.cause:
        yield Label(LabelType.STORY, case.cause)
    if excused:
        yield Label(LabelType.TAG, "excused")


def _milliseconds(moment: datetime) -> int:
    return int(moment.timestamp() * 1000)
