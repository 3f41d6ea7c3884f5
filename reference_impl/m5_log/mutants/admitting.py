"""Bugs in what is admitted: forged operations, and second spellings of one."""

from __future__ import annotations

from holdfast.reference_impl.m5_log import cbor
from holdfast.reference_impl.m5_log.cbor import CborError, Value
from holdfast.reference_impl.m5_log.operations import OpCodec, op_id_of
from holdfast.reference_impl.m5_log.terms import Reason, RefusedError
from holdfast.reference_impl.planting import part


class ReservedReader(cbor._Reader):
    """Takes the reserved additional information for the number itself."""

    def _argument(self, info: int, at: int) -> tuple[int, int]:
        return (info, at + 1) if info in range(28, 31) else super()._argument(info, at)


def _read(reader: type[cbor._Reader], raw: bytes, max_depth: int, *, tail: bool = False) -> Value:
    """The value that a reader finds. With `tail` other bytes may follow it."""
    try:
        found, end = reader(raw).read(0, max_depth)
    except CborError as error:
        raise RefusedError(Reason.NON_CANONICAL, str(error)) from error
    if end != len(raw) and not tail:
        raise RefusedError(Reason.NON_CANONICAL, "expected nothing behind it")
    return found


class Reserved(OpCodec):
    def canonical(self, raw: bytes) -> Value:
        return _read(ReservedReader, raw, self._settings.max_depth)


class DeepMapReader(cbor._Reader):
    def _map(self, length: int, at: int, depth: int) -> tuple[Value, int]:
        return super()._map(length, at, max(depth, 1))


class DeepMaps(OpCodec):
    def canonical(self, raw: bytes) -> Value:
        return _read(DeepMapReader, raw, self._settings.max_depth)


class IdOfBody(OpCodec):
    def op_id(self, raw: bytes) -> bytes:
        return op_id_of(self.split(raw)[0])


BUGS = {
    "reserved-lengths-accepted": part(codec=Reserved),
    "id-of-the-body": part(codec=IdOfBody),
    "maps-of-any-depth": part(codec=DeepMaps),
}
