"""Finds the package of each contract by its name, so that a new contract is one more folder."""

from __future__ import annotations

import pkgutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from holdfast.reference_impl.session import Implementation, OpenRequest, Session

_HERE = "holdfast.reference_impl."


def operators() -> Mapping[str, str]:
    """The contracts with a command line for operators, each by the first word of its name. Imports none of them.

    It is `main` in the module `operate` of the package: arguments in, exit status out.

    Raises ValueError where two contracts begin alike.
    """
    having = [name for name in contract_names() if find_spec(f"{package_of(name)}.operate") is not None]
    found = {name.partition("-")[0]: name for name in having}
    if len(found) < len(having):
        raise ValueError(f"expected contracts whose names begin with different words, got {', '.join(having)}")
    return found


def contract_names() -> tuple[str, ...]:
    """Every contract that has a reference implementation: a package here with a module `entry`."""
    packages = pkgutil.iter_modules([str(Path(__file__).parent)], prefix="holdfast.reference_impl.")
    return tuple(
        package.name.rpartition(".")[2].replace("_", "-")
        for package in packages
        if package.ispkg and find_spec(f"{package.name}.entry") is not None
    )


def package_of(contract: str) -> str:
    """The package of `contract`. Raises KeyError for a contract that has none."""
    if contract not in contract_names():
        known = ", ".join(contract_names())
        raise KeyError(f"no reference implementation of {contract!r}; there are: {known}")
    return f"holdfast.reference_impl.{contract.replace('-', '_')}"


def warm(contract: str, *, keep: bool) -> None:
    """Import what the adapter and the launcher of `contract` import, and read what they read of the contracts.

    The reference itself stays only with `keep`.
    """
    from holdfast.specs.loader import kept_terms, version_of

    kept_terms(contract)
    for name in contract_names():
        version_of(name)
    package = package_of(contract)
    kept = {name for name in sys.modules if name.startswith(_HERE)}
    import_module("holdfast.reference_impl.adapter")
    entry = import_module(f"{package}.entry")
    # What a session imports when it needs it.
    for part in ("jsonschema_rs", *getattr(entry, "LATER", ())):
        import_module(part)
    if find_spec(f"{package}.launch") is not None:
        import_module(f"{package}.launch")
    for name in [name for name in sys.modules if name.startswith(_HERE) and name not in kept and not keep]:
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
        claims = f"{package_of(self.contract)}.claims"
        if find_spec(claims) is None:
            return {}
        found: Mapping[str, str] = import_module(claims).not_claimed()
        return found

    def open(self, request: OpenRequest) -> Session:
        """See `session.Implementation`."""
        if not self._loaded:
            entry = import_module(f"{package_of(self.contract)}.entry")
            self._loaded.append(entry.implementation(mutant=self.mutant))
        return self._loaded[0].open(request)

    def shut_down(self) -> None:
        """See `session.Implementation`."""
        for loaded in self._loaded:
            loaded.shut_down()
