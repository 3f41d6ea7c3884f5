"""Ed25519 (RFC 8032 section 5.1) by its numbers: for signatures that no library makes.

A point of the curve is a multiple of the base point plus one of eight points of small order. Libraries differ in what
they make of the second part, and of encodings that are not canonical. Nothing here is fast or secret.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

P = 2**255 - 19
# The order of the base point.
L = 2**252 + 27742317777372353535851937790883648493
SMALL_ORDERS = 8
_D = -121665 * pow(121666, -1, P) % P
_ROOT_OF_MINUS_ONE = pow(2, (P - 1) // 4, P)


@dataclass(frozen=True, slots=True)
class Point:
    """A point in affine coordinates."""

    x: int
    y: int

    def __add__(self, other: Point) -> Point:
        product = _D * self.x * other.x * self.y * other.y % P
        return Point(
            (self.x * other.y + other.x * self.y) * pow(1 + product, -1, P) % P,
            (self.y * other.y + self.x * other.x) * pow(1 - product, -1, P) % P,
        )

    def __rmul__(self, times: int) -> Point:
        found, power = NEUTRAL, self
        while times:
            if times & 1:
                found += power
            power, times = power + power, times >> 1
        return found

    def encode(self) -> bytes:
        """The canonical encoding: y, with the lowest bit of x in its highest bit."""
        return (self.y | (self.x & 1) << 255).to_bytes(32, "little")


NEUTRAL = Point(0, 1)


def decode(data: bytes) -> Point:
    """The point of an encoding, canonical or not. Raises ValueError where there is none."""
    number = int.from_bytes(data, "little")
    y, odd = number % 2**255 % P, number >> 255
    square = (y * y - 1) * pow(_D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * _ROOT_OF_MINUS_ONE % P
    if x * x % P != square:
        raise ValueError("expected a point of the curve")
    return Point(P - x if x and x & 1 != odd else x, y)


BASE = decode((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
# A point of order eight; it makes all others of small order.
TWIST = decode(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"))


def is_small(point: Point) -> bool:
    """Whether it is one of the eight points of small order."""
    return SMALL_ORDERS * point == NEUTRAL


def small_encodings() -> set[bytes]:
    """Every encoding of a point of small order, the canonical ones and the others."""
    ys = {(times * TWIST).y for times in range(SMALL_ORDERS)}
    return {
        (y | sign << 255).to_bytes(32, "little")
        for least in ys
        for y in (least, least + P)
        for sign in range(2)
        if y < 2**255
    }


def scalar_of(seed: bytes) -> int:
    """The secret scalar of a seed."""
    number = int.from_bytes(hashlib.sha512(seed).digest()[:32], "little")
    return number & ~7 & (1 << 254) - 1 | 1 << 254


def challenge(key: bytes, r: bytes, message: bytes) -> int:
    """The hash that binds key and R to a message, as a number that was not reduced."""
    return int.from_bytes(hashlib.sha512(r + key + message).digest(), "little")


def sign(seed: bytes, message: bytes) -> bytes:
    """The signature of RFC 8032 section 5.1.6."""
    scalar, prefix = scalar_of(seed), hashlib.sha512(seed).digest()[32:]
    nonce = int.from_bytes(hashlib.sha512(prefix + message).digest(), "little") % L
    key, r = (scalar * BASE).encode(), (nonce * BASE).encode()
    return r + ((nonce + challenge(key, r, message) * scalar) % L).to_bytes(32, "little")


def valid(key: bytes, message: bytes, signature: bytes) -> bool:
    """Whether a signature meets what the contract pins: no cofactor, nothing small, nothing spelt otherwise."""
    r, s = signature[:32], int.from_bytes(signature[32:], "little")
    try:
        point, nonce = decode(key), decode(r)
    except ValueError:
        return False
    if s >= L or is_small(point) or is_small(nonce) or point.encode() != key or nonce.encode() != r:
        return False
    return s * BASE == nonce + challenge(key, r, message) % L * point
