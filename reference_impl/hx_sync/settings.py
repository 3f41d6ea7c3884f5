"""Every value a device works with: from the contract, overridden by the session's config, never from here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.reference_impl.hx_sync.algorithms import BY_NAME
from holdfast.reference_impl.hx_sync.layout import UUID
from holdfast.reference_impl.hx_sync.terms import COMPRESSIONS, CONTRACT
from holdfast.reference_impl.session import OpenError
from holdfast.reference_impl.values import one_of, values_of

_NODES = ("a", "b", "c")


@dataclass(frozen=True, slots=True)
class Settings:
    """Loaded values. `nodes` are the devices that a template has, each with its id; sizes are in bytes."""

    vault_id: str
    vault_key: str = field(repr=False)
    nodes: Mapping[str, str]
    algorithm: str
    compression: str
    store_folder: str
    max_object_bytes: int
    max_header_bytes: int
    max_blob_bytes: int


def _id(name: str, text: str) -> str:
    if UUID.fullmatch(text) is None:
        raise OpenError(f"config {name}: expected a UUID in lower case, got {text[:64]!r}")
    return text


def load_settings(config: Mapping[str, str]) -> Settings:
    """Read the contract and apply `config`. Raises OpenError for a key or a value that makes no sense.

    The vault key is not checked here. The operations that need it check it.
    """
    values = values_of(CONTRACT, config)
    return Settings(
        vault_id=_id("vault_id", values["vault_id"]),
        vault_key=values["vault_key"],
        nodes={name: _id(f"node_{name}", values[f"node_{name}"]) for name in _NODES},
        algorithm=one_of("algorithm", values["algorithm"], BY_NAME),
        compression=one_of("compression", values["compression"], COMPRESSIONS),
        store_folder=values["store_folder"],
        max_object_bytes=values["max_object_bytes"],
        max_header_bytes=values["max_header_bytes"],
        max_blob_bytes=values["max_blob_bytes"],
    )
