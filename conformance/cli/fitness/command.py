"""`holdfast fitness DSN`: is this live surface fit to hold consumed keys?"""

from __future__ import annotations

import traceback

import typer

from holdfast.conformance.cli.console import err, stop
from holdfast.conformance.cli.fitness.options import Options
from holdfast.conformance.cli.group import with_options
from holdfast.conformance.verdict import Exit
from holdfast.servers.janitor import JanitorLostError


@with_options(Options)
def fitness(options: Options) -> None:
    """Prove a live table fit to hold consumed keys, or refuse it. Exit 0 only if all of (a) to (i) are proven.

    The database is only read. What must be tried is tried on a copy of its schema on a scratch server. Relations that
    are not named are searched for. With --probe-live some of it is tried on the live tables too, by a session that logs
    in as the writer (--live-dsn), and rolled back: that takes locks, fires triggers and moves sequences, and can hold
    up real requests meanwhile.

    Give the address of the server itself, not of a connection pooler such as PgBouncer: nothing is looked at through
    one.
    """
    # Every other command would wait for the drivers of databases, too.
    from holdfast.conformance.cli.fitness.assessment import assess_and_print
    from holdfast.conformance.fitness.target import scrubbed

    dsn = options.dsn
    try:
        status = assess_and_print(options)
    except KeyboardInterrupt:
        stop(Exit.INCOMPLETE, "interrupted; nothing was proven")
    except (typer.Exit, JanitorLostError, MemoryError):
        raise
    except Exception:
        # As `main` does for every command, but a traceback may hold the DSN.
        err().print_lines(scrubbed(scrubbed(traceback.format_exc(), dsn), options.live_dsn or dsn).splitlines())
        stop(Exit.KIT, "this is a fault of the kit itself, please report it")
    raise typer.Exit(int(status))
