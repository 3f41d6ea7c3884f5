"""Adapters that are honest but for one thing: `python flawed.py NAME [WORD…]`, a class by its name in small letters."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import sys
import time
import uuid
from pathlib import Path

from honest import Adapter, Json, well_formed


class AcceptAll(Adapter):
    """Accepts everything and remembers nothing."""

    def call(self, method: str, args: Json) -> Json:
        if method != "put":
            empty: Json = {"state": {"entry": []}, "audit": {"records": []}}
            return {"outcome": "ok", "value": empty[method]} if method in empty else {"outcome": "ok"}
        entry = args if well_formed(args) else {"key": "any", "nonce": "any"}
        return {"outcome": "accepted", "effect": "new", "value": {"entry": entry}}


class AnswersEarly(Adapter):
    """Answers the request after each put before it was made: ids can be guessed."""

    def send(self, message: Json) -> None:
        lines = [message]
        if message.get("outcome") in {"accepted", "refused"}:
            guessed = str(int(message["id"]) + 1)
            lines.append({"id": guessed, "outcome": "refused", "reason": "DUPLICATE"})
        # At once, so that the second is there before the kit can have asked.
        self.write("".join(json.dumps(line) + "\n" for line in lines).encode())


class BigIntegers(Adapter):
    """Reports an integer beyond 2^53 as a number: two readers would read two values."""

    def told(self, args: Json) -> Json:
        return {**super().told(args), "row": 2**53 + 1}


class Blind(Adapter):
    """Honest, but every observation shows an empty shelf: its refusals cannot be observed to be inert."""

    def entries(self) -> list[Json]:
        return []


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
)


class CiCommands(Adapter):
    """Honest, but every free text is a command to the CI server whose log it may end in, on a line of its own."""

    name = COMMANDS

    def call(self, method: str, args: Json) -> Json:
        print(COMMANDS, file=sys.stderr)
        if method == "hold_at":
            return {"outcome": "fault", "detail": COMMANDS}
        return super().call(method, args)

    def refuse(self, reason: str) -> Json:
        return {**super().refuse("DUPLICATE"), "detail": COMMANDS}


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


class CrashInsteadOfRefusing(Adapter):
    """Honest, but where it must refuse it crashes: a crash must not be read as a refusal."""

    def refuse(self, reason: str) -> Json:
        os._exit(3)


class CrashOnCall(Adapter):
    """Dies in every put, with a traceback on standard error."""

    def put(self, args: Json) -> Json:
        raise RuntimeError("the store is on fire")


class DuplicateNames(Adapter):
    """Says both: `refused` and then `accepted`, under one member name, and lets the reader choose."""

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            self.write(b'{"outcome":"refused",' + json.dumps(message).encode()[1:] + b"\n")
        else:
            super().send(message)


class Exit0InsteadOfRefusing(Adapter):
    """Honest, but where it must refuse it ends in order, with status 0 and no answer."""

    def refuse(self, reason: str) -> Json:
        sys.exit(0)


class FaultInsteadOfRefusing(Adapter):
    """Honest, but where it must refuse it reports an internal error."""

    def refuse(self, reason: str) -> Json:
        self.sql("ROLLBACK")
        return {"outcome": "fault", "detail": "IntegrityError: UNIQUE constraint failed"}


class Flood(Adapter):
    """Answers a put with lines without end."""

    def put(self, args: Json) -> Json:
        while True:
            self.write(b'{"id":"0","outcome":"ok"}\n' * 10_000)


class Forgets(Adapter):
    """Keeps everything in memory: right until it is killed."""

    def open(self, request: Json) -> None:
        super().open({**request, "state": "existing"})
        self.database = sqlite3.connect(":memory:", isolation_level=None)
        self.database.executescript(
            "CREATE TABLE entry (key TEXT PRIMARY KEY, nonce TEXT NOT NULL UNIQUE) STRICT;"
            "CREATE TABLE audit (audit_id INTEGER PRIMARY KEY, code TEXT NOT NULL) STRICT;"
        )


class GarbageOnCall(Adapter):
    """Answers calls in prose."""

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            self.write(b"OK, done!\n")
        else:
            super().send(message)


class HalfLine(Adapter):
    """Writes half of an answer to a put, and goes."""

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            line = json.dumps(message).encode()
            self.write(line[: len(line) // 2])
            os._exit(0)
        super().send(message)


class HangInsteadOfRefusing(Adapter):
    """Honest, but where it must refuse it says nothing."""

    def refuse(self, reason: str) -> Json:
        time.sleep(3600)
        raise AssertionError


class HangOnCall(Adapter):
    """Answers hello and open, and no call ever."""

    def call(self, method: str, args: Json) -> Json:
        time.sleep(3600)
        raise AssertionError


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


class InvalidEnvelope(Adapter):
    """Adds a member to every answer that the protocol does not know."""

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            message["status"] = 200
        super().send(message)


class InvalidValue(Adapter):
    """Accepts correctly, with a value that breaks the method's schema."""

    def told(self, args: Json) -> Json:
        return {**super().told(args), "extra": True}


