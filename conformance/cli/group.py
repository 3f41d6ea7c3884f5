"""Groups of commands. A module is imported when its command is called, so that no other command waits for it."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command

from holdfast.conformance.verdict import Exit

# typer has click within it or beside it, as its version goes; an option that is unknown has no class of typer's own.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]
# The arguments after `--` belong to the adapter, its options included.
REST: Mapping[str, Any] = {"allow_extra_args": True, "ignore_unknown_options": False}


class OnceCommand(TyperCommand):
    """A command in which an option with one value stands once.

    An argument that a script appends cannot replace an earlier value.
    """

    def make_parser(self, ctx: Any) -> Any:
        """See `click.Command`. The parser raises click.UsageError."""
        parser: Any = super().make_parser(ctx)
        read = parser.parse_args

        def parse_args(args: list[str]) -> tuple[dict[str, Any], list[str], list[Any]]:
            order: list[Any]
            values, rest, order = read(args)
            for parameter, times in Counter(order).items():
                takes_one = parameter.param_type_name == "option" and not (parameter.multiple or parameter.is_flag)
                if times > 1 and takes_one:
                    raise typer.BadParameter(
                        f"expected {parameter.opts[0]} once, got it {times} times; leave one", ctx=ctx, param=parameter
                    )
            return values, rest, order

        parser.parse_args = parse_args
        return parser


class QuietCommand(OnceCommand):
    """A command whose errors do not repeat a wrong argument, because it may hold a password."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See `click.Command`. Raises click.UsageError."""
        given = list(args)
        try:
            return super().parse_args(ctx, args)
        except _USAGE_ERROR:
            from holdfast.conformance.fitness.target import holds_secret

            if not any(map(holds_secret, given)):
                raise
            raise typer.BadParameter(
                "one of these words is no option, or not what its option expects; it is not shown, because one of them "
                "may hold a password",
                ctx=ctx,
            ) from None


_Options = TypeVar("_Options")


def with_options(kind: Callable[..., _Options]) -> Callable[[Callable[[_Options], Exit]], Callable[..., Exit]]:
    """A command that takes its arguments and options as one object: each field of the dataclass `kind` is one.

    Its own come first in the help, and then those that it inherits.
    """
    hints = get_type_hints(kind, include_extras=True)
    signature = inspect.signature(kind)
    fields = [one.replace(annotation=hints[one.name]) for one in signature.parameters.values()]
    fields.sort(key=lambda one: one.name not in kind.__annotations__)

    def made(command: Callable[[_Options], Exit]) -> Callable[..., Exit]:
        @wraps(command)
        def call(**given: Any) -> Exit:
            return command(kind(**given))

        call.__annotations__ = hints
        call.__signature__ = signature.replace(parameters=fields)  # type: ignore[attr-defined]
        return call

    return made


class LoadError(Exception):
    """The module of a command cannot be imported."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is: `module:function` below this package."""

    where: str
    reads: type[TyperCommand] = OnceCommand
    settings: Mapping[str, Any] = field(default_factory=dict)

    @property
    def summary(self) -> str:
        """The first paragraph of its help, for the list of commands: read, because an import takes long."""
        module, _, name = self.where.partition(":")
        text = Path(__file__).parent.joinpath(*module.split(".")).with_suffix(".py").read_text(encoding="utf-8")
        return " ".join(text.partition(f"\ndef {name}(")[2].split('"""')[1].split("\n\n")[0].split())


@dataclass(frozen=True, slots=True)
class Branch:
    """Commands of one subject, in the order in which they are listed."""

    summary: str
    entries: Mapping[str, Entry | Branch]


class Group(TyperGroup):
    """A group whose commands are in `entries`."""

    entries: Mapping[str, Entry | Branch]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """See `click.Group`."""
        return list(self.entries)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002
        """Describe a command for the list of commands. It cannot be called; `resolve_command` has the one that can."""
        entry = self.entries.get(cmd_name)
        return None if entry is None else TyperCommand(cmd_name, help=entry.summary)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """See `click.Group`. Raises click.UsageError, LoadError."""
        if args and not args[0].startswith("-") and args[0] not in self.entries:
            from holdfast.specs.errors import meant

            ctx.fail(f"no such command: {args[0]!r}{meant(args[0], self.entries)}")
        name, _, rest = super().resolve_command(ctx, args)
        return name, None if name is None else load(name, self.entries[name]), rest


def load(name: str, entry: Entry | Branch) -> Any:
    """The command or group, ready to be called. Raises LoadError where a command cannot be imported."""
    if isinstance(entry, Branch):
        group = Group(name=name, help=entry.summary, no_args_is_help=True)
        group.entries = entry.entries
        return group
    module, _, attribute = entry.where.partition(":")
    try:
        found = getattr(import_module(f"holdfast.conformance.cli.{module}"), attribute)
    except MemoryError:
        raise
    except Exception as error:
        raise LoadError(f"{type(error).__name__}: {error}") from error

    @wraps(found)
    def call(*words: Any, **options: Any) -> None:
        # A command without a result ends with 0.
        if (status := found(*words, **options)) is not None:
            raise typer.Exit(int(status))

    single = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    single.command(name, cls=entry.reads, context_settings=dict(entry.settings))(call)
    return get_command(single)
