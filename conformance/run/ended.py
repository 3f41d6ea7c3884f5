"""The judgement on a case that did not come to its end: by an exception, or because no worker was left."""

from __future__ import annotations

import traceback
from collections.abc import Iterator

from holdfast.conformance.cases.record import Finding, Judgement
from holdfast.conformance.verdict import Verdict


def judgement_of(error: BaseException, otherwise: str) -> Judgement:
    """The text of an exception. Hypothesis bundles several failures; the worst finding counts."""
    findings = list(_findings_in(error))
    if findings:
        order = list(Verdict)
        return min(findings, key=lambda judgement: order.index(judgement.verdict))
    text = "".join(traceback.format_exception_only(error)).strip()
    return Judgement(Verdict.KIT_FAULT, detail=f"{otherwise}: {text[:1500]}")


def _findings_in(error: BaseException) -> Iterator[Judgement]:
    if isinstance(error, Finding):
        yield error.judgement
    elif isinstance(error, BaseExceptionGroup):
        for part in error.exceptions:
            yield from _findings_in(part)


def exhausted() -> Judgement:
    """The judgement on a case for which no worker is left."""
    return Judgement(
        Verdict.NOT_REACHED,
        detail="three workers in a row had died before, so the case was not started",
    )
