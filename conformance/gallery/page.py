"""The pages of the gallery: one for each entry, which holds what its run showed, and one table of all."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import Enum, unique
from html import escape
from pathlib import Path
from typing import Any

import yaml

from holdfast.conformance.gallery.running import ENTRIES, TRIES, Entry, Ran, RepeatedFailure
from holdfast.conformance.run.plan import suite_case_id, suite_tests
from holdfast.conformance.verdict import Verdict
from holdfast.servers.wires.profile import CONTRACT, whole
from holdfast.specs import load_contract

FOLDER, INDEX = "gallery", "index.md"
_FENCE = "---\n"
_ABOVE = """# The gallery

Published libraries, pinned, each behind a service of at most 60 lines with a real store, two credentials and a safe
route. Each is run against [the contract `idempotency-key`](../contracts/idempotency-key.md), with the profile that its
own documentation gives it.

**What is published.** Only limits that the library's own documentation or its public issue tracker states; each page
quotes them, with address and version. What else a run finds is first reported to the maintainers, and is no part of
these pages before that. `holdfast gallery run NAME --write FOLDER` shows you all of it, on your machine.

**State of disclosure.** {disclosure}

**To object.** A profile that is not what the documentation says, a service that uses the library wrongly, a finding
that is none: open an issue of holdfast with the name of the entry and, if you can, a `service.toml` that shows it. The
page is taken out until the issue is decided, and made again then.

