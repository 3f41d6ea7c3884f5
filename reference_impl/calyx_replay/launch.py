"""The launcher of this contract: one template of a mailbox, which sessions copy into their workdirs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.reference_impl.calyx_replay.location import Location
from holdfast.reference_impl.calyx_replay.provision import make
from holdfast.reference_impl.calyx_replay.terms import load_settings
from holdfast.servers.serving import Launched, Stores, folder_template


def launch(
    config: Mapping[str, str],
    *,
    parent: Path,
    stores: Stores = Stores.ANYWHERE,  # noqa: ARG001 - stores are always files in the workdir
) -> Launched:
    """Provision a template. `config` may name parameters of the contract, as that of a session. Raises OpenError."""
    settings = load_settings(config)
    return folder_template(parent, lambda folder: make(Location(folder, settings)))