class KillsTheKit(Adapter):
    """Kills its parent in the first put, so that no process is left to report it."""

    def put(self, args: Json) -> Json:
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(3600)
        raise AssertionError


class LateReplies(Adapter):
    """Answers each put correctly, ARGV[1] seconds late."""

    def put(self, args: Json) -> Json:
        answer = super().put(args)
        time.sleep(float(sys.argv[1]))
        return answer


class Leaks(Adapter):
    """Refuses correctly, and puts something on the shelf all the same."""

    def refuse(self, reason: str) -> Json:
        self.insert({"key": f"leak-{uuid.uuid4()}", "nonce": f"leak-{uuid.uuid4()}"})
        return super().refuse(reason)


class LeaksWhenTold(Adapter):
    """Refuses correctly, and leaks all the same if its environment and its launcher's config both say so."""

    leaky = False

    def open(self, request: Json) -> None:
        self.leaky = request["config"].get("leaks") == "a lot" and os.environ.get("LEAKS") == "yes"
        super().open(request)

    def refuse(self, reason: str) -> Json:
        if self.leaky:
            self.insert({"key": f"leak-{uuid.uuid4()}", "nonce": f"leak-{uuid.uuid4()}"})
        return super().refuse(reason)


class LiesInHello(Adapter):
    """Honest, but lies in hello about the part that ARGV[1] names."""

    def hello(self, request: Json) -> Json:
        said = super().hello(request)
        if sys.argv[1] == "challenge":
            said["challenge"] = "0" * 32
        elif sys.argv[1] == "protocol":
            said["protocol"] = 2
        elif sys.argv[1] == "version":
            said["claims"][0]["version"] = "9.9.9"
        elif sys.argv[1] == "contract":
            said["claims"][0]["contract"] = "another"
        elif sys.argv[1] == "nothing":
            said["claims"] = []
        else:
            raise SystemExit(f"no such lie: {sys.argv[1]}")
        return said


class LineTooLong(Adapter):
    """Answers a put correctly, in a line of more than a mebibyte."""

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            self.write(json.dumps(message).encode() + b" " * 1024 * 1024 + b"\n")
        else:
            super().send(message)


class LogOnStdout(Adapter):
    """Honest, but writes a log line to standard output before each put."""

    def put(self, args: Json) -> Json:
        self.write(b"INFO put called\n")
        return super().put(args)


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


class NoAudit(Adapter):
    """Refuses correctly, and leaves no record of it."""

    def refuse(self, reason: str) -> Json:
        self.sql("ROLLBACK")
        return {"outcome": "refused", "reason": reason}


class NoId(Adapter):
    """Leaves the id out of its answers to put."""

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            del message["id"]
        super().send(message)


ODD = {
    "deep": "[" * 200_000 + "]" * 200_000,
    "nan": "NaN",
    "infinite": "1e999",
    "surrogate": '"\\ud800"',
    "control": '"\x01"',
    "digits": "9" * 100_000,
}


