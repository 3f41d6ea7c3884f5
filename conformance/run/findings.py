"""What a run found, as a person reads it: one group for one cause, bytes as text, and what was declared absent.

Console, JUnit and Allure share it. All of it is a projection of results: nothing here changes a verdict.
"""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from holdfast.conformance.cases.record import Judgement, Record
from holdfast.conformance.cases.values import from_base64url
from holdfast.conformance.run.plan import PlannedCase
from holdfast.conformance.verdict import REPORTED, Verdict
from holdfast.reports.evidence import Exchange
from holdfast.reports.plain import bytes_as_text, difference
from holdfast.specs import Contract
from holdfast.specs.leaves import leaves
from holdfast.specs.model import Method, Remedy

_MOST = 300
# What differs between findings of one cause: documents, quoted words, and numbers.
_VALUES = re.compile(r"""[{\[].*[}\]]|(["']).*?\1|[0-9a-f]{8,}|-?[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?""", re.DOTALL)
_CALL = "; the call was "
_ENCODED = r"(?P<{0}>['\"])(?P<{1}>[A-Za-z0-9_-]*)(?P<{2}>(?P={0})|….*)"


@dataclass(frozen=True, slots=True)
class Finding:
    """A result that does not conform. `operation` is the method of the judged call; the texts have bytes as text."""

    planned: PlannedCase
    verdict: Verdict
    silence: str
    operation: str
    detail: str
    expected: str
    received: str
    # The clause under which it is reported; empty for the one that the case is about first.
    own: str = ""

    @property
    def clause(self) -> str:
        """The clause under which it is reported."""
        return self.own or self.planned.clauses[0]


@dataclass(frozen=True, slots=True)
class Group:
    """Findings of one cause, the gravest first. `remedy` is what usually mends them, where the contract says it."""

    members: tuple[Finding, ...]
    remedy: Remedy | None

    @property
    def cause(self) -> str:
        """A heading: the cause that the contract names, or what the findings have in common."""
        first = self.members[0]
        if self.remedy is not None:
            return self.remedy.cause
        return f"{first.operation or first.clause}: {_shape(first.detail)}"

    @property
    def heading(self) -> str:
        """The cause with what usually mends it, and how many findings have it."""
        number = "" if len(self.members) == 1 else f" ({len(self.members)} cases)"
        mends = "" if self.remedy is None else f". What usually mends it: {self.remedy.mends}"
        return f"{self.cause}{number}{mends}"


def finding_of(
    judged: Judgement, records: Sequence[Record | Exchange], planned: PlannedCase, contract: Contract
) -> Finding:
    """A result with its texts. `records` are those of the judged side."""
    record = next((each for each in records if each.n == judged.n), None)
    request = {} if record is None else record.request or {}
    method = contract.methods.get(request.get("method", ""))
    mode = "" if judged.silence is None else judged.silence.value
    detail, expected, received = (in_words(text, method) for text in (judged.detail, judged.expected, judged.received))
    operation = "" if method is None else method.name
    own = reported_under(judged.verdict, planned, contract)
    return Finding(planned, judged.verdict, mode, operation, detail, expected, received, own)


def reported_under(verdict: Verdict, planned: PlannedCase, contract: Contract) -> str:
    """The clause of a case that a finding breaks: the one whose harm it is, or the one that the case is about first.

    Of the others it shows nothing.
    """
    named = (name for name in planned.clauses if verdict.value in contract.clauses[name].harm_of)
    return next(named, planned.clauses[0])


