"""The PostgreSQL of service-postgres.toml, on a copy of the launcher's template: `python -m … FOLDER TEMPLATE`.

With a word after them the one that runs is changed: with `read-only`, new sessions can only read; with `small`, its
table takes no more than a few rows; `ready` is as it was.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import psycopg
from psycopg import sql

from holdfast.servers.errors import ServerError
from holdfast.servers.postgres.confined import ConfinedServer

# As a server says it whose disk has no room.
_SMALL = """CREATE OR REPLACE FUNCTION small() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    IF (SELECT count(*) FROM records) > 20 THEN RAISE EXCEPTION 'no room' USING ERRCODE = 'disk_full'; END IF;
    RETURN NEW; END $$"""


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def _change(connection: psycopg.Connection[Any], state: str) -> None:
    change = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
    said = sql.Literal("on" if state == "read-only" else "off")
    connection.execute(change.format(sql.Identifier(connection.info.dbname), said))
    connection.execute("DROP TRIGGER IF EXISTS small ON records")
    if state == "small":
        connection.execute(_SMALL)
        connection.execute("CREATE TRIGGER small BEFORE INSERT ON records FOR EACH ROW EXECUTE FUNCTION small()")


def main(folder: str, template: str, state: str | None = None) -> int:
    """Serve until SIGTERM, on what is in the folder if something is."""
    server = ConfinedServer(Path(folder), Path(template))
    if state is not None:
        options = "-c default_transaction_read_only=off"
        with psycopg.connect(server.dsn(), autocommit=True, options=options) as connection:
            _change(connection, state)
        return 0
    signal.signal(signal.SIGTERM, _leave)
    try:
        if (Path(folder) / "data").is_dir():
            server.open_existing()
        else:
            server.open_fresh()
        while True:
            signal.pause()
    except ServerError as error:
        print(f"the store's server: {error}", file=sys.stderr)
        return 1
    finally:
        server.close()


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
