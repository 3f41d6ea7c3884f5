"""The target of a run: `reference`, or the command after `--`."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any
from urllib.parse import urlsplit

import typer

from holdfast import lacking
from holdfast.conformance.cli.console import ending, stop
from holdfast.conformance.run.settings import REFERENCE, RunSettings
from holdfast.conformance.verdict import Exit
from holdfast.servers.pace import SLOW_VARIABLE

_BRIDGE = (sys.executable, "-P", "-m", "holdfast.conformance.adapter.bridge")
_AROUND = (sys.executable, "-P", "-m", "holdfast.conformance.adapter.service")

Launcher = Annotated[str | None, typer.Option("--launcher", help="command that provisions what the adapter needs")]
Service = Annotated[
    Path | None,
    typer.Option("--service", metavar="FILE", help="an HTTP service and what it promises, as service.toml says"),
]
# As the protocol's schema has the names of a session's config.
_CONFIG_NAME = re.compile(r"[a-z][a-z0-9_]*")


@dataclass(frozen=True, kw_only=True)
class TargetOptions:
    """The options of every command that speaks with an adapter."""

    context: typer.Context
    launcher: Launcher = None
    url: Annotated[
        str | None,
        typer.Option("--url", metavar="URL", help="ask over HTTP what listens there; no process of it is ended"),
    ] = None
    start: Annotated[
        str | None,
        typer.Option(
            "--start",
            metavar="COMMAND",
            help="start a server for each worker, at {port} or $PORT, and ask it over HTTP",
        ),
    ] = None
    config: Annotated[list[str] | None, typer.Option("--config", help="K=V for every session; repeat for more")] = None
    slow: Annotated[
        float,
        typer.Option(
            "--slow", envvar=SLOW_VARIABLE, show_envvar=False, min=0.01, max=1000, help="factor on every deadline"
        ),
    ] = 1.0
    pass_env: Annotated[
        list[str] | None, typer.Option("--pass-env", help="environment variable the adapter may see; repeat")
    ] = None

    @cached_property
    def target(self) -> Target:
        """What is asked. Ends with a usage error if the command line names nothing."""
        # An option of two commands.
        service: Path | None = getattr(self, "service", None)
        target = target_of(self.context.args, launcher=self.launcher, url=self.url, start=self.start, service=service)
        if target.is_reference:
            # One contract, several, or none.
            named: Sequence[str] | str | None = getattr(self, "contract", None)
            require_reference([named] if isinstance(named, str) else named or ())
        return target

    def settings_for(self, contracts: Iterable[str], *, seed: str, **more: Any) -> RunSettings:
        """The settings of a run of the target. Ends with a usage error for a config of another form, or a package that
        the contracts need and that is not installed."""
        from holdfast.conformance.run.plan import with_plan
        from holdfast.specs import SpecError

        asked = tuple(contracts)
        with ending(Exit.USAGE, SpecError):
            extras = {with_plan(name).extra for name in asked}
        for extra in extras:
            if extra is not None:
                require(extra)
        return RunSettings(
            adapter=self.target.adapter,
            contracts=asked,
            seed=seed,
            launcher=self.target.launcher,
            config=config_of(self.config or ()),
            slow=self.slow,
            passed_environment=tuple(self.pass_env or ()),
            **more,
        )


@dataclass(frozen=True, slots=True)
class Target:
    """The adapter's argument list and its launcher's. `is_reference` where the word `reference` stands for both."""

    adapter: tuple[str, ...]
    launcher: tuple[str, ...]
    is_reference: bool = False
    # See `RunSettings.forkserver`.
    forkserver: tuple[str, ...] = ()
    # It is a server that the kit's own adapter asks: whether it can be asked is another question than what it is.
    is_server: bool = False
    # The options that name a server, as the user typed them; empty for a command.
    typed: tuple[str, ...] = ()


def target_of(
    words: Sequence[str],
    *,
    launcher: str | None = None,
    url: str | None = None,
    start: str | None = None,
    service: Path | None = None,
) -> Target:
    """Read the arguments after the options. Ends with a usage error when they name no adapter."""
    if service is not None:
        if words or url is not None or start is not None:
            stop(Exit.USAGE, "expected --service alone: its file says where the service is, and how it is started")
        return _around(service)
    if url is not None or start is not None:
        return _over_http(words, launcher, url, start)
    if not words:
        stop(
            Exit.USAGE,
            "expected something to verify, got nothing; "
            "say `holdfast verify reference`, `holdfast verify -- ./my-adapter` with your adapter's command, or "
            "`holdfast verify --start COMMAND` for a server that is asked over HTTP, or "
            "`holdfast verify --service FILE` for a service with an Idempotency-Key",
        )
    if list(words) == ["reference"] and "--" not in sys.argv:
        return reference_target()
    if "--" not in sys.argv:
        stop(
            Exit.USAGE,
            f"expected `reference` or `-- COMMAND…`, got {' '.join(words)!r}; put `--` before the adapter's command",
        )
    return Target(tuple(words), () if launcher is None else words_of("--launcher", launcher))


def _over_http(words: Sequence[str], launcher: str | None, url: str | None, start: str | None) -> Target:
    """An implementation that is asked over HTTP, behind an adapter of the kit's own."""
    # Most commands have a target, and few of them ask over HTTP.
    from holdfast.conformance.adapter.bridge import LOOPBACK, PORT

    if words:
        stop(Exit.USAGE, f"expected --url and --start alone, or a command, got both: {' '.join(words)!r}")
    place = LOOPBACK if url is None else url
    try:
        parts = urlsplit(place.replace(PORT, "1"))
        known = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        known = False
    if not known or parts.path not in ("", "/") or parts.query or parts.username:
        stop(Exit.USAGE, f"--url: expected http://HOST:PORT, got {place!r}; the paths are those of the contract")
    command = () if start is None else words_of("--start", start)
    if command and PORT not in place:
        stop(
            Exit.USAGE,
            f"--start: each worker has a server of its own, so expected {PORT} in --url, got {place!r}; leave --url "
            f"out, and let the server listen at the port in {PORT} of its command, or in the variable PORT",
        )
    if PORT in place and not command:
        stop(Exit.USAGE, f"--url: expected a port, got {place!r}; {PORT} is the port of a server that --start starts")
    started = ("--start", shlex.join(command)) if command else ()
    adapter = (*_BRIDGE, "--url", place.rstrip("/"), *started)
    typed = (*(() if url is None else ("--url", url)), *(() if start is None else ("--start", start)))
    return Target(adapter, () if launcher is None else words_of("--launcher", launcher), is_server=True, typed=typed)


