"""Objects, keys and digests of `hx-sync`, computed from the text of the contract (specs/hx-sync/methods.yaml).

Bytes travel as base64url without padding. A label fixes the values that are random elsewhere: the key of an object, its
nonces and its ids are SHA-256 of it, so that all implementations seal the same bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import zstandard

from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import canonical as rfc8785
from holdfast.specs.strictjson import loads
from holdfast.vectors import canaries
from holdfast.vectors.hx_sync.objects import altering, frames
from holdfast.vectors.hx_sync.objects import format as envelope
from holdfast.vectors.hx_sync.objects.drafts import (
    CREATED_AT,
    NODE_A,
    VAULT_ID,
    VAULT_KEY,
    blob,
    decoded,
    key_of,
    object_,
    uuid,
    zstd,
)
from holdfast.vectors.hx_sync.objects.format import parts_of
from holdfast.vectors.hx_sync.objects.forms import (
    batch_text,
    binary,
    faults,
    header_text,
    instant,
    integer,
    json_text,
    place,
)
from holdfast.vectors.spelling import checked, encoded, known

_DIGESTED = ("events", "sessions", "artifacts", "pins", "blobs", "tombstones")


def sha256(data: str) -> str:
    """SHA-256 of bytes, 64 lower-case hex digits."""
    return hashlib.sha256(decoded(data)).hexdigest()


def canonical(value: Any) -> str:
    """The RFC 8785 form of any JSON value, as bytes."""
    return encoded(rfc8785(value))


def text(value: Any) -> str:
    """The same as a text."""
    return rfc8785(value).decode("utf-8")


def header_of(data: str) -> str:
    """The text of the header of an object."""
    return parts_of(decoded(data)).header.decode("utf-8")


# What becomes of objects


def altered(asked: Mapping[str, Any]) -> str:
    """An object that was changed: {object, how, at?, bits?, bytes?, with?}.

    `at` is an offset, from the end if it is negative, or the beginning of a part: magic, version, algorithm, length,
    header, wrap-nonce, wrapped-key, wrap-tag, nonce, payload, tag. `flip` changes `bits` (1) of the byte there,
    `truncate` keeps what is before it, `insert` puts `bytes` there, `append` puts `bytes` (a zero) after.
    `swap-header`, `swap-wrap`, `swap-wrap-nonce`, `swap-nonce` and `swap-payload` (with its nonce) take that part from
    the object `with`.
    """
    known(asked, frozenset({"object", "how", "at", "bits", "bytes", "with"}), "what is altered")
    given = {name: asked[name] for name in ("at", "bits") if name in asked}
    more, other = decoded(asked.get("bytes", "AA")), decoded(asked.get("with", ""))
    return encoded(altering.altered(decoded(asked["object"]), asked["how"], **given, more=more, other=other))


def parts(data: str | None) -> dict[str, str | None]:
    """An object taken apart without any key: nonces and wrapped key in hex, the ciphertext as bytes.

    Bytes that are no object are a result, not an error of the caller: `error` says why, and the others are null.
    """
    names = ("algorithm", "header_text", "wrap_nonce", "wrapped_key", "nonce", "ciphertext")
    try:
        found = parts_of(_told(data))
        text = found.header.decode("utf-8")
    except ValueError as error:
        return {"error": str(error), **dict.fromkeys(names)}
    return {
        "error": None,
        "algorithm": found.algorithm,
        "header_text": text,
        "wrap_nonce": found.wrap_nonce.hex(),
        "wrapped_key": found.wrapped_key.hex(),
        "nonce": found.nonce.hex(),
        "ciphertext": encoded(found.ciphertext),
    }


def common(objects: list[str | None]) -> list[str]:
    """The names of those parts that any two of several objects have in common, sorted.

    `wrap_nonce`, `wrapped_key`, `nonce`, `ciphertext`; `object_key`, unwrapped with the vault key of the contract;
    `vault_key` where the key of one is that; `nonces` where a nonce of the wrap is one of a payload, be it of the same
    object; `error` where one is no object or has no key that can be unwrapped.
    """
    master = bytes.fromhex(VAULT_KEY)
    found = [parts(each) for each in objects]
    try:
        keys = [envelope.object_key(parts_of(_told(each)), master) for each in objects]
    except ValueError:
        return ["error"]
    if any(each["error"] is not None for each in found):
        return ["error"]
    names = ("wrap_nonce", "wrapped_key", "nonce", "ciphertext")
    same = [name for name in names if len({each[name] for each in found}) < len(found)]
    mixed = {each["wrap_nonce"] for each in found} & {each["nonce"] for each in found}
    shared = {"object_key": len(set(keys)) < len(keys), "vault_key": master in keys, "nonces": bool(mixed)}
    return sorted([*same, *(name for name, is_so in shared.items() if is_so)])


def published(asked: Mapping[str, Any]) -> list[str]:
    """The parts of an object that break the rules of publishing: {object, type, key?} -> sorted words.

    The list is empty if all parts are right. Stricter than a reader may be: `prelude` (magic and version), `type` (not
    the one that is asked for), `members` (more or fewer in the header than its type has), `values` (one of them is not
    of its kind, or differs from the prelude), `header` and `payload` (not the RFC 8785 form), `error` (it does not
    open).
    """
    known(asked, frozenset({"object", "type", "key"}), "what was published")
    try:
        found = parts_of(_told(asked["object"]))
        data = envelope.payload_of(found, key_of(asked))
        return faults(found, data, asked["type"])
    except (ValueError, StrictJsonError):
        return ["error"]


def stored(asked: Mapping[str, Any]) -> dict[str, list[str]]:
    """How a listing of the store differs from what must lie there: {files, keys} -> {missing, others}, sorted paths.

    `files` is the value of a step `tree`, `keys` all objects that were published. Others are all files and links that
    are no object of these, and every folder that is neither on the way to one of these nor on the way to its place
    below tmp/.
    """
    known(asked, frozenset({"files", "keys"}), "a listing of the store")
    keys = set(asked["keys"])
    ways = {way for each in keys for path in _ways(each) for way in _above(path)} | _LAYOUT
    there = {entry["path"] for entry in asked["files"] if entry["kind"] == "file"}
    others = [
        entry["path"]
        for entry in asked["files"]
        if entry["path"] not in (ways if entry["kind"] == "folder" else keys) or entry["kind"] not in {"file", "folder"}
    ]
    return {"missing": sorted(keys - there), "others": sorted(others)}


def _above(path: str) -> list[str]:
    """The parent folders of a path."""
    parts = path.split("/")
    return ["/".join(parts[:length]) for length in range(1, len(parts))]


def _ways(path: str) -> list[str]:
    """Where an object lies, and where it may lie while it is written: below tmp/, by its whole path or by its end."""
    vault, rest = "/".join(path.split("/")[:3]), "/".join(path.split("/")[3:])
    return [path, f"{vault}/{_TMP}/{path}", f"{vault}/{_TMP}/{rest}"]


_TMP = "tmp"
_KINDS = ("objects/segments", "objects/blobs", "objects/tombstones", "objects/manifests")
_VAULT = f"HXSync/vaults/{VAULT_ID}"
# Folders that may be there before any object.
_LAYOUT = {*_above(f"{_VAULT}/x"), *(f"{_VAULT}/{way}" for way in (_TMP, "objects", *_KINDS))}


def opened(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The content of an object: {object, key?} -> {error, header, payload, object_key}.

    Of a blob the payload is its plain bytes. Where it does not open, `error` says why and the others are null. The
    header is not checked against the contract.
    """
    known(asked, frozenset({"object", "key"}), "what is opened")
    master = key_of(asked)
    try:
        found = parts_of(_told(asked["object"]))
        own, data = envelope.object_key(found, master), envelope.payload_of(found, master)
        header = loads(found.header)
        if not isinstance(header, dict):
            raise ValueError("its header is no object")
        if header.get("object_type") != "blob":
            payload = loads(data)
        else:
            payload = encoded(frames.plain(data) if header.get("compression") == "zstd" else data)
    except (ValueError, StrictJsonError, zstandard.ZstdError) as error:
        return {"error": str(error), "header": None, "payload": None, "object_key": None}
    return {"error": None, "header": header, "payload": payload, "object_key": own.hex()}


