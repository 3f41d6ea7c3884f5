"""`holdfast vectors lint`: the committed vectors. It needs no Spark."""

from __future__ import annotations

from typing import Annotated

import typer

from holdfast.conformance.cli.console import Format, out, print_json
from holdfast.conformance.verdict import Exit


def lint(format_: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT) -> None:
    """Check the committed vectors: shapes, ids, twins, near misses, and every expected value that can be computed."""
    from holdfast.vectors.lint import lint as problems_of

    problems = [str(problem) for problem in problems_of()]
    if format_ is Format.JSON:
        print_json({"problems": problems})
    else:
        for problem in problems:
            out().print(problem, markup=False)
        out().print(f"vectors: {len(problems)} problems")
    raise typer.Exit(int(Exit.KIT if problems else Exit.OK))
