"""The pages of the gallery: one for each entry, which holds what its run showed, and one table of all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from holdfast.conformance.gallery.entry import Entry
from holdfast.conformance.gallery.running import TRIES, Finding, Ran
from holdfast.conformance.run.plan import suite_case_id, suite_tests
from holdfast.conformance.suites.idempotency_key.asking import DECLARED
from holdfast.servers.wires.profile import CONTRACT

FOLDER, INDEX = "gallery", "index.md"
_FENCE = "---\n"
_ABOVE = """# The gallery

Published libraries, pinned, behind a service of at most 60 lines. Each was run by `holdfast gallery run NAME` against
[the contract `idempotency-key`](../contracts/idempotency-key.md), with the profile that its own documentation gives it.

A clause in bold failed open: there was a second effect, or the answer to another request. What is *declared* stands in
the documentation of the library, and its page quotes it. Every finding came three times of three.
`holdfast gallery table --write docs` wrote this page.

| library | language | package | store | date | found | declared | to be safe |
|---|---|---|---|---|---|---|---|
"""


def clauses_of(case: str) -> str:
    """The clauses of a case of the suite."""
    marks = {suite_case_id(CONTRACT, test.__name__): mark for test, mark in suite_tests(CONTRACT)}
    return ", ".join(marks[case].clauses) if case in marks else ""


def page(name: str, entry: Entry, ran: Ran, *, version: str) -> str:
    """The page of an entry, its facts in front for `table`."""
    counted = {verdict: list(ran.verdicts.values()).count(verdict) for verdict in sorted({*ran.verdicts.values()})}
    facts = {
        "name": name,
        "title": entry.title,
        "language": entry.language,
        "package": entry.package,
        "version": entry.version,
        "store": entry.store,
        "date": ran.date,
        "holdfast": version,
        "cases": counted,
        "findings": [_fact(entry, finding) for finding in ran.findings],
        "safe": entry.safe,
    }
    front = yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=118)
    words = [
        f"# {entry.title}",
        f"`{entry.package}` {entry.version} ({entry.language}, store: {entry.store}), {entry.homepage}. "
        f"Run on {ran.date} by `holdfast gallery run {name}`: "
        f"{', '.join(f'{count} {verdict}' for verdict, count in counted.items())}.",
        f"The service is `conformance/gallery/entries/{name}`. Its profile is what the documentation of the library "
        "says; where that is silent, it is the mildest reading of what the code does.",
        f"**To be safe.** {entry.safe}",
        *(_finding(entry, finding) for finding in ran.findings),
    ]
    return _FENCE + front + _FENCE + "\n" + "\n\n".join(words) + "\n"


def _fact(entry: Entry, finding: Finding) -> dict[str, Any]:
    declared = entry.quoted(finding.case) is not None or DECLARED in finding.detail
    return {"case": finding.case, "verdict": finding.verdict, "times": finding.times, "declared": declared}


def _finding(entry: Entry, finding: Finding) -> str:
    name = finding.case.rpartition("/")[2].replace("-", " ")
    clauses = clauses_of(finding.case)
    limit = entry.quoted(finding.case)
    chosen = limit is not None or DECLARED in finding.detail
    kind = "A limit that the documentation states" if chosen else "A finding"
    detail = finding.detail.partition("; the call was")[0]
    parts = [
        f"## {name[0].upper()}{name[1:]}",
        f"{kind}: **{finding.verdict}** ({clauses}), {finding.times} of {TRIES} times. {detail}.",
    ]
    if limit is not None:
        parts.append(f"> {limit.quote}\n>\n> {limit.source}")
    told = [lines[-16:] for lines in (finding.lines, finding.curls) if lines]
    parts += ["```text\n" + "\n".join(lines) + "\n```" for lines in told]
    return "\n\n".join(parts)


def facts_of(folder: Path) -> list[Mapping[str, Any]]:
    """What stands in front of each page."""
    found = []
    for path in sorted(folder.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if path.name != INDEX and text.startswith(_FENCE):
            found.append(yaml.safe_load(text.split(_FENCE)[1]))
    return found


def broken(facts: Mapping[str, Any], *, declared: bool) -> list[str]:
    """The clauses that an entry breaks, by its documentation or not; each with its verdict if it is not open."""
    told = []
    for finding in facts["findings"]:
        if finding["declared"] is declared and finding["times"] == TRIES:
            first = clauses_of(finding["case"]).partition(",")[0].removeprefix("IK-")
            told.append(f"**{first}**" if finding["verdict"] == "fail_open" else first)
    return told


def table(pages: Sequence[Mapping[str, Any]]) -> str:
    """The table of all entries, as Markdown."""
    rows = [
        f"| [{facts['title']}]({facts['name']}.md) | {facts['language']} | `{facts['package']}` {facts['version']} "
        f"| {facts['store']} | {facts['date']} | {', '.join(broken(facts, declared=False)) or '-'} "
        f"| {', '.join(broken(facts, declared=True)) or '-'} | {facts['safe']} |"
        for facts in pages
    ]
    return _ABOVE + "\n".join(rows) + "\n"
