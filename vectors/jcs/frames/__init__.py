"""Frames: how the kit talks to an SDK runner (docs/sdk-runners.md), and what an answer is worth.

In: u32 big-endian length, then the document. Out: u32 big-endian length of the body, one status byte (`C` canonical
bytes, `R` refused with a reason), then the body. One answer a document, in order; the end of the input ends.

`run` gives an answer at a time. `vectors.jcs.frames.columns` has the same in Arrow columns, at a fraction of the cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from holdfast.vectors.jcs.frames.answer import Answered, StartError, Status
from holdfast.vectors.jcs.frames.exchange import START_S, Exchange, Listener, blocks, unheard

__all__ = ["Answered", "Exchange", "StartError", "Status", "run"]


def run(
    command: Sequence[str],
    documents: Iterable[bytes],
    *,
    deadline: float,
    start: float = START_S,
    env: Mapping[str, str] | None = None,
    unexplained: Listener = unheard,
) -> Iterator[Answered]:
    """One answer for each document, in order, for every behaviour of the runner.

    `deadline` is the number of seconds a runner may go without completing an answer, counted only while the kit waits
    for one; `start` is the same for the first answer of a process. `env` is the whole environment of the runner (by
    default the few variables that programs need); put the mark of the run's janitor into it where there is one.

    A document has no verdict (CRASHED, HUNG, GARBLED, with what happened as its body) only if it was the first one of
    a fresh process and no other document is to blame, or if the runner was given up (`exchange` says when).
    `unexplained` is called for each process that crashed, hung or sent garbage although all its documents were answered
    in the end, and of one that ended by a signal or with a status other than 0 when its input ended: no row shows
    that, and it is no pass. At most a few thousand documents are read ahead of the answers that were taken. The
    process and its whole group are gone when the iterator is exhausted, closed, or left by an exception. Raises
    StartError.
    """
    with Exchange(command, deadline=deadline, start=start, env=env, unexplained=unexplained) as exchange:
        for frames in exchange.checked(blocks(documents)):
            yield from frames.answers()
