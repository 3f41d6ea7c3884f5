"""`holdfast vectors lint` and `regenerate`: the committed vectors. They need no Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.conformance.cli.console import Format, out, print_json, stop
from holdfast.conformance.verdict import Exit


def lint(format_: Annotated[Format, typer.Option("--format", help="text or json")] = Format.TEXT) -> None:
    """Check the committed vectors: shapes, ids, twins, near misses, and that the files are what the program writes."""
    from holdfast.vectors.lint import lint as problems_of

    problems = [str(problem) for problem in problems_of()]
    if format_ is Format.JSON:
        print_json({"problems": problems})
    else:
        for problem in problems:
            out().print(problem, markup=False)
        out().print(f"vectors: {len(problems)} problems")
    raise typer.Exit(int(Exit.KIT if problems else Exit.OK))


def regenerate(
    folder: Annotated[Path | None, typer.Option("--out", help="write here instead of over the installed data")] = None,
    check: Annotated[bool, typer.Option("--check", help="write nothing; exit 20 if a file would change")] = False,
) -> None:
    """Write the committed vectors again from the program that makes them; the files must come out byte for byte."""
    from holdfast.vectors.committed import FOLDER, files

    data = folder or FOLDER
    changed = []
    try:
        for name, content in files().items():
            path = data / name
            if path.is_file() and path.read_bytes() == content:
                continue
            changed.append(name)
            if not check:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content)
    except OSError as error:
        stop(Exit.USAGE, f"{data}: expected a folder that can be read and written, got: {error}; name another --out")
    for name in changed:
        out().print(f"{'differs' if check else 'wrote'} {name}", markup=False)
    out().print(f"{len(changed)} files {'differ' if check else 'written'}, the others are as they should be")
    raise typer.Exit(int(Exit.KIT if check and changed else Exit.OK))
