"""`holdfast reference …`: becomes the reference implementation, which is a program of its own."""

from __future__ import annotations

import os
import sys

import typer

from holdfast.conformance.run.settings import REFERENCE


def reference(context: typer.Context) -> None:
    """Run the reference implementation's own commands: provision, adapter, mutants, launch (`--help` lists them)."""
    sys.stdout.flush()
    sys.stderr.flush()
    # It takes the place of this process, so a signal to this process ends the reference.
    os.execv(REFERENCE[0], [*REFERENCE, *context.args])  # noqa: S606 - no shell, and the arguments are the user's own
