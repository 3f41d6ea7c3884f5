"""The documentation: it is built without a warning, its commands exist, and its how-to pages can be followed."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.conformance.cli.commands import app
from holdfast.conformance.cli.explain.commands_page import PAGE, commands_page
from holdfast.conformance.cli.group import Group, load
from tests.hostile.verify import environment

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^ *```(\w*)[^\n]*\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(holdfast [a-z][^`\n]*)`")
LIMIT_S = 120.0


def in_blocks(page: Path) -> Iterator[str]:
    """Every command of holdfast that a block of a page shows: a reader is to type it."""
    for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")):
        if kind in ("", "sh", "bash", "console"):
            for line in body.replace("\\\n", " ").splitlines():
                found = re.match(r"(?:\$ )?(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(holdfast [a-z].*)", line.strip())
                if found:
                    yield found.group(1)


def commands_of(page: Path) -> Iterator[str]:
    """Every command of holdfast that a page shows, in a block or in a line."""
    yield from in_blocks(page)
    yield from INLINE.findall(BLOCK.sub("", page.read_text(encoding="utf-8")))


def words_of(shown: str) -> list[str]:
    """A command as words, without what stands for several, for a part that is left open, or behind a pipe."""
    text = re.sub(r"\s+#.*$", "", shown).replace("…", "")
    text = re.sub(r"\[[^\]]*\]|\b(\w+)(?:\|\w+)+", r"\1", text)
    words = shlex.split(text)
    ends = [at for at, word in enumerate(words) if word in ("|", "||", "&&", ">", ";")]
    return words[: min(ends, default=len(words))]


def words_in(node: ast.AST) -> set[str]:
    """Every word of every text in it."""
    texts = [each.value for each in ast.walk(node) if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return {word.strip("`") for text in texts for word in text.split()}


def words_of_tests(module: Path) -> Iterator[set[str]]:
    """For each test of a module its words, with those of what is no test: its helpers and constants."""
    body = ast.parse(module.read_text(encoding="utf-8")).body
    tests = [each for each in body if isinstance(each, ast.FunctionDef) and each.name.startswith("test_")]
    shared = {word for each in body if each not in tests for word in words_in(each)}
    yield from (words_in(each) | shared for each in tests)


# Shown because it is wrong.
MISSPELT = "holdfast verfy"
SHOWN = sorted(
    {(page.relative_to(ROOT).as_posix(), command) for page in PAGES for command in commands_of(page)}
    - {("docs/evidence.md", MISSPELT)}
)


def parsed(words: list[str]) -> set[str]:
    """The names of the command and its options. Raise AssertionError if the command line has no such one."""
    named: set[str] = set()
    kind = app.info.cls
    assert isinstance(kind, type)
    assert issubclass(kind, Group)
    entries, command = kind.entries, None
    while words and command is None:
        name = words.pop(0)
        named.add(name)
        assert name in entries, f"no command {name!r}"
        entry = entries[name]
        loaded = load(name, entry)
        if isinstance(loaded, Group):
            entries = type(loaded).entries
            continue
        if entry.settings.get("ignore_unknown_options"):
            return named
        command = loaded
    if command is None:
        return named
    known = {option for each in command.params for option in (*each.opts, *each.secondary_opts)} | {"--help"}
    for word in words[: words.index("--")] if "--" in words else words:
        if word.startswith("-") and word != "-":
            assert word.partition("=")[0] in known, f"{command.name} has no option {word}"
            named.add(word.partition("=")[0])
    return named


@pytest.mark.parametrize(("page", "shown"), SHOWN)
def test_a_command_that_a_page_shows_is_one_of_the_command_line(page: str, shown: str) -> None:
    parsed(words_of(shown)[1:])


def test_a_command_in_a_block_is_one_that_a_test_names_with_these_options() -> None:
    # Blocks of the tutorial and of the how-to pages are run as they stand.
    modules = [module for module in (ROOT / "tests").rglob("*.py") if module != Path(__file__)]
    tests = [words for module in modules for words in words_of_tests(module)]
    named = {(page.name, command): parsed(words_of(command)[1:]) for page in PAGES for command in in_blocks(page)}
    assert len(named) > 40
    assert [shown for shown, words in named.items() if not any(words <= each for each in tests)] == []


def test_the_committed_page_of_commands_is_what_is_generated() -> None:
    committed = (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    assert committed == commands_page(), "run `holdfast explain --write docs`"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    # Its author advertises a successor in each run.
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / ".ci" / "mkdocs.yml")]
    ended = subprocess.run(
        [*words, "-d", str(tmp_path / "site")], env=variables, capture_output=True, text=True, timeout=LIMIT_S
    )
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "site" / "search" / "search_index.json").exists()


def test_the_commands_of_the_how_to_pages_that_need_no_system_of_the_reader_are_run(tmp_path: Path) -> None:
    ran = 0
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "holdfast").symlink_to(Path(sys.executable).with_name("holdfast"))
    variables = environment(tmp_path)
    variables["PATH"] = f"{tmp_path / 'bin'}:{variables['PATH']}"
    for page in sorted((ROOT / "docs" / "how-to").glob("*.md")):
        for kind, body in BLOCK.findall(page.read_text(encoding="utf-8")):
            if kind == "sh":
                ended = subprocess.run(
                    ["sh", "-e", "-c", body],
                    cwd=tmp_path,
                    env=variables,
                    capture_output=True,
                    text=True,
                    timeout=LIMIT_S,
                )
                assert ended.returncode == 0, f"{page.name}: {body}\n{ended.stdout[-800:]}\n{ended.stderr[-800:]}"
                ran += 1
    assert ran >= 2
