"""Whether the adapter or the machine let a deadline pass: how much processor time each of them lost.

A deadline assumes that a process which wants the processor gets it. So when a deadline runs out, the kit asks three
things. A heartbeat of the kit's own, a thread that wakes every 50 ms, shows how long the kit itself did not run. The
kernel shows how long a thread of the adapter was ready and waited for a processor (`/proc/PID/task/*/schedstat`), and
whether a thread of it waits for a disk at that moment (state D).

The rule: if either lost more than a quarter of the waited time, or the adapter waits for a disk, the machine was too
busy, and the missing answer says nothing of the adapter. A quarter, because the deadlines are many times what an honest
answer takes: an adapter that answers within three quarters of one would have been in time. An adapter that sleeps or is
blocked otherwise waits for no processor, so a hung one is called hung on a busy machine too, unless the kit itself did
not run. Neither is a pass.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

BEAT_S = 0.05
# The share of the waited time above which a loss of time means that the machine is too busy.
TOO_MUCH = 0.25
# A quiet machine wakes a thread late by less than this.
_ON_TIME_S = 0.002
# Enough for minutes in which each beat was late; a session is shorter unless --slow stretches it.
_KEPT = 20_000
# After this part of a wait the adapter's threads are inspected first. Nearly every answer is there by then.
FIRST_LOOK = 0.125
# Processes of an adapter that are inspected: a database server has a dozen.
_MOST = 256


class Heartbeat:
    """A thread that wakes every `BEAT_S` and records how late it was. Started once, ends with the process."""

    def __init__(self) -> None:
        self._late: deque[tuple[int, int]] = deque(maxlen=_KEPT)
        self._last = time.monotonic_ns()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Start the beat; a no-op if it beats already."""
        with self._lock:
            if self._thread is None:
                self._last = time.monotonic_ns()
                self._thread = threading.Thread(target=self._beat, name="holdfast-heartbeat", daemon=True)
                self._thread.start()

    def _beat(self) -> None:
        while True:
            time.sleep(BEAT_S)
            now = time.monotonic_ns()
            due = self._last + int(BEAT_S * 1e9)
            if now - due > _ON_TIME_S * 1e9:
                self._late.append((due, now))
            self._last = now

    def lost(self, since_ns: int, until_ns: int) -> float:
        """Seconds between two moments of the monotonic clock in which this process did not run."""
        # After a stop that has just ended, the beat itself may not have come yet.
        pending = (self._last + int(BEAT_S * 1e9), until_ns)
        recent = takewhile(lambda span: span[1] > since_ns, reversed(list(self._late)))
        spans = [*recent, pending] if pending[1] - pending[0] > _ON_TIME_S * 1e9 else [*recent]
        return sum(max(0, min(end, until_ns) - max(begin, since_ns)) for begin, end in spans) / 1e9


HEARTBEAT = Heartbeat()
# Servers that launchers have started: an adapter that waits for one of them waits for a processor as that one does.
SERVERS: set[int] = set()


@dataclass(slots=True)
class Watch:
    """One wait for an adapter: it begins with this object. `process` is the leader of the adapter's processes."""

    process: int
    began_ns: int = field(default_factory=time.monotonic_ns)
    _queued: dict[int, int] = field(default_factory=dict)
    _looked_ns: int = 0

    def look(self) -> None:
        """Note how long the adapter's threads have waited for a processor so far."""
        self._queued, self._looked_ns = self._queued_now(), time.monotonic_ns()

    def starved(self) -> str:
        """Why the machine was too busy for this wait, in words; empty if it was not. Called when the time is over."""
        now = time.monotonic_ns()
        kit, waited = HEARTBEAT.lost(self.began_ns, now), (now - self.began_ns) / 1e9
        if waited < BEAT_S:
            # A loss shorter than a beat means nothing.
            return ""
        if kit > TOO_MUCH * waited:
            return f"holdfast itself did not run for {kit:.3g} s of the {waited:.3g} s that it waited"
        if self._looked_ns:
            last = self._queued_now()
            adapter = max((last[task] - self._queued.get(task, 0) for task in last), default=0) / 1e9
            watched = (now - self._looked_ns) / 1e9
            if adapter > TOO_MUCH * watched:
                what = "the adapter, or the server it was given, stood ready and had no processor"
                return f"{what} for {adapter:.3g} s of the last {watched:.3g} s"
        if _waits_for_disk(self.process):
            return f"the adapter waited for the disk when the {waited:.3g} s were over"
        return ""

    def _queued_now(self) -> dict[int, int]:
        """The nanoseconds for which each thread of the adapter and of the servers has waited for a processor."""
        return {task: waited for leader in (self.process, *SERVERS) for task, waited in _queued(leader).items()}


def lost_since(began_ns: int) -> str:
    """Why the machine was too busy since then, from the kit's own loss; empty if it was not."""
    now = time.monotonic_ns()
    lost, waited = HEARTBEAT.lost(began_ns, now), (now - began_ns) / 1e9
    return f"holdfast itself did not run for {lost:.3g} s of {waited:.3g} s" if lost > TOO_MUCH * waited else ""


def _queued(leader: int) -> dict[int, int]:
    """The nanoseconds for which each thread of a process and its descendants has waited for a processor."""
    found: dict[int, int] = {}
    for task in _tasks(leader):
        with contextlib.suppress(OSError, ValueError, IndexError):
            found[int(task.name)] = int((task / "schedstat").read_text().split()[1])
    return found


def _waits_for_disk(leader: int) -> bool:
    """Whether a thread of a process or its descendants is in the state D: a call that waits for a device."""
    for task in _tasks(leader):
        with contextlib.suppress(OSError, IndexError):
            # The name of the program stands in parentheses and may hold any character.
            if (task / "stat").read_text().rpartition(")")[2].split()[0] == "D":
                return True
    return False


def _tasks(leader: int) -> Iterator[Path]:
    """The threads of a process and its descendants. On other systems than Linux nothing is known."""
    waiting, inspected = [leader], 0
    while waiting and inspected < _MOST:
        process, inspected = waiting.pop(), inspected + 1
        threads = list[Path]()
        # A process that has ended has no threads any more, also where it ends at this moment, and no children.
        with contextlib.suppress(OSError):
            threads += Path(f"/proc/{process}/task").iterdir()
        for task in threads:
            yield task
            with contextlib.suppress(OSError, ValueError):
                waiting += map(int, (task / "children").read_text().split())