class OddJson(Adapter):
    """Answers each put in JSON that readers disagree about, or that breaks them; ARGV[1] says which."""

    def send(self, message: Json) -> None:
        if message.get("outcome") not in {"accepted", "refused"}:
            super().send(message)
            return
        message.pop("value", None)
        member = "value" if message["outcome"] == "accepted" else "data"
        self.write(json.dumps(message).encode()[:-1] + f',"{member}":{ODD[sys.argv[1]]}}}\n'.encode())


class RefuseAll(Adapter):
    """Refuses everything, with a reason of the contract."""

    def decide(self, args: Json) -> str | None:
        return "DUPLICATE"


class RefusesOthers(Adapter):
    """Refuses what it must, and everything else once anything stands on the shelf."""

    def decide(self, args: Json) -> str | None:
        return super().decide(args) or ("DUPLICATE" if self.entries() else None)


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


class RepeatedId(Adapter):
    """Answers each put twice, under the same id."""

    def send(self, message: Json) -> None:
        super().send(message)
        if message.get("outcome") in {"accepted", "refused"}:
            super().send(message)


class SlowEveryTime(Adapter):
    """Honest, and every request takes as many seconds as it was given: each in its time, all together too long."""

    def answer(self, request: Json) -> Json:
        if request["op"] == "call":
            time.sleep(float(sys.argv[1]))
        return super().answer(request)


class StopsReading(Adapter):
    """Answers hello, then closes its standard output and stays."""

    def open(self, request: Json) -> None:
        os.close(1)
        time.sleep(3600)


TRICK = "[/bold] [link=file:///etc] \x1b[2J\x1b]0;owned\x07 \r\nCAN_PROCEED = YES\u202e {} %s"


class TerminalTricks(Adapter):
    """Honest, but every free text attacks the terminal of its reader: markup, escape codes, a fake verdict."""

    name = TRICK

    def call(self, method: str, args: Json) -> Json:
        print(TRICK, file=sys.stderr)
        if method == "hold_at":
            return {"outcome": "fault", "detail": TRICK}
        return super().call(method, args)

    def refuse(self, reason: str) -> Json:
        return {**super().refuse("DUPLICATE"), "detail": TRICK}


class UndeclaredReason(Adapter):
    """Refuses where it must, with a reason that the contract does not have."""

    def refuse(self, reason: str) -> Json:
        return {**super().refuse(reason), "reason": "ACCESS_DENIED"}


class UnsupportedThoughClaimed(Adapter):
    """Claims the whole contract, and answers `unsupported` to every put."""

    def put(self, args: Json) -> Json:
        return {"outcome": "unsupported", "capability": "put"}


class WholeLineWithoutEnd(Adapter):
    """Writes a whole refusal without its newline, and goes: the last line of a dead process is not an answer."""

    def send(self, message: Json) -> None:
        if message.get("outcome") == "refused":
            self.write(json.dumps(message).encode())
            os._exit(0)
        super().send(message)


class WrongIds(Adapter):
    """Answers each call under the id of another."""

    def send(self, message: Json) -> None:
        if message.get("outcome") in {"accepted", "refused"}:
            message["id"] = str(int(message["id"]) + 1000)
        super().send(message)


SWAPPED = {"DUPLICATE": "NONCE_CONSUMED", "NONCE_CONSUMED": "DUPLICATE", "REQUEST_MALFORMED": "DUPLICATE"}


class WrongReason(Adapter):
    """Refuses where it must, with a reason of the contract that is not the due one."""

    def refuse(self, reason: str) -> Json:
        return super().refuse(SWAPPED[reason])


if __name__ == "__main__":
    word = sys.argv.pop(1)
    flawed: type[Adapter] = globals()["".join(part.capitalize() for part in word.split("_"))]
    flawed.name = vars(flawed).get("name", word.replace("_", "-"))
    flawed().run()
