"""The checks of neighbours.yaml that its schema cannot express: every name is declared, and no leaf is left out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from holdfast.specs.leaves import SchemaLeaf, leaves
from holdfast.specs.model import Contract, Group
from holdfast.specs.neighbours import Sweep

# Every sweep says what is due for a value that is another one: that is what it is for.
_OTHER = "other"


def leaves_of(contract: Contract) -> Mapping[str, SchemaLeaf]:
    """Every leaf of the contract's operations, as OPERATION:PATH. Raises SpecError for a malformed annotation."""
    return {
        f"{method.name}:{place.path}": place
        for method in contract.methods.values()
        if method.group is Group.OPERATION
        for place in leaves(method.args.schema)
    }


def sweep_problems(contract: Contract) -> Iterable[str]:
    """What sweeps name and the contract does not declare."""
    if contract.neighbours is None:
        return
    known = leaves_of(contract)
    for sweep in contract.neighbours.sweeps.values():
        yield from (f"sweep {sweep.name}: {problem}" for problem in _problems(contract, sweep, known))
    for name in contract.neighbours.unswept.keys() - known.keys():
        yield f"unswept: {name} is no leaf of an operation"


def _problems(contract: Contract, sweep: Sweep, known: Mapping[str, SchemaLeaf]) -> Iterable[str]:
    if sweep.clause not in contract.clauses:
        yield f"unknown clause {sweep.clause}"
    if _OTHER not in sweep.due:
        yield f"due says nothing of {_OTHER}"
    if (sweep.value is None) == (not sweep.leaves):
        yield "expected either leaves, which stand in arguments, or `value`, which stands in a file"
    for name in sweep.leaves:
        if name not in known:
            yield f"{name} is no leaf of an operation"
        elif known[name].leaf is None:
            yield f"{name} has no kind; say it in methods.yaml as x-leaf"
        elif sweep.original is None and known[name].encoded:
            yield f"{name} lies in an encoded text; give `original`, and a probe that encodes $y"
    steps = [*((step, Group.OPERATION) for step in (sweep.probe, *sweep.given) if "call" in step)]
    steps += [(step, Group.PROVOCATION) for step in sweep.given if "provoke" in step]
    for step, group in steps:
        name = step["call"] if group is Group.OPERATION else step["provoke"]
        method = contract.methods.get(name)
        if method is None or method.group is not group:
            yield f"{name} is not one of the contract's {group.value}s"
    if "call" not in sweep.probe:
        yield "the probe is no call"


def unswept(contract: Contract) -> Iterable[str]:
    """The leaves that no sweep varies and for which no reason is given."""
    if contract.neighbours is None:
        return
    swept = {name for sweep in contract.neighbours.sweeps.values() for name in sweep.leaves}
    for name, place in leaves_of(contract).items():
        if place.leaf is None:
            yield f"leaf {name}: says not what it is; give its schema in methods.yaml an x-leaf"
        elif name not in swept and name not in contract.neighbours.unswept:
            yield f"leaf {name}: no sweep of neighbours.yaml varies it; write one, or say under `unswept` why not"
        elif name in swept and name in contract.neighbours.unswept:
            yield f"leaf {name}: a sweep varies it, yet `unswept` says why not; drop one of the two"
