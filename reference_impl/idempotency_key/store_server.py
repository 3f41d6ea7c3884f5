"""The PostgreSQL of service-postgres.toml, on a copy of the launcher's template: `python -m … FOLDER TEMPLATE`.

With `on` or `off` behind them new sessions of the one that runs can only read, or write again.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

import psycopg
from psycopg import sql

from holdfast.servers.errors import ServerError
from holdfast.servers.postgres.confined import ConfinedServer


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def main(folder: str, template: str, read_only: str | None = None) -> int:
    """Serve until SIGTERM, on what is in the folder if something is."""
    server = ConfinedServer(Path(folder), Path(template))
    if read_only is not None:
        options = "-c default_transaction_read_only=off"
        with psycopg.connect(server.dsn(), autocommit=True, options=options) as connection:
            change = sql.SQL("ALTER DATABASE {} SET default_transaction_read_only = {}")
            connection.execute(change.format(sql.Identifier(connection.info.dbname), sql.Literal(read_only)))
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
