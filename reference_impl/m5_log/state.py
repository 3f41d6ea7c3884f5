"""The state: a fold over the operations in topological order, its one encoding, and its JSON."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from typing import Any

from holdfast.reference_impl.m5_log.cbor import CborError, Map, Value, decode, encode
from holdfast.reference_impl.m5_log.credentials import Authority, Verified
from holdfast.reference_impl.m5_log.operations import Operation
from holdfast.reference_impl.m5_log.terms import Key
from holdfast.specs.strictjson import canonical

GENESIS = bytes(32)
# A state lies this deep: map, list of grants, grant.
_MAX_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Grant:
    """An interval of the order in which a subject may have a role for a tag; `until` is None while it is open."""

    subject: Key
    role: str
    tag: str
    credential: bytes
    author: Key
    begins: int
    until: int | None = None


@dataclass(slots=True)
class State:
    """What the first `applied` operations of the order make. `chain` is the digest of their ids in this order."""

    applied: int = 0
    chain: bytes = GENESIS
    denied: int = 0
    registers: dict[str, bytes] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    grants: list[Grant] = field(default_factory=list)
    # How each credential of a grant was judged, and which authors of revocations were issuers: what the state depends
    # on besides the operations.
    judged: dict[bytes, Verified | None] = field(default_factory=dict)
    issuers: dict[bytes, bool] = field(default_factory=dict)
    # Where the grants of a subject for a tag stand in `grants`. It follows from them, so it is not encoded.
    places: dict[tuple[bytes, str], list[int]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        for at, grant in enumerate(self.grants):
            self.places.setdefault((grant.subject, grant.tag), []).append(at)

    def open_grant(self, grant: Grant) -> None:
        """Note one more grant."""
        self.places.setdefault((grant.subject, grant.tag), []).append(len(self.grants))
        self.grants.append(grant)

    def of(self, subject: Key, tag: str) -> Sequence[Grant]:
        """The grants of a subject for a tag, in their order."""
        return [self.grants[at] for at in self.places.get((subject, tag), ())]


class Fold:
    """Applies operations to a state, one after the other. It reads no clock and nothing but its arguments."""

    def __init__(self, authority: Authority) -> None:
        self._authority = authority

    def apply(self, state: State, operation: Operation) -> None:
        """Apply the operation that comes next."""
        state.applied += 1
        state.chain = link(state.chain, operation.op_id)
        if operation.kind == "grant":
            self.grant(state, operation)
        elif operation.kind == "revoke":
            self.revoke(state, operation)
        elif operation.kind in ("set", "add"):
            self.change(state, operation)

    def change(self, state: State, operation: Operation) -> None:
        """Set a register or add to a counter, if the author is allowed the tag."""
        tag, key = operation.payload.get("tag"), str(operation.payload["key"])
        if tag is not None and not any(
            self.in_force(state, grant, operation) for grant in state.of(operation.author, str(tag))
        ):
            state.denied += 1
        elif operation.kind == "set":
            state.registers[key] = encode(operation.payload["value"])
        else:
            amount = operation.payload["amount"]
            state.counters[key] = state.counters.get(key, 0) + (amount if isinstance(amount, int) else 0)

    def grant(self, state: State, operation: Operation) -> None:
        """Open an interval."""
        subject, role, tag = _target(operation)
        credential = _binary(operation.payload["credential"])
        state.judged[credential] = self._authority.judge(credential)
        state.open_grant(Grant(subject, role, tag, credential, operation.author, state.applied))

    def revoke(self, state: State, operation: Operation) -> None:
        """End the open intervals of its target that this author may end."""
        target = _target(operation)
        issuer = self._authority.is_issuer(operation.author)
        state.issuers[operation.author] = issuer
        for at in state.places.get((target[0], target[2]), ()):
            grant = state.grants[at]
            mine = issuer or grant.author == operation.author
            if mine and grant.until is None and (grant.subject, grant.role, grant.tag) == target:
                state.grants[at] = replace(grant, until=state.applied)

    def allowed(self, state: State, subject: Key, role: str, tag: str, at: Operation, index: int) -> bool:
        """Whether a subject with a role is allowed a tag at the operation with this index of the order."""
        return any(
            grant.role == role and self.in_force(state, grant, at, index=index) for grant in state.of(subject, tag)
        )

    def in_force(self, state: State, grant: Grant, at: Operation, *, index: int | None = None) -> bool:
        """Whether the grant is open there, and its credential says what it says. Denies what is not known."""
        place = state.applied if index is None else index
        if not grant.begins < place or (grant.until is not None and place >= grant.until):
            return False
        said = state.judged.get(grant.credential)
        return (
            said is not None
            and said.subject == grant.subject
            and said.role == grant.role
            and grant.tag in said.scope
            # No other clock is asked than that of the operation.
            and said.nbf * 1000 <= at.milliseconds < said.exp * 1000
        )

    def still_true(self, state: State) -> bool:
        """Whether what the state depends on besides the operations is the same now."""
        return all(self._authority.judge(key) == said for key, said in state.judged.items()) and all(
            self._authority.is_issuer(key) == said for key, said in state.issuers.items()
        )


def link(chain: Key, op_id: Key) -> bytes:
    """The digest of a prefix that is one operation longer."""
    return hashlib.sha256(chain + op_id).digest()


def chain_of(op_ids: Sequence[bytes]) -> bytes:
    """The digest of a prefix of the order."""
    chain = GENESIS
    for op_id in op_ids:
        chain = link(chain, op_id)
    return chain


def _target(operation: Operation) -> tuple[bytes, str, str]:
    payload = operation.payload
    return _binary(payload["subject"]), str(payload["role"]), str(payload["tag"])


def _binary(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError("expected bytes; an operation is decoded before it is applied")
    return value


def snapshot_of(state: State) -> bytes:
    """The one encoding of a state: equal states have equal bytes, however they came about."""
    return encode(
        {
            "applied": state.applied,
            "chain": state.chain,
            "denied": state.denied,
            "registers": state.registers,
            "counters": state.counters,
            "grants": [astuple(grant) for grant in state.grants],
            "judged": Map(tuple((key, None if said is None else astuple(said)) for key, said in state.judged.items())),
            "issuers": Map(tuple(state.issuers.items())),
        }
    )


def state_of(blob: bytes) -> State:
    """The state of a snapshot. Raises CborError for what is none."""
    value = decode(blob, max_depth=_MAX_DEPTH)
    try:
        return _state_of(value)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CborError(f"expected the snapshot of a state: {error}") from error


def json_of(state: State) -> str:
    """RFC 8785 text; the same for equal states, in every process."""
    members: dict[str, Any] = {
        "applied": state.applied,
        "chain": state.chain.hex(),
        "denied": state.denied,
        "registers": {key: value.hex() for key, value in state.registers.items()},
        "counters": {key: str(value) for key, value in state.counters.items()},
        "grants": [
            {
                "subject": grant.subject.hex(),
                "role": grant.role,
                "tag": grant.tag,
                "credential": grant.credential.hex(),
                "author": grant.author.hex(),
                "from": grant.begins,
                "until": grant.until,
            }
            for grant in state.grants
        ],
    }
    return canonical(members).decode("utf-8")


def _pairs(value: Any) -> Mapping[Any, Any]:
    return dict(value.pairs)


def _state_of(value: Any) -> State:
    members = value.members()
    judged = {key: said and Verified(*said) for key, said in _pairs(members.pop("judged")).items()}
    return State(
        registers=dict(members.pop("registers").members()),
        counters=dict(members.pop("counters").members()),
        grants=[Grant(*parts) for parts in members.pop("grants")],
        judged=judged,
        issuers=dict(_pairs(members.pop("issuers"))),
        **members,
    )
