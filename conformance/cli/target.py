"""What is to be verified: `reference`, or the command behind `--`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from conformance.cli.console import stop
from conformance.verdict import Exit

REFERENCE = (sys.executable, "-P", "-m", "reference_impl")


@dataclass(frozen=True, slots=True)
class Target:
    """The adapter's argument list and, for the reference, its launcher."""

    adapter: tuple[str, ...]
    launcher: tuple[str, ...]
    name: str


def target_of(words: Sequence[str], *, store: str = "postgres", launcher: str | None = None) -> Target:
    """Read the words that follow the options. Ends with a usage error when they name nothing."""
    if not words:
        stop(
            Exit.USAGE,
            "expected something to verify, got nothing; "
            "say `holdfast verify reference`, or `holdfast verify -- ./my-adapter` with your adapter's command",
        )
    if list(words) == ["reference"] and "--" not in sys.argv:
        return reference_target(store=store)
    if "--" not in sys.argv:
        stop(
            Exit.USAGE,
            f"expected `reference` or `-- COMMAND…`, got {' '.join(words)!r}; put `--` before the adapter's command",
        )
    return Target(tuple(words), tuple(launcher.split()) if launcher else (), words[0])


def reference_target(*, store: str, mutant: str | None = None) -> Target:
    """The reference, or one of its mutants, behind the same adapter process as everyone else."""
    bug = ("--mutant", mutant) if mutant else ()
    launch = ("launch", "--contract", "rs4a-replay", "--store", store)
    return Target((*REFERENCE, "adapter", *bug), (*REFERENCE, *launch, *bug), mutant or "reference")
