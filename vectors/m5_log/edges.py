"""Operations whose signatures lie at the edges of Ed25519: sound by the numbers, and for most of them no signature.

The equation of RFC 8032 is S * BASE = R + h * A, where h is the hash of R, A and the body.
With A = a * BASE + k * TWIST and R = r * BASE + t * TWIST it holds if S = r + h * a, and if t + h * k is a multiple of
eight. With a cofactor, only S counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count

from holdfast.vectors.m5_log.curve import (
    BASE,
    NEUTRAL,
    SMALL_ORDERS,
    TWIST,
    L,
    P,
    Point,
    challenge,
    scalar_of,
)

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
