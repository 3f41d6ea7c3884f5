"""The roles of a live server, copied to a scratch server: attributes, memberships and settings, no passwords."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

_ROLES = """
SELECT rolname, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolcanlogin, rolreplication, rolbypassrls
  FROM pg_catalog.pg_roles WHERE rolname !~ '^pg_' ORDER BY rolname
"""
# A membership has options of its own since 16; before, whether it is inherited is an attribute of the member.
_MEMBERSHIPS = """
SELECT held.rolname AS role, member.rolname AS member, given.admin_option AS admin,
       pg_catalog.to_jsonb(given) ->> 'inherit_option' AS inherit, pg_catalog.to_jsonb(given) ->> 'set_option' AS set
  FROM pg_catalog.pg_auth_members given
  JOIN pg_catalog.pg_roles held ON held.oid = given.roleid
  JOIN pg_catalog.pg_roles member ON member.oid = given.member
 WHERE member.rolname !~ '^pg_'
 ORDER BY 1, 2
"""
# pg_roles shows its own settings to every role; those of all roles and of other databases do not reach this one.
_SETTINGS = """
SELECT role.rolname AS role, kept.setdatabase <> 0 AS here, kept.setconfig AS settings
  FROM pg_catalog.pg_db_role_setting kept
  LEFT JOIN pg_catalog.pg_roles role ON role.oid = kept.setrole
 WHERE kept.setdatabase IN (0, (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()))
   AND (kept.setrole = 0 OR role.rolname IS NOT NULL)
"""
_DATABASE = """
SELECT pg_catalog.current_database() AS name, pg_catalog.pg_encoding_to_char(encoding) AS encoding,
       pg_catalog.pg_get_userbyid(datdba) AS owner, datacl IS NOT NULL AS restricted
  FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()
"""
_DATABASE_GRANTS = """
SELECT CASE given.grantee WHEN 0 THEN NULL ELSE pg_catalog.pg_get_userbyid(given.grantee) END AS grantee,
       given.privilege_type AS privilege, given.is_grantable AS grantable
  FROM pg_catalog.pg_database, pg_catalog.aclexplode(datacl) given
 WHERE datname = pg_catalog.current_database()
"""
# 10 is the superuser that initdb made, on every server; its own rights need no grant.
_PARAMETER_GRANTS = """
SELECT parname AS parameter, given.privilege_type AS privilege, given.is_grantable AS grantable,
       CASE given.grantee WHEN 0 THEN NULL ELSE pg_catalog.pg_get_userbyid(given.grantee) END AS grantee
  FROM pg_catalog.pg_parameter_acl, pg_catalog.aclexplode(paracl) given
 WHERE given.grantee <> 10
