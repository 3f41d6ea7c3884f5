"""The errors of reading a contract or a message, and what was probably meant by an unknown name."""

from __future__ import annotations

from collections.abc import Iterable

# A shorter part is in too many names.
_PART = 3
# `stroe` for `store` is near, `--contract` for `--format` is not.
_NEAR = 0.65


class SpecError(Exception):
    """A file that holdfast reads is missing, malformed or inconsistent.

    The text says where, what was expected, what was found and what to do.
    """


class StrictJsonError(ValueError):
    """Bytes are not one I-JSON value (RFC 7493): the text says why."""


def meant(name: str, known: Iterable[str]) -> str:
    """` (did you mean …?)` with the known names that are nearest to an unknown one, or nothing if none is near.

    Names that hold it come first: the last part of a case's id is enough to find it.
    """
    # A reference, which is started for each session, imports this module too.
    from difflib import get_close_matches

    by_lower = {each.lower().lstrip("-"): each for each in known}
    lower = name.lower().lstrip("-")
    holding = [each for each in by_lower if len(lower) >= _PART and lower in each]
    near = holding or get_close_matches(lower, by_lower, n=1, cutoff=_NEAR)
    return f" (did you mean {' or '.join(by_lower[each] for each in near[:3])}?)" if near else ""


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """What is said of an unknown name, where the known ones are few enough to be listed."""
    listed = tuple(known)
    return f"unknown {what} {name!r}{meant(name, listed)}; known: {', '.join(listed) or 'none'}"
