"""All commands of the command line, and the module of each."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated, ClassVar

import typer

import holdfast
from holdfast.conformance.cli.group import REST, Entry, Group, QuietCommand


class _Commands(Group):
    entries: ClassVar[Mapping[str, Entry]] = {
        "verify": Entry(
            "verify.command:verify",
            "Verify an adapter: `holdfast verify reference`, `holdfast verify -- COMMAND…`, or an HTTP service "
            "(--service).",
            settings=REST,
        ),
        "gate": Entry("gate:gate", "Decide whether a run proves what is required; exit 0 only if CAN_PROCEED = YES."),
        "doctor": Entry(
            "doctor:doctor",
            "Examine an adapter before verifying it: `holdfast doctor -- COMMAND…`, or `holdfast doctor reference`.",
            settings=REST,
        ),
        "smoke": Entry(
            "smoke:smoke",
            "Try a script for each method that the adapter claims, within 5 seconds. It proves nothing.",
            settings=REST,
        ),
        "repro": Entry(
            "again:repro",
            "Run a case of a run once more, with its seed and its adapter, and show both transcripts side by side.",
            settings=REST,
        ),
        "minimise": Entry(
            "again:minimise",
            "Make a case that failed shorter, as long as it fails in the same way, and show what is left.",
            settings=REST,
        ),
        "new-adapter": Entry(
            "new_adapter:new_adapter", "Write an adapter to be filled in: Python, Node, Go, Rust or Java."
        ),
        "fuzz": Entry(
            "fuzz:fuzz",
            "Send what no client should send to an implementation that is asked over HTTP.",
            settings=REST,
        ),
        "list": Entry(
            "explain.listing:list_",
            "List contracts, clauses, cases, methods, reasons, or the categories of `vectors verify`.",
        ),
        "explain": Entry("explain.command:explain", "Explain a clause, a case, a method, a reason or a contract."),
        "crash": Entry(
            "crash.command:crash",
            "Find out what a crash, a power loss or a full disk costs a store: `holdfast crash -- COMMAND…`.",
            settings=REST,
        ),
        # A DSN that was not quoted must not be shown in an error about its second half.
        "fitness": Entry(
            "fitness.command:fitness",
            "Prove a live table fit to hold consumed keys, or refuse it. Exit 0 only if all of (a) to (i) are proven.",
            reads=QuietCommand,
            settings={"allow_extra_args": True},
        ),
        "vectors": Entry(
            "vectors.commands:app",
            "Canonicalisation vectors (RFC 8785) by the million: generate them, and verify SDKs in any language on "
            "them.",
        ),
        "gallery": Entry(
            "gallery:app",
            "Published libraries behind an Idempotency-Key, each behind a small service, and what is found in them.",
        ),
        "lint": Entry(
            "lint:lint",
            "Check contracts, their cases and their mutants; exit 20 if something is wrong with the kit's own data.",
        ),
        "selfcheck": Entry(
            "selfcheck:selfcheck",
            "Lint the contracts, run every mutant, print the kill matrix. Exit 20 unless every bug is caught as "
            "declared.",
        ),
        "reference": Entry(
            "commands:reference",
            "Run the reference implementation's own commands: provision, adapter, mutants, launch (`--help` lists "
            "them).",
            settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
        ),
    }


app = typer.Typer(
    name="holdfast",
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        print(f"holdfast {holdfast.__version__}")
        raise typer.Exit


@app.callback()
def _holdfast(
    _: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="print the version and exit")
    ] = False,
) -> None:
    """A conformance kit for systems that promise at most once and never lost. It fails closed."""


def reference(context: typer.Context) -> None:
    """Run the reference implementation's own commands: provision, adapter, mutants, launch (`--help` lists them)."""
    from holdfast.conformance.run.settings import REFERENCE

    sys.stdout.flush()
    sys.stderr.flush()
    # It takes the place of this process, so a signal to this process ends the reference.
    os.execv(REFERENCE[0], [*REFERENCE, *context.args])  # noqa: S606 - no shell, and the arguments are the user's own
