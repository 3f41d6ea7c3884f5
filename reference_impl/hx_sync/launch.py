"""The launcher of this contract: a template of a store with three devices, which sessions copy into their workdirs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from holdfast.reference_impl.hx_sync.disk import FOLDER_MODE
from holdfast.reference_impl.hx_sync.nodes import FOLDER
from holdfast.reference_impl.hx_sync.service import Parts
from holdfast.reference_impl.session import OpenError
from holdfast.reference_impl.sqlite import StoreError
from holdfast.reference_impl.values import TEMPLATE_KEY
from holdfast.servers.serving import FolderTemplate, Launched, Stores


def launch(
    config: Mapping[str, str],
    *,
    parent: Path,
    stores: Stores = Stores.ANYWHERE,  # noqa: ARG001 - stores are always files in the workdir
) -> Launched:
    """Provision a template. `config` may name parameters of the contract, as that of a session. Raises OpenError."""
    folder = Path(tempfile.mkdtemp(prefix="hf-hx-", dir=parent))
    template = FolderTemplate(folder, {TEMPLATE_KEY: str(folder)})
    try:
        parts = Parts(template.folder, config)
        try:
            provision(parts)
        finally:
            parts.close()
    except (OSError, StoreError) as error:
        template.stop()
        raise OpenError(f"the template cannot be made: {error}") from error
    except BaseException:
        template.stop()
        raise
    return template


def provision(parts: Parts) -> None:
    """Make an empty store and the devices a, b and c, where there is nothing. Raises OSError, StoreError."""
    parts.store.make()
    (parts.root / FOLDER).mkdir(FOLDER_MODE)
    for name, node_id in parts.settings.nodes.items():
        parts.nodes.enroll(name, node_id)
