"""Runners of one's own: found by their folder, built once for their sources, and said clearly when they are missing."""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from holdfast.vectors.jcs import sdk
from holdfast.vectors.jcs.frames import Status, run
from holdfast.vectors.jcs.sdk.manifest import read

TEMPLATE = Path(sdk.__file__).with_name("template")
# Leaves a line beside the cache each time it is built.
TOML = """
language = "Shell"
steps = [["sh", "-c", "echo built >> '{counter}'; echo made > {{out}}/made; test -d {{scratch}}"]]
[[needs]]
program = "sh"
get = "a shell"
[[runners]]
name = "shell-cat"
library = "cat"
version = "1"
command = ["cat", "{{out}}/made"]
"""


class Home:
    """A folder of runners that HOLDFAST_SDKS names, and a cache, both empty at first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "runners"
        self.cache = folder / "cache" / "sdk"
        self.counter = folder / "counter"
        self.toml = TOML.format(counter=self.counter)
        (self.folder / "shell").mkdir(parents=True)

    def write(self, toml: str, folder: str = "shell") -> None:
        path = self.folder / folder / "runner.toml"
        path.parent.mkdir(exist_ok=True)
        path.write_text(toml, encoding="utf-8")

    @property
    def builds(self) -> int:
        return len(self.counter.read_text().splitlines()) if self.counter.exists() else 0


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    made = Home(tmp_path)
    monkeypatch.setenv("HOLDFAST_SDKS", str(made.folder))
    made.write(made.toml)
    return made


def test_a_runner_is_built_once(home: Home) -> None:
    built = sdk.build("shell-cat", home.cache)
    assert (built.missing, Path(built.command[1]).read_text()) == ("", "made\n")
    assert sdk.build("shell-cat", home.cache) == built == sdk.find("shell-cat", cache=home.cache)
    assert home.builds == 1


def test_several_builds_at_once_are_one_build(home: Home) -> None:
    with ThreadPoolExecutor(4) as pool:
        built = list(pool.map(lambda _: sdk.build("shell-cat", home.cache), range(4)))
    assert len({one.command for one in built}) == 1
    assert home.builds == 1


def test_changed_sources_and_locks_are_built_again(home: Home) -> None:
    first = sdk.build("shell-cat", home.cache)
    (home.folder / "shell" / "some.lock").write_text("1.0.1")
    assert sdk.find("shell-cat", cache=home.cache).missing
    assert sdk.build("shell-cat", home.cache).command != first.command
    assert home.builds == 2


def test_a_failed_step_says_what_came_and_leaves_nothing_to_be_found(home: Home) -> None:
    home.write(home.toml.replace("test -d", "echo registry not reached; false"))
    with pytest.raises(sdk.BuildError, match=r"(?s)step of Shell ended with status 1: sh -c .*registry not reached"):
        sdk.build("shell-cat", home.cache)
    assert sdk.find("shell-cat", cache=home.cache).missing
    assert [path.name for path in home.cache.iterdir() if not path.name.endswith(".lock")] == []


def test_what_a_killed_build_left_behind_does_not_count(home: Home) -> None:
    built = Path(sdk.build("shell-cat", home.cache).command[1]).parent
    shutil.move(built, home.cache / f".building-{built.name}")
    assert sdk.find("shell-cat", cache=home.cache).missing
    assert not sdk.build("shell-cat", home.cache).missing


def test_a_missing_toolchain_is_said_with_the_way_to_get_it(home: Home) -> None:
    home.write(home.toml.replace('program = "sh"', 'program = "no-such-compiler"'))
    expected = "for Shell no-such-compiler is missing: a shell"
    assert sdk.find("shell-cat", cache=home.cache).missing == expected
    with pytest.raises(sdk.BuildError, match=expected):
        sdk.build("shell-cat", home.cache)


def test_a_built_runner_needs_its_compiler_no_longer_but_its_interpreter(home: Home) -> None:
    home.write(home.toml.replace('["cat", ', '["no-such-interpreter", '))
    assert "no-such-interpreter is not on PATH" in sdk.build("shell-cat", home.cache).missing


def test_a_runner_that_is_not_built_cannot_be_become(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(home.cache))
    with pytest.raises(sdk.BuildError, match="is not built yet"):
        sdk.exec_runner("shell-cat")


@pytest.mark.parametrize("name", ["go-gowebpki", "reference-lenient", "shell-cat"])
def test_names_cannot_be_taken_twice(home: Home, name: str) -> None:
    home.write(home.toml.replace("shell-cat", name), folder="zsh")
    with pytest.raises(sdk.ManifestError, match=f"the name '{name}' is taken by"):
        sdk.names()


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('version = "1"', "", "missing required field `version`.*runners"),
        ('version = "1"', "version = 1", "Expected `str`, got `int`.*version"),
        ('["cat", "{out}/made"]', '"cat"', "Expected `array`, got `str`.*command"),
        ('language = "Shell"', "", "missing required field `language`"),
        ('language = "Shell"', 'language = "Shell"\nlanguages = 2', "unknown field `languages`"),
        ("[[runners]]", "[[needs]]", "missing required field .(get|runners|program)|unknown field"),
        ("[[runners]]", "[runners]", "Expected `array`, got `object`.*runners"),
        ("[[needs]]", "[[needs", "runner.toml: "),
        ("shell-cat", "../../evil", "expected a name of lower-case letters"),
        ('"shell-cat"', '""', "expected a name of lower-case letters"),
    ],
)
def test_a_manifest_that_is_not_as_it_should_be_is_refused(home: Home, old: str, new: str, error: str) -> None:
    assert old in home.toml
    home.write(home.toml.replace(old, new))
    with pytest.raises(sdk.ManifestError, match=error):
        sdk.names()


def test_a_folder_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_SDKS", "/nowhere/at/all")
    with pytest.raises(sdk.ManifestError, match="'/nowhere/at/all', which is no folder"):
        sdk.names()


def test_the_template_is_a_runner_as_soon_as_it_is_copied(home: Home) -> None:
    assert read(TEMPLATE / "runner.toml").runners[0].name not in sdk.names()
    shutil.copytree(TEMPLATE, home.folder / "mylanguage")
    built = sdk.build("mylanguage-mylibrary", home.cache)
    answers = run(built.command, [b'{"b":1,"a":[]}', b"[1,]"], deadline=20)
    assert [answer.status for answer in answers] == [Status.CANONICAL, Status.REFUSED]