def _around(file: Path) -> Target:
    """A service behind the kit's own adapter for it. A mistake in its file is said before anything is started."""
    from holdfast.servers.wires.profile import ProfileError, read

    try:
        read(file)
    except ProfileError as error:
        stop(Exit.USAGE, f"--service: {error}")
    return Target((*_AROUND, str(file.absolute())), (), is_server=True, typed=("--service", str(file)))


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


def words_of(option: str, command: str) -> tuple[str, ...]:
    """A command as a shell reads it. Ends with a usage error if it is none."""
    try:
        words = tuple(shlex.split(command))
    except ValueError as error:
        stop(Exit.USAGE, f"{option}: expected a command as a shell reads it, got {command!r}: {error}")
    if not words or not words[0]:
        # Without one the run would differ from the requested one.
        stop(Exit.USAGE, f"{option}: expected a command, got {command!r}; leave the option out if there is none")
    return words


def require(extra: str) -> None:
    """End with a usage error where a package of the extra is not installed."""
    if said := lacking(extra):
        stop(Exit.USAGE, f"{said}; nothing was proven")


def require_reference(names: Sequence[str]) -> None:
    """`require` what the references of these contracts need, all of them if none is named.

    One that another distribution brings has its own requirements.
    """
    from holdfast.specs.registry import contracts

    found = [contracts()[name] for name in names if name in contracts()]
    if not found or any(each.distribution is None for each in found):
        require("reference")


def reference_target(*, mutant: str | None = None) -> Target:
    """The reference, or one of its mutants, behind an adapter process, as every implementation."""
    bug = ("--mutant", mutant) if mutant else ()
    adapter, launcher, forkserver = ((*REFERENCE, word) for word in ("adapter", "launch", "forkserver"))
    return Target((*adapter, *bug), (*launcher, *bug), not mutant, (*forkserver, "--keep"))


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


def known_contracts(names: Iterable[str]) -> tuple[str, ...]:
    """The names, each once. Ends with a usage error for one that is no contract."""
    # `holdfast crash` has a target and no contract.
    from holdfast.specs import SpecError
    from holdfast.specs.registry import installed

    with ending(Exit.USAGE, SpecError):
        for name in names:
            installed(name)
    return tuple(dict.fromkeys(names))
