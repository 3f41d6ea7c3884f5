"""What a history of a registrar has stored, as the model keeps it: calls, consumed keys, rows. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.conformance.suites.rs4a_replay.rows import Row, same_rows
from holdfast.specs import Relation
from holdfast.vectors.derive import derive

# The operations that the registrar decides from a submission.
DECIDED = ("register", "compensate")


@dataclass(frozen=True, slots=True)
class Call:
    """One call, and the time at which it is made.

    `forged`: past the validator, with its verdict forged. `rejected`: the verifier rejects what it commits. `point` and
    `fault`: the failpoint that it meets if it commits. `collides`: a rival took what it would have had. `contended`:
    another operation is under way.
    """

    method: str
    args: Any
    now: str
    forged: bool = False
    rejected: bool = False
    point: str = ""
    fault: str = ""
    collides: bool = False
    contended: bool = False


@dataclass(frozen=True, slots=True)
class Effect:
    """A consumed key: the registration without its id, which an answer or an observation tells, and what followed."""

    row: Row
    id: str | None = None
    failed_at: str | None = None
    compensation: Row | None = None
    tombstoned_at: str | None = None

    @property
    def state(self) -> str:
        """The state of the decision."""
        return "COMPENSATED" if self.compensation else "FAILED" if self.failed_at else "COMMITTED"


@dataclass(frozen=True, slots=True)
class ModelState:
    """What is stored: consumed keys, issued nonces, consumed nonces, the audit. And what is broken.

    A member of a row that is None can be anything. `maybe` are audit records that may have been written, `unheard`
    nonces that may have been issued and were not told, `half` the keys that an interrupted retention job may have
    reached. `attempts` is how new attempts are answered here, once that was seen.
    """

    effects: Mapping[str, Effect] = field(default_factory=dict)
    issued: Mapping[str, Row] = field(default_factory=dict)
    consumed: Mapping[str, Row] = field(default_factory=dict)
    audit: tuple[Row, ...] = ()
    maybe: tuple[Row, ...] = ()
    unheard: tuple[Row, ...] = ()
    half: frozenset[str] = frozenset()
    attempts: str = ""
    surface: str = "ready"
    mute: bool = False


def stored(world: ModelState) -> dict[str, list[Row]]:
    """Every row that is stored, by relation, but for ids that an implementation chooses."""
    effects = world.effects.items()
    return {
        "registration": [{**each.row, "decision_id": each.id} for _, each in effects],
        "nonce_issue": [{**row, "authorization_nonce": nonce} for nonce, row in world.issued.items()],
        "nonce_consume": [{**row, "authorization_nonce": nonce} for nonce, row in world.consumed.items()],
        "verification": [
            {"decision_id": each.id, "outcome": "failed", "recorded_at": each.failed_at}
            for _, each in effects
            if each.failed_at
        ],
        "compensation": [
            {**each.compensation, "decision_id": each.id, "logical_request_key": key}
            for key, each in effects
            if each.compensation
        ],
        "tombstone": [
            {"logical_request_key": key, "decision_id": each.id, "recorded_at": each.tombstoned_at}
            for key, each in effects
            if each.tombstoned_at
        ],
    }


def heard(world: ModelState, relation: Relation, rows: Sequence[Row]) -> ModelState:
    """The world, with the nonces that were issued and not told as far as rows show them."""
    for row in rows:
        nonce = str(row["authorization_nonce"])
        for each in world.unheard if nonce not in world.issued else ():
            if same_rows(relation, [{**each, "authorization_nonce": nonce}], [row]):
                left = tuple(other for other in world.unheard if other is not each)
                world = replace(world, issued={**world.issued, nonce: each}, unheard=left)
                break
    return world


def keys_of(submission: Row) -> dict[str, str]:
    """Both keys of a submission."""
    return {name: derive(f"rs4a.{name}", submission) for name in ("logical_request_key", "replay_key")}


def key_of(call: Call) -> str:
    """The logical key of a submission."""
    key: str = derive("rs4a.logical_request_key", call.args)
    return key


def record_of(call: Call, code: str | None) -> Row:
    """The audit record of a call; None is anything."""
    record: dict[str, Any] = {"code": code, "method": None if call.forged else call.method, "recorded_at": call.now}
    if call.method in DECIDED and code != "REQUEST_MALFORMED":
        request = call.args["request"]
        names = ("authorization_nonce", "attempt_id")
        return {**record, "logical_request_key": key_of(call), **{name: request[name] for name in names}}
    return {**record, **(call.args if call.method == "resolve_status" and code is None else {})}
