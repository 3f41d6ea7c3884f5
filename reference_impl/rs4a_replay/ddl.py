"""The surface as SQL, generated from the contract's relations, for both dialects. Only provisioning runs it.

The contract's names are words in small letters, so none is quoted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from holdfast.specs import Column, Relation

# One schema of its own: an unqualified name could resolve to a temporary table of another session.
SCHEMA = "rs4a_replay"


def literal(value: str | bool) -> str:  # noqa: FBT001 - a constant may be a boolean
    """A constant of the contract, which is a word or a boolean, as SQL."""
    return str(value) if isinstance(value, bool) else f"'{value}'"


class Dialect:
    """What both dialects share: the order and the text of a table's parts."""

    # Each type of the contract with the check of its values; {0} is the column.
    types: ClassVar[Mapping[str, str]]

    def table_name(self, relation: Relation) -> str:
        """The relation's name as statements use it."""
        return relation.name

    def column(self, column: Column) -> str:
        """One column with NOT NULL and the checks of its type and its constants."""
        parts = [column.name, self.types[column.type].format(column.name)]
        if not column.null:
            parts.append("NOT NULL")
        if column.only:
            parts.append(f"CHECK ({column.name} IN ({', '.join(map(literal, column.only))}))")
        return " ".join(parts)

    def table(self, relation: Relation) -> str:
        """The CREATE TABLE statement of one relation."""
        parts = [self.column(column) for column in relation.columns.values()]
        parts.append(f"PRIMARY KEY ({', '.join(relation.primary_key)})")
        parts += [f"CONSTRAINT {name} UNIQUE ({', '.join(columns)})" for name, columns in relation.unique.items()]
        return f"CREATE TABLE {self.table_name(relation)} ({', '.join(parts)})"

    def guards(self, relation: Relation) -> Iterator[str]:
        """Triggers that make an append-only relation append-only, for its owner too."""
        raise NotImplementedError

    def statements(self, relations: Mapping[str, Relation]) -> Iterator[str]:
        """Every statement that makes the surface, in order."""
        for relation in relations.values():
            yield self.table(relation)
            if relation.append_only:
                yield from self.guards(relation)


class PostgresDialect(Dialect):
    """PostgreSQL. Collation "C": equality is equality of bytes."""

    types: ClassVar[Mapping[str, str]] = {
        "key": "text COLLATE \"C\" CHECK ({0} ~ '^[0-9a-f]{{64}}$')",
        "text": "text COLLATE \"C\" CHECK ({0} <> '')",
        "instant": 'text COLLATE "C" CHECK ({0} ~ '
        "'^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?Z$')",
        "boolean": "boolean",
    }

    def table_name(self, relation: Relation) -> str:
        return f"{SCHEMA}.{relation.name}"

    def guards(self, relation: Relation) -> Iterator[str]:
        table, rows, whole = self.table_name(relation), f"{relation.name}_append_only", f"{relation.name}_no_truncate"
        refuses = f"EXECUTE FUNCTION {SCHEMA}.refuse_change()"
        yield f"CREATE TRIGGER {rows} BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW {refuses}"
        yield f"CREATE TRIGGER {whole} BEFORE TRUNCATE ON {table} FOR EACH STATEMENT {refuses}"
        # ALWAYS: otherwise session_replication_role = replica switches them off.
        yield f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {rows}"
        yield f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {whole}"

    def statements(self, relations: Mapping[str, Relation]) -> Iterator[str]:
        yield f"CREATE SCHEMA {SCHEMA}"
        yield (
            f"CREATE FUNCTION {SCHEMA}.refuse_change() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION '% on %: this relation is append-only', TG_OP, TG_TABLE_NAME USING ERRCODE = '23001'; "
            "END $$"
        )
        yield from super().statements(relations)


class SqliteDialect(Dialect):
    """SQLite. STRICT, because otherwise a BLOB with the same bytes as a text passes every UNIQUE."""

    types: ClassVar[Mapping[str, str]] = {
        # length() and GLOB end at a NUL, and any text may follow it. The length in bytes covers the whole key.
        "key": "TEXT CHECK (length({0}) = 64 AND length(CAST({0} AS BLOB)) = 64 AND {0} NOT GLOB '*[^0-9a-f]*')",
        "text": "TEXT CHECK ({0} <> '')",
        "instant": "TEXT CHECK ({0} GLOB "
        "'[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]*Z')",
        "boolean": "INTEGER",
    }

    def table(self, relation: Relation) -> str:
        return f"{super().table(relation)} STRICT"

    def guards(self, relation: Relation) -> Iterator[str]:
        for verb in ("UPDATE", "DELETE"):
            yield (
                f"CREATE TRIGGER {relation.name}_no_{verb.lower()} BEFORE {verb} ON {relation.name} "
                f"BEGIN SELECT RAISE(ABORT, '{relation.name} is append-only'); END"
            )
