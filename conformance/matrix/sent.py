"""How many pairs of an operation and an attack one case sent, from its exchanges. Pure."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.values import at_path, is_missing
from holdfast.conformance.durability.verdicts import ReportError, read, strikes_twice
from holdfast.conformance.matrix.shows import Shown
from holdfast.conformance.matrix.walk import Began, Called, Changed, Happening, Walk, instant_of
from holdfast.conformance.run.plan import PlannedCase
from holdfast.conformance.steps.files import CUT
from holdfast.reports.evidence import Exchange
from holdfast.specs import Case, Contract, Parameter
from holdfast.specs.cells import row_of, rows_of
from holdfast.specs.faults import FaultCase, FaultLayer, Promise
from holdfast.specs.leaves import ROOT, SchemaLeaf, leaves
from holdfast.specs.matrix import LATER, Attack, Matrix, cell
from holdfast.specs.model import Group
from holdfast.specs.neighbours import Sweep
from holdfast.specs.schema import Validator

# How near to a parameter a call came: one unit or a fraction of one to either side. What is measured follows from the
# parameter's unit. Instants, numbers and sizes are looked for in the arguments, and in what they have in base64url.
# Pure.

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


# Which leaves of an operation a case varies, and which it presents in a wrong form. Pure.
#   a sweep      as neighbours.yaml declares it: as many neighbours of its leaves as values were sent there
#   a twin       differs from its case in one leaf
#   other cases  calls that are alike but for one leaf, where no sweeps are declared
#   a format     a refused value that does not fit the schema of its leaf, or a refusal in a sweep of the leaf

# A test that sends one value of a leaf does not vary it.
_LEAST = 2
# How every contract refuses arguments that do not fit the schema of the method (docs/case-language.md).
_MALFORMED = "REQUEST_MALFORMED"
_KINDS = ("call", "start", "race")


def varied(
    contract: Contract, planned: PlannedCase, main: Sequence[Called], twin: Sequence[Called]
) -> Counter[tuple[str, str]]:
    """Neighbours and formats that were sent, by row and cell."""
    counts: Counter[tuple[str, str]] = Counter()
    case = contract.case(planned.id)
    sweeps = _sweeps(contract, planned)
    for one in sweeps:
        counts += _swept(one, main)
    if case is not None:
        counts += _differing(case, main, twin)
    if case is not None or contract.neighbours is None:
        counts += _alike(contract, (*main, *twin))
    if not sweeps:
        counts += _malformed(contract, (*main, *twin))
    return counts


@cache
def places_of(contract: Contract, row: str) -> Mapping[str, SchemaLeaf]:
    """The leaves of an operation; none of a command."""
    method = contract.methods.get(row)
    return {} if method is None else {place.path: place for place in leaves(method.args.schema)}


def _sweeps(contract: Contract, planned: PlannedCase) -> list[Sweep]:
    """The sweeps that a suite test runs: those that prove its clauses."""
    if contract.neighbours is None or not planned.sweeps:
        return []
    return [one for name in planned.clauses for one in contract.neighbours.proving(name)]


def _swept(one: Sweep, calls: Sequence[Called]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for name in one.leaves:
        row, _, path = name.partition(":")
        mine = [call for call in calls if call.row == row]
        values = {_text(_value(call.args, path.partition("/")[0])) for call in mine}
        if len(values) < _LEAST:
            continue
        counts[row, cell(Attack.NEIGHBOUR, path)] = len(values)
        refused = sum(call.reason in _reasons(one) for call in mine)
        if refused:
            counts[row, cell(Attack.FORMAT, path)] = refused
    return counts


def _reasons(one: Sweep) -> set[str]:
    """The reasons that are due for a malformed value."""
    options = ex.alternatives(one.due.get("malformed", {}))
    named = [option.get("reason", ()) for option in options]
    return {each for reasons in named for each in ([reasons] if isinstance(reasons, str) else reasons)}


def _differing(case: Case, main: Sequence[Called], twin: Sequence[Called]) -> Counter[tuple[str, str]]:
    """The leaf in which a case and its twin differ."""
    sibling = case.twin
    if sibling is None or not sibling.path.startswith("args.") or not twin:
        return Counter()
    step = next((each for each in (*case.given, *case.when, *case.then) if each.get("label") == sibling.step), {})
    row = next((step[kind] for kind in _KINDS if kind in step), None)
    if row is None or not any(call.row == row for call in main) or not any(call.row == row for call in twin):
        return Counter()
    return Counter({(row, cell(Attack.NEIGHBOUR, sibling.path.removeprefix("args."))): 1})


def _alike(contract: Contract, calls: Iterable[Called]) -> Counter[tuple[str, str]]:
    """Calls that are alike but for one leaf on the outside."""
    counts: Counter[tuple[str, str]] = Counter()
    groups: defaultdict[tuple[str, str, str], set[str]] = defaultdict(set)
    for call in calls:
        for path in places_of(contract, call.row):
            if path != ROOT and "/" not in path and "*" not in path and not is_missing(at_path(call.args, path)):
                rest = json.dumps(_without(call.args, path.split(".")), sort_keys=True)
                groups[call.row, path, rest].add(_text(at_path(call.args, path)))
    for (row, path, _), values in groups.items():
        if len(values) > 1:
            counts[row, cell(Attack.NEIGHBOUR, path)] += len(values) - 1
    return counts


def _malformed(contract: Contract, calls: Iterable[Called]) -> Counter[tuple[str, str]]:
    counts: Counter[tuple[str, str]] = Counter()
    for call in calls:
        if call.reason != _MALFORMED or call.row not in contract.methods:
            continue
        if contract.methods[call.row].args.is_valid(call.args):
            continue
        wrong = [path for path in places_of(contract, call.row) if _is_wrong(contract, call, path)]
        # An object is broken by what is in it, and what breaks no leaf breaks the object around them.
        for path in [one for one in wrong if not any(each.startswith(f"{one}.") for each in wrong)] or [ROOT]:
            counts[call.row, cell(Attack.FORMAT, path)] += 1
    return counts


def _is_wrong(contract: Contract, call: Called, path: str) -> bool:
    if path == ROOT or "/" in path or "*" in path:
        return False
    found = at_path(call.args, path)
    return not is_missing(found) and not _validator(contract, call.row, path).is_valid(found)


@cache
def _validator(contract: Contract, row: str, path: str) -> Validator:
    return places_of(contract, row)[path].validator()


def _value(args: Mapping[str, Any], path: str) -> Any:
    return args if path == ROOT else at_path(args, path.partition(".*")[0])


def _text(value: Any) -> str:
    return "(absent)" if is_missing(value) else json.dumps(value, sort_keys=True)


def _without(value: Any, parts: list[str]) -> Any:
    if not isinstance(value, Mapping):
        return value
    first, *rest = parts
    kept = {name: member for name, member in value.items() if name != first}
    return {**kept, first: _without(value[first], rest)} if rest and first in value else kept


Pairs = Counter[tuple[str, str]]
# The attacks of a fault layer. The matrix has no attack for a store that another holds or that is read-only.
_LAYERS: Mapping[FaultLayer, tuple[Attack, ...]] = {
    FaultLayer.POWER_LOSS: (Attack.POWER_LOSS,),
    FaultLayer.CRASH_IN_RECOVERY: (Attack.POWER_LOSS,),
    FaultLayer.KILL: (Attack.KILL,),
    FaultLayer.KILL_WITHIN_WRITE: (Attack.KILL,),
    # From some call on all fail with ENOSPC, as on a disk that is full.
    FaultLayer.FULL_CALLS: (Attack.FAILING_CALLS, Attack.FULL_DISK),
    FaultLayer.SHORT_WRITES: (Attack.FAILING_CALLS,),
    FaultLayer.FAILED_SYNC: (Attack.FAILING_CALLS,),
    FaultLayer.DISK_FULL: (Attack.FULL_DISK,),
    FaultLayer.STORE_MISSING: (Attack.MISSING,),
    FaultLayer.STORE_TRUNCATED: (Attack.DAMAGED,),
    FaultLayer.STORE_CORRUPT: (Attack.DAMAGED,),
    FaultLayer.DAMAGED_BYTES: (Attack.DAMAGED,),
    FaultLayer.STORE_FOREIGN: (Attack.REPLACED,),
    FaultLayer.STORE_LOST_RUNNING: (Attack.MISSING_WHILE, Attack.REPLACED_WHILE),
    FaultLayer.DEPENDENCY_KILLED: (Attack.MISSING_WHILE,),
    FaultLayer.DEPENDENCY_STOPPED: (Attack.MISSING_WHILE,),
    FaultLayer.CLOCK_BACK: (Attack.CLOCK_BACK,),
    FaultLayer.CLOCK_FORWARD: (Attack.CLOCK_FORWARD,),
}


def sent(contract: Contract, matrix: Matrix, planned: PlannedCase, sides: Mapping[str, Sequence[Exchange]]) -> Pairs:
    """What a case sent: how many pairs of each row and cell. `sides` are its exchanges."""
    fault = contract.fault(planned.id)
    if fault is not None:
        return _struck(contract, matrix, fault, sides.get("main", ()))
    walk, case = Walk(contract, matrix), contract.case(planned.id)
    shown = Shown(contract, matrix, change_of=lambda each: _change(contract, matrix, case, each), tells=_telling(case))
    near = Near(contract, matrix)
    calls: dict[str, list[Called]] = {"main": [], "twin": []}
    for side, found in calls.items():
        happened = list(near.read(walk.happenings(sides.get(side, ()))))
        shown.read(happened)
        found += [each for each in happened if isinstance(each, Called)]
    return shown.counts + near.counts() + varied(contract, planned, calls["main"], calls["twin"])


def _struck(contract: Contract, matrix: Matrix, fault: FaultCase, exchanges: Sequence[Exchange]) -> Pairs:
    """What a layer tried, by its report, of the operations that its workload asks for."""
    event = exchanges[-1].event if exchanges else None
    try:
        told = read(None if event is None else event.detail)
    except ReportError:
        return Counter()
    first, later = keys_of(contract, matrix, fault)
    return +Counter({**dict.fromkeys(first, told.tried - told.later), **dict.fromkeys(later, told.later)})


def keys_of(
    contract: Contract, matrix: Matrix, fault: FaultCase
) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The row and the cells that a fault fills: in the first session of a store, and in a second one."""
    load = contract.work_of(fault)
    attacks = _LAYERS.get(fault.layer, ())
    in_two = strikes_twice(fault)
    # While the store is away each fact is asked for, too, and an operation that tells one has to refuse.
    asked = [fact["ask"] for fact in load.facts.values() if "ask" in fact]
    asked += [each["ask"] for step in load.steps for each in step.get("told", {}).values() if "ask" in each]
    told = [name for name in asked if contract.methods[name].group is Group.OPERATION]
    called = [row_of(step, matrix) for step in load.steps]
    rows = [*filter(None, called), *(told if fault.promise is Promise.REFUSED else ())]
    # What may find nothing to do in a second session proves nothing there.
    idle = {row for row, step in zip(called, load.steps, strict=True) if "idle" in step}
    again = [row for row in rows if row not in idle]
    return (
        [(row, cell(attack)) for row in rows for attack in attacks],
        [(row, cell(LATER[attack])) for row in again for attack in attacks if in_two and attack in LATER],
    )


