"""Normal forms of what stands in objects and arguments: two values with one form are the same (docs/neighbours.md).

Below them the strict rules for published objects; readers may accept more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import canonical, loads
from holdfast.vectors.hx_sync.objects.drafts import MEMBERS, VAULT_ID, decoded
from holdfast.vectors.hx_sync.objects.format import MAGIC, VERSION, Parts

_INSTANT = re.compile(
    "([0-9]{4})-([0-9]{2})-([0-9]{2})([Tt ])([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.]([0-9]{1,6}))?"
    "(?:([Zz])|([+-])([01][0-9]|2[0-3]):([0-5][0-9]))"
)
# The calendar repeats itself after `_CYCLE` years. Python has no year 0, but the year 400.
_CYCLE, _CYCLE_DAYS = 400, 146_097
_YEARS = 10_000
_UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_PLACE = re.compile(
    "HXSync/vaults/6f1d2c3e-0a4b-4c5d-8e6f-7a8b9c0d1e2f/objects/"
    rf"(?:segments/{_UUID}/{_UUID}\.hxseg|tombstones/{_UUID}\.hxtomb|manifests/{_UUID}\.hxman"
    r"|blobs/([0-9a-f]{2})/([0-9a-f]{2})/\1\2[0-9a-f]{60}\.hxblob)"
)
_ALL = frozenset({"magic", "version", "object_type", "vault_id", "crypto"})
_RECORDS = {
    "events": {"node_id", "session_id", "seq", "ts", "kind", "data"},
    "sessions": {"session_id", "started_at", "title"},
    "artifacts": {"artifact_id", "session_id", "seq", "blob_hash", "name"},
    "pins": {"node_id", "session_id", "seq", "pinned"},
}


def binary(text: str) -> str:
    """Bytes in their one spelling. Raises ValueError for another."""
    decoded(text)
    return text


def integer(value: Any) -> str:
    """A whole number by its value: 1.0 is 1. Raises ValueError for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ValueError(f"no whole number: {value!r}")
    return str(int(value))


def instant(text: Any) -> str | None:
    """Microseconds since the year 0; None where RFC 3339 leaves open whether it is an instant.

    Raises ValueError for what is no instant, or lies outside of the years 0000 to 9999 in UTC.
    """
    found = _INSTANT.fullmatch(text) if isinstance(text, str) else None
    if found is None:
        raise ValueError(f"no instant: {text!r}")
    year, month, day, joint, hour, minute, second, fraction, zulu, sign, hours, minutes = found.groups()
    cycles, rest = divmod(int(year), _CYCLE)
    moment = datetime(_CYCLE + rest, int(month), int(day), int(hour), int(minute), int(second))
    ahead = timedelta(hours=int(hours or 0), minutes=int(minutes or 0)) * (-1 if sign == "-" else 1)
    passed = moment - datetime(_CYCLE, 1, 1) - ahead + timedelta(days=cycles * _CYCLE_DAYS)
    if not timedelta() <= passed < timedelta(days=_YEARS // _CYCLE * _CYCLE_DAYS):
        raise ValueError(f"no year of four digits in UTC: {text!r}")
    if joint != "T" or zulu == "z" or (sign == "-" and not ahead):
        return None
    return str(passed // timedelta(microseconds=1) + int(f"{fraction or 0:0<6}"))


def place(key: str) -> str | Mapping[str, str]:
    """A key; one that has no place in the layout is in the class `misplaced`."""
    return key if _PLACE.fullmatch(key) is not None else {"form": key, "class": "misplaced"}


def json_text(text: str) -> str | None:
    """The RFC 8785 form of a strict JSON text; None with blanks around it. Raises ValueError for another."""
    try:
        form = canonical(loads(text.strip(" \t\r\n").encode("utf-8"))).decode()
    except (StrictJsonError, UnicodeEncodeError) as error:
        raise ValueError(str(error)) from error
    return form if text == text.strip(" \t\r\n") else None


def header_text(text: str) -> str | None:
    """The same of a header. Raises ValueError for one that has not exactly the members of its type."""
    form = json_text(text)
    value = loads((form or text).encode("utf-8"))
    if not isinstance(value, dict) or value.keys() != _ALL | set(MEMBERS.get(str(value.get("object_type")), ())):
        raise ValueError("not the members of its type")
    if not isinstance(value["crypto"], dict) or value["crypto"].keys() != {"alg"}:
        raise ValueError("crypto: not alg alone")
    return form


def batch_text(text: str) -> str | None:
    """The same of a batch. Raises ValueError where a member is no list, or a record has other members."""
    form = json_text(text)
    value = loads((form or text).encode("utf-8"))
    if not isinstance(value, dict) or "events" not in value or any(type(each) is not list for each in value.values()):
        raise ValueError("no lists")
    for name, members in _RECORDS.items():
        if any(not isinstance(each, dict) or each.keys() != members for each in value.get(name, ())):
            raise ValueError(f"{name} of other members")
    return form


_PUBLISHED_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)")


def faults(parts: Parts, payload: bytes, kind: str) -> list[str]:
    """The parts that break a rule, sorted: prelude, type, members, values, header, payload. `kind` is the due type.

    Raises ValueError or StrictJsonError where the header is no JSON object.
    """
    header = loads(parts.header)
    if not isinstance(header, dict):
        raise ValueError("its header is no object")
    due = {"magic", "version", "object_type", "vault_id", "crypto", *MEMBERS[kind]}
    wrong = {
        "prelude": parts.prelude[:6] != MAGIC + bytes([VERSION]),
        "type": header.get("object_type") != kind,
        "members": header.keys() != due,
        "values": not all(_fits(name, header[name], parts) for name in due & header.keys()),
        "header": canonical(header) != parts.header,
        "payload": header.get("object_type") != "blob" and canonical(loads(payload)) != payload,
    }
    return sorted(name for name, is_so in wrong.items() if is_so)


def _fits(name: str, value: Any, parts: Parts) -> bool:
    fixed: Mapping[str, Any] = {
        "magic": MAGIC.decode(),
        "vault_id": VAULT_ID,
        "crypto": {"alg": parts.algorithm},
    }
    if name in fixed:
        return bool(value == fixed[name])
    if name in {"version", "byte_len_plain"}:
        return type(value) is int and (value == VERSION if name == "version" else value >= 0)
    if not isinstance(value, str):
        return False
    if name == "created_at":
        return _PUBLISHED_INSTANT.fullmatch(value) is not None and _is_time(value)
    if name in {"object_type", "compression"}:
        return name == "object_type" or value in {"zstd", "none"}
    return re.fullmatch("[0-9a-f]{64}" if name == "blob_hash" else _UUID, value) is not None


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return False
    return True
