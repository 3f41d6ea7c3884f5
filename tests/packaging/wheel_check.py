"""Build holdfast, install the wheel into an empty environment, and hold what arrived to what lies in the tree.

`tox -e build` runs it as `python wheel_check.py SCRATCH`. Exit status 0 only if everything holds.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("specs", "conformance", "reference_impl", "servers", "vectors", "reports")


def expected_files() -> set[str]:
    """Every file of the packages that git knows or would take, as paths below `holdfast`."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *PACKAGES],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    names = {name.decode() for name in listed.stdout.split(b"\0") if name}
    public = {f"holdfast/{path.name}" for path in (ROOT / "holdfast").iterdir() if path.is_file()}
    # Without `py.typed` no type checker reads the types of the public interface.
    return {"holdfast/py.typed", *public, *(f"holdfast/{name}" for name in names if (ROOT / name).is_file())}


def built(scratch: Path) -> Path:
    """The wheel, which was made from the sdist: so a file the sdist lacks, the wheel lacks too."""
    out = scratch / "dist"
    shutil.rmtree(out, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(out), str(ROOT)], check=True)
    (wheel,) = out.glob("holdfast_conformance-*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """The wheel holds every file, with the bytes of the tree."""
    wanted = expected_files()
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
        missing = sorted(wanted - packed)
        changed = sorted(name for name in wanted & packed if archive.read(name) != (ROOT / name).read_bytes())
    for what, names in (("missing from the wheel", missing), ("other bytes in the wheel", changed)):
        if names:
            raise SystemExit(f"{what}: {', '.join(names)}; see [tool.hatch.build] in pyproject.toml")
    print(f"the sdist, and the wheel that was made from it, hold all {len(wanted)} files of the packages")


def check_installed(scratch: Path, wheel: Path) -> None:
    """The installed wheel lists every contract of the tree, from a folder that is not the tree."""
    home = scratch / "empty"
    shutil.rmtree(home, ignore_errors=True)
    venv.create(home, with_pip=True)
    subprocess.run([str(home / "bin" / "pip"), "install", "-q", str(wheel)], check=True)
    elsewhere = scratch / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    # Nothing of the tree may help: no path, no extra contracts.
    environment = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "HOLDFAST_SPECS"}}
    holdfast = str(home / "bin" / "holdfast")
    listed = subprocess.run(
        [holdfast, "list", "contracts", "--format", "json"],
        cwd=elsewhere,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    said = json.dumps(json.loads(listed.stdout))
    contracts = sorted(path.parent.name for path in (ROOT / "specs").glob("*/contract.yaml"))
    lost = [name for name in contracts if f'"{name}"' not in said]
    if not contracts or lost:
        raise SystemExit(f"expected the contracts {contracts} from the installed wheel, got {listed.stdout}")
    linted = subprocess.run([holdfast, "lint", "specs"], cwd=elsewhere, env=environment, check=False)
    if linted.returncode != 0:
        raise SystemExit(f"`holdfast lint specs` of the installed wheel ended with status {linted.returncode}")
    check_core(elsewhere, environment, holdfast)
    check_lines(scratch, home, wheel)
    print(f"the installed wheel knows {', '.join(contracts)}")


def check_core(folder: Path, environment: dict[str, str], holdfast: str) -> None:
    """Without an extra an adapter is verified and the gate asked; what needs one names the line to type."""
    adapter = ROOT / "tests" / "mesh_delivery" / "foreign.mjs"
    verify = [holdfast, "verify", "--contract", "mesh-delivery", "--quick", "--", "node", str(adapter)]
    verified = subprocess.run(verify, cwd=folder, env=environment, check=False, capture_output=True, text=True)
    # It conforms, and was narrowed.
    if verified.returncode != 12 or "verdict:  conforms" not in verified.stdout + verified.stderr:
        raise SystemExit(f"expected a sound adapter to conform, got {verified.stdout}{verified.stderr}")
    gate = [holdfast, "gate", "holdfast-out/run.jsonl.zst", "--require", "mesh-delivery"]
    if subprocess.run(gate, cwd=folder, env=environment, check=False).returncode != 12:
        raise SystemExit("expected the gate to say NO to a narrowed run with status 12")
    for extra, words in (
        ("reference", "verify reference"),
        ("stores", "fitness registry.db"),
        ("stores", "verify --contract m5-log -- true"),
        ("vectors", "vectors generate --count 1 --out documents"),
        ("fuzz", "fuzz --contract calyx-replay --url http://127.0.0.1:1"),
        ("service", "reference serve"),
        ("allure", "verify --contract mesh-delivery --alluredir allure -- true"),
    ):
        ended = subprocess.run(
            [holdfast, *words.split()], cwd=folder, env=environment, check=False, capture_output=True, text=True
        )
        if ended.returncode != 64 or ended.stderr.count("\n") != 1 or f"[{extra}]" not in ended.stderr:
            raise SystemExit(f"{words}: expected one line that names [{extra}], and status 64, got {ended}")


def check_lines(scratch: Path, home: Path, wheel: Path) -> None:
    """Each installation that a document or the installed kit prints can be done, in an environment that was empty."""
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    printed = {line for page in pages for line in re.findall(r"pip install (?:'\.[^']*'|\.(?=\s))", page.read_text())}
    asked = subprocess.run(
        [str(home / "bin" / "python"), "-P", "-c", "import holdfast; print(holdfast.install_line('spark'))"],
        check=True,
        capture_output=True,
        text=True,
    )
    for line in sorted({*printed, asked.stdout.strip()}):
        empty = scratch / "line"
        shutil.rmtree(empty, ignore_errors=True)
        venv.create(empty, with_pip=True)
        _, verb, *words = shlex.split(line)
        # Documents are read in the clone. What the wheel depends on has been installed once.
        command = [str(empty / "bin" / "pip"), verb, "-q", "--no-deps", "--find-links", str(wheel.parent), *words]
        subprocess.run(command, cwd=ROOT, check=True)
        subprocess.run([str(empty / "bin" / "python"), "-P", "-c", "import holdfast.conformance.cli"], check=True)
        print(f"{line}: installed")


def main() -> None:
    """Build, inspect, install, run."""
    scratch = Path(sys.argv[1]).resolve()
    scratch.mkdir(parents=True, exist_ok=True)
    wheel = built(scratch)
    check_contents(wheel)
    check_installed(scratch, wheel)


if __name__ == "__main__":
    main()
