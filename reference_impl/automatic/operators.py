"""The operators by name, and one change to a source."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, unique


@unique
class Operator(Enum):
    """What is done to a place. Mutants of `sync`, `isolation` and `pragma` are held against faults too."""

    COMPARISON = "comparison"
    BOUNDARY = "boundary"
    CONSTANT = "constant"
    STATEMENT = "statement"
    ARGUMENT = "argument"
    GUARD = "guard"
    TRUNCATED = "truncated"
    NORMALISED = "normalised"
    SYNC = "sync"
    SCHEMA = "schema"
    WHERE = "where"
    CONFLICT = "conflict"
    ISOLATION = "isolation"
    PRAGMA = "pragma"


@dataclass(frozen=True, slots=True)
class Edit:
    """The bytes from `start` to `end` of a source become `text`."""

    operator: Operator
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Place:
    """Where an edit stands: its function ("" for none), the lines of its statement, and the names that this binds.

    A statement outside of every function runs once, when the module is imported. What uses its names shows the change.
    """

    function: str
    first: int
    last: int
    names: tuple[str, ...] = ()
