"""The commands of `holdfast vectors` and `holdfast vectors sdk`, and the module of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from holdfast.conformance.cli.group import REST, Entry, Group


class _Vectors(Group):
    entries: ClassVar[Mapping[str, Entry]] = {
        "generate": Entry(
            "vectors.generate:generate",
            "Generate documents with their expected canonical bytes, as Parquet with a manifest.",
        ),
        "verify": Entry(
            "vectors.verify:verify",
            "Verify an SDK on every row: `holdfast vectors verify --count 1000000 -- COMMAND…`, or `--sdk NAME`.",
            settings=REST,
        ),
        "es6": Entry(
            "vectors.es6:es6",
            "Make the first N lines of the published ECMAScript number stream and compare their SHA-256.",
        ),
        "parity": Entry(
            "vectors.parity:parity",
            "Compare all canonicalisers found on this machine over the same generated documents.",
        ),
        "show": Entry(
            "vectors.show:show",
            "Show one document, what each profile expects of it, and with `--sdk NAME` or `-- COMMAND…` what an SDK "
            "answers.",
            settings=REST,
        ),
        "sdk": Entry("vectors.commands:sdk", "SDK runners in six languages: list, build, run."),
        "lint": Entry(
            "lint:vectors",
            "Check the committed vectors: shapes, ids, twins, near misses, and every expected value that can be "
            "computed.",
        ),
        "fingerprints": Entry(
            "vectors.fingerprints:fingerprints",
            "Show that no two distinct requests share a fingerprint or key, and that no equal ones differ.",
        ),
    }


class _Sdk(Group):
    entries: ClassVar[Mapping[str, Entry]] = {
        "list": Entry("vectors.sdk:list_", "List every runner, and what is missing of those that cannot run here."),
        "build": Entry(
            "vectors.sdk:build",
            "Build runners from their locked versions. Exit 12 if one could not be built: it stays unproven.",
        ),
        "run": Entry(
            "vectors.sdk:run",
            "Be the runner NAME: frames on standard input, frames on standard output, until end of file.",
        ),
    }


app = typer.Typer(name="vectors", cls=_Vectors, no_args_is_help=True, add_completion=False)
sdk = typer.Typer(name="sdk", cls=_Sdk, no_args_is_help=True, add_completion=False)


@app.callback()
def _vectors() -> None:
    """Canonicalisation vectors (RFC 8785) by the million: generate them, and verify SDKs in any language on them."""


@sdk.callback()
def _sdk() -> None:
    """SDK runners in six languages: list, build, run."""