"""
_NOBODY = "No maintainer has been informed so far, so no finding beyond the quoted limits is published."
# What the marks in the picture mean.
_OPEN, _WRONG, _CHOSEN = "\u25cf", "\u25cb", "\u25d0"
# It scrolls in its own box, so that a phone shows the rest of the page as wide as it is.
_STYLE = (
    "<style>.gallery { overflow-x: auto; font-size: small } "
    ".gallery th, .gallery td { min-width: 0 !important; padding: .3em .4em !important }</style>"
)
_LEGEND = (
    f"{_OPEN} fails open, {_WRONG} departs otherwise, {_CHOSEN} left out by choice; no mark: nothing is published. "
    "A column is a class of clauses, as IK-KEY"
)


@unique
class Audience(Enum):
    """Who reads a page: whoever ran the entry, or everybody. The second sees quoted limits alone."""

    LOCAL = "local"
    PUBLIC = "public"


_NOTHING = "Nothing is published of it. That says neither that its run found something nor that it found nothing."
_NO_FINDING = (Verdict.NO_VERDICT.value, Verdict.NOT_REACHED.value, Verdict.INDETERMINATE.value)
# What a profile leaves out by choice, although the clause asks for it.
_LEFT_OUT: Mapping[str, tuple[str, Callable[[Mapping[str, Any]], bool]]] = {
    "IK-SCOPE-1": ("two principals share a key", lambda said: "principal" not in said["scope"]),
    "IK-FP-2": ("another query gets the first answer", lambda said: "query" not in said["fingerprint"]),
    "IK-ONCE-3": ("instances do not share their keys", lambda said: not said["shared"]),
    "IK-RESP-1": ("no answer is kept", lambda said: said["duplicate"] != "replay"),
}


def chosen(profile: Mapping[str, Any]) -> dict[str, str]:
    """What a profile leaves out, in words, by the clause that is broken by this choice; see `profile.whole`."""
    return {clause: words for clause, (words, is_out) in _LEFT_OUT.items() if is_out(profile)}


def clauses_of(case: str) -> str:
    """The clauses of a case of the suite."""
    marks = {suite_case_id(CONTRACT, test.__name__): mark for test, mark in suite_tests(CONTRACT)}
    return ", ".join(marks[case].clauses) if case in marks else ""


def page(name: str, entry: Entry, ran: Ran, *, version: str, audience: Audience = Audience.LOCAL) -> str:
    """The page of an entry, its facts in front for `table`."""
    public = audience is Audience.PUBLIC
    shown = [each for each in ran.findings if not public or _is_a_quoted_limit(entry, each)]
    # An advice that was not run is none; in public, one that closes no quoted limit speaks of others.
    closed = [each for each in shown if ran.safe is not None and ran.safe.get(each.case) == Verdict.CONFORMS.value]
    is_advised = bool(closed) if public else ran.safe is not None
    # No documentation is quoted for it.
    left_out = {} if public else chosen(_profile(name))
    facts = {
        "name": name,
        "title": entry.title,
        "language": entry.language,
        "package": entry.package,
        "version": entry.version,
        "store": entry.store,
        "date": ran.date,
        "holdfast": version,
        "suite": ran.suite,
        **({} if public else {"cases": _counted(ran.verdicts)}),
        "findings": [
            {
                "case": each.case,
                "verdict": each.verdict,
                "times": each.times,
                "declared": entry.quoted(each.case) is not None,
            }
            for each in shown
        ],
        "chosen": left_out,
        "disclosure": entry.disclosure,
        "safe": entry.safe if is_advised else "",
    }
    front = yaml.safe_dump(facts, sort_keys=False, allow_unicode=True, width=118)
    counts = "" if public else f": {_listed(ran.verdicts)}"
    left = (
        f"run: {len(shown) - len(closed)} of these {len(shown)} cases are left" if public else _listed(ran.safe or {})
    )
    advice = f"**To be safe** ({left}). " if is_advised else "**Advice that no run has tried.** "
    words = [
        f"# {entry.title}",
        f"`{entry.package}` {entry.version} ({entry.language}, store: {entry.store}), {entry.homepage}. "
        f"Run on {ran.date} by `holdfast gallery run {name}` with the tests `{ran.suite[:19]}`{counts}.",
        f"The service is `conformance/gallery/entries/{name}`. Its profile is what the documentation of the library "
        "says; where that is silent, it is the mildest reading of what the code does.",
        *([] if public and not is_advised else [advice + entry.safe]),
        *([] if shown or not public else [_NOTHING]),
        *(f"Broken by choice ({clause}): {what}." for clause, what in left_out.items()),
        *(_finding(entry, finding) for finding in shown),
    ]
    return _FENCE + front + _FENCE + "\n" + "\n\n".join(words) + "\n"


def _is_a_quoted_limit(entry: Entry, finding: RepeatedFailure) -> bool:
    is_found = finding.times == TRIES and finding.verdict not in _NO_FINDING
    return is_found and entry.quoted(finding.case) is not None


def _profile(name: str) -> Mapping[str, Any]:
    path = ENTRIES / name / "service.toml"
    found: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    profile: Mapping[str, Any] = whole({"profile": found.get("profile", {"key_syntax": "opaque"})})["profile"]
    return profile


def _counted(verdicts: Mapping[str, str]) -> dict[str, int]:
    return dict(sorted(Counter(verdicts.values()).items()))


def _listed(verdicts: Mapping[str, str]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in _counted(verdicts).items())


def _finding(entry: Entry, finding: RepeatedFailure) -> str:
    name = finding.case.rpartition("/")[2].replace("-", " ")
    clauses = clauses_of(finding.case)
    limit = entry.quoted(finding.case)
    kind = "A finding that no documentation states" if limit is None else "A limit that the documentation states"
    detail = finding.detail.partition("; the call was")[0]
    parts = [
        f"## {name[0].upper()}{name[1:]}",
        f"{kind}: **{finding.verdict}** ({clauses}), {finding.times} of {TRIES} times. {detail}.",
    ]
    if limit is not None:
        parts.append(f"> {limit.quote}\n>\n> [{limit.source}]({limit.url})")
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


def _marks(facts: Mapping[str, Any]) -> Mapping[str, str]:
    """The gravest mark of each class of clauses, as KEY and RACE."""
    found = {clause.split("-")[1]: _CHOSEN for clause in facts.get("chosen", {})}
    for finding in sorted(facts["findings"], key=lambda each: bool(each["verdict"] == "fail_open")):
        if finding["times"] == TRIES:
            of = clauses_of(finding["case"]).split("-")[1]
            found[of] = _OPEN if finding["verdict"] == "fail_open" else _WRONG
    return found


def table(pages: Sequence[Mapping[str, Any]]) -> str:
    """The picture of all entries, library by class of clause, and a line on each, as Markdown with an HTML table."""
    informed = [f"{facts['title']}: {facts['disclosure']}" for facts in pages if facts.get("disclosure")]
    above = _ABOVE.format(disclosure=" ".join(informed) or _NOBODY)
    if not pages:
        return above + "No page is published at present: each has to be made again with the tests of today.\n"
    classes = list(dict.fromkeys(clause.split("-")[1] for clause in load_contract(CONTRACT).clauses))
    marked = {facts["name"]: _marks(facts) for facts in pages}
    rows = [
        f'<tr><th scope="row">{escape(facts["title"].partition(":")[0])}</th>'
        + "".join(f"<td>{marked[facts['name']].get(each, '')}</td>" for each in classes)
        + "</tr>"
        for facts in pages
    ]
    head = "".join(f"<th>{each}</th>" for each in classes)
    picture = [_STYLE, '<div class="gallery">', "<table>", f"<tr><th></th>{head}</tr>", *rows]
    lines = [
        f"- [{facts['title']}]({facts['name']}.md): `{facts['package']}` {facts['version']}, {facts['store']}, "
        f"{facts['date']}, tests `{str(facts.get('suite', ''))[:19]}`. "
        + (
            f"Cases that fail by a quoted limit: {len(facts['findings'])}. {facts['safe']}".rstrip()
            if facts["findings"]
            else _NOTHING
        )
        for facts in pages
    ]
    return above + "\n".join([*picture, "</table>", "</div>", "", f"{_LEGEND}.", "", *lines]) + "\n"