def grouped(findings: Iterable[Finding], contracts: Iterable[Contract]) -> tuple[Group, ...]:
    """The findings by their causes, the gravest first: a remedy that fits, or one operation, difference and family.

    What conforms, and what was declared absent, is no finding.
    """
    of_none = Verdict.CONFORMS, Verdict.UNSUPPORTED
    findings = [each for each in findings if each.verdict not in of_none]
    remedies = {contract.name: contract.remedies.values() for contract in contracts}
    groups: dict[tuple[object, ...], list[Finding]] = {}
    found: dict[tuple[object, ...], Remedy | None] = {}
    for each in sorted(findings, key=lambda one: REPORTED.index(one.verdict)):
        remedy = next((one for one in remedies[each.planned.contract] if _mends(one, each)), None)
        family = "" if each.verdict.is_incomplete else each.clause.rpartition("-")[0]
        shape = each.verdict, each.silence, each.operation, _shape(each.detail), family
        key = (each.planned.contract, *(shape if remedy is None else (remedy.name,)))
        groups.setdefault(key, []).append(each)
        found[key] = remedy
    return tuple(Group(tuple(members), found[key]) for key, members in groups.items())


def _mends(remedy: Remedy, finding: Finding) -> bool:
    is_of = not remedy.clauses or finding.clause in remedy.clauses
    says = remedy.detail is None or re.search(remedy.detail, finding.detail) is not None
    return is_of and says and finding.verdict.value in remedy.verdicts


def _shape(detail: str) -> str:
    """A detail without the values that differ from case to case."""
    return _VALUES.sub("…", detail.split(_CALL)[0].split("; ")[0])


def absent(
    results: Iterable[tuple[PlannedCase, str]], not_claimed: Mapping[str, Mapping[str, str]]
) -> Mapping[tuple[str, str], int]:
    """How many cases ended as unsupported, by the capability that hello lacks and the adapter's own reason.

    `results` are cases with their details; where no capability is named, the detail is the reason.
    """
    counted: Counter[tuple[str, str]] = Counter()
    for planned, detail in results:
        lacks = not_claimed.get(planned.contract, {})
        said = detail
        for reason in lacks.values():
            said = said.replace(reason, "")
        named = [name for name in lacks if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", said)]
        counted.update([(name, lacks[name]) for name in named[:1]] or [("", detail)])
    return counted


# Bytes as text


def encoded_in(method: Method | None) -> frozenset[str]:
    """The names of the members of arguments and result that are bytes as base64url, by the method's schemas."""
    schemas = () if method is None else (method.args, method.result)
    places = [place for one in schemas if one is not None for place in leaves(one.schema)]
    return frozenset(
        place.path.split(".")[-1]
        for place in places
        if place.leaf is not None and place.leaf.kind == "base64url" and not place.encoded
    )


def in_words(text: str, method: Method | None) -> str:
    """A text of a judgement in which bytes stand as text, and beside two that differ the place where they part."""
    names = "|".join(map(re.escape, sorted(encoded_in(method))))
    if not names:
        return text
    due, came = _ENCODED.format("q", "due", "end"), _ENCODED.format("p", "came", "over")
    pair = rf"(?P<name>{names}): expected {due}, got {came}"
    text = re.sub(pair, lambda found: f"{found['name']}: {_parted(found['due'], found['came'])}", text)
    one = rf"(?P<name>['\"](?:{names})['\"]: ?){_ENCODED.format('q', 'value', 'end')}"
    return re.sub(one, lambda found: found["name"] + readable(found["value"]) + found["end"].strip("'\""), text)


def readable(value: str) -> str:
    """Base64url, which may be cut, as text."""
    return bytes_as_text(_bytes(value), most=_MOST)


def _bytes(value: str) -> bytes:
    return from_base64url(value[:-1] if len(value) % 4 == 1 else value)


def _parted(due: str, came: str) -> str:
    return f"{readable(due)} is due, {readable(came)} came; {difference(_bytes(due), _bytes(came))}"


def texts_in(value: Any, names: frozenset[str]) -> list[tuple[str, str]]:
    """The members of a request or an answer that are bytes: their names, and what they hold as text.

    A near miss may be no base64url; it stands in the request as it was sent.
    """
    members = value.items() if isinstance(value, Mapping) else (("", each) for each in value)
    found: list[tuple[str, str]] = []
    for name, each in members:
        if isinstance(each, Mapping | list | tuple):
            found += texts_in(each, names)
        elif name in names and isinstance(each, str):
            with contextlib.suppress(ValueError):
                found.append((name, readable(each)))
    return found
