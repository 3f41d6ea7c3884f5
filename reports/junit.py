"""JUnit XML of a run, as CI systems read it: the format of Jenkins' xUnit plugin, `junit-10.xsd`.

One suite for each contract. A case that failed is a failure, one without a verdict is an error, an excused one is
skipped. The suite `holdfast` holds one case, the run itself: it passes only if the run's exit status is 0, so that a
narrowed run, an incomplete one, or one in which no adapter started is never green.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from holdfast.reports.results import RUN, Outcome, Result, Results

# What XML 1.0 cannot hold, not even escaped.
_FORBIDDEN = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ELEMENT = {Outcome.FAILED: "failure", Outcome.ERROR: "error", Outcome.SKIPPED: "skipped"}


def junit_xml(results: Results) -> bytes:
    """The run as one XML document in UTF-8."""
    suites = [_suite(RUN, [results.whole()], results.properties, results.started)]
    for contract, properties in results.contracts.items():
        cases = [case for case in results.cases if case.contract == contract]
        suites.append(_suite(contract, cases, properties, results.started))
    root = ET.Element("testsuites", {"name": RUN, "time": f"{results.seconds:.3f}"})
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.extend(suites)
    ET.indent(root)
    document: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return document + b"\n"


def _suite(name: str, cases: Sequence[Result], properties: Mapping[str, str], started: datetime) -> ET.Element:
    counted = {outcome: sum(case.outcome is outcome for case in cases) for outcome in Outcome}
    suite = ET.Element(
        "testsuite",
        {
            "name": _legal(name),
            "tests": str(len(cases)),
            "failures": str(counted[Outcome.FAILED]),
            "errors": str(counted[Outcome.ERROR]),
            "skipped": str(counted[Outcome.SKIPPED]),
            "time": f"{sum(case.seconds for case in cases):.3f}",
            "timestamp": started.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
        },
    )
    listed = ET.SubElement(suite, "properties")
    for key, value in properties.items():
        ET.SubElement(listed, "property", {"name": _legal(key), "value": _legal(value)})
    suite.extend(map(_case, cases))
    return suite


def _case(case: Result) -> ET.Element:
    # contract/file/case: the class is what stands before the last part, with dots as CI systems have them.
    group, _, name = case.case.rpartition("/")
    class_name = group.replace("/", ".") or case.contract
    element = ET.Element(
        "testcase", {"classname": _legal(class_name), "name": _legal(name), "time": f"{case.seconds:.3f}"}
    )
    kind = _ELEMENT.get(case.outcome)
    if kind is not None:
        found = ET.SubElement(element, kind, {"type": _legal(case.verdict), "message": _legal(case.message)})
        found.text = _legal(case.text)
        if case.transcript:
            ET.SubElement(element, "system-out").text = _legal(case.transcript)
    return element


def _legal(text: str) -> str:
    """Text that XML can hold: every other character is written out."""
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
