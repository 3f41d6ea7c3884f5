"""An assessment as one HTML file: no network, no scripts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from holdfast.conformance.fitness import view
from holdfast.conformance.fitness.assessment import Assessment


def page(assessment: Assessment, document: Mapping[str, Any]) -> str:
    """The page; `document` is the proof of the same assessment."""
    environment = Environment(
        loader=PackageLoader("holdfast.conformance.fitness"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        trim_blocks=True,
        undefined=StrictUndefined,
    )
    return environment.get_template("fitness.html.j2").render(
        status=assessment.judgement.status.value,
        target=assessment.target,
        surface=assessment.surface,
        document=document,
        findings=view.findings(assessment),
        notes=view.notes(assessment),
        candidates=view.candidates(assessment),
    )
