"""Who owns what a relation is made of: he can drop it with CASCADE, or put another function in its place."""

from __future__ import annotations

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.judging import Judging
from holdfast.conformance.fitness.model import Part, RelationName, Row
from holdfast.conformance.fitness.postgres.catalogue import DATABASE_OWNER, UnreadError

_FUNCTIONS = ("function", "procedure", "aggregate")
_DATABASE = "database"


def owned(judging: Judging, part: Part) -> None:
    """Every object of a part belongs to the owner of what is consumed, or to a superuser."""
    name = judging.part(part)
    if name is None or judging.catalogue.relation(name) is None:
        return
    # The owners of what is consumed can open every key as it is; that of the audit has to do with the audit only.
    trusted = owners_of(judging, Part.EFFECT, Part.NONCE, part)
    # Each thing once, with the first of the relations that are made of it.
    things: dict[tuple[str, str], tuple[RelationName, Row]] = {}
    for relation in judging.spread(part):
        for row in judging.catalogue.of("owners", relation):
            things.setdefault((str(row["kind"]), str(row["name"])), (relation, row))
    for relation, row in things.values():
        _held(judging, part, relation, row, trusted)
    # That of the effect is that of the nonce: once is enough.
    if part is not Part.NONCE:
        _held(judging, part, name, {"kind": _DATABASE, "name": "", "owner": _database_owner(judging)}, trusted)


def owners_of(judging: Judging, *parts: Part) -> frozenset[str]:
    """What others can do as one of them, that one can do anyhow."""
    rows = (judging.catalogue.relation(name) for part, name in judging.evidence.surface.parts.items() if part in parts)
    return frozenset(str(row["owner"]) for row in rows if row is not None)


def _database_owner(judging: Judging) -> str:
    rows = judging.catalogue.rows("database")
    if not rows:
        raise UnreadError(_DATABASE, "expected the owner, got no row")
    return str(rows[0]["owner"])


def acts_as(judging: Judging, role: str, owners: frozenset[str]) -> bool:
    """Whether a role is bound by nothing, or is or can act as one of these owners."""
    real = _database_owner(judging) if role == DATABASE_OWNER else role
    roles = judging.catalogue.roles
    return roles.unbound(real) or bool(owners & roles.uses(real))


def _held(judging: Judging, part: Part, relation: RelationName, row: Row, trusted: frozenset[str]) -> None:
    writer, owner, kind = judging.writer, str(row["owner"]), str(row["kind"])
    shown = judging.catalogue.rows("database") if kind == _DATABASE else (row,)
    by_writer = writer is not None and owner in judging.powers
    if not by_writer and acts_as(judging, owner, trusted):
        judging.rest_on(*shown)
        return
    # What an owner can do, and how the role becomes another's.
    to = next(str(each["owner"]) for each in judging.catalogue.of("relations", relation))
    if kind == _DATABASE:
        may = f"owns the database, and can drop it with {relation}; ALTER DATABASE … OWNER TO {to}, or to a superuser"
    else:
        # There is no ALTER EXTENSION … OWNER TO.
        way = f"REASSIGN OWNED BY {owner}" if kind == "extension" else f"ALTER {kind.upper()} {row['name']} OWNER"
        does = "replace it" if kind in _FUNCTIONS else "take a part of that along with DROP … CASCADE"
        may = f"owns the {kind} {row['name']}, of which {relation} is made, and can {does}; {way} TO {to}"
    replaceable = Code.GUARD_REPLACEABLE if kind in _FUNCTIONS else None
    if by_writer:
        who = f"the writer {writer}" if owner == writer else f"the writer {writer} can act as {owner}, who"
        judging.refute(replaceable or Code.WRITER_OWNS, f"{who} {may}", part=part, rows=shown)
    else:
        judging.unproven(replaceable or Code.OWNED_ELSEWHERE, f"{owner} {may}", part=part, rows=shown)
