"""The documentation: it is built without a warning, its commands exist, and its how-to pages can be followed."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from html.parser import HTMLParser
from pathlib import Path

import pytest

from holdfast.conformance.cli.commands import Commands
from holdfast.conformance.cli.explain.pages import COMMANDS, commands_page
from holdfast.conformance.cli.group import Branch, Entry, load
from holdfast.pytest_plugin import OPTIONS
from tests.hostile.verify import environment
from tests.pace import busy

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
    entries, command = Commands.entries, None
    while words and command is None:
        name = words.pop(0)
        named.add(name)
        assert name in entries, f"no command {name!r}"
        entry = entries[name]
        if isinstance(entry, Branch):
            entries = entry.entries
            continue
        if entry.settings.get("ignore_unknown_options"):
            return named
        command = load(name, entry)
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


def options_of(entries: Mapping[str, Entry | Branch]) -> Iterator[str]:
    """Every option of these commands."""
    for name, entry in entries.items():
        if isinstance(entry, Branch):
            yield from options_of(entry.entries)
        else:
            yield from (option for each in load(name, entry).params for option in (*each.opts, *each.secondary_opts))


# Of pg_dump, of `holdfast reference serve`, and of the commands that contracts have for their operators.
ELSEWHERE = {"--schema-only", "--port", "--new-id", "--failed", "--from"}
# Of `python -m bench.teeth`.
ELSEWHERE |= {"--compare", "--gone", "--part", "--quarter", "--whole"}

# Of pytest.
ELSEWHERE |= {"--lf", "--strict-markers"}


def test_an_option_that_a_page_names_in_its_text_is_one_of_a_command() -> None:
    known = {*options_of(Commands.entries), *ELSEWHERE, *OPTIONS, "--help", "--version"}
    pages = [page for page in PAGES if "gallery" not in page.parts]
    texts = {page.name: BLOCK.sub("", page.read_text(encoding="utf-8")) for page in pages}
    named = {(name, option) for name, text in texts.items() for option in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)}
    assert len(named) > 100
    assert {one for one in named if one[1] not in known} == set()
    assert {option for name, option in named if name == "pytest.md"} >= {*OPTIONS}


def test_a_command_in_a_block_is_one_that_a_test_names_with_these_options() -> None:
    # Blocks of the tutorial and of the how-to pages are run as they stand.
    modules = [module for module in (ROOT / "tests").rglob("*.py") if module != Path(__file__)]
    tests = [words for module in modules for words in words_of_tests(module)]
    named = {(page.name, command): parsed(words_of(command)[1:]) for page in PAGES for command in in_blocks(page)}
    assert len(named) > 40
    assert [shown for shown, words in named.items() if not any(words <= each for each in tests)] == []


def test_the_committed_page_of_commands_is_what_is_generated() -> None:
    committed = (ROOT / "docs" / COMMANDS).read_text(encoding="utf-8")
    assert committed == commands_page(), "run `holdfast explain --write docs`"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built site; a warning fails the build."""
    folder = tmp_path_factory.mktemp("built") / "site"
    # Its author advertises a successor in each run.
    variables = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    words = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", str(ROOT / ".ci" / "mkdocs.yml")]
    words += ["-d", str(folder)]
    ended = subprocess.run(words, env=variables, capture_output=True, text=True, timeout=busy(LIMIT_S))
    assert ended.returncode == 0, ended.stderr
    return folder


