"""The request fingerprint of `mesh-delivery`, computed from a request by the text of its specification (section 4.4).

SHA-256 over seven fields with one zero byte between them. What a request is: the arguments of the contract's method
`fingerprint`, with `meta` and `body` as base64url.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from holdfast.specs import strictjson
from holdfast.specs.errors import StrictJsonError
from holdfast.vectors.spelling import decoded, encoded

SEPARATOR = b"\x00"
KINDS = ("topic", "dm", "queue")
PRIORITIES = ("now", "next", "low")
# The specification has no default; the contract pins one, and absent must be the same as naming it.
DEFAULT_PRIORITY = "next"

_PUBLIC_KEY = re.compile(r"[0-9A-Fa-f]{64}")
_UUID = re.compile(r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
# Crockford's alphabet: I, L, O and U are left out. The first digit holds three bits, or 130 would not fit in 128.
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")
_ULID_DIGITS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")


def fingerprint(request: Mapping[str, Any]) -> str:
    """The request fingerprint, 64 lower-case hex digits. Raises ValueError for a request that has none."""
    return hashlib.sha256(preimage(request)).hexdigest()


def preimage(request: Mapping[str, Any]) -> bytes:
    """The bytes that are hashed: the seven fields, a zero byte between each two, none before or after."""
    return SEPARATOR.join(fields(request))


def fields(request: Mapping[str, Any]) -> tuple[bytes, bytes, bytes, bytes, bytes, bytes, bytes]:
    """The seven fields in the order of the specification. Raises ValueError, see `fingerprint`."""
    return (
        _version(request.get("envelope_version")),
        _member_of(KINDS, request.get("destination_kind"), "destination_kind"),
        _reference(request.get("destination_kind"), request.get("destination_ref")),
        _reply_to(request.get("reply_to")),
        _member_of(PRIORITIES, request.get("priority", DEFAULT_PRIORITY), "priority"),
        _meta(request.get("meta")),
        hashlib.sha256(_bytes(request.get("body"), "body")).hexdigest().encode("ascii"),
    )


def _version(version: Any) -> bytes:
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ValueError(f"envelope_version must be an integer from 1 on, not {version!r}")
    return str(version).encode("ascii")


def _member_of(known: tuple[str, ...], value: Any, field: str) -> bytes:
    if value not in known:
        raise ValueError(f"{field} must be one of {', '.join(known)}, not {value!r}")
    return str(value).encode("ascii")


def _reference(kind: Any, reference: Any) -> bytes:
    text = _text(reference, "destination_ref")
    if not text:
        raise ValueError("destination_ref must not be empty")
    if kind != "dm":
        # Neither folded nor normalised: two spellings of a name are two topics.
        return text.encode("utf-8")
    if _PUBLIC_KEY.fullmatch(text) is None:
        raise ValueError(f"destination_ref of a dm must be a public key of 64 hexadecimal digits, not {text!r}")
    return text.lower().encode("ascii")


def _reply_to(reply_to: Any) -> bytes:
    if reply_to is None or reply_to == "":
        return b""
    text = _text(reply_to, "reply_to")
    if _UUID.fullmatch(text):
        return text.lower().encode("ascii")
    if _ULID.fullmatch(text.upper()) and text.isascii():
        value = 0
        for digit in text.upper():
            value = value * 32 + _ULID_DIGITS.index(digit)
        return str(UUID(int=value)).encode("ascii")
    raise ValueError(f"reply_to must be a broker_message_id (UUID or ULID) or empty, not {text!r}")


def _meta(meta: Any) -> bytes:
    if meta is None:
        return b""
    try:
        value = strictjson.loads(_bytes(meta, "meta"))
    except StrictJsonError as error:
        raise ValueError(f"meta is not I-JSON: {error}") from error
    if value is None or value == {}:
        return b""
    if not isinstance(value, dict):
        raise ValueError(f"meta must be an object, not {type(value).__name__}")
    return strictjson.canonical(value)


def _text(value: Any, field: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{field} must be text, not {type(value).__name__}")
    if "\0" in value:
        raise ValueError(f"{field} has U+0000, which would shift the fields after it")
    return value


def _bytes(value: Any, field: str) -> bytes:
    if not isinstance(value, str) or not _BASE64URL.fullmatch(value):
        raise ValueError(f"{field} must be bytes as base64url without padding, not {value!r}")
    try:
        return decoded(value)
    except binascii.Error as error:
        raise ValueError(f"{field} must be bytes as base64url without padding: {error}") from error


# The values of leaves (methods.yaml, x-leaf)


def version(value: Any) -> Mapping[str, Any]:
    """A version. 7.0 is 7 to JSON, and many parsers do not read it as a whole number: both are right."""
    return {"form": f"{value:.0f}", "doubtful": isinstance(value, float)}


def name(value: Any) -> str:
    """The name of a topic or a queue, as it is. Raises ValueError for U+0000."""
    return _text(value, "destination_ref")


def document(text: str) -> str:
    """The canonical form of a meta that is given as a JSON text. Raises ValueError for what is no meta."""
    return _meta(encoded(text.encode())).decode()


def override(value: Any) -> Mapping[str, Any] | None:
    """A number of hours for a retention of 30 days, with what it is: `invalid` or `above`, if it is no good one.

    Whether a number that is written with a fraction of nought, or with an exponent, is whole is left open.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return {"form": repr(value), "class": "invalid"}
    if isinstance(value, float) and value.is_integer():
        return None
    if isinstance(value, float) or value < 1:
        return {"form": repr(value), "class": "invalid"}
    return {"form": str(value), **({} if value < 30 * 24 else {"class": "above"})}


def mesh_id(text: str) -> str:
    """A made-up id of a mesh: a UUID that follows from any text."""
    return str(UUID(bytes=hashlib.sha256(text.encode()).digest()[:16], version=4))


# How much of a stored fingerprint a conflict shows: eight bytes (MESH-4.5-R3).
_PREFIX_DIGITS = 16

DERIVATIONS: Mapping[str, Callable[[Any], Any]] = {
    "fingerprint": fingerprint,
    "mesh_id": mesh_id,
    "override": override,
    "prefix": lambda request: fingerprint(request)[:_PREFIX_DIGITS],
    "version": version,
    "kind": lambda value: _member_of(KINDS, value, "destination_kind").decode(),
    "name": name,
    "public_key": lambda value: _reference("dm", value).decode(),
    "reply_to": lambda value: _reply_to(value).decode(),
    "priority": lambda value: _member_of(PRIORITIES, value, "priority").decode(),
    "meta": lambda value: _meta(value).decode(),
    "document": document,
}
