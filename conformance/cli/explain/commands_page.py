"""The page of every command in docs/, made from the command line itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.conformance.cli.commands import app
from holdfast.conformance.cli.group import Group, load

# Below docs/.
PAGE = "commands.md"


def commands_page() -> str:
    """The page as Markdown."""
    return "\n".join(_page()).rstrip() + "\n"


def _page() -> Iterator[str]:
    yield from (
        "# Commands",
        "",
        "<!-- Written by `holdfast explain --write docs`. Change conformance/cli/ and run it again. -->",
    )
    yield from ("", "Every command uses the same exit statuses ([verdicts.md](verdicts.md)). `--help` prints the same.")
    kind = app.info.cls
    assert isinstance(kind, type)
    assert issubclass(kind, Group)
    yield from _commands(kind, "holdfast")


def _commands(group: type[Group], prefix: str) -> Iterator[str]:
    for name, entry in group.entries.items():
        command = load(name, entry)
        words = f"{prefix} {name}"
        if isinstance(command, Group):
            yield from ("", f"## {words}", "", _line(entry.summary))
            yield from _commands(type(command), words)
        elif not entry.settings.get("ignore_unknown_options"):
            yield from _command(words, command)


def _command(words: str, command: Any) -> Iterator[str]:
    yield from ("", f"## {words}", "", _line(command.help or ""))
    rows = [row for row in map(_row, command.params) if row is not None]
    if rows:
        yield from ("", "| option | meaning |", "|---|---|", *rows)


def _row(parameter: Any) -> str | None:
    if "--help" in parameter.opts:
        return None
    if parameter.param_type_name == "argument":
        name = parameter.name.upper()
    else:
        name = ", ".join((*parameter.opts, *parameter.secondary_opts))
        name += "" if parameter.is_flag else f" {parameter.metavar or 'VALUE'}"
    return f"| `{name}` | {_line(getattr(parameter, 'help', None) or '').replace('|', chr(92) + '|')} |"


def _line(text: str) -> str:
    return " ".join(text.split())
