"""Who owns what a relation is made of: he can drop it with CASCADE, or put another function in its place."""

from __future__ import annotations

from collections.abc import Iterator

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
    trusted = _trusted(judging, part)
    for relation, row in _pieces(judging, part, name):
        if not _of_writer(judging, part, relation, row):
            _of_others(judging, part, relation, row, trusted)


def _pieces(judging: Judging, part: Part, name: RelationName) -> Iterator[tuple[RelationName, Row]]:
    """Each thing once, with the first of the relations that are made of it, and the database."""
    described: set[tuple[str, str]] = set()
    for relation in (name, *judging.catalogue.below(name)):
        for row in judging.catalogue.of("owners", relation):
            if (thing := (str(row["kind"]), str(row["name"]))) not in described:
                described.add(thing)
                yield relation, row
    # That of the effect is that of the nonce: once is enough.
    if part is not Part.NONCE:
        yield name, {"kind": _DATABASE, "name": "", "owner": _database_owner(judging)}


def _database_owner(judging: Judging) -> str:
    rows = judging.catalogue.rows("database")
    if not rows:
        raise UnreadError(_DATABASE, "expected the owner, got no row")
    return str(rows[0]["owner"])


def _trusted(judging: Judging, part: Part) -> frozenset[str]:
    """The owners of what is consumed can open every key as it is; that of the audit has to do with the audit only."""
    parts = {Part.EFFECT, Part.NONCE, part}
    rows = (judging.catalogue.relation(name) for each, name in judging.evidence.surface.parts.items() if each in parts)
    return frozenset(str(row["owner"]) for row in rows if row is not None)


def acts_as(judging: Judging, role: str, owners: frozenset[str]) -> bool:
    """Whether a role is bound by nothing, or is or can act as one of these owners."""
    real = _database_owner(judging) if role == DATABASE_OWNER else role
    roles = judging.catalogue.roles
    return roles.unbound(real) or bool(owners & roles.uses(real))


def _of_writer(judging: Judging, part: Part, relation: RelationName, row: Row) -> bool:
    writer = judging.evidence.surface.writer
    if writer is None or row["owner"] not in judging.catalogue.roles.powers(writer):
        return False
    who = f"the writer {writer}" if row["owner"] == writer else f"the writer {writer} can act as {row['owner']}, who"
    text = f"{who} {_may(judging, relation, row)}"
    judging.refute(_code(row, Code.WRITER_OWNS), text, part=part, rows=_rows(judging, row))
    return True


def _of_others(judging: Judging, part: Part, relation: RelationName, row: Row, trusted: frozenset[str]) -> None:
    owner = str(row["owner"])
    if acts_as(judging, owner, trusted):
        judging.rest_on(*_rows(judging, row))
        return
    text = f"{owner} {_may(judging, relation, row)}"
    judging.unproven(_code(row, Code.OWNED_ELSEWHERE), text, part=part, rows=_rows(judging, row))


def _code(row: Row, otherwise: Code) -> Code:
    return Code.GUARD_REPLACEABLE if row["kind"] in _FUNCTIONS else otherwise


def _may(judging: Judging, relation: RelationName, row: Row) -> str:
    """What an owner can do, and how the role becomes another's."""
    kind, name = str(row["kind"]), str(row["name"])
    to = next(str(each["owner"]) for each in judging.catalogue.of("relations", relation))
    if kind == _DATABASE:
        return f"owns the database, and can drop it with {relation}; ALTER DATABASE … OWNER TO {to}, or to a superuser"
    # There is no ALTER EXTENSION … OWNER TO.
    way = f"REASSIGN OWNED BY {row['owner']}" if kind == "extension" else f"ALTER {kind.upper()} {name} OWNER"
    does = "replace it" if kind in _FUNCTIONS else "take a part of that along with DROP … CASCADE"
    return f"owns the {kind} {name}, of which {relation} is made, and can {does}; {way} TO {to}"


def _rows(judging: Judging, row: Row) -> tuple[Row, ...]:
    return judging.catalogue.rows("database") if row["kind"] == _DATABASE else (row,)
