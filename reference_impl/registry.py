"""Finds the parts of each contract's reference by its name, so that a new contract is one more package."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

from holdfast.reference_impl.session import Implementation, OpenRequest, Session
from holdfast.specs.registry import Installed, contracts


def operators() -> Mapping[str, str]:
    """The contracts with a command line for operators, each by the first word of its name. Imports none of them.

    It is `main` in the module `operate` of the package: arguments in, exit status out. A contract whose first word is
    that of one before it has its whole name.
    """
    found: dict[str, str] = {}
    # Those of holdfast come first: what another distribution brings takes no word from them.
    for name in sorted(contract_names(), key=lambda each: (contracts()[each].distribution is not None, each)):
        if part_of(name, "operate") is not None:
            word = name.partition("-")[0]
            found[name if word in found else word] = name
    return found


@cache
def contract_names() -> tuple[str, ...]:
    """Every contract that has a reference implementation: a module `entry`."""
    return tuple(name for name, one in contracts().items() if one.reference.part("entry") and _is_readable(one))


def _is_readable(contract: Installed) -> bool:
    """Whether the reference can claim it: one that another distribution brings must not keep it from the others."""
    from holdfast.specs import SpecError, version_of

    try:
        return contract.distribution is None or version_of(contract.name) != ""
    except (SpecError, OSError) as error:
        print(f"left out: the contract {contract.name} of {contract.distribution}: {error}", file=sys.stderr)
        return False


def part_of(contract: str, part: str) -> str | None:
    """The dotted name of a module of the reference of `contract`, if it is there.

    Raises KeyError for a contract that has no reference.
    """
    if contract not in contract_names():
        known = ", ".join(contract_names())
        raise KeyError(f"no reference implementation of {contract!r}; there are: {known}")
    return contracts()[contract].reference.part(part)


def imported(contract: str, part: str) -> ModuleType | None:
    """That module, imported; None if it is not there. Raises as `part_of`, and what the import raises."""
    name = part_of(contract, part)
    return None if name is None else import_module(name)


def warm(contract: str, *, keep: bool) -> None:
    """Import what the adapter and the launcher of `contract` import, and read what they read of the contracts.

    The reference itself stays only with `keep`.
    """
    from holdfast.specs.loader import kept_terms, version_of

    kept_terms(contract)
    for name in contract_names():
        version_of(name)
    place = f"{contracts()[contract].reference.above.name}."
    kept = {name for name in sys.modules if name.startswith(place)}
    import_module("holdfast.reference_impl.adapter")
    entry = imported(contract, "entry")
    # What a session imports when it needs it.
    for part in ("jsonschema_rs", *getattr(entry, "LATER", ())):
        import_module(part)
    imported(contract, "launch")
    for name in [name for name in sys.modules if name.startswith(place) and name not in kept and not keep]:
        module = sys.modules.pop(name)
        above, _, last = name.rpartition(".")
        if getattr(sys.modules.get(above), last, None) is module:
            delattr(sys.modules[above], last)


@dataclass(slots=True)
class Deferred(Implementation):
    """A reference that is loaded when its first session is opened.

    An adapter starts for every session, and a session is of one contract. The other contracts would make the start
    several times as long.
    """

    contract: str
    mutant: str | None = None
    _loaded: list[Implementation] = field(default_factory=list)

    @property
    def version(self) -> str:
        """Version of the contract that it implements."""
        from holdfast.specs import version_of

        return version_of(self.contract)

    @property
    def not_claimed(self) -> Mapping[str, str]:
        """Capabilities that it lacks, each with the reason. Without a module `claims` it lacks none."""
        claims = imported(self.contract, "claims")
        found: Mapping[str, str] = {} if claims is None else claims.not_claimed()
        return found

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`."""
        if not self._loaded:
            entry: Any = imported(self.contract, "entry")
            self._loaded.append(entry.implementation(mutant=self.mutant))
        return self._loaded[0].open(request)

    def shut_down(self) -> None:
        """See `session.Implementation`."""
        for loaded in self._loaded:
            loaded.shut_down()
