"""`holdfast doctor` names the usual mistakes of adapters, and finds none where there is none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests import warm
from tests.hostile.verify import LIMIT_S, environment, mine

GREETS = """
class Mine(Adapter):
    def hello(self, request):
        ONE = {{"version": "0.1.0", "not_claimed": {{}}}}
        return super().hello(request) | dict({})
Mine().run()
"""
ANSWERS = """
class Mine(Adapter):
    def answer(self, request):
        return {1} if request["op"] == "{0}" else super().answer(request)
Mine().run()
"""
CLOSES = """
class Mine(Adapter):
    def answer(self, request):
        if request["op"] == "close" and self.database {}:
            return {{"outcome": "refused", "reason": "KEY_TAKEN"}}
        return super().answer(request)
Mine().run()
"""
# Adapters of the toy contract, honest but for one thing, by the examination that finds it and what is advised.
MISTAKES = {
    "hello: Flush after each line": """
        import io
        held = io.StringIO()
        class Mine(Adapter):
            def write(self, data):
                held.write(data.decode())
        Mine().run()
        sys.stdout.write(held.getvalue())
        """,
    "hello: print it to standard error": "print('shelf 1.0 is ready', flush=True)\nAdapter().run()",
    "hello: Copy it": """
        class Mine(Adapter):
            def send(self, message):
                super().send({**message, "id": "x" + message["id"]})
        Mine().run()
        """,
    "hello: compare its members with those in": """
        class Mine(Adapter):
            def send(self, message):
                super().send({**message, "status": 200})
        Mine().run()
        """,
    "hello: as text": """
        class Mine(Adapter):
            def hello(self, request):
                return {**super().hello(request), "limits": {"workers": 2**53 + 1}}
        Mine().run()
        """,
    "kill: before it is stored": """
        class Mine(Adapter):
            def sql(self, statement, values=()):
                if statement == "COMMIT":
                    return []
                if statement == "BEGIN IMMEDIATE" and self.database.in_transaction:
                    return []
                return super().sql(statement, values)
        Mine().run()
        """,
    "store in the workdir: `workdir` of `open`": """
        class Mine(Adapter):
            def open(self, request):
                import pathlib
                outside = pathlib.Path(request["workdir"]).parent / "mine"
                outside.mkdir(exist_ok=True)
                super().open({**request, "workdir": str(outside)})
                self.workdir = pathlib.Path(request["workdir"])
        Mine().run()
        """,
    "shutdown: what the adapter has started": """
        import subprocess
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        Adapter().run()
        """,
    "start time: Load what is large": "time.sleep(3.2)\nAdapter().run()",
    "claims: List under `claims`": GREETS.format("claims=[]"),
    "claim shelf-twice: Known contracts": GREETS.format(
        "claims=[{'contract': 'toy'} | ONE, {'contract': 'shelf-twice'} | ONE]"
    ),
    "claim toy: claim the version of this kit": GREETS.format(
        "claims=[{'contract': 'toy', 'version': '0.0.1', 'not_claimed': {}}]"
    ),
    "claim toy: Name methods or roles": GREETS.format(
        "claims=[{'contract': 'toy'} | ONE | {'not_claimed': {'flight': 'no'}}]"
    ),
    "workers: several processes share the store": GREETS.format("limits={'workers': 1}"),
    "second worker: A second worker starts": """
        import fcntl
        held = open(__file__)
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        Adapter().run()
        """,
    "open: `open` with state fresh": ANSWERS.format("open", "{'outcome': 'fault', 'detail': 'no'}"),
    "unknown method: An unknown method is a `fault`": """
        class Mine(Adapter):
            def call(self, method, args):
                return {"outcome": "ok"} if method == "no_such_method" else super().call(method, args)
        Mine().run()
        """,
    "observe state: Observations answer ok": """
        class Mine(Adapter):
            def call(self, method, args):
                return {"outcome": "fault", "detail": "no"} if method == "state" else super().call(method, args)
        Mine().run()
        """,
    "close: `close` answers ok and": CLOSES.format("is not None"),
    "close without a session: `close` answers ok, or": CLOSES.format("is None"),
    "clock: `clock` answers ok": ANSWERS.format("clock", "{'outcome': 'fault', 'detail': 'no'}"),
    "shutdown: Answer `bye`": ANSWERS.format("bye", "{'outcome': 'fault', 'detail': 'no'}"),
    "shutdown: Exit after `bye`": "Adapter().run()\ntime.sleep(60)",
    "shutdown: Exit with status 0": "Adapter().run()\nsys.exit(3)",
}


def examined(program: str, folder: Path, *hurried: str) -> dict[str, dict[str, Any]]:
    """What is said of an adapter, by the name of each examination."""
    words = ("doctor", "--contract", "toy", "--format", "json", *hurried, "--", *mine(program, folder))
    ended = warm.run(words, cwd=folder, env=environment(folder), limit=LIMIT_S)
    return {each["name"]: each for each in json.loads(ended.stdout)["examinations"]}


# What never answers is waited for; a tenth of the deadline is as silent. A start is slow for a machine: below 1 the one
# of the tests is taken for a usual one.
HURRIED = {"Flush after each line": ("--slow", "0.1"), "Load what is large": ("--slow", "0.9")}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_usual_mistake_is_named_with_what_to_change(mistake: str, tmp_path: Path) -> None:
    name, _, advice = mistake.partition(": ")
    found = examined(MISTAKES[mistake], tmp_path, *HURRIED.get(advice, ()))
    assert found[name]["health"] == "bad", found
    assert advice in found[name]["advice"]
    assert [each["name"] for each in found.values() if each["health"] == "bad"] == [name]


def test_a_sound_adapter_has_no_mistake(tmp_path: Path) -> None:
    found = examined("Adapter().run()", tmp_path)
    assert {each["health"] for each in found.values()} <= {"good", "skipped"}, found
    assert found["kill"]["health"] == "good"
