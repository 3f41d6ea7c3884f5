"""The launcher of this contract: a template of a store with three devices, which sessions copy into their workdirs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from holdfast.reference_impl.hx_sync.factory import REFERENCE, Factory
from holdfast.reference_impl.hx_sync.provision import Provisioner
from holdfast.reference_impl.hx_sync.settings import TEMPLATE_KEY
from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.session import OpenError
from holdfast.reference_impl.sqlite import StoreError
from holdfast.servers.lines import Stores
from holdfast.servers.serving import FolderTemplate, Launched


def launch(
    config: Mapping[str, str],
    *,
    parent: Path,
    stores: Stores = Stores.ANYWHERE,  # noqa: ARG001 - stores are always files in the workdir
    mutant: str | None,
) -> Launched:
    """Provision a template. `config` may name parameters of the contract, as that of a session. Raises OpenError."""
    factory: Factory = planted(REFERENCE, mutant)
    folder = Path(tempfile.mkdtemp(prefix="hf-hx-", dir=parent))
    template = FolderTemplate(folder, {TEMPLATE_KEY: str(folder)})
    try:
        parts = factory.parts(template.folder, config)
        try:
            Provisioner(parts.settings, parts.layout).make(template.folder, parts.store, parts.nodes)
        finally:
            parts.close()
    except (OSError, StoreError) as error:
        template.stop()
        raise OpenError(f"the template cannot be made: {error}") from error
    except BaseException:
        template.stop()
        raise
    return template
