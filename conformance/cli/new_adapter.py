"""`holdfast new-adapter`: an adapter to be filled in, in one of five languages. `holdfast new-contract`: a contract."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from holdfast.conformance.cli.console import ending, out, stop
from holdfast.conformance.cli.target import known_contracts
from holdfast.conformance.starting.write import (
    COMMANDS,
    LANGUAGES,
    FolderError,
    below,
    is_name,
    write_adapter,
    write_contract,
)
from holdfast.conformance.verdict import Exit
from holdfast.specs import load_contract
from holdfast.specs.errors import unknown
from holdfast.specs.registry import NAME, contracts, unusable


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


def new_contract(
    name: Annotated[str, typer.Argument(help="of the contract: words in lower case, joined by hyphens")],
    folder: Annotated[Path, typer.Argument(help="a new or an empty folder")],
) -> None:
    """Write a contract of your own as the project of a package: whole, small, and to be changed into yours."""
    if NAME.fullmatch(name) is None:
        stop(Exit.USAGE, f"expected a name in lower case, as `counter` or `acme-counter`, got {name!r}")
    if name in {*contracts(), *unusable()}:
        stop(Exit.USAGE, f"expected the name of a new contract, got {name!r}, which is installed; choose another one")
    with ending(Exit.USAGE, FolderError):
        made = write_contract(name, folder)
    for path in made:
        out().print(str(path))
    steps = [f"pip install -e {folder}"]
    steps += [f"holdfast {command} --contract {name}" for command in ("lint specs", "verify reference", "selfcheck")]
    out().print(f"next: {' && '.join(steps)}")