"""
_PARAMETER_ACL_SINCE = 150000
_KEEP_INSERT = "INSERT INTO pg_catalog.pg_db_role_setting (setdatabase, setrole, setconfig) VALUES (%s, %s, %s)"


@dataclass(frozen=True, slots=True)
class Household:
    """The surroundings of a database on its server, which are in no dump of it. Rows as the queries above name them."""

    roles: tuple[dict[str, Any], ...]
    memberships: tuple[dict[str, Any], ...]
    settings: tuple[dict[str, Any], ...]
    database: dict[str, Any]
    database_grants: tuple[dict[str, Any], ...]
    parameter_grants: tuple[dict[str, Any], ...]

    @property
    def database_name(self) -> str:
        """The name of the live database, and of its clone."""
        return str(self.database["name"])

    @property
    def role_names(self) -> tuple[str, ...]:
        """All that `make` makes."""
        return tuple(str(role["rolname"]) for role in self.roles)


def read(connection: psycopg.Connection[Any]) -> Household:
    """What the live server says; every role may read it. Raises psycopg.Error.

    The transaction must look its names up in pg_catalog (`snapshot.moment`): else the database's owner decides which
    operators these are.
    """
    with connection.cursor(row_factory=dict_row) as cursor:

        def rows(query: str) -> tuple[dict[str, Any], ...]:
            return tuple(cursor.execute(query).fetchall())

        has_parameters = connection.info.server_version >= _PARAMETER_ACL_SINCE
        return Household(
            roles=rows(_ROLES),
            memberships=rows(_MEMBERSHIPS),
            settings=rows(_SETTINGS),
            database=rows(_DATABASE)[0],
            database_grants=rows(_DATABASE_GRANTS),
            parameter_grants=rows(_PARAMETER_GRANTS) if has_parameters else (),
        )


def make(connection: psycopg.Connection[Any], household: Household) -> None:
    """Make roles and the empty database on a scratch server. Raises psycopg.Error."""
    for statement in (*_roles(household), *_memberships(household), *_database(household), *_parameters(household)):
        connection.execute(statement)
    for row in household.settings:
        _keep(connection, household.database_name, row)


def open_for_login(connection: psycopg.Connection[Any], household: Household) -> None:
    """Let every role log in, so that probes are made by the role itself. Raises psycopg.Error."""
    for role in household.roles:
        if not role["rolcanlogin"]:
            connection.execute(sql.SQL("ALTER ROLE {} LOGIN").format(sql.Identifier(role["rolname"])))
    # The right to connect to the live database is no matter of the surface; the other rights on it are.
    connection.execute(
        sql.SQL("GRANT CONNECT ON DATABASE {} TO PUBLIC").format(sql.Identifier(household.database_name))
    )


def drop(connection: psycopg.Connection[Any], household: Household) -> None:
    """Take the database and the roles away again, as far as they were made. Raises psycopg.Error."""
    connection.execute(
        sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(household.database_name))
    )
    there = {name for (name,) in connection.execute("SELECT rolname FROM pg_catalog.pg_roles")}
    names = [sql.Identifier(name) for name in household.role_names if name in there]
    if names:
        # What is the server's: privileges on parameters.
        connection.execute(sql.SQL("DROP OWNED BY {}").format(sql.SQL(", ").join(names)))
        connection.execute(sql.SQL("DROP ROLE {}").format(sql.SQL(", ").join(names)))


def _roles(household: Household) -> Iterator[sql.Composed]:
    words = {
        "rolsuper": "SUPERUSER",
        "rolinherit": "INHERIT",
        "rolcreaterole": "CREATEROLE",
        "rolcreatedb": "CREATEDB",
        "rolcanlogin": "LOGIN",
        "rolreplication": "REPLICATION",
        "rolbypassrls": "BYPASSRLS",
    }
    for role in household.roles:
        attributes = " ".join(word if role[name] else f"NO{word}" for name, word in words.items())
        yield sql.SQL("CREATE ROLE {} {}").format(sql.Identifier(role["rolname"]), sql.SQL(attributes))


def _memberships(household: Household) -> Iterator[sql.Composed]:
    inherits = {role["rolname"]: role["rolinherit"] for role in household.roles}
    for row in household.memberships:
        # Before 16 there is no option, and the attribute of the member says it.
        inherit = inherits.get(row["member"], True) if row["inherit"] is None else row["inherit"] == "true"
        options = [f"ADMIN {row['admin']}", f"INHERIT {inherit}", f"SET {row['set'] != 'false'}"]
        yield sql.SQL("GRANT {} TO {} WITH {}").format(
            sql.Identifier(row["role"]), sql.Identifier(row["member"]), sql.SQL(", ".join(options))
        )


def _database(household: Household) -> Iterator[sql.Composed]:
    database = household.database
    name = sql.Identifier(database["name"])
    yield sql.SQL("CREATE DATABASE {} TEMPLATE template0 STRATEGY file_copy OWNER {} ENCODING {} LOCALE 'C'").format(
        name, sql.Identifier(database["owner"]), sql.Literal(database["encoding"])
    )
    if not database["restricted"]:
        return
    owner = sql.Identifier(database["owner"])
    yield sql.SQL("REVOKE ALL ON DATABASE {} FROM PUBLIC, {}").format(name, owner)
    for row in household.database_grants:
        yield sql.SQL("GRANT {} ON DATABASE {} TO {}").format(sql.SQL(row["privilege"]), name, _grantee(row))


def _parameters(household: Household) -> Iterator[sql.Composed]:
    for row in household.parameter_grants:
        yield sql.SQL("GRANT {} ON PARAMETER {} TO {}").format(
            sql.SQL(row["privilege"]), sql.Identifier(row["parameter"]), _grantee(row)
        )


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
