"""Adapters that are honest but for one thing: `python flawed.py NAME [WORD…]`, a row of FLAWS or a class."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from honest import Adapter, Json, well_formed

Flaw = tuple[str, Callable[..., Any]]


def line(message: Json) -> bytes:
    """An answer as an adapter writes it."""
    return json.dumps(message).encode() + b"\n"


def written(
    make: Callable[[Json], bytes], *, of: Collection[str] = ("accepted", "refused"), last: bool = False
) -> Flaw:
    """What stands on the line of an answer to a put with one of these outcomes; `last`: then it goes."""

    def send(self: Adapter, message: Json) -> None:
        if message.get("outcome") not in of:
            Adapter.send(self, message)
            return
        # At once, so that no second line comes after the kit's next request.
        self.write(make(message))
        if last:
            os._exit(0)

    return "send", send


def late(self: Adapter, args: Json) -> Json:
    answer = Adapter.put(self, args)
    time.sleep(float(sys.argv[1]))
    return answer


def leak(self: Adapter, reason: str) -> Json:
    self.insert({"key": f"leak-{uuid.uuid4()}", "nonce": f"leak-{uuid.uuid4()}"})
    return Adapter.refuse(self, reason)


def log(self: Adapter, args: Json) -> Json:
    self.write(b"INFO put called\n")
    return Adapter.put(self, args)


def rolled_back(answer: Callable[[str], Json]) -> Flaw:
    """A refusal that leaves no record."""
    return "refuse", lambda self, reason: (self.sql("ROLLBACK"), answer(reason))[1]


def on_fire(_self: Adapter, _args: Json) -> Json:
    raise RuntimeError("the store is on fire")


def greet(self: Adapter) -> None:
    self.write(b"Shelf Server 1.0 (c) ACME\n")
    Adapter.run(self)


def stay(self: Adapter) -> None:
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    Adapter.run(self)
    while True:
        time.sleep(3600)


def segfault(_self: Adapter) -> None:
    # No core file is wanted.
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.kill(os.getpid(), signal.SIGSEGV)


def flood(self: Adapter, _args: Json) -> Json:
    while True:
        self.write(b'{"id":"0","outcome":"ok"}\n' * 10_000)


def kill_the_kit(_self: Adapter, _args: Json) -> None:
    os.kill(os.getppid(), signal.SIGKILL)
    time.sleep(3600)


def stop_reading(_self: Adapter, _request: Json) -> None:
    os.close(1)
    time.sleep(3600)


ODD = {
    "deep": "[" * 200_000 + "]" * 200_000,
    "nan": "NaN",
    "infinite": "1e999",
    "surrogate": '"\\ud800"',
    "control": '"\x01"',
    "digits": "9" * 100_000,
}


def odd(message: Json) -> bytes:
    message.pop("value", None)
    member = "value" if message["outcome"] == "accepted" else "data"
    return line(message)[:-2] + f',"{member}":{ODD[sys.argv[1]]}}}\n'.encode()


SWAPPED = {"DUPLICATE": "NONCE_CONSUMED", "NONCE_CONSUMED": "DUPLICATE", "REQUEST_MALFORMED": "DUPLICATE"}
EARLY = {"outcome": "refused", "reason": "DUPLICATE"}
# The one method in which an adapter is not honest, and what it does there.
FLAWS: dict[str, Flaw] = {
    # Answers the request after each put before it was made: ids can be guessed.
    "answers_early": written(lambda said: line(said) + line({"id": str(int(said["id"]) + 1), **EARLY})),
    # Greets on standard output first.
    "banner": ("run", greet),
    # Reports an integer beyond 2^53 as a number: two readers would read two values.
    "big_integers": ("told", lambda self, args: {**Adapter.told(self, args), "row": 2**53 + 1}),
    # Every observation shows an empty shelf: its refusals cannot be observed to be inert.
    "blind": ("entries", lambda _self: []),
    # Ends with status 1 before it reads anything.
    "crash_at_start": ("run", lambda _self: sys.exit("no configuration found")),
    # A crash must not be read as a refusal.
    "crash_instead_of_refusing": ("refuse", lambda _self, _reason: os._exit(3)),
    # Dies in every put, with a traceback on standard error.
    "crash_on_call": ("put", on_fire),
    # Says both: `refused` and then `accepted`, under one member name, and lets the reader choose.
    "duplicate_names": written(lambda said: b'{"outcome":"refused",' + line(said)[1:]),
    # Says every line back.
    "echo": ("run", lambda self: [self.write(line) for line in sys.stdin.buffer]),
    # Ends with status 0 and has done nothing: success on paper.
    "exit_0_at_start": ("run", lambda _self: None),
    # Where it must refuse it ends in order, with status 0 and no answer.
    "exit_0_instead_of_refusing": ("refuse", lambda _self, _reason: sys.exit(0)),
    # Where it must refuse it reports an internal error.
    "fault_instead_of_refusing": rolled_back(lambda _: {"outcome": "fault", "detail": "UNIQUE constraint failed"}),
    # Answers a put with lines without end.
    "flood": ("put", flood),
    # Answers every request with a line that is no JSON and no UTF-8.
    "garbage": ("run", lambda self: [self.write(b"\xff\xfe\x00{not json\n") for _ in sys.stdin.buffer]),
    # Answers calls in prose.
    "garbage_on_call": written(lambda _: b"OK, done!\n"),
    # Writes half of an answer to a put, and goes.
    "half_line": written(lambda said: line(said)[: len(line(said)) // 2], last=True),
    # Reads nothing and says nothing.
    "hang_at_start": ("run", lambda _self: time.sleep(3600)),
    # Where it must refuse it says nothing.
    "hang_instead_of_refusing": ("refuse", lambda _self, _reason: time.sleep(3600)),
    # Answers hello and open, and no call ever.
    "hang_on_call": ("call", lambda _self, _method, _args: time.sleep(3600)),
    # Stays after `bye`, end of file and SIGTERM.
    "ignores_sigterm": ("run", stay),
    # Adds a member to every answer that the protocol does not know.
    "invalid_envelope": written(lambda said: line({**said, "status": 200})),
    # Accepts correctly, with a value that breaks the method's schema.
    "invalid_value": ("told", lambda self, args: {**Adapter.told(self, args), "extra": True}),
    # Kills its parent in the first put, so that no process is left to report it.
    "kills_the_kit": ("put", kill_the_kit),
    # Answers each put correctly, ARGV[1] seconds late.
    "late_replies": ("put", late),
    # Refuses correctly, and puts something on the shelf all the same.
    "leaks": ("refuse", leak),
    # Answers a put correctly, in a line of more than a mebibyte.
    "line_too_long": written(lambda said: line(said)[:-1] + b" " * 1024 * 1024 + b"\n"),
    # Writes a log line to standard output before each put.
    "log_on_stdout": ("put", log),
    # Refuses correctly, and leaves no record of it.
    "no_audit": rolled_back(lambda reason: {"outcome": "refused", "reason": reason}),
    # Leaves the id out of its answers to put.
    "no_id": written(lambda said: line({name: value for name, value in said.items() if name != "id"})),
    # Answers each put in JSON that readers disagree about, or that breaks them; ARGV[1] says which.
    "odd_json": written(odd),
    # Refuses everything, with a reason of the contract.
    "refuse_all": ("decide", lambda _self, _args: "DUPLICATE"),
    # Refuses what it must, and everything else once anything stands on the shelf.
    "refuses_others": (
        "decide",
        lambda self, args: Adapter.decide(self, args) or ("DUPLICATE" if self.entries() else None),
    ),
    # Answers each put twice, under the same id.
    "repeated_id": written(lambda said: line(said) * 2),
    # Ends by SIGSEGV before it answers.
    "segfault": ("run", segfault),
    # Answers hello, then closes its standard output and stays.
    "stops_reading": ("open", stop_reading),
    # Refuses where it must, with a reason that the contract does not have.
    "undeclared_reason": ("refuse", lambda self, reason: {**Adapter.refuse(self, reason), "reason": "ACCESS_DENIED"}),
    # Claims the whole contract, and answers `unsupported` to every put.
    "unsupported_though_claimed": ("put", lambda _self, _args: {"outcome": "unsupported", "capability": "put"}),
    # Writes a whole refusal without its newline, and goes: the last line of a dead process is not an answer.
    "whole_line_without_end": written(lambda said: line(said)[:-1], of=("refused",), last=True),
    # Answers each call under the id of another.
    "wrong_ids": written(lambda said: line({**said, "id": str(int(said["id"]) + 1000)})),
    # Refuses where it must, with a reason of the contract that is not the due one.
    "wrong_reason": ("refuse", lambda self, reason: Adapter.refuse(self, SWAPPED[reason])),
}


class AcceptAll(Adapter):
    """Accepts everything and remembers nothing."""

    def call(self, method: str, args: Json) -> Json:
        if method != "put":
            empty: Json = {"state": {"entry": []}, "audit": {"records": []}}
            return {"outcome": "ok", "value": empty[method]} if method in empty else {"outcome": "ok"}
        entry = args if well_formed(args) else {"key": "any", "nonce": "any"}
        return {"outcome": "accepted", "effect": "new", "value": {"entry": entry}}


class ChatterOnStderr(Adapter):
    """Honest, and talks on standard error all the time, more than any pipe holds, with words that mean nothing."""

    def answer(self, request: Json) -> Json:
        for number in range(1000):
            print(f'ERROR {number}: fatal, refused, {{"outcome":"refused","reason":"DUPLICATE"}}', file=sys.stderr)
        sys.stderr.buffer.write(b"\xff\xfe\x00 no end of line, no UTF-8 ")
        sys.stderr.flush()
        return super().answer(request)


COMMANDS = (
    "\r\n::error file=a::b\n::set-output name=x::y\n##[add-mask]x\n##vso[task.complete result=Succeeded]\n"
    "##teamcity[buildStatus status='SUCCESS']\n--- all is well\n+++ x\nsection_start:1:x\r\x1b[0K\nCAN_PROCEED = YES\n"
    "[/bold] [link=file:///etc] \x1b[2J\x1b]0;owned\x07 \r\nCAN_PROCEED = YES\u202e {} %s"
)


class CiCommands(Adapter):
    """Honest, but every free text attacks the terminal and the CI server of its reader: markup, escapes, commands."""

    name = COMMANDS

    def call(self, method: str, args: Json) -> Json:
        print(self.name, file=sys.stderr)
        if method == "hold_at":
            return {"outcome": "fault", "detail": self.name}
        return super().call(method, args)

    def refuse(self, reason: str) -> Json:
        return {**super().refuse("DUPLICATE"), "detail": self.name}


class ClaimsLittle(Adapter):
    """Says in hello, in order, that it has no failpoints; honest in everything else."""

    def hello(self, request: Json) -> Json:
        said = super().hello(request)
        said["claims"][0]["not_claimed"] = {"hold_at": "no stop points in production builds"}
        return said

    def call(self, method: str, args: Json) -> Json:
        if method == "hold_at":
            return {"outcome": "unsupported", "capability": "hold_at"}
        return super().call(method, args)


class Forgets(Adapter):
    """Keeps everything in memory: right until it is killed."""

    def open(self, request: Json) -> None:
        super().open({**request, "state": "existing"})
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.executescript(
            "CREATE TABLE entry (key TEXT PRIMARY KEY, nonce TEXT NOT NULL UNIQUE) STRICT;"
            "CREATE TABLE audit (audit_id INTEGER PRIMARY KEY, code TEXT NOT NULL) STRICT;"
        )


class Grandchild(Adapter):
    """Honest, but leaves a child behind that holds its pipes open for an hour.

    ARGV[1] says more: `escapes`, and the child is in a session of its own; `dies`, and it ends in its first put.
    """

    def run(self) -> None:
        sleeps = [sys.executable, "-c", "import time; time.sleep(3600)"]
        subprocess.Popen(sleeps, start_new_session=sys.argv[1:] == ["escapes"])
        super().run()
        os._exit(0)

    def put(self, args: Json) -> Json:
        return os._exit(0) if sys.argv[1:] == ["dies"] else super().put(args)


TIMES = {"hang once": 1, "crash once": 1, "hang four times": 4, "hang always": 1000}


class HangsOnce(Adapter):
    """Honest, but its first put, its first four or each of them never comes to an answer; or it ends by a crash."""

    def put(self, args: Json) -> Json:
        mark, how = Path(sys.argv[1]), sys.argv[2]
        before = mark.stat().st_size if mark.exists() else 0
        if before < TIMES[how]:
            with mark.open("ab") as file:
                file.write(b"x")
            if how == "crash once":
                os._exit(3)
            time.sleep(3600)
        return super().put(args)


class LeaksWhenTold(Adapter):
    """Refuses correctly, and leaks all the same if its environment and its launcher's config both say so."""

    leaky = False

    def open(self, request: Json) -> None:
        self.leaky = request["config"].get("leaks") == "a lot" and os.environ.get("LEAKS") == "yes"
        super().open(request)

    def refuse(self, reason: str) -> Json:
        return leak(self, reason) if self.leaky else super().refuse(reason)