def _told(data: Any) -> bytes:
    if not isinstance(data, str):
        raise ValueError(f"not an object: expected bytes, got {data!r}")
    return decoded(data)


def key(asked: Mapping[str, Any]) -> str:
    """Where an object lies in the store: {object}, or {type, id?, node_id?, vault_id?}."""
    known(asked, frozenset({"object", "type", "id", "node_id", "vault_id"}), "a key")
    if "object" in asked:
        header = json.loads(parts_of(decoded(asked["object"])).header)
        kind = header["object_type"]
        name = header.get("blob_hash") if kind == "blob" else header.get(f"{kind}_id")
        return key({"type": kind, "id": name, "node_id": header.get("node_id"), "vault_id": header["vault_id"]})
    name, node = asked.get("id"), asked.get("node_id", NODE_A)
    below = {
        "segment": f"segments/{node}/{name}.hxseg",
        "blob": f"blobs/{str(name)[:2]}/{str(name)[2:4]}/{name}.hxblob",
        "tombstone": f"tombstones/{name}.hxtomb",
        "manifest": f"manifests/{node}.hxman",
    }
    return f"HXSync/vaults/{asked.get('vault_id', VAULT_ID)}/objects/{below[asked['type']]}"


# The expected content of the index


def digest(asked: Mapping[str, Any]) -> str:
    """The digest of a node's state: {state, at?}, `state` being the value of that observation, `at` the node's name.

    Rows of other nodes are left out where `at` is given; rows may come in any order.
    """
    known(asked, frozenset({"state", "at"}), "a digest")
    tables: dict[str, list[Any]] = {}
    for name in _DIGESTED:
        rows = [row for row in asked["state"][name] if "at" not in asked or row["at"] == asked["at"]]
        tables[name] = sorted(({part: row[part] for part in row if part != "at"} for row in rows), key=rfc8785)
    return hashlib.sha256(rfc8785(tables)).hexdigest()


