"""The roles of a live server, copied to a scratch server: attributes, memberships and settings, no passwords."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

# What surrounds a database on its server and is in no dump of it: rows, as these queries name them.
Household: TypeAlias = Mapping[str, tuple[dict[str, Any], ...]]
_QUERIES = {
    "roles": """
SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls
  FROM pg_catalog.pg_roles WHERE rolname !~ '^pg_' ORDER BY rolname
""",
    # A membership has options of its own since 16; before, whether it is inherited is an attribute of the member.
    "memberships": """
SELECT held.rolname AS role, member.rolname AS member, given.admin_option AS admin,
       pg_catalog.to_jsonb(given) ->> 'inherit_option' AS inherit, pg_catalog.to_jsonb(given) ->> 'set_option' AS set
  FROM pg_catalog.pg_auth_members given
  JOIN pg_catalog.pg_roles held ON held.oid = given.roleid
  JOIN pg_catalog.pg_roles member ON member.oid = given.member
 WHERE member.rolname !~ '^pg_'
 ORDER BY 1, 2
""",
    # pg_roles shows its own settings to every role; those of all roles and of other databases do not reach this one.
    "settings": """
SELECT role.rolname AS role, kept.setdatabase <> 0 AS here, kept.setconfig AS settings
  FROM pg_catalog.pg_db_role_setting kept
  LEFT JOIN pg_catalog.pg_roles role ON role.oid = kept.setrole
 WHERE kept.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))
   AND (kept.setrole = 0 OR role.rolname IS NOT NULL)
""",
    "database": """
SELECT pg_catalog.current_database() AS name, pg_catalog.pg_encoding_to_char(encoding) AS encoding,
       pg_catalog.pg_get_userbyid(datdba) AS owner, datacl IS NOT NULL AS restricted
  FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()
""",
    "database_grants": """
SELECT CASE given.grantee WHEN 0 THEN NULL ELSE pg_catalog.pg_get_userbyid(given.grantee) END AS grantee,
       given.privilege_type AS privilege, given.is_grantable AS grantable
  FROM pg_catalog.pg_database, pg_catalog.aclexplode(datacl) given
 WHERE datname = pg_catalog.current_database()
""",
    # 10 is the superuser that initdb made, on every server; its own rights need no grant.
    "parameter_grants": """
SELECT parname AS parameter, given.privilege_type AS privilege, given.is_grantable AS grantable,
       CASE given.grantee WHEN 0 THEN NULL ELSE pg_catalog.pg_get_userbyid(given.grantee) END AS grantee
  FROM pg_catalog.pg_parameter_acl, pg_catalog.aclexplode(paracl) given
 WHERE given.grantee <> 10
