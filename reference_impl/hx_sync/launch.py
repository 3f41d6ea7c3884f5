"""The launcher of this contract: a template of a store with three devices, which sessions copy into their workdirs."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from holdfast.reference_impl.hx_sync.disk import FOLDER_MODE
from holdfast.reference_impl.hx_sync.nodes import FOLDER
from holdfast.reference_impl.hx_sync.service import Parts
from holdfast.reference_impl.session import OpenError
from holdfast.reference_impl.sqlite import StoreError
from holdfast.servers.serving import Launched, Stores, folder_template


def launch(
    config: Mapping[str, str],
    *,
    parent: Path,
    stores: Stores = Stores.ANYWHERE,  # noqa: ARG001 - stores are always files in the workdir
) -> Launched:
    """Provision a template. `config` may name parameters of the contract, as that of a session. Raises OpenError."""

    def provision(folder: Path) -> None:
        with contextlib.closing(Parts(folder, config)) as parts:
            parts.store.make()
            (folder / FOLDER).mkdir(FOLDER_MODE)
            for name, node_id in parts.settings.nodes.items():
                parts.nodes.enroll(name, node_id)

    try:
        return folder_template(parent, provision)
    except (OSError, StoreError) as error:
        raise OpenError(f"the template cannot be made: {error}") from error
