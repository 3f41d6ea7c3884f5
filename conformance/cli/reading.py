"""Reads the arguments of a command line."""

from __future__ import annotations

from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand

# typer has click within it or beside it, as its version goes; an option that is unknown has no class of typer's own.
_USAGE_ERROR: type[Exception] = typer.BadParameter.__mro__[1]


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
