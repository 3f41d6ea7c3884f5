"""The launcher of this contract: a cluster of PostgreSQL, which the store's server of a session copies."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from holdfast.reference_impl.idempotency_key.databases import Postgres
from holdfast.reference_impl.idempotency_key.entry import TEMPLATE
from holdfast.reference_impl.session import OpenError
from holdfast.servers.errors import ServerError
from holdfast.servers.postgres.confined import make_template
from holdfast.servers.serving import FolderTemplate, Launched, Stores


def launch(
    config: Mapping[str, str],  # noqa: ARG001 - there is nothing to choose
    *,
    parent: Path,
    stores: Stores = Stores.ANYWHERE,  # noqa: ARG001 - every store is in the workdir
) -> Launched:
    """Provision the template. Raises OpenError."""
    try:
        folder = make_template(parent, Postgres.make)
    except ServerError as error:
        raise OpenError(f"the template cannot be made: {error}") from error
    return FolderTemplate(folder, {TEMPLATE: str(folder)})
