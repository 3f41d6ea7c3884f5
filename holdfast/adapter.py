"""An adapter that is a class in Python: a method for each method of its contract, in a process of its own."""

from __future__ import annotations

import keyword
from collections.abc import Mapping
from typing import Any, ClassVar

from holdfast.conformance.starting import holdfast_adapter as given
from holdfast.specs import Contract, kept_terms


class Adapter(given.Session):
    """The base of an adapter. A subclass has a method for each method of its contract, with its name (and `_` behind a
    word of Python). It takes the arguments as one mapping, as they were sent, and returns an answer.

    A method that it lacks is not claimed: it is not asked for, and proves nothing. What a method raises is a fault.
    """

    # The contract by its name; roles, `concurrency` and what else is not claimed, each with the reason.
    contract: ClassVar[str] = ""
    not_claimed: ClassVar[Mapping[str, str]] = {}
    # How the implementation is called; without, as the class.
    name: ClassVar[str] = ""
    # How many processes may share one workdir.
    workers: ClassVar[int] = 16
    # A system has to refuse by itself what its contract forbids: that holdfast does it for it shows nothing.
    checks_arguments = False

    accepted = staticmethod(given.accepted)
    refused = staticmethod(given.refused)
    indeterminate = staticmethod(given.indeterminate)
    ok = staticmethod(given.ok)
    fault = staticmethod(given.fault)


def lacking(kind: type[Adapter], contract: Contract) -> dict[str, str]:
    """What the class does not claim: what it says, and each method that it does not have of a role that it claims."""
    claimed = [each for each in contract.methods.values() if each.role is None or each.role not in kind.not_claimed]
    own = {each.name: f"{each.name}_" if keyword.iskeyword(each.name) else each.name for each in claimed}
    absent = {name: f"{kind.__name__} has no method {spelt}" for name, spelt in own.items() if not _has(kind, spelt)}
    return {**absent, **kind.not_claimed}


def _has(kind: type[Adapter], name: str) -> bool:
    """Whether the class has the method itself: a name of its base is another thing."""
    found: Any = getattr(kind, name, None)
    return callable(found) and found is not getattr(Adapter, name, None)


def serve(kind: type[Adapter]) -> None:
    """Answer requests on the standard streams of this process until `bye`."""
    contract = kept_terms(kind.contract)
    given.serve(
        kind,
        contract=contract.name,
        version=contract.version,
        name=kind.name or kind.__name__,
        not_yet=lacking(kind, contract),
        workers=kind.workers,
        methods={
            method.name: {"group": method.group.value, "reasons": method.reasons, "args": method.args.schema}
            for method in contract.methods.values()
        },
    )
