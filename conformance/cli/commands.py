"""All commands of the command line, each of which is a module."""

from __future__ import annotations

import typer

from holdfast.conformance.cli.crash import crash
from holdfast.conformance.cli.doctor import doctor
from holdfast.conformance.cli.explain import explain
from holdfast.conformance.cli.fitness import QuietCommand, fitness
from holdfast.conformance.cli.gate import gate
from holdfast.conformance.cli.lint import lint
from holdfast.conformance.cli.listing import list_
from holdfast.conformance.cli.once import OnceCommand
from holdfast.conformance.cli.reference import reference
from holdfast.conformance.cli.selfcheck import selfcheck
from holdfast.conformance.cli.vectors import app as vectors
from holdfast.conformance.cli.verify import verify

app = typer.Typer(
    name="holdfast",
    help="A conformance kit for systems that promise at most once and never lost. It fails closed.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
# What stands behind `--` is the adapter's, options included.
_REST = {"allow_extra_args": True, "ignore_unknown_options": False}
app.command(cls=OnceCommand, context_settings=_REST)(verify)
app.command(cls=OnceCommand)(gate)
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
