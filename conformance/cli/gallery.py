"""`holdfast gallery`: published libraries, each behind a small service, and what the contract shows of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

import holdfast
from holdfast.conformance.cli.console import out, stop
from holdfast.conformance.gallery.page import FOLDER, INDEX, Audience, facts_of, page
from holdfast.conformance.gallery.page import table as table_of
from holdfast.conformance.gallery.running import TRIES, EntryError, RunError, installed, names, read
from holdfast.conformance.gallery.running import run as run_entry
from holdfast.conformance.verdict import Exit, Verdict, exit_of, gravest

_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "holdfast" / FOLDER
Write = Annotated[
    Path | None, typer.Option("--write", metavar="FOLDER", help="write it to FOLDER/gallery, with all that was found")
]
Publish = Annotated[
    Path | None,
    typer.Option("--publish", metavar="FOLDER", help="write what its documentation states to FOLDER/gallery, as docs"),
]


def run(
    name: Annotated[str, typer.Argument(help="an entry, as `holdfast gallery list` names it")],
    write: Write = None,
    publish: Publish = None,
    folder: Annotated[Path, typer.Option(help="where entries are installed")] = _CACHE,
    seed: Annotated[str, typer.Option(help="fixes keys and bodies")] = "gallery",
) -> Exit:
    """Install an entry from the public registries, verify it, and what does not conform twice more."""
    try:
        entry = read(name)
        ran = run_entry(installed(name, entry, folder), [f"{seed}-{number}" for number in range(TRIES)])
    except EntryError as error:
        stop(Exit.USAGE, str(error))
    except (RunError, OSError) as error:
        stop(Exit.ADAPTER, f"not proven: {error}")
    if write is None and publish is None:
        print(page(name, entry, ran, version=holdfast.__version__))
    for parent, audience in ((write, Audience.LOCAL), (publish, Audience.PUBLIC)):
        if parent is not None:
            (parent / FOLDER).mkdir(parents=True, exist_ok=True)
            text = page(name, entry, ran, version=holdfast.__version__, audience=audience)
            (parent / FOLDER / f"{name}.md").write_text(text, encoding="utf-8")
            out().print(f"wrote {parent / FOLDER / name}.md")
    return gravest(exit_of(Verdict(verdict)) for verdict in ran.verdicts.values())


def list_() -> None:
    """The entries, each with its library and its store."""
    found = Table("entry", "language", "library", "store", show_edge=False)
    for name in names():
        entry = read(name)
        found.add_row(name, entry.language, f"{entry.package} {entry.version}", entry.store)
    out().print_table(found)


def table(
    write: Write = None,
    pages: Annotated[Path, typer.Option(help="the folder with the pages of earlier runs")] = Path("docs") / FOLDER,
) -> None:
    """The table of all pages that `run` has written."""
    found = facts_of(pages)
    if not found:
        stop(Exit.USAGE, f"expected pages in {pages}, found none; `holdfast gallery run NAME --write docs` writes one")
    text = table_of(found)
    if write is None:
        print(text)
        return
    (write / FOLDER / INDEX).write_text(text, encoding="utf-8")
    out().print(f"wrote {write / FOLDER / INDEX}")
