"""The commands of `holdfast vectors` and `holdfast vectors sdk`, and the module of each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import typer

from holdfast.conformance.cli.group import REST, Entry, Group


class _Vectors(Group):
    entries: ClassVar[Mapping[str, Entry]] = {
        "generate": Entry("vectors.generate:generate"),
        "verify": Entry("vectors.verify:verify", settings=REST),
        "es6": Entry("vectors.es6:es6"),
        "parity": Entry("vectors.parity:parity"),
        "show": Entry("vectors.show:show", settings=REST),
        "sdk": Entry("vectors.commands:sdk"),
        "lint": Entry("lint:vectors"),
        "fingerprints": Entry("vectors.fingerprints:fingerprints"),
    }


class _Sdk(Group):
    entries: ClassVar[Mapping[str, Entry]] = {
        "list": Entry("vectors.sdk:list_"),
        "build": Entry("vectors.sdk:build"),
        "run": Entry("vectors.sdk:run"),
    }


app = typer.Typer(name="vectors", cls=_Vectors, no_args_is_help=True, add_completion=False)
sdk = typer.Typer(name="sdk", cls=_Sdk, no_args_is_help=True, add_completion=False)


@app.callback()
def _vectors() -> None:
    """Canonicalisation vectors (RFC 8785) by the million: generate them, and verify SDKs in any language on them."""


@sdk.callback()
def _sdk() -> None:
    """SDK runners in six languages: list, build, run."""
