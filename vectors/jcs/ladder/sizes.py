"""The sizes that the ladder climbs. Each is a limit that programs have, or stands one to either side of it."""

from __future__ import annotations


def around(*limits: int) -> tuple[int, ...]:
    """Each limit, one less and one more, in order."""
    return tuple(sorted({limit + step for limit in limits for step in (-1, 0, 1)}))


# Levels. Every implementation accepts 64 (`depth_floor`); Python's stack ends near 1,000, .NET and serde at 64 and 128.
DEPTHS = (16, 32, *around(64, 128), 256, 257, *around(512), *around(1000), 1024, 1025, 2000, 5000)
DEFECTIVE_DEPTHS = (16, 64, 129, 513, 1001, 5000)
# Members of one object. 9 is beyond what small maps keep in order, 33 beyond insertion sort, 5,001 beyond the floor.
MEMBERS = (9, 10, 11, *around(16, 32, 64), 100, 101, *around(128), 200, *around(256), 500, *around(512, 1000, 1024),
           2048, 2049, 4097, 5000, 5001)  # fmt: skip
# Children of the host of one defect.
HOSTS = (1, 2, 9, 33, 129, 257, 1025, 5001)
PLANTED_HOSTS = (1, 2, 33, 129, 5001)
# UTF-16 code units of one string or name.
TEXTS = (16, 17, *around(32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65535), 65537, 70_000)
DEFECTIVE_TEXTS = (1, 16, 64, 256, 1024, 4096, 16384, 65535, 65536, 70_000)
# Bytes between two tokens.
SPACES = (16, 255, 256, 1024, 4096, 16384, 65536, 70_000)
# Bytes that programs read or write at once.
CHUNKS = (4096, 8192)
CHUNK = 65536
RARE_CHUNKS = (16384, 32768, 131072)
# Digits of one literal. 17 distinguish all doubles, 309 fill the range, a halfway literal has up to 767.
DIGITS = (18, 20, 40, 64, *around(100, 128, 256), 308, 309, 400, 500, *around(512, 767), 800, *around(1000, 1024), 1500,
          2000)  # fmt: skip
# Edges of exponents: of doubles, and of the integers that hold them.
EXPONENTS = (307, 308, 309, 323, 324, 325, 400, 999, 1000, 4095, 4096, 32767, 32768, 65535, 65536, 2**31 - 1, 2**31,
             2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**30, 10**100)  # fmt: skip
# Integers that types of languages end at, and the distances from them: doubles near 2^63 and 2^64 lie 1,024 and 2,048
# apart, so the nearest text changes half as far away.
INTEGERS = (2**31, 2**32, 2**53, 2**63, 2**64, 2**127, 2**128, 10**15, 10**16, 10**17, 10**18, 10**19, 10**20, 10**21)
_NEAR = (0, 1, 2, 3, 256, 511, 512, 513, 1023, 1024, 1025, 2047, 2048, 2049)
DISTANCES = tuple(sorted({sign * distance for distance in _NEAR for sign in (-1, 1)}))