class LiesInHello(Adapter):
    """Honest, but lies in hello about the part that ARGV[1] names."""

    def hello(self, request: Json) -> Json:
        said = super().hello(request)
        (claim,) = said["claims"]
        lies: dict[str, Json] = {
            "challenge": {"challenge": "0" * 32},
            "protocol": {"protocol": 2},
            "version": {"claims": [{**claim, "version": "9.9.9"}]},
            "contract": {"claims": [{**claim, "contract": "another"}]},
            "nothing": {"claims": []},
        }
        return {**said, **lies[sys.argv[1]]}


class Marks(Adapter):
    """Honest, but its first put makes the file that it was given, and takes seconds, seconds of work, or for ever."""

    def put(self, args: Json) -> Json:
        mark, takes = Path(sys.argv[1]), sys.argv[2]
        if not mark.exists():
            mark.touch()
            if takes.startswith("work-"):
                done = time.process_time() + float(takes.removeprefix("work-"))
                while time.process_time() < done:
                    pass
            else:
                time.sleep(3600 if takes == "for-ever" else float(takes))
        return super().put(args)


class RemovesWorkdir(Adapter):
    """Honest, but removes the workdir when the session ends, and leaves a folder there that no user may enter."""

    def answer(self, request: Json) -> Json:
        answer = super().answer(request)
        if request["op"] == "close":
            shutil.rmtree(self.workdir, ignore_errors=True)
            locked = self.workdir / "locked"
            if not locked.exists():
                locked.mkdir(parents=True)
                (locked / "file").touch()
                locked.chmod(0)
        return answer


class SlowEveryTime(Adapter):
    """Honest, and every request takes as many seconds as it was given: each in its time, all together too long."""

    def answer(self, request: Json) -> Json:
        if request["op"] == "call":
            time.sleep(float(sys.argv[1]))
        return super().answer(request)


if __name__ == "__main__":
    word = sys.argv.pop(1)
    named: type[Adapter] | None = globals().get("".join(part.capitalize() for part in word.split("_")))
    flawed = named or type(word, (Adapter,), dict([FLAWS[word]]))
    flawed.name = vars(flawed).get("name", word.replace("_", "-"))
    flawed().run()
