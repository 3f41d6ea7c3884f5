"""`holdfast doctor` names the usual mistakes of adapters, and finds none where there is none."""

from __future__ import annotations

import json
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.hostile.verify import LIMIT_S, environment

ADAPTERS = Path(__file__).parents[1] / "hostile" / "adapters"
# Honest adapters of the toy contract, but for one thing.
MISTAKES = {
    "buffers": """
        import io
        held = io.StringIO()
        class Mine(Adapter):
            def write(self, data):
                held.write(data.decode())
        Mine().run()
        sys.stdout.write(held.getvalue())
        """,
    "banner": "print('shelf 1.0 is ready', flush=True)\nAdapter().run()",
    "another-id": """
        class Mine(Adapter):
            def send(self, message):
                super().send({**message, "id": "x" + message["id"]})
        Mine().run()
        """,
    "big-integers": """
        class Mine(Adapter):
            def hello(self, request):
                return {**super().hello(request), "limits": {"workers": 2**53 + 1}}
        Mine().run()
        """,
    "answers-first": """
        class Mine(Adapter):
            def sql(self, statement, values=()):
                if statement == "COMMIT":
                    return []
                if statement == "BEGIN IMMEDIATE" and self.database.in_transaction:
                    return []
                return super().sql(statement, values)
        Mine().run()
        """,
    "elsewhere": """
        class Mine(Adapter):
            def open(self, request):
                import pathlib
                outside = pathlib.Path(request["workdir"]).parent / "mine"
                outside.mkdir(exist_ok=True)
                super().open({**request, "workdir": str(outside)})
                self.workdir = pathlib.Path(request["workdir"])
        Mine().run()
        """,
    "orphan": """
        import subprocess
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        Adapter().run()
        """,
    "slow": "time.sleep(3.2)\nAdapter().run()",
    "sound": "Adapter().run()",
}


def examined(mistake: str, folder: Path) -> dict[str, dict[str, Any]]:
    """What is said of an adapter, by the name of each examination."""
    program = folder / "adapter.py"
    begins = f"import sys, time\nsys.path.insert(0, {str(ADAPTERS)!r})\nfrom honest import Adapter\n"
    program.write_text(begins + textwrap.dedent(MISTAKES[mistake]), encoding="utf-8")
    # What never answers is waited for; a tenth of the deadline is as silent. A start is slow for a machine: below 1 the
    # one of the tests is taken for a usual one.
    hurried = {"buffers": ("--slow", "0.1"), "slow": ("--slow", "0.9")}.get(mistake, ())
    words = ("doctor", "--contract", "toy", "--format", "json", *hurried, "--", sys.executable, str(program))
    ended = warm.run(words, cwd=folder, env=environment(folder), limit=LIMIT_S)
    return {each["name"]: each for each in json.loads(ended.stdout)["examinations"]}


@pytest.mark.parametrize(
    ("mistake", "name", "advice"),
    [
        ("buffers", "hello", "Flush after each line"),
        ("banner", "hello", "print it to standard error"),
        ("another-id", "hello", "Copy it"),
        ("big-integers", "hello", "as text"),
        ("answers-first", "kill", "before it is stored"),
        ("elsewhere", "store in the workdir", "`workdir` of `open`"),
        ("orphan", "shutdown", "what the adapter has started"),
        ("slow", "start time", "Load what is large"),
    ],
)
def test_a_usual_mistake_is_named_with_what_to_change(mistake: str, name: str, advice: str, tmp_path: Path) -> None:
    found = examined(mistake, tmp_path)
    assert found[name]["health"] == "bad", found
    assert advice in found[name]["advice"]
    assert [each["name"] for each in found.values() if each["health"] == "bad"] == [name]


def test_a_sound_adapter_has_no_mistake(tmp_path: Path) -> None:
    found = examined("sound", tmp_path)
    assert {each["health"] for each in found.values()} <= {"good", "skipped"}, found
    assert found["kill"]["health"] == "good"
