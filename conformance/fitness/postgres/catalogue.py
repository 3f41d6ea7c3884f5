"""A snapshot of PostgreSQL's catalogue, asked by relation and column, and what roles can do by way of others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from holdfast.conformance.fitness.model import RelationName, Row, Snapshot

# Under this name the circumstances say which queries could not be read, and why.
UNREADABLE = "unreadable"
# Defaults that give each row a value of its own, as PostgreSQL writes them; an identity is one without a default.
MADE_UP = r"^(pg_catalog\.)?(nextval|gen_random_uuid|uuidv4|uuidv7)\("
# The role to which the owner of the database belongs, without a row that says so.
DATABASE_OWNER = "pg_database_owner"


class UnreadError(Exception):
    """What is asked for is not in the snapshot: `query`, and why in words."""

    def __init__(self, query: str, why: str) -> None:
        """See the class."""
        super().__init__(f"{query}: {why}")
        self.query = query


class Catalogue:
    """The rows of a snapshot. Every method raises UnreadError for a query that the snapshot does not hold."""

    def __init__(self, snapshot: Snapshot) -> None:
        """A view; nothing is copied."""
        self.snapshot = snapshot

    def rows(self, query: str) -> tuple[Row, ...]:
        """All rows of a query, of either kind."""
        found = self.snapshot.structure.get(query, self.snapshot.circumstances.get(query))
        if found is None:
            why = self.snapshot.circumstances.get(UNREADABLE, {}).get(query, "it is not in the snapshot")
            raise UnreadError(query, str(why))
        return tuple(found)

    def of(self, query: str, relation: RelationName) -> tuple[Row, ...]:
        """The rows of a query that belong to one relation."""
        return tuple(row for row in self.rows(query) if name_of(row) == relation)

    def relation(self, relation: RelationName) -> Row | None:
        """The relation itself."""
        return next(iter(self.of("relations", relation)), None)

    def column(self, relation: RelationName, name: str) -> Row | None:
        """One column."""
        return next((row for row in self.of("columns", relation) if row["name"] == name), None)

    def unique(self, relation: RelationName) -> tuple[Row, ...]:
        """Every unique index, sound or not, and exclusion constraints, which are taken for one."""
        return tuple(row for row in self.of("indexes", relation) if row["unique"] or row["exclusion"])

    def checks(self, relation: RelationName, column: str) -> tuple[Row, ...]:
        """Checks on exactly this column, those of its domain included; sound or not."""
        own = [row for row in self.of("constraints", relation) if row["kind"] == "c" and row["columns"] == [column]]
        domain = [row for row in self.of("domain_checks", relation) if row["column"] == column]
        return (*own, *domain)

    def below(self, relation: RelationName) -> tuple[RelationName, ...]:
        """The partitions and children of a relation, of every level."""
        found: list[RelationName] = []
        waiting = [relation]
        while waiting:
            parent = waiting.pop()
            for row in self.rows("inheritance"):
                child = name_of(row)
                if _parent_of(row) == parent and child not in found:
                    found.append(child)
                    waiting.append(child)
        return tuple(sorted(found))

    def children(self, relation: RelationName) -> tuple[Row, ...]:
        """Tables that inherit without being partitions."""
        return tuple(row for row in self.rows("inheritance") if _parent_of(row) == relation and not row["partition"])

    def parents(self, relation: RelationName) -> tuple[Row, ...]:
        """What a relation inherits from, or is a partition of."""
        return tuple(row for row in self.rows("inheritance") if name_of(row) == relation)

    @cached_property
    def roles(self) -> Roles:
        """Who can do what by way of whom."""
        implied = {"role": DATABASE_OWNER, "inherit": True, "set": False, "admin": False}
        owners = ({**implied, "member": owner} for owner in {str(row["owner"]) for row in self.rows("database")})
        return Roles({str(row["role"]): row for row in self.rows("roles")}, (*self.rows("memberships"), *owners))


def name_of(row: Row) -> RelationName:
    """The relation that a row belongs to."""
    return RelationName(str(row["schema"]), str(row["relation"]))


# With the header of a length: a varchar(10) has the modifier 14.
_HEADER = 4


def longest(row: Row) -> int | None:
    """How many characters a column may have at the most, by its type; None where that says nothing of it."""
    limited = row.get("base_type") in ("pg_catalog.varchar", "pg_catalog.bpchar")
    return row["modifier"] - _HEADER if limited and row.get("modifier", 0) >= _HEADER else None


def _parent_of(row: Row) -> RelationName:
    return RelationName(str(row["parent_schema"]), str(row["parent"]))


@dataclass(frozen=True)
class Roles:
    """Roles with their attributes and the memberships between them, as PostgreSQL 16 has them; before, set is true."""

    attributes: Mapping[str, Row]
    memberships: tuple[Row, ...]

    def becomes(self, role: str) -> frozenset[str]:
        """Every role that `role` can be after SET ROLE, itself included; also where it can first let itself in."""
        return self._closure(role)[0]

    def powers(self, role: str) -> frozenset[str]:
        """Every role whose privileges `role` can use, itself included; also where it can first let itself in."""
        return self._closure(role)[1]

    def _closure(self, role: str) -> tuple[frozenset[str], frozenset[str]]:
        being: frozenset[str] = frozenset({role})
        while True:
            being = self._reach(being, "set")
            using = self._reach(being, "inherit")
            # Who may let others into a role may let himself in, and then be it.
            let_in = {str(row["role"]) for row in self.memberships if row["admin"] and row["member"] in using}
            if let_in <= being:
                return being, using
            being |= let_in

    def uses(self, role: str) -> frozenset[str]:
        """The same for a role other than the writer.

        A role that makes roles can let itself into those that it made. The notes say so, as they do of superusers.
        """
        if not self.has(role, "create_role"):
            return self.powers(role)
        return self._reach(self._reach({role}, "set"), "inherit")

    def _reach(self, start: Iterable[str], way: str) -> frozenset[str]:
        found = set(start)
        waiting = list(found)
        while waiting:
            member = waiting.pop()
            for row in self.memberships:
                role = str(row["role"])
                if row["member"] == member and role not in found and row[way]:
                    found.add(role)
                    waiting.append(role)
        return frozenset(found)

    def members(self, role: str) -> tuple[Row, ...]:
        """The memberships in a role."""
        return tuple(row for row in self.memberships if row["role"] == role)

    def has(self, role: str, attribute: str) -> bool:
        """An attribute, such as superuser; False for predefined roles, which have none."""
        return bool(self.attributes.get(role, {}).get(attribute))

    def unbound(self, role: str) -> bool:
        """Whether a role is or can become a superuser, whom no privilege binds: a note, never a reason."""
        return any(self.has(each, "superuser") for each in self.becomes(role))

    def names(self) -> Iterator[str]:
        """All roles that are known, but for the predefined ones."""
        yield from sorted(self.attributes)


def text_of(value: Any) -> str:
    """A role of a grant as a sentence names it."""
    return "PUBLIC" if value is None else str(value)
