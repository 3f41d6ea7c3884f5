"""An advice was tried: a program with a finding, the advice applied, and the finding is gone."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.test_doctor import MISTAKES
from tests.hostile.verify import HERE, Outcome, mine, temp_folder, verify

ROOT = HERE.parents[1]
PUTS, KILLED = "toy/once/a-put-key-stands-on-the-shelf", "toy/hard/an-acknowledged-put-survives-a-kill"
HONEST = "Adapter().run()"
# What `put` of a program does before it answers.
PUT = """
class Mine(Adapter):
    def put(self, args):
        {}
        return super().put(args)
Mine().run()
"""
CLAIMS = """
class Mine(Adapter):
    def hello(self, request):
        return super().hello(request) | {{"claims": [{{"contract": "{}", "version": "0.1.0", "not_claimed": {{}}}}]}}
Mine().run()
"""
GIVES_UP = """
import os
class Mine(Adapter):
    def put(self, args):
        if float(os.environ.get("HOLDFAST_SLOW") or 1) < 2:
            return {"outcome": "fault", "detail": "gave up waiting for the lock"}
        return super().put(args)
Mine().run()
"""


@dataclass(frozen=True)
class Tried:
    """Words of an advice; a program with the finding; the program or the options that follow the advice."""

    words: str
    broken: str
    mended: str = HONEST
    options: Sequence[str] = ()
    then: Sequence[str] = ()
    case: str = PUTS


# Memory, which keeps nothing.
VOLATILE = ("--workdir", "/dev/shm")
TRIED = [
    Tried("run it by hand with `holdfast doctor`", PUT.format("os.abort()")),
    Tried("with `fault` if need be", PUT.format("time.sleep(60)"), options=("--slow", "0.1")),
    Tried(
        "grants more time", PUT.format("time.sleep(1)"), PUT.format("time.sleep(1)"), ("--slow", "0.1"), ("--slow", "2")
    ),
    Tried("log to standard error", PUT.format("print('put', flush=True)"), PUT.format("print('put', file=sys.stderr)")),
    Tried("stays until `bye`", PUT.format("sys.exit(0)")),
    # Below 1 the speed of the machine does not count.
    Tried("(HOLDFAST_SLOW)", GIVES_UP, GIVES_UP, ("--slow", "0.9"), ("--slow", "2")),
    Tried("a folder on a disk", HONEST, options=VOLATILE, case=KILLED),
    Tried("hello list it under `claims`", CLAIMS.format("shelf-twice"), CLAIMS.format("toy")),
    Tried("its answer to hello on standard output", "print('shelf 1.0 is ready', flush=True)\n" + HONEST),
]
# Advice that other tests try: words of it, and the file whose tests have both the finding and the sound way.
ELSEWHERE = {
    "while the machine is quieter": "tests/hostile/test_starvation.py",
    "all together did not": "tests/hostile/test_starvation.py",
    "Raise limits.workers": "tests/cli/test_doctor.py",
    "Start it by hand": "tests/wires/test_service.py",
    "Mend the program, or the file that describes it": "tests/wires/test_service.py",
    "Let the service listen there": "tests/wires/test_service.py",
    "Let the handler of the test route": "tests/wires/test_service.py",
    ": check ": "tests/wires/test_service.py",
    "Again: ": "tests/harness/test_fuzz.py",
    "**To be safe": "tests/wires/test_gallery.py",
    "**Advice that no run has tried": "tests/wires/test_gallery.py",
    "Check the path and the execute permission.": "tests/harness/test_verify_cli.py",
    # The toy contract has no bytes.
    "Decode strictly: ": "tests/harness/test_verify_cli.py",
    "name another file": "tests/cli/test_outputs.py",
    "allow that (chmod +x": "tests/cli/test_crash_words.py",
    "run again while nothing is built": "tests/gate/test_gate.py",
    "a policy that asks for no less": "tests/fitness/test_gate.py",
    "write 'infinity' for what has no end": "tests/fitness/test_judge.py",
    "write '9999-12-31' for what has no end": "tests/fitness/sqlite/test_endings.py",
}


def _texts(node: ast.AST) -> Iterator[str]:
    """The texts of an expression, each up to what is filled in first."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(each.value) for each in node.values if isinstance(each, ast.Constant))
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        yield from _texts(node.func.value)
    elif isinstance(node, ast.Dict):
        for each in node.values:
            yield from _texts(each)


def _advices(path: Path) -> Iterator[str]:
    """What stands in the place of an advice, in a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = {
        one.targets[0].id: one.value
        for one in ast.walk(tree)
        if isinstance(one, ast.Assign) and isinstance(one.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        found: list[ast.AST] = []
        if isinstance(node, ast.Call):
            found += [each.value for each in node.keywords if each.arg == "advice"]
            found += node.args[1:2] if ast.unparse(node.func).endswith("not_reached") else []
            found += node.args[3:4] if ast.unparse(node.func) == "Examination" else []
        elif isinstance(node, ast.Tuple) and path.parent.name == "doctor":
            # In the tables of the doctor an advice is a sentence.
            found += [each for each in node.elts if isinstance(each, ast.Constant) and str(each.value).endswith(".")]
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    pairs = zip(target.elts, node.value.elts, strict=False)
                    found += [value for each, value in pairs if ast.unparse(each) == "advice"]
                elif ast.unparse(target) in ("advice", "_BUFFERED"):
                    found.append(node.value)
        parts = [
            part for each in found for part in ((each.body, each.orelse) if isinstance(each, ast.IfExp) else (each,))
        ]
        for each in parts:
            # One of a table is each of the table.
            name = each.value if isinstance(each, ast.Subscript) else each
            yield from _texts(named.get(name.id, each) if isinstance(name, ast.Name) else each)


def test_no_advice_is_untried() -> None:
    words = [each.words for each in TRIED] + [*ELSEWHERE] + [mistake.partition(": ")[2] for mistake in MISTAKES]
    said: list[str] = []
    for folder in ("conformance", "reports", "vectors", "servers"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            said += _advices(path)
    assert [each for each in said if not any(one in each for one in words)] == []
    assert [one for one in words if not any(one in each for each in said)] == []
    for name in ELSEWHERE.values():
        assert "def test_" in (ROOT / name).read_text(encoding="utf-8")


def _run(program: str, case: str, options: Sequence[str], folder: Path) -> Outcome:
    return verify(mine(program, folder), options=("--case", case, *options), cwd=folder)


@pytest.mark.parametrize("tried", TRIED, ids=lambda tried: tried.words)
def test_who_follows_an_advice_is_rid_of_the_finding(tried: Tried) -> None:
    with temp_folder() as folder:
        found = _run(tried.broken, tried.case, tried.options, folder)
        assert set(found.verdicts.values()) != {"conforms"}
        assert tried.words in " ".join((found.stdout + found.stderr).split())
        mended = _run(tried.mended, tried.case, tried.then, folder)
        assert set(mended.verdicts.values()) == {"conforms"}, mended.stdout + mended.stderr
