"""What the repository is as a whole: its top level, its data in the wheel, its README, and nothing of a machine."""

from __future__ import annotations

import os
import pkgutil
import re
import subprocess
import tomllib
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder

from bench.house import PAGE, picture
from holdfast import conformance

ROOT = Path(__file__).resolve().parents[2]

TOP_LEVEL = set(
    "holdfast specs conformance reference_impl servers vectors reports tests bench docs .ci "
    "tox.ini pyproject.toml README.md CHANGELOG.md LICENSE .gitignore".split()
)
# Dot files that a repository may have besides.
USUAL_DOT_FILES = {".pre-commit-hooks.yaml", ".gitattributes", ".editorconfig", ".github"}
# Larger things are built or fetched, not kept in git.
MAX_BYTES = 1024 * 1024
README_COMMANDS = (
    "python3 -m venv .venv && .venv/bin/pip install '.[reference]' && "
    ".venv/bin/holdfast verify reference --contract calyx-replay",
    "python3 -m venv .venv && .venv/bin/pip install tox && .venv/bin/tox",
)
# Put together here, so that this file does not hold what it forbids.
MACHINE_PATHS = tuple(f"/{first}/{second}" for first, second in (("work", ""), ("tmp", "venv"), ("root", "")))


@cache
def repository_files() -> tuple[str, ...]:
    """What git tracks, or would if everything were added."""
    try:
        listed = subprocess.run(
            ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            check=True,
            capture_output=True,
        )
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("not a git work tree, for example an unpacked sdist")
    names = (name.decode() for name in listed.stdout.split(b"\0") if name)
    return tuple(name for name in names if (ROOT / name).is_file())


# Where code that is of no contract names one, and why.
NAMING = {
    "conformance/cli/gate.py": "its help names the only documents that can be required",
    "conformance/cli/vectors/": "`holdfast vectors` is about the documents of one contract",
    "conformance/gate/documents.py": "so is this part of the gate",
    "conformance/run/documents.py": "so is what a run of documents says",
    "conformance/gallery/page.py": "its pages lead to the contract by which libraries are judged",
    "reference_impl/__main__.py": "`frames` is of one contract",
    "servers/wires/profile.py": "what the wires are put around keeps one contract",
    "vectors/record.py": "its vectors are the documents of one contract",
    "vectors/taxonomy.py": "so are its categories",
}
SHIPPED = [path.parent.name for path in (ROOT / "specs").glob("*/contract.yaml")]


def test_code_that_is_of_no_contract_names_none() -> None:
    words = "|".join({*SHIPPED, *(name.replace("-", "_") for name in SHIPPED)})
    named, owned = re.compile(rf"(?<![\w-])({words})(?![\w-])"), re.compile(rf"(^|/)({words}|entries)/")
    found = [
        path
        for path in repository_files()
        if path.endswith(".py") and path.split("/")[0] not in ("bench", "docs", "tests") and not owned.search(path)
        if named.search((ROOT / path).read_text(encoding="utf-8"))
    ]
    assert len(SHIPPED) >= 7
    assert [path for path in found if not path.startswith(tuple(NAMING))] == []
    assert all(any(path.startswith(place) for path in found) for place in NAMING)


def test_the_top_level_is_the_one_of_the_design() -> None:
    found = {name.split("/")[0] for name in repository_files()}
    assert found - USUAL_DOT_FILES <= TOP_LEVEL, f"not of the design: {sorted(found - TOP_LEVEL - USUAL_DOT_FILES)}"
    assert found >= TOP_LEVEL, f"missing: {sorted(TOP_LEVEL - found)}"


def test_no_file_is_larger_than_a_mebibyte() -> None:
    large = [name for name in repository_files() if (ROOT / name).stat().st_size > MAX_BYTES]
    assert not large, f"larger than {MAX_BYTES} bytes: {large}"


def test_no_file_names_a_path_of_a_machine() -> None:
    found = [
        f"{name}: {path}"
        for name in repository_files()
        for path in MACHINE_PATHS
        if path.encode() in (ROOT / name).read_bytes()
    ]
    assert not found, f"paths of one machine: {found}"


@pytest.mark.parametrize("builder", [WheelBuilder, SdistBuilder])
def test_every_data_file_is_packed(builder: type[WheelBuilder] | type[SdistBuilder]) -> None:
    packed = {os.path.realpath(file.path) for file in builder(str(ROOT)).recurse_included_files()}
    data = [path for kind in ("yaml", "json") for path in (ROOT / "specs").rglob(f"*.{kind}")]
    data = [path for path in data if "__pycache__" not in path.parts]
    data += [path for path in (ROOT / "vectors").glob("*/data/*") if path.is_file()]
    assert data
    data.append(ROOT / "holdfast" / "py.typed")
    missing = [str(path.relative_to(ROOT)) for path in data if str(path) not in packed]
    assert not missing, f"not packed, see [tool.hatch.build] in pyproject.toml: {missing}"


@pytest.mark.parametrize("command", README_COMMANDS)
def test_the_readme_has_the_command(command: str) -> None:
    assert command in (ROOT / "README.md").read_text(encoding="utf-8").splitlines()


def test_the_links_of_the_readme_lead_somewhere() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", text) if "://" not in target]
    assert targets
    assert not [target for target in targets if not (ROOT / target).exists()]


def test_every_dependency_has_its_version_pinned() -> None:
    lines = (ROOT / ".ci" / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.!+]+", line) for line in pins), "only NAME==VERSION lines"
    pinned = {re.sub(r"[-_.]+", "-", line.split("==")[0]).lower() for line in pins}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [
        *project["dependencies"],
        *(item for extra in project["optional-dependencies"].values() for item in extra),
    ]
    names = {re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~ ]", item)[0]).lower() for item in wanted}
    names -= {project["name"]}
    assert not names - pinned, f"not in .ci/constraints.txt: {sorted(names - pinned)}"


# The contracts of import-linter name every member of the harness, so that a new one is forbidden too.


@pytest.mark.parametrize("member", ["faults", "fitness"])
def test_a_part_that_may_not_use_the_harness_may_use_no_member_of_it(member: str) -> None:
    linter = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    (contract,) = (
        each for each in linter["contracts"] if each.get("source_modules") == [f"holdfast.conformance.{member}"]
    )
    members = {f"holdfast.conformance.{found.name}" for found in pkgutil.iter_modules(conformance.__path__)}
    forbidden = {name for name in contract["forbidden_modules"] if name.startswith("holdfast.conformance.")}
    assert forbidden == members - {f"holdfast.conformance.{member}"}


def test_no_file_imports_itself_by_way_of_others() -> None:
    graph = grimp.build_graph("holdfast", exclude_type_checking_imports=True, cache_dir=None)
    imports = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}
    assert len(imports) > 500
    # Raises CycleError, with the files.
    TopologicalSorter(imports).prepare()


def test_the_picture_of_the_house_is_what_the_imports_say() -> None:
    assert picture() in PAGE.read_text(encoding="utf-8"), "run `python -m bench.house`"
