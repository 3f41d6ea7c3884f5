"""The target of a run: `reference`, or the command after `--`."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from holdfast.conformance.cli.console import stop
from holdfast.conformance.verdict import Exit

REFERENCE = (sys.executable, "-P", "-m", "holdfast.reference_impl")


# As the protocol's schema has the names of a session's config.
_CONFIG_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, slots=True)
class Target:
    """The adapter's argument list and its launcher's. `is_reference` where the word `reference` stands for both."""

    adapter: tuple[str, ...]
    launcher: tuple[str, ...]
    name: str
    is_reference: bool = False
    # See `RunSettings.nursery`.
    nursery: tuple[str, ...] = ()


def target_of(words: Sequence[str], *, launcher: str | None = None) -> Target:
    """Read the arguments after the options. Ends with a usage error when they name no adapter."""
    if not words:
        stop(
            Exit.USAGE,
            "expected something to verify, got nothing; "
            "say `holdfast verify reference`, or `holdfast verify -- ./my-adapter` with your adapter's command",
        )
    if list(words) == ["reference"] and "--" not in sys.argv:
        return reference_target()
    if "--" not in sys.argv:
        stop(
            Exit.USAGE,
            f"expected `reference` or `-- COMMAND…`, got {' '.join(words)!r}; put `--` before the adapter's command",
        )
    return Target(tuple(words), () if launcher is None else _split(launcher), words[0])


def found_here(command: Sequence[str]) -> tuple[str, ...]:
    """The command as it can be run from any folder. Ends with a message if this machine does not have its program."""
    program, *arguments = command
    if shutil.which(program) is None:
        # Only a name with a slash is searched here; every other name must be on PATH.
        if "/" in program and Path(program).is_dir():
            stop(Exit.ADAPTER, f"{program!r} is a folder; give the path of a program in it")
        if "/" in program and Path(program).exists():
            advice = f"allow that (chmod +x {shlex.quote(program)}), or name what runs it before it"
            stop(Exit.ADAPTER, f"{program!r} is there and may not be executed; {advice}")
        stop(Exit.ADAPTER, f"{program!r} is no program here; give a path (./my-program) or a program on PATH")
    return (str(Path(program).absolute()) if "/" in program else program, *arguments)


def _split(command: str) -> tuple[str, ...]:
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        stop(Exit.USAGE, f"--launcher: expected a command as a shell reads it, got {command!r}: {error}")
    if not words or not words[0]:
        # Without one the run would differ from the requested one.
        stop(Exit.USAGE, f"--launcher: expected a command, got {command!r}; leave the option out if there is none")
    return words


def reference_target(*, mutant: str | None = None) -> Target:
    """The reference, or one of its mutants, behind an adapter process, as every implementation."""
    bug = ("--mutant", mutant) if mutant else ()
    adapter, launcher, nursery = ((*REFERENCE, word) for word in ("adapter", "launch", "nursery"))
    return Target((*adapter, *bug), (*launcher, *bug), mutant or "reference", not mutant, (*nursery, "--keep"))


def config_of(pairs: Sequence[str]) -> dict[str, str]:
    """The `--config NAME=VALUE` options as a mapping. Ends with a usage error if one has another form."""
    parsed: dict[str, str] = {}
    for pair in pairs:
        name, found, value = pair.partition("=")
        if not found or _CONFIG_NAME.fullmatch(name) is None:
            # Only the name: the value may be a secret.
            stop(Exit.USAGE, f"expected --config name=VALUE with a name in lower case, got the name {name[:40]!r}")
        parsed[name] = value
    return parsed
