"""`automatic.yaml` of a contract: what automatic mutants need a person to say.

Which files and functions of the reference are no part of what is tested, with which stores it is run, and which changes
make no difference. The types below are the file's schema and its reader, and the change itself, as the reference lists
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import msgspec

from holdfast.specs.entry import ContractName, Entry, Text
from holdfast.specs.loader import read_file
from holdfast.specs.registry import folder_of

FILE = "automatic.yaml"
# At most one mutant of this number of a contract's mutants may be listed as equivalent.
MOST_EQUIVALENT = 10


class Beside(Entry, frozen=True, omit_defaults=True):
    """A file of the reference that is not changed, or one function of it, and why."""

    file: Text
    why: Text
    function: str = ""


class Equivalent(Entry, frozen=True):
    """A change that makes no difference that anything outside of the process can show, and why.

    The place is named by its function ("" outside of every function), by `code`, the line in which it begins, and by
    what is written there, so it stays while lines are added above it. `operator` says what is done to it.
    """

    file: Text
    function: str
    operator: Text
    code: Text
    was: str
    text: str
    why: Text


class Automatic(Entry, frozen=True, omit_defaults=True):
    """The file. Without `stores`, the reference is run with the store of the contract's planted bugs."""

    contract: ContractName
    stores: tuple[Text, ...] = ()
    beside: tuple[Beside, ...] = ()
    equivalent: tuple[Equivalent, ...] = ()


class Site(msgspec.Struct, frozen=True, kw_only=True):
    """One change of a reference's source, as `python -m holdfast.reference_impl sites` lists it.

    The bytes from `start` to `end`, which are `was`, become `text`. A test meets it if it executes one of `lines`.
    """

    id: str
    contract: str
    module: str
    file: str
    digest: str
    line: int
    function: str
    operator: str
    code: str
    start: int
    end: int
    was: str
    text: str
    lines: Mapping[str, tuple[int, ...]]


@cache
def load_automatic(contract: str) -> Automatic:
    """What the contract's file says; nothing where it has none. Raises SpecError."""
    return read_file(folder_of(contract) / FILE, "automatic", Automatic, contract) or Automatic(contract)
