"""Every command, what can go wrong around it, and the signals that can end it: the table and how an entry is run."""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, unique
from functools import partial
from pathlib import Path

import psutil

from holdfast.conformance.verdict import Exit, gravest
from tests.hostile.verify import HERE, adapter, environment, temp_folder
from tests.pace import busy
from tests.process.leftovers import GOES_S, started, until

GUARD = Path(__file__).resolve().parents[1] / "faults" / "stores" / "guard.py"
# No command of the table takes so long, on a machine with other work.
LIMIT_S = 300.0


@dataclass(frozen=True, slots=True)
class Command:
    """Words of a command line, in a folder that `around` prepared. `lasts` is about how long it runs, in seconds.

    `good` is its status when nothing goes wrong. `writes` says that it writes evidence to run.jsonl.
    """

    words: tuple[str, ...]
    lasts: float
    good: int = 0
    writes: bool = False
    sweep: bool = False


HONEST = ("--", *adapter("honest"))
HANGS = ("--", *adapter("hang_on_call"))
_VERIFY = ("verify", "--contract", "toy", "--evidence", "run.jsonl")

COMMANDS: dict[str, Command] = {
    "verify": Command((*_VERIFY, *HONEST), 4.0, writes=True),
    "verify-hang": Command((*_VERIFY, "--slow", "3", *HANGS), 4.0, good=12, writes=True),
    "verify-jobs": Command((*_VERIFY, "--jobs", "2", *HONEST), 5.0, writes=True, sweep=True),
    "verify-launcher": Command(
        ("verify", "--contract", "calyx-replay", "-k", "nothing-is-delivered", "--evidence", "run.jsonl", "reference"),
        3.0, good=12, writes=True, sweep=True,
    ),
    "verify-postgres": Command(
        ("verify", "--contract", "rs4a-replay", "-k", "second-effect", "--evidence", "run.jsonl", "reference"),
        8.0, good=12, writes=True, sweep=True,
    ),
    "gate": Command(("gate", "sound.jsonl", "--require", "toy"), 0.5),
    "doctor": Command(("doctor", "--contract", "toy", *HONEST), 1.0),
    "crash": Command(("crash", "--seconds", "0", "--ops", "2", "--", sys.executable, str(GUARD), "FULL"), 20.0),
    "crash-kill": Command(
        ("crash", "--layer", "kill", "--seconds", "1", "--ops", "2", "--", sys.executable, str(GUARD), "FULL"),
        3.0, good=12,
    ),
    "fitness-file": Command(("fitness", "keys.sqlite"), 1.0, good=12),
    "fitness-server": Command(("fitness", "postgresql://127.0.0.1:9/none?connect_timeout=1"), 1.5, good=64),
    "selfcheck": Command(("selfcheck", "--contract", "jcs", "--mutant", "utf8-ignored"), 4.0, sweep=True),
    "vectors-generate": Command(("vectors", "generate", "--count", "2000", "--out", "rows"), 20.0, sweep=True),
    "vectors-sdk": Command(("vectors", "sdk", "list"), 1.0),
    "list": Command(("list", "cases"), 1.0),
    "explain": Command(("explain", "RS4A-RP-02"), 1.0),
    "lint": Command(("lint", "specs", "--contract", "toy"), 1.0, good=20),
    "reference": Command(("reference", "mutants"), 1.0),
    "help": Command(("--help",), 0.5),
}  # fmt: skip


@unique
class Around(Enum):
    """What is wrong around a command."""

    NOTHING = "nothing"
    ASCII = "output that cannot be encoded"
    FULL = "standard output on a full disk"
    CLOSED = "standard output closed"
    PIPE = "standard output is not read"
    ERRORS_FULL = "standard error on a full disk"
    GONE = "the working directory deleted"
    READ_ONLY = "the working directory read-only"
    MEMORY = "hardly any memory"
    JANITOR = "the janitor killed"


