"""The PostgreSQL of service-postgres.toml, on a copy of the launcher's template: `python -m … FOLDER TEMPLATE`."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import NoReturn

from holdfast.servers.errors import ServerError
from holdfast.servers.postgres.confined import ConfinedServer


def _leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(0)


def main(folder: str, template: str) -> int:
    """Serve until SIGTERM, on what is in the folder if something is."""
    signal.signal(signal.SIGTERM, _leave)
    server = ConfinedServer(Path(folder), Path(template))
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
