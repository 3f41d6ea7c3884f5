"""Which near miss answers which record wrongly. `python -m tests.vectors.nearmiss.matrix` writes what it measures."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holdfast import vectors
from holdfast.vectors.jcs.committed import records
from holdfast.vectors.jcs.nearmiss import PLACE, NearMiss, write
from holdfast.vectors.record import Canonical, Vector
from holdfast.vectors.taxonomy import Category, Profile
from tests.vectors.nearmiss import dialects, documents, figures, ordering, profiles, texts
from tests.vectors.nearmiss.honest import Honest, RefusalError
from tests.vectors.nearmiss.registry import NEAR_MISSES, habit

FAMILIES = (dialects, documents, figures, ordering, profiles, texts)
# Verify mode is asked about records that are about it: those with the answer no, and those with the answer yes.
_PROFILE_GUARDS = frozenset({"check_precision", "check_characters", "check_safe", "is_noncharacter"})
VERIFIED = frozenset({Category.NOT_CANONICAL, Category.IDEMPOTENCE})


def verified(record: Vector) -> bool:
    """Whether verify mode is asked about the record."""
    return record.category in VERIFIED or record.clause.startswith("JCS-VER-")


def answer(kind: type[Honest], profile: Profile, document: bytes) -> bytes | str:
    """What `kind` answers: canonical bytes, the reason of a refusal, or that it crashed."""
    try:
        return kind(profile).canonicalise(document)
    except RefusalError as refusal:
        return str(refusal)
    except (RecursionError, ValueError, ArithmeticError, IndexError, KeyError):
        return "CRASH"


def mistakes(kind: type[Honest], record: Vector) -> Iterable[str]:
    """Every answer of `kind` that is not the record's, in words; a wrong reason is one too."""
    for profile, expected in record.expected.items():
        wanted: Any = expected.body if isinstance(expected, Canonical) else expected.reason
        got = answer(kind, profile, record.document)
        if got != wanted:
            yield f"{record.id}, {profile}: expected {wanted!r}, got {got!r}"
        if verified(record) and kind(profile).verify(record.document) != (wanted == record.document):
            yield f"{record.id}, {profile}: verify says the opposite"


def kills(kind: type[Honest], record: Vector) -> bool:
    """Whether `kind` gives a wrong verdict or wrong bytes in some profile. The reason of a refusal is not asked."""
    for profile in _profiles(kind, record):
        expected = record.expected[profile]
        got = answer(kind, profile, record.document)
        if isinstance(expected, Canonical):
            if got != expected.body:
                return True
        elif isinstance(got, bytes) or got == "CRASH":
            return True
        if verified(record):
            right = isinstance(expected, Canonical) and expected.body == record.document
            if kind(profile).verify(record.document) != right:
                return True
    return False


def _profiles(kind: type[Honest], record: Vector) -> Iterable[Profile]:
    """The profiles to ask. One is enough where the record has one answer and the near miss no guard of a profile."""
    told_apart = len({repr(answer) for answer in record.expected.values()}) > 1
    return Profile if told_apart or _PROFILE_GUARDS & set(_own(kind)) else (Profile.CORE,)


def _own(kind: type[Honest]) -> Iterable[str]:
    """What a near miss itself defines, and the classes between it and the honest one."""
    return (name for base in kind.__mro__[: kind.__mro__.index(Honest)] for name in vars(base))


def measure(records: Iterable[Vector]) -> dict[str, NearMiss]:
    """Every near miss, with the records that it answers wrongly."""
    rows = tuple(records)
    return {
        name: NearMiss(habit(name), tuple(record.id for record in rows if kills(kind, record)))
        for name, kind in NEAR_MISSES.items()
    }


def main() -> None:
    """Write `vectors/jcs/data/nearmiss.json`. Run `python -m holdfast.vectors.committed` behind it."""
    path = Path(next(iter(vectors.__path__))).parent / PLACE
    path.write_bytes(write(measure(records())))
    print(f"{path}: {len(NEAR_MISSES)} near misses")


if __name__ == "__main__":
    main()
