"""A command whose options say one thing each: what stands twice on its line is refused, not read as the last one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import typer
from typer.core import TyperCommand


class OnceCommand(TyperCommand):
    """A command in which a word that a script appends cannot replace what was asked for before."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See `click.Command`. Raises click.UsageError."""
        # An error in the words themselves is reported by the command's own reading.
        with ctx.scope(cleanup=False):
            parser = self.make_parser(ctx)
            parser.ignore_unknown_options = True
            try:
                _, _, order = parser.parse_args(args=list(args))
            except Exception:  # click's own error, in the words of the reading below
                order = []
        counted: Counter[Any] = Counter(order)
        for parameter, times in counted.items():
            takes_one = parameter.param_type_name == "option" and not (parameter.multiple or parameter.is_flag)
            if times > 1 and takes_one:
                raise typer.BadParameter(
                    f"expected {parameter.opts[0]} once, got it {times} times; leave one", ctx=ctx, param=parameter
                )
        return super().parse_args(ctx, args)
