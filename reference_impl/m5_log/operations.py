"""An operation: its strict decoding, and what its signature and its id cover (methods.yaml, `$defs/op`)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.reference_impl.ed25519 import KEY_BYTES, SIGNATURE_BYTES, valid
from holdfast.reference_impl.m5_log.cbor import CborError, Map, Value, decode
from holdfast.reference_impl.m5_log.terms import Hlc, Key, Reason, Settings
from holdfast.reference_impl.terms import RefusedError

ID_BYTES, HLC_BYTES, _MILLISECONDS_BYTES = 32, 12, 8
_MEMBERS = frozenset({"author", "format", "hlc", "kind", "parents", "payload"})
# For each kind the members of its payload, and what each is. `tag` of a kind in `_UNTAGGED` may be left out.
_PAYLOADS: Mapping[str, Mapping[str, str]] = {
    "set": {"key": "text", "value": "anything", "tag": "text"},
    "add": {"key": "text", "amount": "amount", "tag": "text"},
    "grant": {"subject": "id", "role": "text", "tag": "text", "credential": "id"},
    "revoke": {"subject": "id", "role": "text", "tag": "text"},
    "credential": {"credential": "bytes"},
}
_UNTAGGED = frozenset({"set", "add"})
# Of what a member may be: whether it is that, and what is said where it is not.
_SHAPES: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "text": (lambda part: isinstance(part, str) and 1 <= len(part) <= 255, "text of 1 to 255 characters"),
    # So that a counter of 2^32 amounts still fits 64 bits.
    "amount": (
        lambda part: type(part) is int and -(2**31) <= part < 2**31,
        f"an integer from {-(2**31)} to {2**31 - 1}",
    ),
    "id": (lambda part: isinstance(part, bytes) and len(part) == ID_BYTES, f"a byte string of {ID_BYTES} bytes"),
    "bytes": (lambda part: isinstance(part, bytes), "a byte string"),
    "anything": (lambda _: True, ""),
}


@dataclass(frozen=True, slots=True)
class Operation:
    """A decoded operation. `raw` is as it came; nothing is ever encoded from the rest."""

    raw: bytes
    op_id: Key
    body: bytes = field(repr=False)
    signature: bytes = field(repr=False)
    author: Key
    hlc: Hlc
    kind: str
    parents: tuple[bytes, ...]
    payload: Mapping[str, Value]

    @property
    def milliseconds(self) -> int:
        """The physical part of its clock, since 1970."""
        return int.from_bytes(self.hlc[:_MILLISECONDS_BYTES], "big")


class OpCodec:
    """Reads operations. Every check is one method; each raises RefusedError."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings

    def accept(self, raw: bytes, declared: bytes | None = None) -> Operation:
        """An operation from a stranger: decoded, of the declared id if one is declared, and signed by its author."""
        operation = self.decode(raw)
        self.check_id(operation, declared)
        self.check_signature(operation)
        return operation

    def decode(self, raw: bytes) -> Operation:
        """An operation in these bytes. Its signature is not checked."""
        # What is longer is no operation.
        if len(raw) > self._settings.max_op_bytes:
            raise _malformed(f"expected at most {self._settings.max_op_bytes} bytes, got {len(raw)}")
        body, signature = self.split(raw)
        members = self.members(body)
        author = self.binary("author", members["author"], KEY_BYTES)
        kind = members["kind"]
        if not isinstance(kind, str) or kind not in _PAYLOADS:
            raise _malformed(f"expected one of the kinds {', '.join(_PAYLOADS)}")
        return Operation(
            raw=raw,
            op_id=self.op_id(raw),
            body=body,
            signature=signature,
            author=author,
            hlc=self.binary("hlc", members["hlc"], HLC_BYTES),
            kind=kind,
            parents=self.parents(members["parents"]),
            payload=self.payload(kind, members["payload"]),
        )

    def op_id(self, raw: bytes) -> bytes:
        """The hash of the bytes as they came."""
        return hashlib.sha256(raw).digest()

    def canonical(self, raw: bytes) -> Value:
        """The value of which these bytes are the one encoding."""
        try:
            return decode(raw, max_depth=self._settings.max_depth)
        except CborError as error:
            raise RefusedError(Reason.NON_CANONICAL, str(error)) from error

    def split(self, raw: bytes) -> tuple[bytes, bytes]:
        """Body and signature, each as its bytes."""
        parts = self.canonical(raw)
        if not isinstance(parts, tuple) or len(parts) != 2:
            raise _malformed("expected an array of body and signature")
        body, signature = parts
        if not isinstance(body, bytes):
            raise _malformed("expected the body as a byte string")
        return body, self.binary("signature", signature, SIGNATURE_BYTES)

    def members(self, body: bytes) -> Mapping[str, Value]:
        """The members of a body, exactly those that it has to have."""
        members = _members_of("body", self.canonical(body))
        if members.keys() != _MEMBERS:
            raise _malformed(f"expected the members {', '.join(sorted(_MEMBERS))}, got {', '.join(sorted(members))}")
        if members["format"] != self._settings.schema_version:
            raise _malformed(f"expected the format {self._settings.schema_version!r}")
        return members

    def parents(self, value: Value) -> tuple[bytes, ...]:
        """The parents, in the order of the author, each once."""
        if not isinstance(value, tuple):
            raise _malformed("expected an array of parents")
        found = tuple(self.binary("parent", parent, ID_BYTES) for parent in value)
        if len(found) > self._settings.max_parents:
            raise _malformed(f"expected at most {self._settings.max_parents} parents, got {len(found)}")
        if len(set(found)) < len(found):
            raise _malformed("expected every parent once")
        return found

    def payload(self, kind: str, value: Value) -> Mapping[str, Value]:
        """The payload, with exactly the members of its kind."""
        members = _members_of("payload", value)
        known = _PAYLOADS[kind]
        required = known.keys() - {"tag"} if kind in _UNTAGGED else known.keys()
        if not required <= members.keys() <= known.keys():
            raise _malformed(f"expected of {kind} the members {', '.join(known)}, got {', '.join(members)}")
        for name, part in members.items():
            fits, expected = _SHAPES[known[name]]
            if not fits(part):
                raise _malformed(f"expected {name} as {expected}")
        return members

    def binary(self, name: str, value: Value, length: int) -> bytes:
        """A byte string of exactly that length."""
        if not isinstance(value, bytes) or len(value) != length:
            raise _malformed(f"expected {name} as a byte string of {length} bytes")
        return value

    def check_id(self, operation: Operation, declared: bytes | None) -> None:
        """The id is computed, never believed."""
        if declared is not None and declared != operation.op_id:
            raise RefusedError(Reason.OP_ID_MISMATCH, "the declared op_id is not the hash of these bytes")

    def check_signature(self, operation: Operation) -> None:
        """The author signed the bytes of the body."""
        if not valid(operation.author, operation.body, operation.signature):
            raise RefusedError(Reason.SIGNATURE_INVALID, "the signature is not the author's over these bytes")

    def batch(self, raw: bytes) -> Sequence[bytes]:
        """The operations of a file of op-append: one CBOR array of byte strings, nothing after it."""
        parts = self.canonical(raw)
        found = [part for part in parts if isinstance(part, bytes)] if isinstance(parts, tuple) else []
        if not isinstance(parts, tuple) or len(found) < len(parts):
            raise _malformed("expected an array of byte strings, each an operation")
        if len(found) > self._settings.max_batch_ops:
            raise _malformed(f"expected at most {self._settings.max_batch_ops} operations, got {len(found)}")
        return found


def packed(parents: Sequence[bytes]) -> bytes:
    """The value of a row of edges: the parents in the order of the operation."""
    return b"".join(parents)


def unpacked(value: bytes) -> tuple[bytes, ...]:
    """The parents in a row of edges. Raises ValueError for what is no such row."""
    if len(value) % ID_BYTES:
        raise ValueError(f"expected a multiple of {ID_BYTES} bytes, got {len(value)}")
    return tuple(value[at : at + ID_BYTES] for at in range(0, len(value), ID_BYTES))


def author_key(operation: Operation) -> bytes:
    """The key of its row in by_author."""
    return operation.author + operation.hlc + operation.op_id


def _members_of(name: str, value: Value) -> dict[str, Value]:
    if not isinstance(value, Map):
        raise _malformed(f"expected {name} as a map")
    try:
        return value.members()
    except CborError as error:
        raise _malformed(f"{name}: {error}") from error


def _malformed(detail: str) -> RefusedError:
    return RefusedError(Reason.OP_MALFORMED, detail)
