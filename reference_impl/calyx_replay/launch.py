"""The launcher of this contract: one template of a mailbox, which sessions copy into their workdirs."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path

from holdfast.reference_impl.calyx_replay.blueprint import REFERENCE, Blueprint
from holdfast.reference_impl.calyx_replay.settings import TEMPLATE_KEY
from holdfast.reference_impl.launching import FolderTemplate, Launched, Stores
from holdfast.reference_impl.planting import planted


def launch(
    config: Mapping[str, str],
    *,
    parent: Path,
    stores: Stores = Stores.ANYWHERE,  # noqa: ARG001 - stores are always files in the workdir
    mutant: str | None,
) -> Launched:
    """Provision a template. `config` may name parameters of the contract, as that of a session. Raises OpenError."""
    blueprint: Blueprint = planted(REFERENCE, mutant)
    settings = blueprint.settings(config)
    template = FolderTemplate(TEMPLATE_KEY, Path(tempfile.mkdtemp(prefix="hf-calyx-", dir=parent)))
    try:
        blueprint.provisioner(blueprint.schema()).make(blueprint.location(template.folder, settings))
    except BaseException:
        template.stop()
        raise
    return template
