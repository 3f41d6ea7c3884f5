"""All commands of the command line, and the module of each."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Annotated

import typer

import holdfast
from holdfast.conformance.cli.group import REST, Branch, Entry, Group, QuietCommand

GALLERY = Branch(
    "Published libraries behind an Idempotency-Key, each behind a small service, and what is found in them.",
    {
        "list": Entry("gallery:list_"),
        "run": Entry("gallery:run"),
        "table": Entry("gallery:table"),
    },
)
SDK = Branch(
    "SDK runners in six languages: list, build, run.",
    {
        "list": Entry("vectors.sdk:list_"),
        "build": Entry("vectors.sdk:build"),
        "run": Entry("vectors.sdk:run"),
    },
)
REPORT = Branch(
    "What a run found, for people: a page, its data, and the versions that it ran with.",
    {"html": Entry("report:html"), "json": Entry("report:data"), "constraints": Entry("report:constraints")},
)
VECTORS = Branch(
    "Canonicalisation vectors (RFC 8785) by the million: generate them, and verify SDKs in any language on them.",
    {
        "generate": Entry("vectors.streams:generate"),
        "verify": Entry("vectors.verify:verify", settings=REST),
        "es6": Entry("vectors.streams:es6"),
        "parity": Entry("vectors.parity:parity"),
        "show": Entry("vectors.show:show", settings=REST),
        "export": Entry("vectors.show:export"),
        "sdk": SDK,
        "lint": Entry("lint:vectors"),
        "fingerprints": Entry("vectors.streams:fingerprints"),
    },
)


class Commands(Group):
    entries: Mapping[str, Entry | Branch] = {
        "verify": Entry("verify.command:verify", settings=REST),
        "gate": Entry("gate:gate"),
        "report": REPORT,
        "doctor": Entry("doctor:doctor", settings=REST),
        "smoke": Entry("smoke:smoke", settings=REST),
        "repro": Entry("again:repro", settings=REST),
        "minimise": Entry("again:minimise", settings=REST),
        "new-adapter": Entry("new_adapter:new_adapter"),
        "new-contract": Entry("new_adapter:new_contract"),
        "fuzz": Entry("fuzz:fuzz", settings=REST),
        "list": Entry("explain.command:list_"),
        "explain": Entry("explain.command:explain"),
        "crash": Entry("crash:crash", settings=REST),
        # A DSN that was not quoted must not be shown in an error about its second half.
        "fitness": Entry("fitness:fitness", reads=QuietCommand, settings={"allow_extra_args": True}),
        "vectors": VECTORS,
        "gallery": GALLERY,
        "lint": Entry("lint:lint"),
        "selfcheck": Entry("selfcheck:selfcheck"),
        "reference": Entry(
            "commands:reference",
            settings={"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []},
        ),
    }


app = typer.Typer(
    name="holdfast",
    cls=Commands,
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
