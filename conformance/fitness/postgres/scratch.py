"""A PostgreSQL server to throw away, for clones of a surface. It goes with this process, however that ends."""

from __future__ import annotations

import secrets
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from holdfast.conformance.fitness.deadline import NEVER, Deadline
from holdfast.conformance.fitness.errors import LostError
from holdfast.conformance.fitness.postgres.connecting import Connection
from holdfast.servers.errors import StartError
from holdfast.servers.janitor import Janitor
from holdfast.servers.launcher import READY_S, Launcher

# A process of its own: it takes the server down at end of file, so also when this process is killed.
_COMMAND = (sys.executable, "-P", "-m", "holdfast.servers.postgres.embedded")
# Clones are made in it and dropped there, never the other way round, so that it stays what initdb made.
MAINTENANCE = "template1"
_BOOTSTRAP = "postgres"
# In the name of the socket; nothing listens on a network.
_PORT = 5432
# Nothing here must outlive the machine; the settings of the live server are judged by its own catalogue.
_SETTINGS: Mapping[str, str] = {"fsync": "off", "full_page_writes": "off"}

# With nothing to replay a restart takes a fraction of a second.
RECOVERY_S = 20.0
# Nothing that is done here takes long: a database is made of a template, or dropped with those who use it.
_LONGEST_S = 30.0
_POLL_S = 0.005


@dataclass(frozen=True, slots=True)
class Scratch:
    """A running server. `dsn` is that of a superuser whose name no live role has, `programs` holds pg_dump and psql.

    A process with `mark` in its environment ends with it, and is not awaited after `deadline`.

    Roles are the server's, so it holds one clone at a time.
    """

    dsn: str
    superuser: str
    programs: Path
    mark: Mapping[str, str]
    deadline: Deadline = NEVER

    def dsn_of(self, database: str, *, user: str | None = None) -> str:
        """DSN of a database on it, as its superuser or as another role. It needs no password."""
        return make_conninfo(self.dsn, dbname=database, user=user or self.superuser)

    def connect(self, dsn: str | None = None) -> psycopg.Connection[Any]:
        """A connection of the superuser, to no database in particular, as soon as the server accepts one.

        A server whose backend was killed restarts them all. Raises psycopg.Error.
        """
        recovered = Deadline.after(self.deadline.left(RECOVERY_S))
        while True:
            try:
                return _reach(dsn or self.dsn, self.deadline)
            except psycopg.OperationalError:
                if not recovered.left():
                    raise
            time.sleep(_POLL_S)


@contextmanager
def bare_server(settings: Mapping[str, str], *, deadline: Deadline = NEVER) -> Iterator[Scratch]:
    """An empty server of its own with these settings, as initdb made it.

    Raises StartError, also if it is not there at the deadline.
    """
    with ExitStack() as stack:
        janitor = stack.enter_context(Janitor())
        launcher = Launcher(
            _COMMAND,
            contract="postgresql",
            folder=janitor.make_folder(),
            config=settings,
            janitor=janitor,
            patience=deadline.left(READY_S),
        )
        stack.callback(launcher.close)
        # Said in full: PGHOSTADDR, PGPORT or PGOPTIONS of the environment mean the user's own server.
        # And what a clone says must come as text, as on the live server, in every encoding of its database.
        dsn = make_conninfo(launcher.config["dsn"], hostaddr="", port=_PORT, options="", client_encoding="UTF8")
        yield Scratch(dsn, _BOOTSTRAP, Path(launcher.config["programs"]), janitor.mark, deadline)


@contextmanager
def scratch(deadline: Deadline = NEVER) -> Iterator[Scratch]:
    """A server for clones, until the deadline. Raises LostError if it cannot be started here."""
    with ExitStack() as stack:
        try:
            made = _renamed(stack.enter_context(bare_server(_SETTINGS, deadline=deadline)))
        except (StartError, OSError, psycopg.Error) as error:
            raise LostError(f"no scratch server could be started: {error}") from error
        yield made


def _renamed(bare: Scratch) -> Scratch:
    """Free the names that a live server may use: its clone has roles and a database of the same names."""
    suffix = secrets.token_hex(4)
    superuser, bootstrap = f"holdfast_scratch_{suffix}", f"holdfast_bootstrap_{suffix}"
    with closing(_reach(bare.dsn_of(MAINTENANCE), bare.deadline)) as connection:
        connection.execute(sql.SQL("CREATE ROLE {} SUPERUSER LOGIN").format(sql.Identifier(superuser)))
    made = replace(bare, dsn=bare.dsn_of(MAINTENANCE, user=superuser), superuser=superuser)
    with closing(_reach(made.dsn, made.deadline)) as connection:
        connection.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(_BOOTSTRAP)))
        connection.execute(
            sql.SQL("ALTER ROLE {} RENAME TO {}").format(sql.Identifier(_BOOTSTRAP), sql.Identifier(bootstrap))
        )
    return made


def _reach(dsn: str, deadline: Deadline) -> Connection:
    return Connection.reach(dsn, purpose="the scratch server", longest=_LONGEST_S, deadline=deadline)