""",
}
_PARAMETER_ACL_SINCE = 150000
_KEEP_INSERT = "INSERT INTO pg_catalog.pg_db_role_setting (setdatabase, setrole, setconfig) VALUES (%s, %s, %s)"
_ATTRIBUTES = {
    "rolsuper": "SUPERUSER",
    "rolinherit": "INHERIT",
    "rolcreaterole": "CREATEROLE",
    "rolcreatedb": "CREATEDB",
    "rolcanlogin": "LOGIN",
    "rolreplication": "REPLICATION",
    "rolbypassrls": "BYPASSRLS",
}


def read(connection: psycopg.Connection[Any]) -> Household:
    """What the live server says; every role may read it. Raises psycopg.Error.

    The transaction must look its names up in pg_catalog (`snapshot.moment`): else the database's owner decides which
    operators these are.
    """
    queries = dict(_QUERIES)
    if connection.info.server_version < _PARAMETER_ACL_SINCE:
        del queries["parameter_grants"]
    with connection.cursor(row_factory=dict_row) as cursor:
        return {name: tuple(cursor.execute(query).fetchall()) for name, query in queries.items()}


def database_of(household: Household) -> str:
    """The name of the live database, and of its clone."""
    return str(household["database"][0]["name"])


def make(connection: psycopg.Connection[Any], household: Household) -> None:
    """Make roles and the empty database on a scratch server. Raises psycopg.Error."""
    for statement in _statements(household):
        connection.execute(statement)
    for row in household["settings"]:
        _keep(connection, database_of(household), row)


def open_for_login(connection: psycopg.Connection[Any], household: Household) -> None:
    """Let every role log in, so that probes are made by the role itself. Raises psycopg.Error."""
    for role in household["roles"]:
        if not role["rolcanlogin"]:
            connection.execute(sql.SQL("ALTER ROLE {} LOGIN").format(sql.Identifier(role["rolname"])))
    # The right to connect to the live database is no matter of the surface; the other rights on it are.
    name = sql.Identifier(database_of(household))
    connection.execute(sql.SQL("GRANT CONNECT ON DATABASE {} TO PUBLIC").format(name))


def drop(connection: psycopg.Connection[Any], household: Household) -> None:
    """Take the database and the roles away again, as far as they were made. Raises psycopg.Error."""
    name = sql.Identifier(database_of(household))
    connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(name))
    there = {name for (name,) in connection.execute("SELECT rolname FROM pg_catalog.pg_roles")}
    names = [sql.Identifier(role["rolname"]) for role in household["roles"] if role["rolname"] in there]
    if names:
        # What is the server's: privileges on parameters.
        connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.SQL(", ").join(names)))
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.SQL(", ").join(names)))


def _statements(household: Household) -> Iterator[sql.Composed]:
    inherits = {}
    for role in household["roles"]:
        inherits[role["rolname"]] = role["rolinherit"]
        attributes = " ".join(word if role[name] else f"NO{word}" for name, word in _ATTRIBUTES.items())
        yield sql.SQL("CREATE ROLE {} {}").format(sql.Identifier(role["rolname"]), sql.SQL(attributes))
    for row in household["memberships"]:
        # Before 16 there is no option, and the attribute of the member says it.
        inherit = inherits.get(row["member"], True) if row["inherit"] is None else row["inherit"] == "true"
        options = [f"ADMIN {row['admin']}", f"INHERIT {inherit}", f"SET {row['set'] != 'false'}"]
        yield sql.SQL("GRANT {} TO {} WITH {}").format(
            sql.Identifier(row["role"]), sql.Identifier(row["member"]), sql.SQL(", ".join(options))
        )
    (database,) = household["database"]
    name, owner = sql.Identifier(database["name"]), sql.Identifier(database["owner"])
    yield sql.SQL("CREATE DATABASE {} TEMPLATE template0 STRATEGY file_copy OWNER {} ENCODING {} LOCALE 'C'").format(
        name, owner, sql.Literal(database["encoding"])
    )
    if database["restricted"]:
        yield sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC, {}").format(name, owner)
        for row in household["database_grants"]:
            yield sql.SQL("GRANT {} ON DATABASE {} TO {}").format(sql.SQL(row["privilege"]), name, _grantee(row))
    for row in household.get("parameter_grants", ()):
        parameter = sql.Identifier(row["parameter"])
        yield sql.SQL("GRANT {} ON PARAMETER {} TO {}").format(sql.SQL(row["privilege"]), parameter, _grantee(row))


def _grantee(row: dict[str, Any]) -> sql.Composable:
    """The role, with what it may hand on."""
    role: sql.Composable = sql.SQL("PUBLIC") if row["grantee"] is None else sql.Identifier(row["grantee"])
    return sql.SQL("{} WITH GRANT OPTION").format(role) if row["grantable"] else role


def _keep(connection: psycopg.Connection[Any], database: str, row: dict[str, Any]) -> None:
    """One row of settings as it is: ALTER … SET would read lists of names as one name."""
    role, here = (
        connection.execute(query, (name,)).fetchone() if name is not None else (0,)
        for query, name in (
            ("SELECT oid FROM pg_catalog.pg_roles WHERE rolname = %s", row["role"]),
            ("SELECT oid FROM pg_catalog.pg_database WHERE datname = %s", database if row["here"] else None),
        )
    )
    if role is None or here is None:
        raise psycopg.DataError(f"the settings of {row['role']} cannot be kept: there is no such role here")
    connection.execute(_KEEP_INSERT, (here[0], role[0], row["settings"]))
