"""What a history of a registrar has stored, as the model keeps it, and how rows are held against it. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from holdfast.specs import Relation
from holdfast.specs.strictjson import canonical
from holdfast.vectors.derive import derive

# Rows that are due, held against rows that an adapter shows


Row = Mapping[str, Any]

_KEPT = timedelta(seconds=1)


def instant(text: str) -> datetime:
    """RFC 3339 in UTC with the letter Z."""
    return datetime.fromisoformat(text)


def near(one: str, other: str) -> bool:
    """Whether two instants are the same, as far as stores keep instants: some cut or round them, none by a second."""
    return abs(instant(one) - instant(other)) < _KEPT


def same_rows(relation: Relation, due: Sequence[Row], found: Sequence[Row]) -> bool:
    """Whether the rows of a relation are those that are due, in any order.

    Columns that no due row has, or that an adapter does not show, do not count.
    """
    if len(due) != len(found):
        return False
    columns = [name for name in (due[0] if due else ()) if all(name in row for row in found)]
    instants = [name for name in columns if relation.columns[name].type == "instant"]

    def by_identity(rows: Sequence[Row]) -> list[tuple[str, Row]]:
        named = [repr([_plain(name, row[name]) for name in columns if name not in instants]) for row in rows]
        return sorted(zip(named, rows, strict=True), key=lambda pair: pair[0])

    return all(
        name == other and all(near(row[column], shown[column]) for column in instants)
        for (name, row), (other, shown) in zip(by_identity(due), by_identity(found), strict=True)
    )


def _plain(column: str, value: Any) -> object:
    """A value as it is compared. A binding that is shown as text must stand in RFC 8785 form."""
    if column != "binding":
        return value
    return value.encode() if isinstance(value, str) else canonical(value)


def accounted(records: Sequence[Row], due: Sequence[Row], maybe: Sequence[Row]) -> bool:
    """Whether the audit has one record for each that is due, and no other but those that may be.

    A member that is None can be anything.
    """
    left = list(records)

    def take(row: Row) -> bool:
        for place, found in enumerate(left):
            if _is_like(row, found):
                del left[place]
                return True
        return False

    # What says most is taken first, so that no other takes its place.
    ordered = sorted(due, key=lambda row: sum(value is not None for value in row.values()), reverse=True)
    return all(map(take, ordered)) and all(any(_is_like(row, each) for row in maybe) for each in left)


def _is_like(due: Row, found: Row) -> bool:
    if not near(found["recorded_at"], due["recorded_at"]):
        return False
    return all(value is None or name == "recorded_at" or found.get(name) == value for name, value in due.items())


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
