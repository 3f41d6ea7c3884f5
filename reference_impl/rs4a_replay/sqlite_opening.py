"""Opens the two SQLite files of a session: those in its workdir, or copies of the template."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from holdfast.reference_impl.patience import Patience
from holdfast.reference_impl.rs4a_replay.opening import LAUNCH_ADVICE, Opened, Reserving
from holdfast.reference_impl.rs4a_replay.provision import sqlite_paths
from holdfast.reference_impl.rs4a_replay.settings import Settings
from holdfast.reference_impl.rs4a_replay.sqlite_failpoints import SqliteFailpoints
from holdfast.reference_impl.rs4a_replay.sqlite_operator import SqliteOperator
from holdfast.reference_impl.rs4a_replay.sqlite_store import SqliteAudit, SqliteStore
from holdfast.reference_impl.rs4a_replay.terms import CONTRACT, PARTS
from holdfast.reference_impl.session import OpenError, OpenRequest, StateWanted, SurfaceWanted


def open_store(request: OpenRequest, settings: Settings, patience: Patience) -> Opened:
    """The store of one session. Raises OpenError."""
    folder = request.workdir / CONTRACT
    surface, audit = sqlite_paths(folder)
    if request.state is StateWanted.FRESH:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        if request.surface is SurfaceWanted.READY:
            _copy_template(request.config, folder)
    place = {"file": str(surface.relative_to(request.workdir)), "effect": PARTS["effect"], "nonce": PARTS["nonce"]}
    place["audit"] = f"{audit.relative_to(request.workdir)}:{PARTS['audit']}"
    return Opened(
        SqliteStore(surface, settings, Reserving(patience)),
        SqliteAudit(audit, settings, patience),
        SqliteOperator(folder, expected=request.surface, patience=patience),
        SqliteFailpoints,
        place=place,
    )


def shut_down() -> None:
    """The adapter ends. All files lie in the workdirs."""


def _copy_template(config: Mapping[str, str], folder: Path) -> None:
    template = config.get("template")
    if not template or not Path(template).is_dir():
        raise OpenError(
            f"config template: expected the folder of a provisioned template, got {template!r}; {LAUNCH_ADVICE}"
        )
    shutil.copytree(template, folder, dirs_exist_ok=True)
