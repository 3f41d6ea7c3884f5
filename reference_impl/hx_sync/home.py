"""The folder of a device as its operator has it: the settings that `init` wrote, and sessions on them.

`hx.json` names the vault, the store and where the key is; it never holds the key itself.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Indeterminate
from holdfast.reference_impl.hx_sync.commands import Commands
from holdfast.reference_impl.hx_sync.factory import REFERENCE, Factory
from holdfast.reference_impl.hx_sync.keys import KeyInvalidError, VaultKeys
from holdfast.reference_impl.hx_sync.nodes import FOLDER
from holdfast.reference_impl.hx_sync.s3 import split_url
from holdfast.reference_impl.hx_sync.service import Parts, Service
from holdfast.reference_impl.hx_sync.terms import Reason, RefusedError
from holdfast.reference_impl.planting import planted
from holdfast.reference_impl.sqlite import StoreError, UncertainError
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import loads

_FILE = "hx.json"
_S3 = "s3://"


class HomeError(Exception):
    """The folder is not that of a device; the text says what was expected, what came, and what to do."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """The arguments of `init`."""

    node: str
    store: str
    vault_id: str | None
    key_file: Path | None
    new_key_file: Path | None
    new_keyring: bool
    passphrase_file: Path | None


class Home:
    """One folder with the devices of one person on one machine, usually one."""

    def __init__(self, folder: Path, *, mutant: str | None) -> None:
        """Raises KeyError for an unknown mutant."""
        self._folder = folder
        self._mutant = mutant
        self._factory: Factory = planted(REFERENCE, mutant)
        self._keys = VaultKeys()

    # Using it

    def commands(self, node: str | None, config: str | None, *, now: datetime) -> Commands:
        """The commands on a device. `config` is that of the kit's session, in place of `hx.json`.

        Raises HomeError, OpenError, KeyInvalidError, ValueError.
        """
        if config is None:
            written = self._read()
            parts, name = self._opened(written), node or written["node"]
        else:
            # Without --node this is no name, and each command refuses it.
            parts, name = self._factory.parts(self._folder, json.loads(config), mutant=self._mutant), str(node)
        service = Service(parts, now=now)
        service.begin()
        return Commands(service, parts, name, now=now)

    def _opened(self, written: Mapping[str, Any]) -> Parts:
        config = {"vault_id": written["vault_id"], "vault_key": self._key(written)}
        return self._factory.parts(self._folder, config, where=self._where(written["store"]))

    def _where(self, store: str) -> str | Path:
        return store if store.startswith(_S3) else Path(store)

    def _read(self) -> dict[str, Any]:
        try:
            written = loads((self._folder / _FILE).read_bytes())
        except OSError as error:
            raise HomeError(
                f"expected {_FILE} in {self._folder}: {error.strerror}; make a device with `init`"
            ) from error
        except StrictJsonError as error:
            raise HomeError(f"expected JSON in {self._folder / _FILE}: {error}") from error
        if not isinstance(written, dict) or not {"vault_id", "store", "node", "key"} <= written.keys():
            raise HomeError(f"expected vault_id, store, node and key in {self._folder / _FILE}")
        return written

    def _key(self, written: Mapping[str, Any]) -> str:
        source, vault_id = written["key"], written["vault_id"]
        if source == {"from": "keyring"}:
            return self._keys.from_keyring(vault_id)
        if isinstance(source, dict) and source.keys() == {"from", "path"}:
            path = Path(source["path"])
            return self._keys.from_file(path) if source["from"] == "file" else self._from_passphrase(path, vault_id)
        raise HomeError(f"expected a source of the key in {self._folder / _FILE}")

    def _from_passphrase(self, path: Path, vault_id: str) -> str:
        try:
            passphrase = path.read_bytes().removesuffix(b"\n")
        except OSError as error:
            raise KeyInvalidError(f"expected a readable file with the passphrase: {error.strerror}") from error
        return self._keys.from_passphrase(passphrase, vault_id)

    # Making it

    def init(self, wanted: Wanted) -> Answer:
        """Make a device. A second call with the same arguments is a no-op.

        Raises HomeError, OpenError, KeyInvalidError, ValueError.
        """
        try:
            (self._folder / FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)
            written = self._written(wanted)
        except OSError as error:
            raise HomeError(f"cannot make {self._folder}: {error}") from error
        parts = self._opened(written)
        try:
            parts.store.make()
            node_id = self._node_id(parts, wanted.node)
            fresh = parts.nodes.enroll(wanted.node, node_id)
        except RefusedError as error:
            return error.answer()
        except UncertainError as error:
            return Indeterminate(str(error))
        except StoreError as error:
            return RefusedError(Reason.STORE_UNAVAILABLE, str(error)).answer()
        finally:
            parts.close()
        return Accepted(Effect.NEW if fresh else Effect.PRIOR, {"node_id": node_id, "vault_id": written["vault_id"]})

    def _node_id(self, parts: Parts, name: str) -> str:
        if name in parts.nodes.names():
            index = parts.nodes.node(name).index
            if os.path.lexists(index.database):
                with index.reading():
                    return index.node_id
        return str(uuid4())

    def _written(self, wanted: Wanted) -> dict[str, Any]:
        if (self._folder / _FILE).exists():
            written = self._read()
            if wanted.vault_id not in (None, written["vault_id"]) or self._store(wanted.store) != written["store"]:
                raise HomeError(f"expected the vault and the store of {self._folder / _FILE}; choose another --home")
            return written
        vault_id = wanted.vault_id or str(uuid4())
        written = {
            "vault_id": vault_id,
            "store": self._store(wanted.store),
            "node": wanted.node,
            "key": self._key_source(wanted, vault_id),
        }
        # Settings that do not lead to a key are not written.
        self._keys.read(self._key(written))
        _write_new(self._folder / _FILE, json.dumps(written, indent=1) + "\n")
        return written

    def _store(self, store: str) -> str:
        if store.startswith(_S3):
            split_url(store)
            return store
        folder = Path(store).absolute()
        if not folder.is_dir():
            raise HomeError(f"expected a folder for the store at {folder}; make or mount it first")
        return str(folder)

    def _key_source(self, wanted: Wanted, vault_id: str) -> dict[str, str]:
        if wanted.new_key_file is not None:
            _write_new(wanted.new_key_file, self._keys.draw() + "\n")
            return {"from": "file", "path": str(wanted.new_key_file.absolute())}
        if wanted.key_file is not None:
            return {"from": "file", "path": str(wanted.key_file.absolute())}
        if wanted.passphrase_file is not None:
            return {"from": "passphrase", "path": str(wanted.passphrase_file.absolute())}
        if wanted.new_keyring:
            self._keys.into_keyring(vault_id, self._keys.draw())
        return {"from": "keyring"}


def _write_new(path: Path, text: str) -> None:
    """A file for its owner alone, whole or not at all, where there is none. Raises OSError."""
    partial = path.with_name(f"{path.name}.{secrets.token_hex(8)}.partial")
    try:
        handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.link(partial, path)
    finally:
        partial.unlink(missing_ok=True)
