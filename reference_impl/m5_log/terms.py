"""The vocabulary of the contract in Python: names only, checked against the contract; every value lives there."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, unique
from pathlib import PurePosixPath
from typing import TypeAlias

from holdfast.reference_impl.session import OpenError
from holdfast.reference_impl.terms import RefusedError, reasons
from holdfast.reference_impl.values import values_of

CONTRACT = "m5-log"
Reason = reasons(CONTRACT)
# 32 bytes: the id of an operation, the hash of a credential, a public key.
Key: TypeAlias = bytes
# A clock as it stands in keys: 12 bytes.
Hlc: TypeAlias = bytes


@unique
class Family(Enum):
    """The column families of the store, in the order of the source."""

    OPS = "ops"
    EDGES = "edges"
    BY_AUTHOR = "by_author"
    META = "meta"
    VC_RAW = "vc_raw"
    VC_VERIFIED = "vc_verified"
    POLICY_INDEX = "policy_index"
    CHECKPOINTS = "checkpoints"


class StoreError(RefusedError):
    """The store cannot be asked or written, and nothing was written."""

    def __init__(self, detail: str, reason: Enum = Reason.STORE_UNAVAILABLE) -> None:
        super().__init__(reason, detail)


class UncertainError(Exception):
    """A write failed, and it is unknown whether it took effect."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Loaded values. Paths are relative to the root."""

    database_path: str
    trust_path: str
    status_path: str
    schema_version: str
    max_parents: int
    max_op_bytes: int
    max_depth: int
    max_batch_ops: int
    write_buffer_bytes: int


def _relative(name: str, text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or len(path.parts) < 2 or ".." in path.parts or "\0" in text:
        raise OpenError(f"config {name}: expected a path in a folder below the root, got {text!r}")
    return text


def load_settings(config: Mapping[str, str]) -> Settings:
    """Read the contract and apply `config`. Raises OpenError for a key or a value that makes no sense."""
    values = values_of(CONTRACT, config)
    for name in ("database_path", "trust_path", "status_path"):
        values[name] = _relative(name, values[name])
    return Settings(**values)
