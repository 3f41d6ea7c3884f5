"""What a log means, by the letter of the contract and without any speed: the order, and the state.

Written from methods.yaml, `$defs/state`, and from nothing of the reference: everything is looked for anew each time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Entry:
    """An operation as a case writes it; ids, keys and the encoding of `value` in hexadecimal."""

    op_id: str
    author: str
    ms: int
    logical: int
    kind: str
    parents: tuple[str, ...]
    payload: Mapping[str, Any]
    value: str


@dataclass(frozen=True, slots=True)
class Credential:
    """A credential that verifies."""

    cred_hash: str
    issuer: str
    subject: str
    role: str
    scope: tuple[str, ...]
    nbf: int
    exp: int


def expected_order(entries: Sequence[Entry]) -> list[Entry]:
    """Place the least of those whose parents are placed, until there is none."""
    left = {entry.op_id: entry for entry in entries}
    placed: list[Entry] = []
    done: set[str] = set()
    while True:
        ready = [entry for entry in left.values() if done.issuperset(entry.parents)]
        if not ready:
            return placed
        least = min(ready, key=lambda entry: (entry.ms, entry.logical, bytes.fromhex(entry.op_id)))
        placed.append(left.pop(least.op_id))
        done.add(least.op_id)


class _Judge:
    """Decides at a place of the order, from all that stands before it."""

    def __init__(self, order: Sequence[Entry], credentials: Sequence[Credential], issuers: Sequence[str]) -> None:
        self._order = order
        self._credentials = {each.cred_hash: each for each in credentials}
        self._issuers = issuers

    def until(self, grant: int) -> int | None:
        """The index of the operation that ends the grant with this index; None if none does."""
        given = self._order[grant - 1]
        for index, entry in enumerate(self._order[grant:], grant + 1):
            same = all(entry.payload.get(name) == given.payload[name] for name in ("subject", "role", "tag"))
            if entry.kind == "revoke" and same and (entry.author == given.author or entry.author in self._issuers):
                return index
        return None

    def allowed(self, index: int, subject: str, tag: str, role: str | None = None) -> bool:
        """Whether a subject is allowed a tag at the operation with this index, with a role or with any."""
        at = self._order[index - 1]
        for begins, given in enumerate(self._order[: index - 1], 1):
            if given.kind != "grant":
                continue
            until, said = self.until(begins), self._credentials.get(given.payload["credential"])
            if (
                (given.payload["subject"], given.payload["tag"]) == (subject, tag)
                and role in (None, given.payload["role"])
                and (until is None or index < until)
                and said is not None
                and (said.subject, said.role) == (subject, given.payload["role"])
                and tag in said.scope
                and said.nbf * 1000 <= at.ms < said.exp * 1000
            ):
                return True
        return False

    def grants(self) -> list[dict[str, Any]]:
        """All grants, in their order."""
        return [
            {
                **{name: entry.payload[name] for name in ("subject", "role", "tag", "credential")},
                "author": entry.author,
                "from": index,
                "until": self.until(index),
            }
            for index, entry in enumerate(self._order, 1)
            if entry.kind == "grant"
        ]


def expected_state(entries: Sequence[Entry], credentials: Sequence[Credential], issuers: Sequence[str]) -> str:
    """The JSON state of a log."""
    order = expected_order(entries)
    judge = _Judge(order, credentials, issuers)
    chain, denied = bytes(32), 0
    registers: dict[str, str] = {}
    counters: dict[str, int] = {}
    for index, entry in enumerate(order, 1):
        chain = hashlib.sha256(chain + bytes.fromhex(entry.op_id)).digest()
        tag = entry.payload.get("tag")
        if entry.kind not in ("set", "add"):
            continue
        if tag is not None and not judge.allowed(index, entry.author, tag):
            denied += 1
        elif entry.kind == "set":
            registers[entry.payload["key"]] = entry.value
        else:
            counters[entry.payload["key"]] = counters.get(entry.payload["key"], 0) + entry.payload["amount"]
    state = {
        "applied": len(order),
        "chain": chain.hex(),
        "counters": _in_order({key: str(total) for key, total in counters.items()}),
        "denied": denied,
        "grants": [_in_order(each) for each in judge.grants()],
        "registers": _in_order(registers),
    }
    return json.dumps(state, separators=(",", ":"), ensure_ascii=False)


def expected_decision(
    entries: Sequence[Entry],
    credentials: Sequence[Credential],
    issuers: Sequence[str],
    asked: tuple[str, str, str, str],
) -> bool:
    """Whether a subject with a role is allowed a tag at an operation of the order, by its id."""
    subject, role, tag, op_id = asked
    order = expected_order(entries)
    index = next(index for index, entry in enumerate(order, 1) if entry.op_id == op_id)
    return _Judge(order, credentials, issuers).allowed(index, subject, tag, role)


def _in_order(members: Mapping[str, Any]) -> dict[str, Any]:
    """In the order of RFC 8785, by UTF-16 code units."""
    return {name: members[name] for name in sorted(members, key=lambda name: name.encode("utf-16-be"))}
