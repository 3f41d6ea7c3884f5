"""All the stores, each right or with one planted bug, and the layer that has to catch it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.conformance.faults.dependencies import Promise
from holdfast.conformance.faults.lines import Limits, Lines
from holdfast.conformance.faults.report import Layer
from holdfast.conformance.faults.subject import Workload
from holdfast.conformance.faults.sweep import Sweep

_HERE = Path(__file__).parent
# Families on what pip installed.
_INSTALLED = ("lmdb_store", "rocks")
# Stores import this folder by its full name, from wherever they are started.
ENVIRONMENT: Mapping[str, str] = {**os.environ, "PYTHONPATH": str(_HERE.parents[2]), "PYTHONDONTWRITEBYTECODE": "1"}


@dataclass(frozen=True, slots=True)
class Store:
    """A program and its variant. A bug is `caught_by` this layer, and maybe by others; `wrong` says what it is.

    `promise` is what it says of bytes that are damaged.
    """

    family: str
    variant: str
    caught_by: Layer | None = None
    wrong: str = ""
    promise: Promise = Promise.NEVER_WRONG

    @property
    def name(self) -> str:
        """How tests call it."""
        return f"{self.family}-{self.variant}"

    def command(self, go_store: Path | None = None) -> tuple[str, ...]:
        """The words that start it, without the folder. `go_store` is the built program of the family `go`."""
        if self.family == "go":
            if go_store is None:
                raise ValueError("the program of the family go has to be built first")
            return (str(go_store), self.variant)
        if self.family == "node":
            return ("node", str(_HERE / "log.mjs"), self.variant)
        # Without `site`, which searches the installed packages, the other families start sooner.
        options = ("-m",) if self.family in _INSTALLED else ("-S", "-m")
        return (sys.executable, *options, f"tests.faults.stores.{self.family}", self.variant)


STORES = (
    Store("sqlite", "wal_full"),
    Store("sqlite", "delete_extra"),
    Store("sqlite", "wal_normal", Layer.POWER, "the log is synced at a checkpoint only"),
    Store("sqlite", "wal_off", Layer.POWER, "nothing is synced"),
    Store("sqlite", "delete_off", Layer.POWER, "nothing is synced"),
    Store("sqlite", "delete_full", Layer.POWER, "the journal's unlinking is not synced, so it comes back and undoes"),
    Store("sqlite", "memory", Layer.KILL, "no journal on disk to undo half a commit with"),
    Store("sqlite", "two_commits", Layer.KILL, "each fact is a transaction"),
    Store("sqlite", "best_effort", Layer.LOCKED, "its second transaction is left out where another has the lock"),
    Store("sqlite", "ack_first", Layer.KILL, "answers before it commits"),
    Store("sqlite", "unread_pragma", Layer.SYNC_ERRORS, "does not read whether it got the journal mode, with FULL"),
    Store("rocks", "sync"),
    Store("rocks", "flush"),
    Store("rocks", "no_sync", Layer.POWER, "sync=false"),
    Store("rocks", "no_wal", Layer.KILL, "no log at all"),
    Store("rocks", "no_batch", Layer.KILL, "each fact is a write"),
    Store("lmdb_store", "default"),
    Store("lmdb_store", "no_sync", Layer.POWER, "sync=False"),
    Store("lmdb_store", "no_meta_sync", Layer.POWER, "the page that says which tree counts is not synced"),
    Store("plain", "right"),
    Store("plain", "no_fsync", Layer.POWER, "the new file is renamed before its bytes are on disk"),
    Store("plain", "none", Layer.POWER, "neither the file nor its folder is synced"),
    Store("plain", "no_folder_fsync", Layer.POWER, "the rename is not synced"),
    Store("plain", "in_place", Layer.KILL, "the only file is emptied before it is written"),
    Store("plain", "swallow", Layer.ERRORS, "answers OK when the file could not be written"),
    Store("plain", "short", Layer.SHORT, "does not look how much was written"),
    Store("plain", "no_checksum", Layer.DAMAGE, "believes any bytes that parse"),
    Store("log", "right"),
    # It logs that a sync failed, removes what it had written, and then refuses.
    Store("log", "undoes"),
    Store("log", "no_fsync", Layer.POWER, "nothing is synced"),
    Store("log", "every_third", Layer.POWER, "syncs every third put"),
    Store("log", "ack_first", Layer.POWER, "answers before it syncs"),
    Store("log", "syncs_new", Layer.POWER, "syncs only in the session that made its file"),
    Store("log", "no_checksum", Layer.POWER, "half a record counts"),
    Store("log", "refuses_tail", Layer.POWER, "does not start with half a record at the end"),
    Store("log", "keeps_tail", Layer.POWER, "appends behind half a record, where reading stops"),
    Store("log", "stale_lock", Layer.KILL, "does not start while the lock of a dead one lies there"),
    Store("log", "retries_fsync", Layer.SYNC_ERRORS, "syncs again after an error, and believes it"),
    Store("log", "undoes_late", Layer.SYNC_ERRORS, "removes what it refused at the next put only"),
    Store("log", "rewrites", Layer.RECOVERY, "its start replaces the log by one that is not synced"),
    Store("log", "empties", Layer.RECOVERY, "its start empties the log and writes what it held anew"),
    Store("log", "swallow", Layer.ERRORS, "answers OK when nothing was written"),
    Store("log", "short", Layer.SHORT, "does not look how much was written"),
    Store("log", "waits_for_lock", Layer.LOCKED, "waits for a lock for as long as it takes"),
    Store("log", "locked_is_empty", Layer.LOCKED, "what another process has locked counts as not there"),
    Store("log", "keeps_in_memory", Layer.READ_ONLY, "answers OK for what it cannot write anywhere"),
    Store("log", "foreign_is_empty", Layer.FOREIGN, "what is no log counts as an empty one"),
    Store("log", "gone_is_empty", Layer.LOST_RUNNING, "reads its file at each question, and one that is gone is empty"),
    Store("marker", "right"),
    Store("marker", "bare", Layer.POWER, "its marker is made and not synced, and on btrfs no other file saves it"),
    Store("marker", "in_place", Layer.POWER, "its log never grows, so that on ext4 and xfs it saves no rename"),
    Store("marker", "late", Layer.POWER, "renames what it has synced long before, which btrfs has forgotten"),
    Store("snapshot", "right"),
    Store("snapshot", "log_anew", Layer.MISSING, "makes a log anew beside the snapshot"),
    Store("snapshot", "truncates_first", Layer.KILL, "empties the log before the snapshot is there"),
    Store("snapshot", "no_fsync", Layer.POWER, "the snapshot is not synced"),
    Store("snapshot", "no_folder_fsync", Layer.POWER, "the snapshot's rename is not synced"),
    Store("snapshot", "double_replay", Layer.KILL, "applies again what the snapshot has"),
    Store("snapshot", "short", Layer.FULL, "does not look how much of the snapshot was written"),
    Store("shards", "right", promise=Promise.DETECTS),
    Store("shards", "skips_missing", Layer.MISSING, "a file that is not there is not missed", Promise.DETECTS),
    Store("shards", "skips_empty", Layer.TRUNCATED, "an empty file holds no facts", Promise.DETECTS),
    Store("shards", "skips_damaged", Layer.CORRUPT, "a damaged file holds no facts", Promise.DETECTS),
    Store("served", "right"),
    Store("served", "trusts_the_dead", Layer.DOWN, "answers OK though its database is dead"),
    Store("served", "trusts_silence", Layer.SLOW, "answers OK though its database did not"),
    Store("served", "waits", Layer.SLOW, "waits for its database for as long as it takes"),
    Store("node", "right"),
    Store("node", "no_fsync", Layer.POWER, "nothing is synced"),
    Store("go", "right"),
    Store("go", "no_fsync", Layer.POWER, "nothing is synced"),
)
RIGHT = tuple(store for store in STORES if store.caught_by is None)
BUGS = tuple(store for store in STORES if store.caught_by is not None)


def swept(command: Sequence[str], workload: Workload, *, patience: float = 4, **more: Any) -> Sweep:
    """The sweep of a program whose limits are the usual ones times `patience`; under the tracer they are longer."""

    def lines(factor: float) -> Lines:
        return Lines(tuple(command), environment=ENVIRONMENT, limits=Limits().scaled(factor))

    return Sweep(lambda: lines(patience), workload, **{"traced": lambda: lines(20), **more})
