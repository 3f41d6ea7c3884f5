"""Which leaves of an operation a case varies, and which it presents in a wrong form. Pure.

a sweep      as neighbours.yaml declares it: as many neighbours of its leaves as values were sent there
a twin       differs from its case in one leaf
other cases  calls that are alike but for one leaf, where no sweeps are declared
a format     a refused value that does not fit the schema of its leaf, or a refusal in a sweep of the leaf
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from holdfast.conformance.cases import expect as ex
from holdfast.conformance.cases.values import at_path, is_missing
from holdfast.conformance.matrix.walk import Called
from holdfast.conformance.run.plan import PlannedCase
from holdfast.specs import Case, Contract
from holdfast.specs.leaves import ROOT, Place, leaves
from holdfast.specs.matrix import Attack, cell
from holdfast.specs.neighbours import Sweep
from holdfast.specs.schema import Validator

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
def places_of(contract: Contract, row: str) -> Mapping[str, Place]:
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
