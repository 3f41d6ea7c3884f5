"""Every value the store works with: from the contract, overridden by the session's config, never from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath

from holdfast.reference_impl.m5_log.terms import CONTRACT
from holdfast.reference_impl.session import OpenError
from holdfast.reference_impl.values import values_of


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