def winner(events: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """Of several contents of one event the one that is shown: that with the lowest SHA-256 of its RFC 8785 form."""
    return min(events, key=lambda event: hashlib.sha256(rfc8785(event)).digest())


def leaks(asked: Mapping[str, Any]) -> list[str]:
    """Which texts can be read: {canaries: [texts], in: any value} -> those that occur in a text of the value, sorted.

    A text of the value is read as it is and as the bytes that it spells, see `holdfast.vectors.canaries`.
    """
    known(asked, frozenset({"canaries", "in"}), "a search for leaks")
    return canaries.leaks(asked["canaries"], asked["in"])


DERIVATIONS = {
    function.__name__.rstrip("_"): checked(function, IndexError, OverflowError, zstandard.ZstdError)
    for function in (
        altered,
        batch_text,
        binary,
        blob,
        canonical,
        common,
        digest,
        header_of,
        header_text,
        instant,
        integer,
        json_text,
        key,
        leaks,
        object_,
        opened,
        parts,
        place,
        published,
        sha256,
        stored,
        text,
        uuid,
        winner,
        zstd,
    )
}

__all__ = [
    "CREATED_AT", "DERIVATIONS", "NODE_A", "VAULT_ID", "VAULT_KEY", "altered", "blob", "canonical", "decoded", "digest",
    "encoded", "key", "leaks", "object_", "opened", "parts", "sha256", "uuid", "winner", "zstd",
]  # fmt: skip
