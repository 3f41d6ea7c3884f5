"""`holdfast reference …`: hands its words to the reference implementation, which is a program of its own."""

from __future__ import annotations

import subprocess

import typer

from conformance.cli.target import REFERENCE
from conformance.verdict import Exit


def reference(context: typer.Context) -> None:
    """Run the reference implementation's own commands: provision, adapter, mutants, launch (`--help` lists them)."""
    try:
        status = subprocess.run([*REFERENCE, *context.args], check=False).returncode
    except KeyboardInterrupt:
        status = int(Exit.INCOMPLETE)
    # 2 is how argument parsers say "usage"; holdfast's own table says 64.
    raise typer.Exit(int(Exit.USAGE) if status == 2 else status)
