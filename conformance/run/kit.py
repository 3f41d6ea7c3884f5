"""What a header says of the kit, its contracts and this machine.

The identity of the kit is one digest over every file of the installed package, with any suffix, and over each package
of another distribution that brings a contract of the run; beside it stand the versions of the libraries that they
require. A gate with other libraries judges the exchanges again, and so sees where these move a verdict.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import sys
from collections.abc import Collection, Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from holdfast import DISTRIBUTION, __version__
from holdfast.reports.evidence import ContractPin, KitIdentity
from holdfast.specs import Contract, strictjson
from holdfast.specs.registry import Installed, contracts

_PACKAGE = "holdfast"
# Files that Python compiles for itself follow from the sources.
_COMPILED = frozenset({"__pycache__"})
# The reference is judged and does not judge. What another distribution brings has no walls within it.
_LEFT_OUT = _COMPILED | {"reference_impl"}
_NAME = re.compile(r"[A-Za-z0-9._-]+")


def installed_kit(*names: str) -> KitIdentity:
    """The installed kit, with the packages that bring these contracts, if they are not of holdfast.

    Its digest is equal for an editable installation and a wheel of the same tree.
    """
    asked = (contracts()[name] for name in sorted({*names} & contracts().keys()))
    return _identity(tuple(each for each in asked if each.distribution is not None))


@cache
def _identity(brought: tuple[Installed, ...]) -> KitIdentity:
    code, libraries = files_of(files(_PACKAGE)), libraries_of(DISTRIBUTION)
    for each in brought:
        name = str(each.distribution).partition(" ")[0]
        found = files_of(each.folder, left_out=_COMPILED)
        code |= {f"{each.vectors.name}:{file}": digest for file, digest in found.items()}
        libraries |= libraries_of(name)
    return KitIdentity(_PACKAGE, __version__, digest_of(code), libraries)


def digest_of(code: Mapping[str, str]) -> str:
    """The digest over files, as `files_of` gives them."""
    return strictjson.digest({"files": dict(code)})


def files_of(package: Traversable, *, left_out: Collection[str] = _LEFT_OUT) -> dict[str, str]:
    """The SHA-256 of every file below `package` by its path from there; folders may be links."""
    return {name: hashlib.sha256(file.read_bytes()).hexdigest() for name, file in _walk(package, "", left_out)}


def _walk(folder: Traversable, above: str, left_out: Collection[str]) -> Iterator[tuple[str, Traversable]]:
    for entry in folder.iterdir():
        if entry.is_file():
            yield above + entry.name, entry
        elif entry.name not in left_out:
            yield from _walk(entry, f"{above}{entry.name}/", left_out)


def libraries_of(distribution: str) -> dict[str, str]:
    """The installed version of every distribution that `distribution` requires, extras left out.

    Raises PackageNotFoundError if it is not installed itself.
    """
    return {name: _installed(name) for text in requires(distribution) or () for name in _required(text)}


def _required(requirement: str) -> Iterator[str]:
    name, _, marker = requirement.partition(";")
    found = _NAME.match(name)
    if found is not None and "extra" not in marker:
        yield re.sub(r"[-_.]+", "-", found[0]).lower()


def _installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        # A marker of its requirement excludes it here, or a user removed it.
        return "absent"


def pin_of(contract: Contract) -> ContractPin:
    """The contract in the form of a header."""
    found = contracts().get(contract.name)
    brings = None if found is None else found.distribution
    return ContractPin(contract.name, contract.version, contract.digest, contract.cases_digest, brings)


def environment() -> Mapping[str, str]:
    """The properties of this machine that may matter, for a header."""
    return {
        "python": platform.python_version(),
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "cpus": str(os.cpu_count() or 0),
        "ci": os.environ.get("CI", ""),
        "executable": Path(sys.executable).name,
    }
