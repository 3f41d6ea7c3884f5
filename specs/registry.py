"""Where the parts of each contract are, by its name: of those of holdfast, and of those that other distributions bring.

A contract of holdfast has a folder or a package of its name in `specs`, `reference_impl`, `conformance/suites` and
`vectors`. One of another distribution is one package, which an entry point names. Nothing of it is imported here.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from holdfast.specs.errors import SpecError, unknown

# Entry points of this group: the name of a contract, and its package.
GROUP = "holdfast.contracts"
# A colon-separated list of more folders with contracts: for contracts under development and the kit's own tests.
SEARCH_PATH_VARIABLE = "HOLDFAST_SPECS"
FILE = "contract.yaml"
NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
# Not resolved: Python finds the modules of the kit by this path, which may be that of a link.
_KIT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Package:
    """A package, or a module: its dotted name, and its path without a suffix. It need not be there."""

    name: str
    path: Path

    def part(self, name: str) -> str | None:
        """The dotted name of a module in it, None if it has none. What is one module is its own `entry`."""
        if (self.path / f"{name}.py").is_file() or (self.path / name / "__init__.py").is_file():
            return f"{self.name}.{name}"
        return self.name if name == "entry" and self.path.with_suffix(".py").is_file() else None

    def module_in(self, file: str) -> str:
        """The dotted name of the module whose file has this path in it."""
        return f"{self.name}.{file.removesuffix('.py').replace('/', '.')}"

    @property
    def above(self) -> Package:
        """The package that it is in."""
        return Package(self.name.rpartition(".")[0], self.path.parent)


@dataclass(frozen=True, slots=True)
class Installed:
    """A contract, and its parts: the folder with its data, its reference, its suite, and what computes its keys.

    `distribution` is the name and the version of the one that brings it; None for a contract of holdfast.
    """

    name: str
    folder: Path
    reference: Package
    suite: Package
    vectors: Package
    distribution: str | None = None


def contracts() -> Mapping[str, Installed]:
    """Every contract that can be used, in the order of their names."""
    return _found(os.environ.get(SEARCH_PATH_VARIABLE, ""), tuple(sys.path))[0]


def unusable() -> Mapping[str, str]:
    """Why contracts that other distributions bring cannot be used, by name."""
    return _found(os.environ.get(SEARCH_PATH_VARIABLE, ""), tuple(sys.path))[1]


def installed(name: str) -> Installed:
    """The contract of that name. Raises SpecError."""
    found = contracts()
    if name not in found:
        if name in unusable():
            raise SpecError(f"contract {name} cannot be used: {unusable()[name]}")
        advice = "; one that another distribution brings has to be installed beside holdfast"
        raise SpecError(unknown("contract", name, found) + advice)
    return found[name]


def contract_names() -> tuple[str, ...]:
    """Names of every contract that can be used, in order."""
    return tuple(contracts())


def folder_of(name: str) -> Path:
    """Where the data of the contract `name` lies. Raises SpecError."""
    return installed(name).folder


def name_of(folder: Path) -> str:
    """The name of the contract whose data lies in a folder. Raises SpecError."""
    for name, one in contracts().items():
        if one.folder.resolve() == folder.resolve():
            return name
    raise SpecError(f"expected the folder of a contract, got {folder}")


def _found(drafts: str, places: tuple[str, ...]) -> tuple[Mapping[str, Installed], Mapping[str, str]]:
    brought, wrong = _brought(places)
    found = {**_own(), **brought}
    for draft in filter(None, drafts.split(os.pathsep)):
        for path in _folders(Path(draft)):
            found.setdefault(path.name, _of_kit(path))
    return dict(sorted(found.items())), wrong


@cache
def _own() -> Mapping[str, Installed]:
    return {path.name: _of_kit(path) for path in _folders((_KIT / "specs").resolve())}


def _folders(root: Path) -> Iterator[Path]:
    return (path.parent for path in root.glob(f"*/{FILE}"))


def _of_kit(folder: Path) -> Installed:
    module = folder.name.replace("-", "_")

    def below(part: str) -> Package:
        return Package(f"holdfast.{part}.{module}", _KIT.joinpath(*part.split("."), module))

    return Installed(folder.name, folder, below("reference_impl"), below("conformance.suites"), below("vectors"))


@cache
def _brought(places: tuple[str, ...]) -> tuple[Mapping[str, Installed], Mapping[str, str]]:
    claims: dict[str, list[tuple[str, str]]] = {}
    for name, package, distribution in _entry_points(places):
        claims.setdefault(name, []).append((package, distribution))
    found, wrong = {}, {}
    for name, claimed in claims.items():
        ((package, distribution), *others) = claimed
        folder = None if others else _folder_of(package)
        if others:
            wrong[name] = f"{' and '.join(each for _, each in claimed)} both bring it; uninstall one of them"
        elif name in {*_own(), *(each.partition("-")[0] for each in _own())}:
            wrong[name] = f"{distribution} brings it, and holdfast has a contract of that name, or whose name begins so"
        elif NAME.fullmatch(name) is None:
            wrong[name] = f"{distribution}: expected a name in lower case, words joined by hyphens, got {name!r}"
        elif folder is None:
            wrong[name] = f"{distribution}: the package {package} is not there, or has no {FILE}"
        else:
            whole = Package(package, folder)
            reference = Package(f"{package}.reference", folder / "reference")
            found[name] = Installed(name, folder, reference, whole, whole, distribution)
    return found, wrong


def _entry_points(places: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """The name, the package and the distribution of each entry point.

    An adapter starts for each session, and the import of `importlib.metadata` takes as long as all of its start.
    """
    seen: set[str] = set()
    for place in places:
        try:
            entries = sorted(each for each in os.listdir(place or ".") if each.endswith(".dist-info"))
        except OSError:
            continue
        for entry in entries:
            name, _, version = entry.removesuffix(".dist-info").partition("-")
            # What comes first on the path is what Python imports.
            if name.lower() not in seen:
                seen.add(name.lower())
                for contract, package in _of_group(Path(place, entry, "entry_points.txt")):
                    yield contract, package, f"{name.replace('_', '-')} {version}"


def _of_group(path: Path) -> Iterator[tuple[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return
    section = ""
    for line in map(str.strip, text.splitlines() if GROUP in text else ()):
        if line.startswith("["):
            section = line.strip("[]").strip()
        elif section == GROUP and "=" in line and line[0] not in "#;":
            name, _, package = line.partition("=")
            yield name.strip(), package.strip()


def _folder_of(package: str) -> Path | None:
    """The folder of a package that has a contract. Only a search by the first part of its name imports nothing."""
    from importlib.util import find_spec

    top, *below = package.split(".")
    try:
        spec = find_spec(top)
    except (ImportError, ValueError):
        return None
    folders = (Path(place, *below) for place in (spec and spec.submodule_search_locations) or ())
    return next((folder for folder in folders if (folder / FILE).is_file()), None)
