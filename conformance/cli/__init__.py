"""The command line. Each command is a module; exit statuses are those of `conformance.verdict.Exit`."""

from __future__ import annotations

import os
import sys
import traceback

import typer

from conformance.cli.crash import crash
from conformance.cli.doctor import doctor
from conformance.cli.explain import explain
from conformance.cli.fitness import QuietCommand, fitness
from conformance.cli.gate import gate
from conformance.cli.lint import lint
from conformance.cli.listing import list_
from conformance.cli.reference import reference
from conformance.cli.selfcheck import selfcheck
from conformance.cli.vectors import app as vectors
from conformance.cli.verify import verify
from conformance.verdict import Exit

app = typer.Typer(
    name="holdfast",
    help="A conformance kit for systems that promise at most once and never lost. It fails closed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# What stands behind `--` is the adapter's, options included.
_REST = {"allow_extra_args": True, "ignore_unknown_options": False}
app.command(context_settings=_REST)(verify)
app.command()(gate)
app.command()(selfcheck)
app.command()(explain)
app.command(name="list")(list_)
app.command()(lint)
app.command(context_settings=_REST)(doctor)
app.command(context_settings=_REST)(crash)
# A DSN that was not quoted must not be shown in an error about its second half.
app.command(cls=QuietCommand, context_settings={"allow_extra_args": True})(fitness)
app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []})(
    reference
)
app.add_typer(vectors)

# What click exits with on a usage error; holdfast's own table says 64, and no command of it uses 2.
_CLICK_USAGE = 2


def main() -> None:
    """Entry point of the console script."""
    # Nothing is ever imported from the folder the user happens to stand in.
    here = os.getcwd()
    sys.path[:] = [entry for entry in sys.path if entry not in ("", here) or _holds_kit(entry or here)]
    try:
        app()
    except SystemExit as stop:
        raise SystemExit(int(Exit.USAGE) if stop.code == _CLICK_USAGE else stop.code) from None
    except Exception:
        # A defect of the kit must not look like a result about the adapter.
        traceback.print_exc()
        print("holdfast: this is a fault of the kit itself, please report it", file=sys.stderr)
        raise SystemExit(int(Exit.KIT)) from None


def _holds_kit(entry: str) -> bool:
    """Whether the kit itself runs from that folder (a checkout installed in place)."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) == os.path.abspath(entry)
