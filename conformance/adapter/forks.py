"""Processes of the reference's adapter that are forked: its imports take longer than most of its sessions.

`holdfast verify reference` starts hundreds of processes of one program. An adapter of others is started as its command
says, and so is everything here that another program runs, but for the kit's own tracer: it is forked as well, and then
forks what it traces. Nothing that it records happens before a session is opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Self

from holdfast.conformance.adapter.process import Child, in_a_new_process
from holdfast.conformance.faults import tracer
from holdfast.servers.forkserver import ForkServer
from holdfast.servers.janitor import Janitor

# Processes that are forked by one have the same seed of hashes, and so the same order of sets. Forks take turns between
# this number of fork servers, so that a process and its next one differ in it.
_SERVERS = 2

Environment = tuple[tuple[str, str], ...]


class Forks:
    """Starts `adapter` as a fork of `forkserver`. A context manager; leaving it ends what it has forked.

    `forkserver` is a command that begins like the command of the adapter, for `holdfast.servers.forkserver`.
    """

    def __init__(self, forkserver: Sequence[str], adapter: Sequence[str], *, janitor: Janitor) -> None:
        self._forkserver, self._adapter, self._janitor = tuple(forkserver), tuple(adapter), janitor
        both = zip(self._forkserver, self._adapter, strict=False)
        self._words = self._adapter[next(n for n, (theirs, ours) in enumerate(both) if theirs != ours) :]
        self._starts: Counter[Environment] = Counter()
        self._servers: dict[tuple[Environment, int], ForkServer] = {}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def start(self, command: Sequence[str], environment: Mapping[str, str]) -> Child:
        """See `process.Start`. The first process of an environment is no fork: most runs of one case need no other."""
        key = tuple(sorted(environment.items()))
        number = self._starts[key]
        self._starts[key] += 1
        tracing = tracer.arguments_of(command)
        program = command if tracing is None else command[-len(self._adapter) :]
        if number == 0 or tuple(program) != self._adapter:
            return in_a_new_process(command, environment)
        within = None if tracing is None else (f"{tracer.__name__}.trace", tracing)
        return self._of(key, number % _SERVERS).start(self._words, environment, within)

    def _of(self, environment: Environment, number: int) -> ForkServer:
        """What a program finds in its environment when it is imported stays in its forks, so each has its own."""
        if (environment, number) not in self._servers:
            made = ForkServer(self._forkserver, janitor=self._janitor, environment=dict(environment))
            self._servers[environment, number] = self._stack.enter_context(made)
        return self._servers[environment, number]
