"""Random histories: operations with late parents, equal clocks, grants, and clocks that run against their parents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from holdfast.vectors.derive import derive

Draft = Mapping[str, Any]
ISSUER, STRANGER = "issuer", "stranger"
_ROLES, _TAGS, _KEYS = ("editor", "reader"), ("t", "u"), ("a", "b")
# Few seconds for many operations, so that clocks are often equal, and often earlier than those of parents.
_SECONDS = 9
_MOST_PARENTS = 3
_KINDS = ("set", "add", "add", "grant", "grant", "revoke")


@dataclass(frozen=True, slots=True)
class Made:
    """An operation: as it is written down, its bytes, and its id."""

    draft: Draft
    raw: str
    op_id: str

    @property
    def parents(self) -> Sequence[str]:
        """The ids of its parents."""
        parents: Sequence[str] = self.draft["parents"]
        return parents


@dataclass(frozen=True, slots=True)
class Graph:
    """Operations in an order in which no child comes before a parent, and the credentials that grants name."""

    operations: Sequence[Made]
    credentials: Sequence[Draft]


def drawn(dice: Random, labels: Sequence[str], size: int) -> Graph:
    """A random history of these authors."""
    credentials = [
        {
            "issuer": issuer,
            "subject": dice.choice(labels),
            "role": dice.choice(_ROLES),
            "scope": sorted(dice.sample(_TAGS, dice.randint(1, len(_TAGS)))),
            "nbf": dice.randint(0, _SECONDS // 2),
            "exp": dice.randint(_SECONDS // 2 + 1, _SECONDS + 1),
        }
        for issuer in (ISSUER, ISSUER, ISSUER, STRANGER)
    ]
    made: list[Made] = []
    for number in range(size):
        draft = {
            "key": dice.choice(labels),
            "ms": 1000 * dice.randint(0, _SECONDS) + dice.choice((0, 0, 1, 256)),
            "logical": dice.randint(0, 1),
            **_said(dice, number, labels, credentials),
            "parents": [each.op_id for each in dice.sample(made, min(len(made), dice.randint(0, _MOST_PARENTS)))],
        }
        raw = derive("m5.op", draft)
        each = Made(draft, raw, derive("m5.op_id", raw))
        if all(each.op_id != other.op_id for other in made):
            made.append(each)
    return Graph(made, credentials)


def _said(dice: Random, number: int, labels: Sequence[str], credentials: Sequence[Draft]) -> dict[str, Any]:
    kind = dice.choice(_KINDS)
    if kind in ("set", "add"):
        value = {"value": number} if kind == "set" else {"amount": number - 5}
        tag = {"tag": dice.choice(_TAGS)} if dice.random() < 0.6 else {}
        return {"kind": kind, "payload": {"key": dice.choice(_KEYS), **value, **tag}}
    credential = dice.choice(credentials)
    # Mostly what the credential says, so that something is allowed.
    target = {
        "subject": credential["subject"] if dice.random() < 0.9 else dice.choice(labels),
        "role": credential["role"],
        "tag": dice.choice(credential["scope"]) if dice.random() < 0.9 else dice.choice(_TAGS),
    }
    if kind == "revoke":
        return {"kind": kind, "payload": target}
    return {
        "kind": kind,
        "payload": {**target, "credential": derive("m5.cred_hash", derive("m5.credential", credential))},
    }


def order_of(operations: Sequence[Made]) -> list[str]:
    """The topological order of what is stored, by the oracle."""
    found: list[str] = derive("m5.order", [each.draft for each in operations])
    return found


def state_of(operations: Sequence[Made], credentials: Sequence[Draft]) -> str:
    """The state of what is stored, by the oracle."""
    verified = [each for each in credentials if each["issuer"] == ISSUER]
    asked = {"ops": [each.draft for each in operations], "credentials": verified, "issuers": [ISSUER]}
    found: str = derive("m5.state", asked)
    return found
