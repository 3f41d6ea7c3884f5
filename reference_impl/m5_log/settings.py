"""Every value the store works with: from the contract, overridden by the session's config, never from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from holdfast.reference_impl.m5_log.terms import CONTRACT, check_reasons
from holdfast.reference_impl.session import OpenError
from holdfast.specs import kept_terms

# A run has one config for all its contracts. These keys place the state of other contracts; here the contract does.
_OF_OTHERS = ("store", "dsn", "template")


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


def _number(name: str, text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 9):
        raise OpenError(f"config {name}: expected a whole number as text, got {text!r}")
    return int(text)


def _relative(name: str, text: str) -> str:
    path = PurePosixPath(text)
    if path.is_absolute() or len(path.parts) < 2 or ".." in path.parts or "\0" in text:
        raise OpenError(f"config {name}: expected a path in a folder below the root, got {text!r}")
    return text


def load_settings(config: Mapping[str, str]) -> Settings:
    """Read the contract and apply `config`. Raises OpenError for a key or a value that makes no sense."""
    contract = kept_terms(CONTRACT)
    check_reasons(contract.reasons)
    values: dict[str, Any] = {name: parameter.value for name, parameter in contract.parameters.items()}
    for name, text in config.items():
        if name in _OF_OTHERS:
            continue
        if name not in values:
            raise OpenError(f"config {name}: no such key; known keys: {', '.join(values)}")
        values[name] = text if isinstance(values[name], str) else _number(name, text)
    for name in ("database_path", "trust_path", "status_path"):
        values[name] = _relative(name, values[name])
    return Settings(**values)
