"""What the evidence tells of a layer: everything that its judgement rests on, as one object. Pure.

It travels as the detail of an event, in its RFC 8785 text, so that the gate can judge the fault again from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from holdfast.conformance.faults.oracle import Kind
from holdfast.conformance.faults.report import Report
from holdfast.conformance.verdict import Silence
from holdfast.specs.strictjson import canonical, loads

# The failure modes of what keeps a layer from proving anything.
_MODES = frozenset({Silence.BUSY.value, Silence.FAULT.value})
# How a layer came to see what it judges.
BY_PTRACE, BY_RESTARTS, BY_SIGNALS = "recorded by ptrace", "by restarts", "by signals"


class ToldError(ValueError):
    """A text that tells of no layer; it says why."""


@dataclass(frozen=True, slots=True)
class ToldFinding:
    """A promise that was broken: its class, what was expected, what came, and how it came about."""

    kind: Kind
    expected: str
    came: str
    words: str


@dataclass(frozen=True, slots=True)
class Told:
    """A report as it stands in the evidence.

    `words` say how much was tried, as people read it. `beside` says why the layer does not apply, `untested` why this
    machine cannot try it and a weaker one was tried in its place; both are None where that is not so. `silence` is the
    failure mode of what kept it from proving anything: `fault` where the adapter said that it failed itself, `busy`
    where the machine was too busy; None where there is none.
    """

    layer: str
    how: str
    tried: int
    total: int
    seed: int
    words: str
    beside: str | None
    untested: str | None
    unproven: tuple[str, ...]
    silence: str | None
    findings: tuple[ToldFinding, ...]

    def detail(self) -> str:
        """As it stands in the event."""
        return canonical(asdict(self)).decode()

    def sentence(self) -> str:
        """For a person."""
        if self.beside is not None:
            return f"{self.layer}: {self.beside}"
        parts = [f"{self.layer}: {self.words}; {self.how}"]
        parts += [f"{one.kind.value}: expected {one.expected}; got {one.came}. {one.words}" for one in self.findings]
        parts += [f"not proven: {words}" for words in self.unproven]
        return "; ".join(parts)


def tell(report: Report, *, how: str, seed: int, untested: str = "", silence: Silence | None = None) -> Told:
    """What a report tells, as the evidence has it; `silence` is why it proves nothing, if it does not."""
    return Told(
        layer=report.layer.value,
        how=how,
        tried=report.tried,
        total=report.total,
        seed=seed,
        words=_text(report.tally),
        beside=_text(report.beside) or None,
        untested=_text(untested) or None,
        unproven=tuple(map(_text, report.unproven)),
        silence=None if silence is None or not report.unproven else silence.value,
        findings=tuple(
            ToldFinding(
                one.verdict.kind,
                _text(one.verdict.expected),
                _text(one.verdict.came),
                _text(one.story if one.kept is None else f"{one.story} The state is kept as {one.kept}."),
            )
            for one in report.findings
        ),
    )


def _text(text: str) -> str:
    """Without lone surrogates, which an adapter may print and no JSON may hold."""
    return text.encode("utf-8", "replace").decode()


def read(detail: object) -> Told:
    """Back from the event. Raises ToldError for anything but the very text that `detail` makes."""
    try:
        data = loads(detail if isinstance(detail, str) else "")
    except ValueError as error:
        raise ToldError(f"it is no JSON text ({error})") from error
    if not isinstance(data, dict) or canonical(data).decode() != detail:
        raise ToldError("it is not the RFC 8785 text of an object")
    _members(data, Told)
    unproven, findings = (_listed(data, name) for name in ("unproven", "findings"))
    if not all(isinstance(words, str) for words in unproven):
        raise ToldError("expected texts under unproven")
    told = Told(
        layer=_string(data, "layer"),
        how=_string(data, "how"),
        tried=_count(data, "tried"),
        total=_count(data, "total"),
        seed=_count(data, "seed"),
        words=_string(data, "words"),
        beside=None if data["beside"] is None else _string(data, "beside"),
        untested=None if data["untested"] is None else _string(data, "untested"),
        unproven=tuple(unproven),
        silence=None if data["silence"] is None else _string(data, "silence"),
        findings=tuple(map(_finding, findings)),
    )
    if told.beside == "" or told.untested == "":
        raise ToldError("why it does not apply, or was not tested, is said in no words")
    if told.silence is not None and (told.silence not in _MODES or not told.unproven):
        raise ToldError(f"{told.silence!r} is no failure mode of what keeps a layer from proving anything")
    if not told.words.startswith(f"{told.tried} of {told.total}"):
        raise ToldError(f"{told.tried} of {told.total} is contradicted by its words, {told.words!r}")
    return told


def in_words(detail: str) -> str:
    """The detail of an event for a person, whatever it tells of."""
    try:
        return read(detail).sentence()
    except ToldError:
        return detail


def _finding(data: object) -> ToldFinding:
    if not isinstance(data, dict):
        raise ToldError("expected objects under findings")
    _members(data, ToldFinding)
    kind = _string(data, "kind")
    if kind == Kind.CLEAN.value or kind not in set(Kind):
        raise ToldError(f"{kind!r} is no class of a finding")
    return ToldFinding(Kind(kind), *(_string(data, name) for name in ("expected", "came", "words")))


def _members(data: Mapping[str, Any], shape: type[Told] | type[ToldFinding]) -> None:
    expected = {field.name for field in fields(shape)}
    if data.keys() != expected:
        raise ToldError(f"expected the members {', '.join(sorted(expected))}, got {', '.join(sorted(data)) or 'none'}")


def _string(data: Mapping[str, Any], name: str) -> str:
    value = data[name]
    if not isinstance(value, str):
        raise ToldError(f"expected words under {name}, got {value!r}")
    return value


def _count(data: Mapping[str, Any], name: str) -> int:
    value = data[name]
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise ToldError(f"expected a number of 0 or more under {name}, got {value!r}")
    return value


def _listed(data: Mapping[str, Any], name: str) -> list[Any]:
    value = data[name]
    if not isinstance(value, list):
        raise ToldError(f"expected a list under {name}")
    return value
