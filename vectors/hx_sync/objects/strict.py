"""The strict rules for published objects. Readers may accept more."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from holdfast.specs.strictjson import canonical, loads
from holdfast.vectors.hx_sync.objects.drafts import MEMBERS, VAULT_ID
from holdfast.vectors.hx_sync.objects.format import MAGIC, VERSION, Parts

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HASH = re.compile(r"[0-9a-f]{64}")
_INSTANT = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)")


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
        return _INSTANT.fullmatch(value) is not None and _is_time(value)
    if name in {"object_type", "compression"}:
        return name == "object_type" or value in {"zstd", "none"}
    return (_HASH if name == "blob_hash" else _UUID).fullmatch(value) is not None


def _is_time(value: str) -> bool:
    try:
        datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return False
    return True
