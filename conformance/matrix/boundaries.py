"""How near to a parameter a call came: one unit or a fraction of one to either side. Pure.

What is measured follows from the parameter's unit. Instants, numbers and sizes are looked for in the arguments, and in
what they hold in base64url.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from holdfast.conformance.matrix.walk import Began, Called, Happening, instant_of
from holdfast.specs import Contract, Parameter
from holdfast.specs.cells import rows_of
from holdfast.specs.matrix import Attack, Matrix, cell

_BASE64URL = re.compile(r"[A-Za-z0-9_-]{8,}\Z")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,15}Z")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_SECONDS = {"seconds": 1, "hours": 3600}
_LONG = re.compile(r"[0-9][0-9.]{7,}")
_BRACKET = re.compile(r"[\[\]{}]")
# No contract limits so few levels or digits.
_FEW = 8
# How many of the earlier times of a session are compared with a call's.
_MOMENTS = 64


@dataclass(slots=True)
class Near:
    """Counts the calls below each boundary, at it, and beyond it. Two of the three draw it."""

    contract: Contract
    matrix: Matrix
    sides: tuple[Counter[tuple[str, str]], ...] = field(default_factory=lambda: (Counter(), Counter(), Counter()))
    _moments: dict[datetime, None] = field(default_factory=dict)
    _config: Mapping[str, str] = field(default_factory=dict)
    _drawn: Mapping[str, tuple[Parameter, ...]] = field(init=False)

    def __post_init__(self) -> None:
        """Which parameters each row draws a boundary by."""
        known = self.contract.parameters
        rows = rows_of(self.contract, self.matrix)
        self._drawn = {name: tuple(known[each] for each in row.parameters) for name, row in rows.items()}

    def read(self, happenings: Iterator[Happening]) -> Iterator[Happening]:
        """Count the calls among them; they are passed on."""
        for each in happenings:
            if isinstance(each, Began):
                self._moments.clear()
                self._config = each.config
            elif isinstance(each, Called):
                self._called(each)
            yield each

    def counts(self) -> Counter[tuple[str, str]]:
        """Each boundary that was drawn, with its calls."""
        total: Counter[tuple[str, str]] = sum(self.sides, Counter())
        drawn = [key for key in total if sum(bool(side[key]) for side in self.sides) > 1]
        return Counter({key: total[key] for key in drawn})

    def _called(self, call: Called) -> None:
        parameters = self._drawn.get(call.row, ())
        texts = list(_texts(call.args)) if parameters else []
        measured: dict[str, list[float]] = {}
        for parameter in parameters:
            value = self._value(parameter)
            if value is None:
                continue
            kind = str(parameter.unit)
            if kind not in measured:
                spans = self._spans(call, texts) if kind in _SECONDS else ()
                measured[kind] = [*_MEASURES.get(kind, _numbers)(texts, call.args), *spans]
            key = call.row, cell(Attack.BOUNDARY, parameter.name)
            limit = value * _SECONDS.get(kind, 1)
            near = [each - limit for each in measured[kind] if -1 <= each - limit <= 1]
            for side, is_there in zip(self.sides, (lambda d: d < 0, lambda d: d == 0, lambda d: d > 0), strict=True):
                side[key] += any(map(is_there, near))
        self._moments[call.now] = None
        if len(self._moments) > _MOMENTS:
            del self._moments[next(iter(self._moments))]

    def _value(self, parameter: Parameter) -> int | None:
        """The parameter in this session; None where it is no number."""
        said = self._config.get(parameter.name, "")
        if said.isdecimal():
            return int(said)
        return parameter.value if isinstance(parameter.value, int) else None

    def _spans(self, call: Called, texts: list[str]) -> Iterator[float]:
        """The seconds between the call and every instant that is named in it, or at which something was called."""
        named = [instant_of(text) for whole in texts for text in _INSTANT.findall(whole)]
        for moment in (*self._moments, *filter(None, named)):
            yield abs((call.now - moment).total_seconds())


def _texts(value: Any) -> Iterator[str]:
    """Every text in a value, and what it holds in base64url."""
    if isinstance(value, Mapping):
        for member in value.values():
            yield from _texts(member)
    elif isinstance(value, list):
        for member in value:
            yield from _texts(member)
    elif isinstance(value, str):
        yield value
        if _BASE64URL.match(value):
            try:
                yield base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)).decode("utf-8", "replace")
            except (ValueError, binascii.Error):
                return


def _numbers(texts: list[str], args: Any) -> Iterator[float]:
    yield from _own_numbers(args)
    for text in texts:
        # The digits of a long text are no number that a person chose.
        if len(text) <= 4096:
            yield from (float(each) for each in _NUMBER.findall(text))


def _own_numbers(value: Any) -> Iterator[float]:
    members = value.values() if isinstance(value, Mapping) else value if isinstance(value, list) else ()
    for member in members:
        yield from _own_numbers(member)
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield float(value)


def _seconds(texts: list[str], args: Any) -> Iterator[float]:
    """Numbers among the arguments, taken for seconds and for hours."""
    del texts
    for number in _own_numbers(args):
        yield from (number, number * 3600)


def _sizes(texts: list[str], args: Any) -> Iterator[float]:
    del args
    for text in texts:
        yield len(text.encode("utf-8", "replace"))
        if _BASE64URL.match(text):
            yield len(text) * 3 // 4


def _lengths(texts: list[str], args: Any) -> Iterator[float]:
    del args
    yield from map(len, texts)


def _levels(texts: list[str], args: Any) -> Iterator[float]:
    """The depth of brackets, as far as no string holds one."""
    del args
    for text in texts:
        depth = most = 0
        # Where there are few, only their number matters: it is below every limit.
        few = text.count("[") + text.count("{") < _FEW
        for character in _BRACKET.findall(text) if not few else ():
            depth += 1 if character in "[{" else -1
            most = max(most, depth)
        yield most


def _digits(texts: list[str], args: Any) -> Iterator[float]:
    """The digits of the numbers, without zeros in front."""
    del args
    for text in texts:
        yield from (len(each.replace(".", "").strip("0")) for each in _LONG.findall(text))


_MEASURES: Mapping[str, Callable[[list[str], Any], Iterator[float]]] = {
    "seconds": _seconds,
    "hours": _seconds,
    "bytes": _sizes,
    "characters": _lengths,
    "levels": _levels,
    "digits": _digits,
}
