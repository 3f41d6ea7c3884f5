"""The surface as SQL, generated from the contract's relations, for both dialects. Only provisioning runs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from holdfast.specs import Column, Relation

# One schema of its own: an unqualified name could resolve to a temporary table of another session.
SCHEMA = "rs4a_replay"
REFUSE_FUNCTION = "refuse_change"


def quoted(name: str) -> str:
    """An identifier in double quotes, the same in both dialects."""
    return '"' + name.replace('"', '""') + '"'


def literal(value: str | bool) -> str:  # noqa: FBT001 - a constant may be a boolean
    """A constant of the contract as SQL text or number."""
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "'" + value.replace("'", "''") + "'"


class Dialect:
    """What both dialects share: the order and the text of a table's parts."""

    types: ClassVar[Mapping[str, str]]
    instant_check: str
    key_check: str

    def table_name(self, relation: Relation) -> str:
        """The relation's name as statements use it."""
        return quoted(relation.name)

    def column(self, column: Column) -> str:
        """One column with NOT NULL and the checks of its type."""
        name = quoted(column.name)
        parts = [name, self.types[column.type]]
        if not column.null:
            parts.append("NOT NULL")
        checks = {"key": self.key_check, "text": "{0} <> ''", "instant": self.instant_check, "boolean": ""}
        check = checks[column.type].format(name)
        if column.only:
            check = f"{name} IN ({', '.join(map(literal, column.only))})"
        if check:
            parts.append(f"CHECK ({check})")
        return " ".join(parts)

    def unique(self, name: str, columns: tuple[str, ...]) -> str:
        """One named unique constraint."""
        return f"CONSTRAINT {quoted(name)} UNIQUE ({', '.join(map(quoted, columns))})"

    def table(self, relation: Relation) -> str:
        """The CREATE TABLE statement of one relation."""
        parts = [self.column(column) for column in relation.columns.values()]
        parts.append(f"PRIMARY KEY ({', '.join(map(quoted, relation.primary_key))})")
        parts += [self.unique(name, columns) for name, columns in relation.unique.items()]
        return f"CREATE TABLE {self.table_name(relation)} (\n  " + ",\n  ".join(parts) + "\n)"

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
        "key": 'text COLLATE "C"',
        "text": 'text COLLATE "C"',
        "instant": 'text COLLATE "C"',
        "boolean": "boolean",
    }
    key_check = "{0} ~ '^[0-9a-f]{{64}}$'"
    instant_check = "{0} ~ '^[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T[0-9]{{2}}:[0-9]{{2}}:[0-9]{{2}}([.][0-9]{{1,6}})?Z$'"

    def table_name(self, relation: Relation) -> str:
        return f"{quoted(SCHEMA)}.{quoted(relation.name)}"

    def guards(self, relation: Relation) -> Iterator[str]:
        table, function = self.table_name(relation), f"{quoted(SCHEMA)}.{REFUSE_FUNCTION}()"
        rows, whole = quoted(f"{relation.name}_append_only"), quoted(f"{relation.name}_no_truncate")
        yield f"CREATE TRIGGER {rows} BEFORE UPDATE OR DELETE ON {table} FOR EACH ROW EXECUTE FUNCTION {function}"
        yield f"CREATE TRIGGER {whole} BEFORE TRUNCATE ON {table} FOR EACH STATEMENT EXECUTE FUNCTION {function}"
        # ALWAYS: otherwise session_replication_role = replica switches them off.
        yield f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {rows}"
        yield f"ALTER TABLE {table} ENABLE ALWAYS TRIGGER {whole}"

    def statements(self, relations: Mapping[str, Relation]) -> Iterator[str]:
        yield f"CREATE SCHEMA {quoted(SCHEMA)}"
        yield (
            f"CREATE FUNCTION {quoted(SCHEMA)}.{REFUSE_FUNCTION}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "RAISE EXCEPTION '% on %: this relation is append-only', TG_OP, TG_TABLE_NAME USING ERRCODE = '23001'; "
            "END $$"
        )
        yield from super().statements(relations)

    def grants(self, relations: Mapping[str, Relation], *, writer: str) -> Iterator[str]:
        """The rights of the restricted writer: read and append only."""
        schema, role = quoted(SCHEMA), quoted(writer)
        yield f"REVOKE ALL ON SCHEMA {schema} FROM PUBLIC"
        yield f"GRANT USAGE ON SCHEMA {schema} TO {role}"
        for relation in relations.values():
            yield f"REVOKE ALL ON {self.table_name(relation)} FROM PUBLIC"
            yield f"GRANT SELECT, INSERT ON {self.table_name(relation)} TO {role}"


class SqliteDialect(Dialect):
    """SQLite. STRICT, because otherwise a BLOB with the same bytes as a text passes every UNIQUE."""

    types: ClassVar[Mapping[str, str]] = {"key": "TEXT", "text": "TEXT", "instant": "TEXT", "boolean": "INTEGER"}
    # length() and GLOB end at a NUL, and any text may follow it. The length in bytes covers the whole key.
    key_check = "length({0}) = 64 AND length(CAST({0} AS BLOB)) = 64 AND {0} NOT GLOB '*[^0-9a-f]*'"
    instant_check = "{0} GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]:[0-9][0-9]:[0-9][0-9]*Z'"

    def table(self, relation: Relation) -> str:
        return super().table(relation) + " STRICT"

    def guards(self, relation: Relation) -> Iterator[str]:
        for verb in ("UPDATE", "DELETE"):
            trigger = quoted(f"{relation.name}_no_{verb.lower()}")
            yield (
                f"CREATE TRIGGER {trigger} BEFORE {verb} ON {quoted(relation.name)} "
                f"BEGIN SELECT RAISE(ABORT, '{relation.name} is append-only'); END"
            )
