"""Ed25519 (RFC 8032 section 5.1) by its numbers: for signatures that no library makes.

A point of the curve is a multiple of the base point plus one of eight points of small order. Libraries differ in what
they make of the second part, and of encodings that are not canonical. Nothing here is fast or secret.

Operations whose signatures lie at the edges are sound by the numbers, and for most of them no signature. The equation
of RFC 8032 is S * BASE = R + h * A, where h is the hash of R, A and the body. With A = a * BASE + k * TWIST and
R = r * BASE + t * TWIST it holds if S = r + h * a, and if t + h * k is a multiple of eight. With a cofactor, only S
counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

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


# Both spellings of y = 1, each with and without the sign of x, which is 0. Only the first one is canonical.
_NEUTRALS = tuple((y | sign << 255).to_bytes(32, "little") for y in (1, P + 1) for sign in range(2))
Body = Callable[[bytes], bytes]


@dataclass(frozen=True, slots=True)
class Signed:
    """A key, the body that names it as its author, and a signature of 64 bytes."""

    key: bytes
    body: bytes
    signature: bytes


def _points(scalar: int) -> Iterator[tuple[int, Point]]:
    """Ever more scalars with their points; the neutral one for ever, if it begins with 0."""
    point = scalar * BASE
    for more in count():
        yield (scalar + more, point) if scalar else (0, NEUTRAL)
        point += BASE


def _found(body: Body, a: int, r: int, fits: Callable[[int, int], bool]) -> Signed:
    """With k = 1, the first key and R for which `fits` is true of t and h."""
    twists = [times * TWIST for times in range(SMALL_ORDERS)]
    for (scalar, plain), (nonce, r_plain) in zip(_points(a), _points(r), strict=True):
        key = (plain + TWIST).encode()
        for t, twist in enumerate(twists):
            spelt, said = (r_plain + twist).encode(), body(key)
            h = challenge(key, spelt, said)
            if fits(t, h):
                return Signed(key, said, spelt + ((nonce + h * scalar) % L).to_bytes(32, "little"))
    raise AssertionError("unreachable")


def _even(t: int, h: int) -> bool:
    return (t + h % L) % SMALL_ORDERS == 0


def _mixed(body: Body, a: int, r: int) -> Signed:
    # For a library that does not reduce h as well, so that there is no doubt about this one.
    return _found(body, a, r, lambda t, h: t != 0 and _even(t, h) and (t + h) % SMALL_ORDERS == 0)


def _cofactor(body: Body, a: int, r: int) -> Signed:
    return _found(body, a, r, lambda t, h: not _even(t, h) and (t + h) % SMALL_ORDERS != 0)


def _neutral_key(spelt: bytes) -> Callable[[Body, int, int], Signed]:
    return lambda body, _, r: Signed(spelt, body(spelt), (r * BASE).encode() + (r % L).to_bytes(32, "little"))


def _neutral_r(spelt: bytes) -> Callable[[Body, int, int], Signed]:
    def signed(body: Body, a: int, _: int) -> Signed:
        key = (a * BASE).encode()
        said = body(key)
        return Signed(key, said, spelt + (challenge(key, spelt, said) * a % L).to_bytes(32, "little"))

    return signed


def _far(body: Body, a: int, r: int) -> Signed:
    key, spelt = (a * BASE).encode(), (r * BASE).encode()
    said = body(key)
    s = (r + challenge(key, spelt, said) * a) % L
    return Signed(key, said, spelt + (s + (2**256 - 1 - s) // L * L).to_bytes(32, "little"))


# A is mixed where k is 1 and a is not 0.
_EDGES: Mapping[str, Callable[[Body, int, int], Signed]] = {
    "A and R of mixed order, without the cofactor": _mixed,
    "A of mixed order, with the cofactor only": _cofactor,
    "A of mixed order, R of small order": lambda body, a, _: _found(body, a, 0, _even),
    "A of small order, R of mixed order": lambda body, _, r: _found(body, 0, r, _even),
    "S far beyond the order of the group": _far,
    **{f"A is the neutral element, spelt {spelt.hex()}": _neutral_key(spelt) for spelt in _NEUTRALS},
    **{f"R is the neutral element, spelt {spelt.hex()}": _neutral_r(spelt) for spelt in _NEUTRALS},
}
NAMES = tuple(_EDGES)
# The one that is a signature all the same.
SOUND = NAMES[0]


def edge(name: str, seed: bytes, body: Body) -> Signed:
    """The signature at this edge, of the body that `body` makes for a key; `seed` draws its numbers."""
    return _EDGES[name](body, scalar_of(seed), scalar_of(seed[::-1]))