# Signals that can be caught end a command as Ctrl-C does; nothing can be said after SIGKILL; SIGPIPE is ignored.
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL, signal.SIGPIPE)


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry: a command, what is wrong around it, and the signal that comes at `moment` (a share of its time)."""

    command: str
    around: Around = Around.NOTHING
    number: signal.Signals | None = None
    moment: float = 0.0
    # The whole process group, as a terminal does, or the kit alone.
    group: bool = False

    @property
    def name(self) -> str:
        """For the id of a test."""
        what = self.around.name.lower() if self.number is None else f"{self.number.name}-{self.moment:.2f}"
        return f"{self.command}-{what}" + ("-group" if self.group else "")


def entries(seed: int) -> list[Entry]:
    """The whole table; `seed` decides the moments."""
    chance = random.Random(seed)
    found = [Entry(name, around) for name in COMMANDS for around in Around]
    for name in COMMANDS:
        found += [Entry(name, number=number, moment=chance.random(), group=chance.random() < 0.5) for number in SIGNALS]
    return found


@dataclass(frozen=True, slots=True)
class Ended:
    """How an entry ended."""

    status: int
    out: str
    err: str
    # Whether the signal met it alive; of the janitor: whether there was one.
    met: bool


def run(entry: Entry, cwd: Path) -> Ended:
    """Run an entry in a folder of its own until nothing of it is there. Raises AssertionError if something remains."""
    command = COMMANDS[entry.command]
    place = _standing(entry, cwd)
    with temp_folder() as temp, (cwd / "out").open("wb") as out, (cwd / "err").open("wb") as err:
        variables = {**environment(temp), "PYTHONPATH": str(HERE.parents[1])}
        if entry.around is Around.ASCII:
            variables |= {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
        with (
            _target(entry, out.fileno(), err.fileno()) as (to, errors),
            started(
                *_words(command, entry, cwd),
                temp=temp,
                cwd=place,
                env=variables,
                stdout=to,
                stderr=errors,
                preexec_fn=_prepared(entry, place),
            ) as kit,
        ):
            met = _meanwhile(entry, command, kit, temp)
            status = kit.wait(timeout=busy(LIMIT_S))
    said, complained = ((cwd / name).read_text(encoding="utf-8", errors="replace") for name in ("out", "err"))
    return Ended(status, said, complained, met)


def _words(command: Command, entry: Entry, cwd: Path) -> list[str]:
    """The words, with whole paths where the command stands somewhere else; what it writes by default stays there."""
    if entry.around is not Around.GONE and entry.around is not Around.READ_ONLY:
        return list(command.words)
    inputs = {"sound.jsonl", "keys.sqlite"}
    return [str(cwd / word) if word in inputs else word for word in command.words]


def _standing(entry: Entry, cwd: Path) -> Path:
    if entry.around is Around.READ_ONLY:
        # Root writes anywhere but into the kernel's own tree.
        return Path("/proc")
    if entry.around is Around.GONE:
        gone = cwd / "gone"
        gone.mkdir()
        return gone
    return cwd


def _prepared(entry: Entry, place: Path) -> Callable[[], None] | None:
    """What the child does before it becomes the kit."""
    before: dict[Around, Callable[[], None]] = {
        Around.CLOSED: partial(os.close, 1),
        Around.MEMORY: partial(resource.setrlimit, resource.RLIMIT_AS, (200 << 20, 200 << 20)),
        Around.GONE: place.rmdir,
    }
    return before.get(entry.around)


@contextlib.contextmanager
def _target(entry: Entry, out: int, err: int) -> Iterator[tuple[int, int]]:
    """Where standard output and standard error go."""
    with contextlib.ExitStack() as stack:
        full = os.open("/dev/full", os.O_WRONLY)
        reads, writes = os.pipe()
        stack.callback(os.close, full)
        stack.callback(os.close, writes)
        os.close(reads)
        to = {Around.FULL: full, Around.PIPE: writes}.get(entry.around, out)
        yield to, full if entry.around is Around.ERRORS_FULL else err


def _meanwhile(entry: Entry, command: Command, kit: subprocess.Popen[bytes], temp: Path) -> bool:
    """Send the signal, or kill the janitor."""
    if entry.around is Around.JANITOR:
        killed = until(lambda: _killed_janitor(kit, temp) or kit.poll() is not None, within=busy(LIMIT_S))
        return killed and kit.returncode is None
    if entry.number is None:
        return False
    # Before that the signal meets Python itself, as it starts.
    until(lambda: _listens(kit.pid) or kit.poll() is not None, within=GOES_S)
    until(lambda: kit.poll() is not None, within=entry.moment * command.lasts)
    if kit.poll() is not None:
        return False
    with contextlib.suppress(ProcessLookupError):
        if entry.group and entry.number is not signal.SIGKILL:
            os.killpg(kit.pid, entry.number)
        else:
            kit.send_signal(entry.number)
    return True


def _listens(pid: int) -> bool:
    """Whether the process has a handler for SIGTERM."""
    with contextlib.suppress(OSError):
        found = re.search(r"SigCgt:\s*([0-9a-f]+)", Path(f"/proc/{pid}/status").read_text(encoding="ascii"))
        return found is not None and bool(int(found[1], 16) & 1 << (signal.SIGTERM - 1))
    return False


def _killed_janitor(kit: subprocess.Popen[bytes], temp: Path) -> bool:
    # Among the children alone: to ask every process takes so long on a busy machine that the run is over meanwhile.
    with contextlib.suppress(psutil.Error):
        for process in psutil.Process(kit.pid).children():
            if "holdfast.servers.janitor" in process.cmdline():
                # It has something to clean up by then, however long the kit takes to make it.
                until(lambda: any(temp.iterdir()) or kit.poll() is not None, within=busy(LIMIT_S))
                process.kill()
                return True
    return False


def prepare(cwd: Path, sound: Path | None) -> None:
    """The files that the commands read: sound evidence of the toy contract, and a database without a surface."""
    if sound is not None:
        shutil.copyfile(sound, cwd / "sound.jsonl")
    with contextlib.closing(sqlite3.connect(cwd / "keys.sqlite")) as database:
        database.execute("CREATE TABLE measurement (at TEXT, celsius REAL)")
        database.commit()


def due(entry: Entry, ended: Ended) -> frozenset[int]:
    """The statuses with which the entry may end."""
    good = COMMANDS[entry.command].good
    if entry.number is signal.SIGKILL:
        return frozenset({-signal.SIGKILL} if ended.met else {good})
    if entry.command == "reference":
        # It becomes another program, with statuses of its own, which no handler guards while it starts.
        return frozenset({good, 12, 1, 20, 64, -int(entry.number or 0)})
    if entry.number is not None:
        # At the very end it is too late to be interrupted.
        return frozenset({good}) if entry.number is signal.SIGPIPE or not ended.met else frozenset({12, good})
    lost = [int(gravest([Exit(good), Exit.INCOMPLETE]))]
    around: dict[Around, Sequence[int]] = {
        Around.FULL: lost,
        Around.PIPE: lost,
        Around.CLOSED: lost,
        Around.GONE: [good, 64],
        Around.READ_ONLY: [good, 64],
        Around.MEMORY: [good, 12, 13, 20],
        Around.JANITOR: [20] if ended.met else [good],
    }
    return frozenset(around.get(entry.around, [good]))
