"""`holdfast new-adapter`: an adapter to be filled in, in one of five languages."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.conformance.cli.console import ending, out, stop
from holdfast.conformance.cli.target import known_contracts
from holdfast.conformance.starting.write import COMMANDS, LANGUAGES, FolderError, below, is_name, write_adapter
from holdfast.conformance.verdict import Exit
from holdfast.specs import load_contract
from holdfast.specs.errors import unknown


def new_adapter(
    contract: Annotated[str, typer.Option("--contract", help="the contract that your implementation keeps")],
    lang: Annotated[str, typer.Option("--lang", help=f"one of {', '.join(LANGUAGES)}")],
    role: Annotated[
        list[str] | None, typer.Option(help="only this role of it, as `holdfast explain CONTRACT` lists them; repeat")
    ] = None,
    folder: Annotated[Path, typer.Argument(help="a new or an empty folder")] = Path("adapter"),
    name: Annotated[str | None, typer.Option(help="what your implementation is called; else as the folder")] = None,
) -> None:
    """Write an adapter to be filled in: Python, Node, Go, Rust or Java."""
    known_contracts([contract])
    if lang not in LANGUAGES:
        stop(Exit.USAGE, f"--lang: {unknown('language', lang, LANGUAGES)}")
    loaded = load_contract(contract)
    for each in role or ():
        if each not in loaded.roles:
            stop(Exit.USAGE, f"--role: {unknown('role', each, loaded.roles)} in {contract}")
    called = folder.absolute().name if name is None else name
    if not is_name(called):
        what = "letters, digits, dots, underscores and hyphens after a letter"
        stop(Exit.USAGE, f"expected a name of {what}, got {called!r}; give one with --name")
    with ending(Exit.USAGE, FolderError):
        made = write_adapter(loaded, lang, folder, name=called, roles=role or ())
    for path in made:
        out().print(str(path))
    if place := below(folder):
        out().print(
            "GitHub and GitLab read their files at the root of a repository alone: move "
            f"{place}/.github/workflows/holdfast.yml to .github/workflows/ there, and list {place}/.gitlab-ci.yml in "
            f"`include: local:` of .gitlab-ci.yml. Their steps work in {place}."
        )
    commands = COMMANDS[lang]
    steps = [f"cd {folder}", *([commands["build"]] if commands["build"] else [])]
    out().print(f"next: {' && '.join(steps)} && holdfast smoke --contract {contract} -- {commands['start']}")
