"""Random histories: operations with late parents, equal clocks, grants, and clocks that run against their parents.

Each history has its own names, numbers and clocks, among them the least and the largest that the contract allows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from random import Random
from typing import Any

from holdfast.vectors.derive import derive
from holdfast.vectors.m5_log.derive import credential_of, entry_of, public_key
from holdfast.vectors.m5_log.oracle import Credential, Entry, expected_decision, expected_order, expected_state

Draft = Mapping[str, Any]
ISSUER, STRANGER = "issuer", "stranger"
_ROLES, _TAGS = ("editor", "reader"), ("t", "u")
# Names of a history. Some have blanks, some are as long as they may be in letters of one to four bytes, some differ in
# one letter, some are sorted by UTF-16 units otherwise than by characters or bytes. Some are escaped by many writers of
# JSON, and not by RFC 8785.
_NAMES = (
    ("a", "b"),
    ("a b", "a"),
    ("x" * 255, "x" * 254, "x" * 254 + "y"),
    ("\u00e9" * 255, "\u20ac" * 255, "\U0001f4a1" * 255),
    ("\ufffd", "\U0001f4a1", "\uff5e", "\ue000"),
    ("a", "A", "a\u0000", "a\n", 'a"', "a\\"),
    ("\u2028\u2029", "<&>", "/", "\x7f\x80"),
    ("e\u0301", "\u00e9", "\u212b", "\u00c5"),
)
# Few seconds for many operations, so that clocks are often equal, and often earlier than those of parents.
_SECONDS = 9
_LAST_MS, _LAST_COUNT = 2**64 - 1, 2**32 - 1
_MOST, _LEAST = 2**31 - 1, -(2**31)
_AMOUNTS = ((_MOST, _MOST, 1), (_LEAST, _LEAST, -1), (_MOST, _LEAST, 0), (-5, 1, 7))
_VALUES: Sequence[Any] = (
    0,
    -1,
    23,
    24,
    255,
    256,
    2**31,
    2**53 + 1,
    2**63,
    2**64 - 1,
    -(2**63) - 1,
    -(2**64),
    True,
    None,
    "",
    [[]],
    {"a": {}},
)
_MOST_PARENTS = 3
# Which part of the operations has a clock far away. No credential reaches so far.
_FAR = 0.1
_KINDS = ("set", "add", "add", "grant", "grant", "revoke")


@dataclass(frozen=True, slots=True)
class Words:
    """The names that a history uses, and the amounts of its counters."""

    keys: Sequence[str]
    tags: Sequence[str]
    roles: Sequence[str]
    amounts: Sequence[int]

    @staticmethod
    def of(number: int, dice: Random) -> Words:
        """Those of a history with this number: each sort of names and amounts has its turn."""
        tags, roles = _NAMES[(number + 1) % len(_NAMES)], dice.choice((_ROLES, dice.choice(_NAMES)))
        return Words(_NAMES[number % len(_NAMES)], tags, roles, _AMOUNTS[number % len(_AMOUNTS)])


@dataclass(frozen=True)
class Made:
    """An operation: as it is written down, its bytes, and its id."""

    draft: Draft
    raw: str
    op_id: str

    @staticmethod
    def of(draft: Draft) -> Made:
        """The operation of a draft."""
        raw = derive("m5.op", draft)
        return Made(draft, raw, derive("m5.op_id", raw))

    @cached_property
    def entry(self) -> Entry:
        """As the oracle reads it."""
        return entry_of(self.draft)

    @property
    def parents(self) -> Sequence[str]:
        """The ids of its parents."""
        parents: Sequence[str] = self.draft["parents"]
        return parents


@dataclass(frozen=True)
class Issued:
    """A credential: as it is written down, its bytes, and its hash."""

    draft: Draft
    raw: str
    cred_hash: str

    @staticmethod
    def of(draft: Draft) -> Issued:
        """The credential of a draft."""
        raw = derive("m5.credential", draft)
        return Issued(draft, raw, derive("m5.cred_hash", raw))

    @cached_property
    def entry(self) -> Credential:
        """As the oracle reads it."""
        return credential_of(self.draft)


@dataclass(frozen=True, slots=True)
class Graph:
    """Operations in an order in which no child comes before a parent, and the credentials that grants name."""

    operations: Sequence[Made]
    credentials: Sequence[Issued]


USUAL = Words(("a", "b"), _TAGS, _ROLES, (-5, 1, 7))


def drawn(dice: Random, labels: Sequence[str], size: int, words: Words = USUAL) -> Graph:
    """A random history of these authors, in the end of which each name has a register and a counter.

    A trusted issuer writes as well.
    """
    credentials = [
        Issued.of(
            {
                "issuer": issuer,
                "subject": subject,
                "role": dice.choice(words.roles),
                "scope": sorted(dice.sample(words.tags, dice.choice((1, 1, len(words.tags))))),
                "nbf": dice.randint(0, _SECONDS // 2),
                "exp": dice.randint(_SECONDS // 2 + 1, _SECONDS + 1),
            }
        )
        for issuer, subject in (
            *((issuer, dice.choice(labels)) for issuer in (ISSUER, ISSUER, ISSUER, STRANGER)),
            # Its grants end, and no other operation names it or its subject.
            (ISSUER, f"heir of {labels[0]}"),
        )
    ]
    ended = credentials[-1]
    made: list[Made] = []
    for number in range(size):
        draft = {
            "key": dice.choice((*labels, *labels, ISSUER)),
            "ms": 1000 * dice.randint(0, _SECONDS) + dice.choice((0, 0, 1, 256)),
            "logical": dice.choice((0, 0, 0, 1, 1, _LAST_COUNT)),
            **_said(dice, number, labels, credentials[:-1], words, made),
            "parents": [each.op_id for each in dice.sample(made, min(len(made), dice.randint(0, _MOST_PARENTS)))],
        }
        if dice.random() < _FAR:
            draft["ms"] = dice.choice((2**31, 2**32, 2**53 + 1, 2**63, _LAST_MS))
        each = Made.of(draft)
        if all(each.op_id != other.op_id for other in made):
            made.append(each)
    for number, (name, kind) in enumerate(product(words.keys, ("set", "add"))):
        value = {"value": number} if kind == "set" else {"amount": dice.choice(words.amounts)}
        draft = {"key": dice.choice(labels), "ms": 1000 * _SECONDS, "logical": 2 + number, "parents": []}
        made.append(Made.of({**draft, "kind": kind, "payload": {"key": name, **value}}))
    for number, credential in enumerate(credentials):
        made += _used(dice, credential, words, 2**16 + 8 * number, ends=credential is ended)
    return Graph(made, credentials)


def _used(dice: Random, credential: Issued, words: Words, logical: int, *, ends: bool) -> Sequence[Made]:
    """A grant of a credential, and an operation that nothing else may allow, near the end of its time.

    `ends`: it is granted twice, and behind that operation comes a revocation, which ends both, and one more operation.
    """
    says = credential.draft
    target = {"subject": says["subject"], "role": says["role"], "tag": dice.choice(says["scope"])}
    used = {"key": dice.choice(words.keys), "amount": dice.choice(words.amounts), "tag": target["tag"]}
    begin, end = 1000 * says["nbf"], 1000 * says["exp"] - 1
    grant = (ISSUER, begin, "grant", {**target, "credential": credential.cred_hash})
    use = (says["subject"], end, "add", used)
    said = [grant, grant, use, (ISSUER, end, "revoke", target), use] if ends else [grant, use]
    return [
        Made.of({"key": key, "ms": ms, "logical": logical + at, "parents": [], "kind": kind, "payload": payload})
        for at, (key, ms, kind, payload) in enumerate(said)
    ]


def _said(
    dice: Random,
    number: int,
    labels: Sequence[str],
    credentials: Sequence[Issued],
    words: Words,
    before: Sequence[Made],
) -> dict[str, Any]:
    kind = dice.choice(_KINDS)
    if kind in ("set", "add"):
        value = {"value": dice.choice((number, dice.choice(_VALUES)))}
        value = value if kind == "set" else {"amount": dice.choice(words.amounts)}
        tag = {"tag": dice.choice(words.tags)} if dice.random() < 0.5 else {}
        return {"kind": kind, "payload": {"key": dice.choice(words.keys), **value, **tag}}
    credential = dice.choice(credentials)
    # Mostly what the credential says, so that something is allowed.
    target = {
        "subject": credential.draft["subject"] if dice.random() < 0.9 else dice.choice(labels),
        "role": credential.draft["role"],
        "tag": dice.choice(credential.draft["scope"] if dice.random() < 0.6 else words.tags),
    }
    if kind == "grant":
        return {"kind": kind, "payload": {**target, "credential": credential.cred_hash}}
    granted = [each.draft["payload"] for each in before if each.draft["kind"] == "grant"]
    if granted and dice.random() < 0.8:
        given = dice.choice(granted)
        target = {name: given[name] for name in target}
    return {
        "kind": kind,
        "payload": target,
        **({"key": dice.choice((ISSUER, STRANGER))} if dice.random() < 0.6 else {}),
    }


def clock_of(made: Made) -> str:
    """Its clock, as a scan names it."""
    return f"{made.draft['ms']:016x}{made.draft.get('logical', 0):08x}"


def order_of(operations: Sequence[Made]) -> list[str]:
    """The topological order of what is stored, by the oracle."""
    return [entry.op_id for entry in expected_order([each.entry for each in operations])]


def state_of(operations: Sequence[Made], credentials: Sequence[Issued], issuers: Sequence[str] = (ISSUER,)) -> str:
    """The state of what is stored, by the oracle. `credentials` are those that verify."""
    return expected_state(*_log(operations, credentials, issuers))


def decision_of(
    operations: Sequence[Made], credentials: Sequence[Issued], issuers: Sequence[str], asked: Mapping[str, str]
) -> bool:
    """Whether a subject with a role is allowed a tag at an operation, by the oracle."""
    question = (public_key(asked["subject"]), asked["role"], asked["tag"], asked["op_id"])
    return expected_decision(*_log(operations, credentials, issuers), question)


def _log(
    operations: Sequence[Made], credentials: Sequence[Issued], issuers: Sequence[str]
) -> tuple[list[Entry], list[Credential], list[str]]:
    keys = [public_key(each) for each in issuers]
    return [each.entry for each in operations], [each.entry for each in credentials], keys