def _change(contract: Contract, matrix: Matrix, case: Case | None, each: Changed) -> Attack | None:
    """What a change of a file does to the store; None where the file is not of it."""
    places = matrix.store or ((contract.inspection.path,) if contract.inspection is not None else ())
    if not any(each.path.startswith(place) or place.startswith(f"{each.path}/") for place in places):
        return None
    if each.verb != "tamper":
        return Attack.REPLACED
    step = {} if case is None else _step(case, each.note)
    if "journal_mode" in step:
        return None
    # A suite test has no steps, and cuts or removes.
    return Attack.DAMAGED if {"flip", "truncate"} & step.keys() or each.note.endswith(CUT) else Attack.MISSING


def _step(case: Case, note: str) -> Mapping[str, object]:
    """The step of a note such as `given.0 tamper x`."""
    phase, _, number = note.partition(" ")[0].partition(".")
    steps = {"given": case.given, "when": case.when, "then": case.then}.get(phase, ())
    return steps[int(number)] if number.isdigit() and int(number) < len(steps) else {}


def _telling(case: Case | None) -> set[str]:
    """The notes of the calls of which a case says what a refusal may hold in its `data`."""
    if case is None:
        return set()
    return {
        f"{phase}.{index} {kind} {step[kind]}"
        for phase, steps in (("given", case.given), ("when", case.when), ("then", case.then))
        for index, step in enumerate(steps)
        for kind in ("call", "start")
        if kind in step and _judges_data(step.get("expect", {}))
    }


def _judges_data(expect: Mapping[str, object]) -> bool:
    options = expect.get("any", [expect])
    return isinstance(options, list) and any("data" in option for option in options)
