"""The folder of a device as its operator has it: the settings that `init` wrote, and what they lead to.

`hx.json` names the vault, the store and where the key is; it never holds the key itself.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

from holdfast.reference_impl.answers import Accepted, Answer, Effect, Indeterminate
from holdfast.reference_impl.hx_sync import keys
from holdfast.reference_impl.hx_sync.nodes import FOLDER
from holdfast.reference_impl.hx_sync.s3 import split_url
from holdfast.reference_impl.hx_sync.service import Parts
from holdfast.reference_impl.hx_sync.terms import Reason, RefusedError
from holdfast.reference_impl.sqlite import StoreError, UncertainError
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import loads

_FILE = "hx.json"
_S3 = "s3://"


class HomeError(Exception):
    """The folder is not that of a device; the text says what was expected, what came, and what to do."""


# Using it


def opened(folder: Path) -> tuple[Parts, str]:
    """What the devices of a folder work with, and the name of the one that `init` made.

    Raises HomeError, OpenError, KeyInvalidError, ValueError.
    """
    written = _read(folder / _FILE)
    return _parts(folder, written), written["node"]


def _parts(folder: Path, written: Mapping[str, Any]) -> Parts:
    config = {"vault_id": written["vault_id"], "vault_key": _key(folder / _FILE, written)}
    store: str = written["store"]
    return Parts(folder, config, where=store if store.startswith(_S3) else Path(store))


def _read(path: Path) -> dict[str, Any]:
    try:
        written = loads(path.read_bytes())
    except OSError as error:
        raise HomeError(f"expected {_FILE} in {path.parent}: {error.strerror}; make a device with `init`") from error
    except StrictJsonError as error:
        raise HomeError(f"expected JSON in {path}: {error}") from error
    if not isinstance(written, dict) or not {"vault_id", "store", "node", "key"} <= written.keys():
        raise HomeError(f"expected vault_id, store, node and key in {path}")
    return written


def _key(file: Path, written: Mapping[str, Any]) -> str:
    source, vault_id = written["key"], written["vault_id"]
    if source == {"from": "keyring"}:
        return keys.from_keyring(vault_id)
    if not isinstance(source, dict) or source.keys() != {"from", "path"}:
        raise HomeError(f"expected a source of the key in {file}")
    path = Path(source["path"])
    if source["from"] == "file":
        return keys.from_file(path)
    try:
        passphrase = path.read_bytes().removesuffix(b"\n")
    except OSError as error:
        raise keys.KeyInvalidError(f"expected a readable file with the passphrase: {error.strerror}") from error
    return keys.from_passphrase(passphrase, vault_id)


# Making it


def init(folder: Path, wanted: argparse.Namespace, *, node: str) -> Answer:
    """Make a device as the options of `init` want it. A second call with the same arguments is a no-op.

    Raises HomeError, OpenError, KeyInvalidError, ValueError.
    """
    try:
        (folder / FOLDER).mkdir(mode=0o700, parents=True, exist_ok=True)
        written = _written(folder / _FILE, wanted, node)
    except OSError as error:
        raise HomeError(f"cannot make {folder}: {error}") from error
    parts = _parts(folder, written)
    try:
        parts.store.make()
        node_id = _node_id(parts, node)
        fresh = parts.nodes.enroll(node, node_id)
    except RefusedError as error:
        return error.answer()
    except UncertainError as error:
        return Indeterminate(str(error))
    except StoreError as error:
        return RefusedError(Reason.STORE_UNAVAILABLE, str(error)).answer()
    finally:
        parts.close()
    return Accepted(Effect.NEW if fresh else Effect.PRIOR, {"node_id": node_id, "vault_id": written["vault_id"]})


def _node_id(parts: Parts, name: str) -> str:
    if name in parts.nodes.names():
        index = parts.nodes.node(name).index
        if os.path.lexists(index.location.database):
            with index.reading():
                return index.node_id
    return str(uuid4())


def _written(file: Path, wanted: argparse.Namespace, node: str) -> dict[str, Any]:
    if file.exists():
        written = _read(file)
        if wanted.vault not in (None, written["vault_id"]) or _store(wanted.store) != written["store"]:
            raise HomeError(f"expected the vault and the store of {file}; choose another --home")
        return written
    vault_id = wanted.vault or str(uuid4())
    store = _store(wanted.store)
    written = {"vault_id": vault_id, "store": store, "node": node, "key": _key_source(wanted, vault_id)}
    # Settings that do not lead to a key are not written.
    keys.read(_key(file, written))
    _write_new(file, json.dumps(written, indent=1) + "\n")
    return written


def _store(store: str) -> str:
    if store.startswith(_S3):
        split_url(store)
        return store
    folder = Path(store).absolute()
    if not folder.is_dir():
        raise HomeError(f"expected a folder for the store at {folder}; make or mount it first")
    return str(folder)


def _key_source(wanted: argparse.Namespace, vault_id: str) -> dict[str, str]:
    if wanted.new_key_file is not None:
        _write_new(wanted.new_key_file, keys.draw() + "\n")
        return {"from": "file", "path": str(wanted.new_key_file.absolute())}
    if wanted.key_file is not None:
        return {"from": "file", "path": str(wanted.key_file.absolute())}
    if wanted.passphrase_file is not None:
        return {"from": "passphrase", "path": str(wanted.passphrase_file.absolute())}
    if wanted.new_keyring:
        keys.into_keyring(vault_id, keys.draw())
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
