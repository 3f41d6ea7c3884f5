"""Objects of `hx-sync` for cases: they follow the contract, with the stated exceptions.

Bytes travel as base64url without padding. Values that are random elsewhere follow from a label.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import uuid as uuids
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.specs.strictjson import canonical as rfc8785
from holdfast.vectors.hx_sync.objects import format as envelope
from holdfast.vectors.hx_sync.objects import frames
from holdfast.vectors.hx_sync.objects.format import ALGORITHMS, BYTE, MAGIC, NONCE, VERSION
from holdfast.vectors.spelling import encoded, known

# Parameters of the contract: vault_id, vault_key and node_a.
VAULT_ID = "6f1d2c3e-0a4b-4c5d-8e6f-7a8b9c0d1e2f"
VAULT_KEY = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
NODE_A = "a0a0a0a0-0a0a-4a0a-8a0a-a0a0a0a0a0a0"
CREATED_AT = "2026-01-01T00:00:00Z"

# The members that only the header of this type has.
MEMBERS = {
    "segment": ("node_id", "segment_id", "created_at"),
    "blob": ("blob_hash", "byte_len_plain", "compression"),
    "tombstone": ("tombstone_id", "created_at", "node_id"),
    "manifest": ("node_id", "created_at"),
}
_PAYLOADS = ("payload", "payload_text", "payload_bytes")
_HEADERS = ("header_text", "header_bytes")
_BOUND = ("aad", "wrap_aad", "payload_aad")
_OBJECT = frozenset(
    {"type", "label", "id", "node_id", "key", "vault_id", "algorithm", "cipher", "object_key", "created_at", "header"}
    | {"drop", "magic", "version", "algorithm_byte", "header_length", "wrap_nonce", "nonce", "tail"}
    | {*_PAYLOADS, *_HEADERS, *_BOUND}
)
_BLOB = frozenset({"bytes", "zeros", "compression", "frame", "byte_len_plain", "blob_hash"})


def decoded(text: str) -> bytes:
    """The bytes of a base64url text without padding. Raises ValueError for any other."""
    try:
        data = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError(f"not base64url: {text[:40]!r}") from error
    if encoded(data) != text:
        raise ValueError(f"not base64url without padding: {text[:40]!r}")
    return data


def _random(label: str, purpose: str, length: int) -> bytes:
    """Bytes, at most 32, that cannot be guessed from another label or purpose."""
    return hashlib.sha256(f"hx\x1f{purpose}\x1f{label}".encode()).digest()[:length]


def uuid(label: str) -> str:
    """A UUID version 4 in lower case, fixed by `label`."""
    return str(uuids.UUID(bytes=hashlib.sha256(label.encode("utf-8")).digest()[:16], version=4))


def object_(asked: Mapping[str, Any]) -> str:
    """The bytes of a sealed object: {type, label, payload | payload_text | payload_bytes} and the exceptions.

    The header has the members of its type by default: `id` (segment_id, tombstone_id or blob_hash; of the label),
    `node_id` (node a), `created_at`, `vault_id`, `algorithm`. `header` sets further members over these, `drop` leaves
    some out, `header_text` or `header_bytes` replaces it all. `key` is the master key, 64 hex digits. `object_key`,
    `wrap_nonce`, `nonce` in hex replace those of the label. `magic` (text), `version`, `algorithm_byte`,
    `header_length` write another prelude than due; `cipher` seals with another algorithm than byte and header name.
    `aad`, or `wrap_aad` and `payload_aad`, bind to something else than every byte before the wrap: `none`, `prelude`
    (11 bytes), `header` (without the prelude), `canonical` (the prelude and the header's RFC 8785 form), or bytes as
    {bytes}. `tail` are bytes after it all.
    """
    known(asked, _OBJECT, "an object")
    kind, label = asked["type"], asked["label"]
    algorithm = asked.get("algorithm", ALGORITHMS[1])
    header = _header(asked, kind, label, algorithm)
    cipher = asked.get("cipher", algorithm)
    key = key_of(asked)
    own = bytes.fromhex(asked["object_key"]) if "object_key" in asked else _random(label, "key", 32)
    wrap_nonce, nonce = (
        bytes.fromhex(asked[name]) if name in asked else _random(label, name, NONCE[cipher])
        for name in ("wrap_nonce", "nonce")
    )
    prelude = (
        asked.get("magic", MAGIC.decode()).encode()
        + bytes([asked.get("version", VERSION), asked.get("algorithm_byte", BYTE[algorithm])])
        + asked.get("header_length", len(header)).to_bytes(4, "big")
    )
    bound = {
        name: _aad(asked.get(name, asked.get("aad", "due")), prelude, header) for name in ("wrap_aad", "payload_aad")
    }
    wrapped = envelope.seal(cipher, key, wrap_nonce, own, bound["wrap_aad"])
    sealed = envelope.seal(cipher, own, nonce, _payload(asked), bound["payload_aad"])
    return encoded(prelude + header + wrap_nonce + wrapped + nonce + sealed + decoded(asked.get("tail", "")))


def key_of(asked: Mapping[str, Any]) -> bytes:
    key = bytes.fromhex(asked.get("key", VAULT_KEY))
    if len(key) != envelope.KEY:
        raise ValueError(f"a master key has 64 hex digits, not {2 * len(key)}")
    return key


def _header(asked: Mapping[str, Any], kind: str, label: str, algorithm: str) -> bytes:
    given = [name for name in _HEADERS if name in asked]
    if given:
        if len(given) > 1 or "header" in asked or "drop" in asked:
            raise ValueError("a header is given as a whole or in parts, not both")
        text = asked[given[0]]
        return text.encode("utf-8") if given == ["header_text"] else decoded(text)
    if kind not in MEMBERS:
        raise ValueError(f"no type is called {kind!r}; known: {', '.join(MEMBERS)}")
    of = {
        "node_id": asked.get("node_id", NODE_A),
        "created_at": asked.get("created_at", CREATED_AT),
        f"{kind}_id": asked.get("id", uuid(label)),
        "blob_hash": asked.get("id"),
        "byte_len_plain": 0,
        "compression": "none",
    }
    header = {
        "magic": MAGIC.decode(),
        "version": VERSION,
        "object_type": kind,
        "vault_id": asked.get("vault_id", VAULT_ID),
        "crypto": {"alg": algorithm},
        **{name: of[name] for name in MEMBERS[kind]},
        **asked.get("header", {}),
    }
    for name in asked.get("drop", ()):
        del header[name]
    return rfc8785(header)


def _payload(asked: Mapping[str, Any]) -> bytes:
    (form,) = [name for name in _PAYLOADS if name in asked] or ["none"]
    if form == "none":
        raise ValueError(f"an object needs one of {', '.join(_PAYLOADS)}")
    payload = asked[form]
    if form == "payload":
        return rfc8785(payload)
    return payload.encode("utf-8") if form == "payload_text" else decoded(payload)


def _aad(bound_to: Any, prelude: bytes, header: bytes) -> bytes:
    if isinstance(bound_to, Mapping):
        return decoded(bound_to["bytes"])
    variants: dict[str, Callable[[], bytes]] = {
        "due": lambda: prelude + header,
        "none": lambda: b"",
        "prelude": lambda: prelude,
        "header": lambda: header,
        "canonical": lambda: prelude + rfc8785(json.loads(header)),
    }
    if bound_to not in variants:
        raise ValueError(f"nothing to bind to is called {bound_to!r}; known: {', '.join(variants)}, or bytes")
    return variants[bound_to]()


def blob(asked: Mapping[str, Any]) -> str:
    """The bytes of a sealed blob: {bytes | zeros: N, label} and the exceptions.

    `compression` is `zstd` (default) or `none`. `frame` are the compressed bytes where they are to be others than one
    frame of the bytes (see `hx.zstd`), `byte_len_plain` and `blob_hash` what the header says where it is to be untrue.
    The rest is as in `hx.object`.
    """
    known(asked, (_OBJECT | _BLOB) - {"type", *_PAYLOADS}, "a blob")
    compression = asked.get("compression", "zstd")
    length, due, data = _plain(asked, compression)
    header = {
        "blob_hash": asked.get("blob_hash", due),
        "byte_len_plain": asked.get("byte_len_plain", length),
        "compression": compression,
        **asked.get("header", {}),
    }
    rest = {name: value for name, value in asked.items() if name not in _BLOB}
    return object_({**rest, "type": "blob", "header": header, "payload_bytes": encoded(data)})


def _plain(asked: Mapping[str, Any], compression: str) -> tuple[int, str, bytes]:
    """Length, hash and packing of a blob's content. Many zeros are never in memory at once."""
    if "zeros" in asked:
        length, state = asked["zeros"], hashlib.sha256()
        for piece in frames.zeros(length):
            state.update(piece)
        due, plain = state.hexdigest(), b""
    else:
        plain = decoded(asked["bytes"])
        length, due = len(plain), hashlib.sha256(plain).hexdigest()
    if "frame" in asked:
        return length, due, decoded(asked["frame"])
    if compression == "none":
        return length, due, plain or bytes(length)
    return length, due, frames.frame_of_zeros(length) if "zeros" in asked else frames.frame(plain)


def zstd(asked: Mapping[str, Any]) -> str:
    """Compressed bytes: {bytes | zeros: N} as one frame that states its size, the same with every version of a library.

    `frames: N` is the bytes in N frames one after the other, or N frames of that many zeros. `without_size` is a frame
    that does not state its size, `stated_size: N` one that states another. `skippable` is a frame in front that holds
    these bytes and that readers skip, `trailing` are bytes after. With `compressed` the library makes the frame, with
    a `checksum` if that is asked for.
    """
    members = {"bytes", "zeros", "frames", "without_size", "stated_size", "skippable", "trailing"}
    known(asked, frozenset(members | {"compressed", "checksum"}), "a frame")
    count, with_size = asked.get("frames", 1), not asked.get("without_size", False)
    if "zeros" in asked:
        data = frames.frame_of_zeros(asked["zeros"], with_size=with_size) * count
    else:
        plain = decoded(asked["bytes"])
        step = -(-len(plain) // count) or 1
        pieces = [plain[at * step : (at + 1) * step] for at in range(count)]
        if asked.get("compressed", False):
            checksum = bool(asked.get("checksum", False))
            data = b"".join(frames.compressed(piece, with_size=with_size, checksum=checksum) for piece in pieces)
        else:
            data = b"".join(frames.frame(piece, with_size=with_size) for piece in pieces)
    if "stated_size" in asked:
        data = frames.stating(data, asked["stated_size"])
    front = frames.skippable(decoded(asked["skippable"])) if "skippable" in asked else b""
    return encoded(front + data + decoded(asked.get("trailing", "")))
