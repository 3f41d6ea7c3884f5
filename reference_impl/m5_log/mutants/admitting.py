"""Bugs in what is admitted: forged operations, and second spellings of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from nacl.bindings import crypto_core_ed25519_is_valid_point

from holdfast.reference_impl.m5_log import cbor
from holdfast.reference_impl.m5_log.cbor import CborError, Map, Value
from holdfast.reference_impl.m5_log.log import Log
from holdfast.reference_impl.m5_log.operations import OpCodec, Operation, op_id_of
from holdfast.reference_impl.m5_log.signatures import Signatures
from holdfast.reference_impl.m5_log.terms import Reason, RefusedError
from holdfast.reference_impl.planting import part

# Members that some payload has.
_KNOWN = frozenset({"key", "value", "amount", "tag", "subject", "role", "credential"})
# The order of the group (RFC 8032 section 5.1).
_ORDER = 2**252 + 27742317777372353535851937790883648493


class SmallOrderAccepted(Signatures):
    def valid(self, key: bytes, message: bytes, signature: bytes) -> bool:
        try:
            Ed25519PublicKey.from_public_bytes(key).verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True


class SmallRAccepted(SmallOrderAccepted):
    def valid(self, key: bytes, message: bytes, signature: bytes) -> bool:
        whole = crypto_core_ed25519_is_valid_point(key) and super().valid(key, message, signature)
        return whole or Signatures().valid(key, message, signature)


class PrimeOrderOnly(Signatures):
    def valid(self, key: bytes, message: bytes, signature: bytes) -> bool:
        return super().valid(key, message, signature) and crypto_core_ed25519_is_valid_point(key)


class Malleable(Signatures):
    def valid(self, key: bytes, message: bytes, signature: bytes) -> bool:
        number = int.from_bytes(signature[32:], "little") % _ORDER
        return super().valid(key, message, signature[:32] + number.to_bytes(32, "little"))


class ParentsMerged(OpCodec):
    def parents(self, value: Value) -> tuple[bytes, ...]:
        assert isinstance(value, tuple)
        return tuple(each for each in dict.fromkeys(value) if isinstance(each, bytes))


class LooseReader(cbor._Reader):
    """Takes keys in any order, and arguments in any length."""

    def _argument(self, info: int, at: int) -> tuple[int, int]:
        if info not in cbor._WIDTHS:
            return super()._argument(info, at)
        raw, behind = self._bytes(cbor._WIDTHS[info], at + 1)
        return int.from_bytes(raw, "big"), behind


class AnyOrderReader(cbor._Reader):
    """Takes keys in any order."""

    def _map(self, length: int, at: int, depth: int) -> tuple[Value, int]:
        self._deeper(depth, at)
        pairs = []
        for _ in range(length):
            key, at = self.read(at, depth - 1)
            value, at = self.read(at, depth - 1)
            pairs.append((key, value))
        return Map(tuple(pairs)), at


class ReservedReader(cbor._Reader):
    """Takes the reserved additional information for the number itself."""

    def _argument(self, info: int, at: int) -> tuple[int, int]:
        return (info, at + 1) if info in range(28, 31) else super()._argument(info, at)


class TwoByteReader(cbor._Reader):
    """Takes false, true and null in two bytes as well."""

    def read(self, at: int, depth: int) -> tuple[Value, int]:
        if self._data[at : at + 1] == b"\xf8" and self._data[at + 1 : at + 2] in (b"\x14", b"\x15", b"\x16"):
            return cbor._CONSTANTS[self._data[at + 1]], at + 2
        return super().read(at, depth)


def _read(reader: type[cbor._Reader], raw: bytes, max_depth: int, *, tail: bool = False) -> Value:
    """The value that a reader finds. With `tail` other bytes may follow it."""
    try:
        found, end = reader(raw).read(0, max_depth)
    except CborError as error:
        raise RefusedError(Reason.NON_CANONICAL, str(error)) from error
    if end != len(raw) and not tail:
        raise RefusedError(Reason.NON_CANONICAL, "expected nothing behind it")
    return found


class AnyLength(OpCodec):
    def canonical(self, raw: bytes) -> Value:
        return _read(LooseReader, raw, self._settings.max_depth)


class AnyOrder(OpCodec):
    def canonical(self, raw: bytes) -> Value:
        return _read(AnyOrderReader, raw, self._settings.max_depth)


class TailIgnored(OpCodec):
    def canonical(self, raw: bytes) -> Value:
        return _read(cbor._Reader, raw, self._settings.max_depth, tail=True)


class Reserved(OpCodec):
    def canonical(self, raw: bytes) -> Value:
        return _read(ReservedReader, raw, self._settings.max_depth)


class TwoBytes(OpCodec):
    def canonical(self, raw: bytes) -> Value:
        return _read(TwoByteReader, raw, self._settings.max_depth)


class AnyPart(OpCodec):
    def check_part(self, shape: str, name: str, part: Value) -> None:
        """Whatever it is."""


class MoreMembers(OpCodec):
    def payload(self, kind: str, value: Value) -> Mapping[str, Value]:
        if not isinstance(value, Map):
            return super().payload(kind, value)
        return super().payload(kind, Map(tuple(pair for pair in value.pairs if pair[0] in _KNOWN)))


class DeepMapReader(cbor._Reader):
    def _map(self, length: int, at: int, depth: int) -> tuple[Value, int]:
        return super()._map(length, at, max(depth, 1))


class DeepMaps(OpCodec):
    def canonical(self, raw: bytes) -> Value:
        return _read(DeepMapReader, raw, self._settings.max_depth)


class IdOfBody(OpCodec):
    def op_id(self, raw: bytes) -> bytes:
        return op_id_of(self.split(raw)[0])


class OrphansRefused(Log):
    def append(self, operations: Sequence[Operation]) -> Sequence[Any]:
        opened = self._store.writing()
        for operation in operations:
            if any(parent not in opened.dag for parent in operation.parents):
                self._codec.parents(None)
        return super().append(operations)


BUGS = {
    "small-order-key-accepted": part(signatures=SmallOrderAccepted),
    "small-r-accepted": part(signatures=SmallRAccepted),
    "mixed-order-refused": part(signatures=PrimeOrderOnly),
    "reserved-lengths-accepted": part(codec=Reserved),
    "two-byte-simples-accepted": part(codec=TwoBytes),
    "malleable-signature-accepted": part(signatures=Malleable),
    "parent-twice-accepted": part(codec=ParentsMerged),
    "longer-lengths-accepted": part(codec=AnyLength),
    "unsorted-map-accepted": part(codec=AnyOrder),
    "tail-of-operation-ignored": part(codec=TailIgnored),
    "id-of-the-body": part(codec=IdOfBody),
    "payload-of-any-types": part(codec=AnyPart),
    "members-of-a-payload-ignored": part(codec=MoreMembers),
    "maps-of-any-depth": part(codec=DeepMaps),
    "orphans-refused": part(log=OrphansRefused),
}
