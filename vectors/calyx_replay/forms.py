"""The form of values of `calyx-replay` that stand by themselves: instants, identifiers of a list, and retentions.

Two values of one form are one value. A form of None says that the contract leaves open what the value is.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from holdfast.vectors.instants import utc_instant

# Twice the window of the contract, in microseconds.
_LEAST_RETENTION = 600_000_000
# methods.yaml, $defs/msg_id.
_MOST_OF_AN_ID = 256


def instant(text: str) -> str | None:
    """A timestamp, character for character; None where the contract leaves open whether it is one."""
    return None if utc_instant(text) is None else text


def msg_id(text: str) -> str:
    """A message id, UUID version 4 in lower case, fixed by `text`."""
    return str(uuid.UUID(bytes=hashlib.sha256(text.encode("utf-8")).digest()[:16], version=4))


def id_list(asked: Mapping[str, Any]) -> str:
    """A list of version 0, base64url: {first, more, of}. The ids of `first`, and so many `more`, fixed by `of`."""
    ids = [*asked["first"], *(msg_id(f"{asked['of']} {number}") for number in range(asked["more"]))]
    return base64.urlsafe_b64encode(json.dumps(ids).encode()).rstrip(b"=").decode()


def listed_id(text: str) -> str | None:
    """An entry of that list; None where it is another spelling of an id, and for what may be too long to be one."""
    if not isinstance(text, str):
        raise ValueError("no text")
    if not 0 < len(text) <= _MOST_OF_AN_ID:
        return None
    try:
        return text if str(uuid.UUID(text.strip())) == text else None
    except ValueError:
        return text if text == text.strip() else None


def retention(hours: Any) -> Mapping[str, str]:
    """A retention in microseconds; of the class `short` below twice the window. Raises ValueError for no number."""
    microseconds = Fraction(hours) * 3_600_000_000
    named = {"class": "short"} if microseconds < _LEAST_RETENTION else {}
    return {"form": str(microseconds), **named}


def pruned(asked: Mapping[str, Any]) -> int:
    """How many records of these ages in hours are older than the retention: {retention_hours, ages_hours}."""
    return sum(Fraction(age) > Fraction(asked["retention_hours"]) for age in asked["ages_hours"])