class Rendered(HTMLParser):
    """The levels of the headings of a page of the site, and its text outside code."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.levels: list[int] = []
        self.text = ""
        self._code = 0
        whole = page.read_text(encoding="utf-8")
        self.feed(whole[whole.index("<article") : whole.index("</article>")])

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self._code += tag == "code"
        if re.fullmatch("h[1-6]", tag):
            self.levels.append(int(tag[1]))

    def handle_endtag(self, tag: str) -> None:
        self._code -= tag == "code"

    def handle_data(self, data: str) -> None:
        self.text += "" if self._code else data


def test_the_site_can_be_searched(site: Path) -> None:
    assert (site / "search" / "search_index.json").exists()


def test_a_page_of_the_site_has_the_headings_of_its_source_and_no_loose_fence(site: Path) -> None:
    docs = ROOT / "docs"
    for source in (page for page in PAGES if page.is_relative_to(docs)):
        place = site / source.relative_to(docs).with_suffix("" if source.name != "index.md" else ".html")
        shown = Rendered(place if place.is_file() else place / "index.html")
        own = BLOCK.sub("", source.read_text(encoding="utf-8"))
        assert shown.levels == [len(marks) for marks in re.findall(r"^(#+) ", own, re.MULTILINE)], source
        assert "```" not in shown.text, source


def test_a_fence_names_its_language_alone_so_that_every_renderer_reads_it() -> None:
    fences = [line for page in PAGES for line in re.findall(r"^ *```[^\n]*$", page.read_text("utf-8"), re.MULTILINE)]
    assert len(fences) > 200
    assert [fence for fence in fences if not re.fullmatch(r" *```\w*", fence)] == []


def followed(page: str, folder: Path, **variables: str) -> str:
    """Run the blocks of a how-to page in a folder, in order, as one reader types them. Return what they print."""
    blocks = BLOCK.findall((ROOT / "docs" / "how-to" / page).read_text(encoding="utf-8"))
    script = "\n".join(textwrap.dedent(body) for kind, body in blocks if kind == "sh")
    assert script
    (folder / "bin").mkdir(exist_ok=True)
    if not (folder / "bin" / "holdfast").exists():
        (folder / "bin" / "holdfast").symlink_to(Path(sys.executable).with_name("holdfast"))
    known = environment(folder)
    ended = subprocess.run(
        ["sh", "-e", "-c", script],
        cwd=folder,
        env={**known, "PATH": f"{folder / 'bin'}:{known['PATH']}", **variables},
        capture_output=True,
        text=True,
        timeout=busy(4 * LIMIT_S),
        check=False,
    )
    assert ended.returncode == 0, f"{page}: {ended.stdout[-3000:]}\n{ended.stderr[-800:]}"
    return ended.stdout


def test_a_build_is_gated_and_its_report_is_read_as_the_how_to_pages_say(tmp_path: Path) -> None:
    assert "CAN_PROCEED = YES" in followed("gate-a-build.md", tmp_path)
    said = followed("read-a-report.md", tmp_path)
    assert said.count("CAN_PROCEED = YES") == 2
    assert "not asked: --nonce" in said.split("CAN_PROCEED = YES")[1]


@pytest.mark.sweep
def test_sdks_are_compared_as_the_how_to_page_says(tmp_path: Path) -> None:
    assert "rows agree" in followed("compare-sdks.md", tmp_path)


def test_every_how_to_page_is_followed_by_a_test() -> None:
    # That of the table needs a server, and that of contracts a place where one can be installed.
    others = ("fitness/test_command.py", "scratch/test_scratch_contract.py")
    tests = [Path(__file__), *(ROOT / "tests" / name for name in others)]
    named = {name for test in tests for name in re.findall(r'"([a-z-]+\.md)"', test.read_text(encoding="utf-8"))}
    assert {page.name for page in (ROOT / "docs" / "how-to").glob("*.md")} <= named


def test_the_first_page_leads_to_every_kind_of_user() -> None:
    first = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    begin = first[first.index("## Where to begin") :]
    how_to = [page.relative_to(ROOT / "docs").as_posix() for page in PAGES if page.parent.name == "how-to"]
    others = ["services.md", "http.md", "crash.md", "adapter-protocol.md", "adding-a-contract.md", "tutorial.md"]
    assert [page for page in (*how_to, *others) if f"]({page})" not in begin] == []
