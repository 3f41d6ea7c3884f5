"""Making a counterexample small enough to check by hand.

First a part of the document may do instead of the whole. Then a document is cut into pieces, of which the fewest are
kept: the members and elements of each container, then tokens, then single bytes. A smaller document counts only if the
SDK and the expectation still disagree in the same way: a refusal that is due must be due for the same reason, wrong
bytes must be wrong in the same kind of thing. The expectation for it cannot come from the construction any more; it
comes from the reference, asked through frames like any other runner, and only after the reference has shown that it
agrees with the construction on the document it started from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from holdfast.vectors.fewest import fewest
from holdfast.vectors.jcs.frames import Answered, Exchange, Status
from holdfast.vectors.jcs.spark.kinds import PUNCTUATION, TOKEN, kinds, wanted
from holdfast.vectors.jcs.spark.tally import Meaning, disagreement
from holdfast.vectors.taxonomy import Category

# Attempts of one pass; a pass that needs more has a document that a later, finer pass makes smaller anyway.
_ATTEMPTS = 400
_ROUNDS = 3
# A pass over more pieces than this would take longer than a person who shrinks by hand.
_MOST_PIECES = 256
_MOST_CONTAINERS = 24


@dataclass(frozen=True, slots=True)
class Shrunk:
    """A counterexample: the document, what the reference and the SDK answer to it."""

    document: bytes
    expected: Answered
    answered: Answered


class Shrinker:
    """Shrinks for one SDK. `oracle` and `sdk` stay open for all its counterexamples, `until` is on time.monotonic."""

    def __init__(self, oracle: Exchange, sdk: Exchange, *, until: float) -> None:
        self._oracle = oracle
        self._sdk = sdk
        self._until = until
        self._known: dict[bytes, tuple[Answered, Answered]] = {}

    def shrink(self, document: bytes, expected: Answered, category: Category | None = None) -> Shrunk | None:
        """The smallest document found that departs as `document` does.

        If it departs in several kinds of things, the smaller one keeps that of `category`, or without it all of them.
        None if it does not depart again (an SDK that does not answer the same each time), if the reference does not
        share the expectation, or if no time is left: then the row as it was generated has to do.
        """
        if time.monotonic() > self._until:
            return None
        ours, theirs = self._ask(document)
        if ours.status is not expected.status or (expected.status is Status.CANONICAL and ours.body != expected.body):
            return None
        finding = disagreement(ours, theirs)
        if finding is Meaning.AGREE:
            return None
        due = wanted(kinds(ours.body, theirs.body), category) if finding is Meaning.WRONG_BYTES else frozenset()

        def departs(candidate: bytes) -> bool:
            if time.monotonic() > self._until:
                return False
            said, answered = self._ask(candidate)
            # A refusal must stay one for the same reason, or the counterexample would drift into another category.
            same = said.status is ours.status and (said.status is Status.CANONICAL or _reason(said) == _reason(ours))
            fits = same and disagreement(said, answered) is finding
            # Nor may one that must be accepted: an order of members must not become a spelling of a number.
            fits = fits and (not due or due <= kinds(said.body, answered.body))
            if fits and len(candidate) < len(best[0]):
                best[0] = candidate
            return fits

        best = [document]
        smallest = document
        for _ in range(_ROUNDS):
            before = smallest
            for step in (_part, _members, _single_tokens, _single_bytes):
                step(smallest, departs)
                # An observed departure counts, also when time ran out before Hypothesis came back to it.
                smallest = best[0]
            if smallest == before:
                break
        said, answered = self._ask(smallest)
        return Shrunk(smallest, said, answered)

    def _ask(self, document: bytes) -> tuple[Answered, Answered]:
        found = self._known.get(document)
        if found is None:
            found = self._known[document] = (self._oracle.ask(document), self._sdk.ask(document))
        return found


def _reason(answer: Answered) -> bytes:
    """The first word of a refusal; an offset or an explanation may stand after it."""
    return answer.body.split(maxsplit=1)[0] if answer.body.strip() else b""


def _pass(
    pieces: Sequence[bytes],
    departs: Callable[[bytes], bool],
    whole: bytes,
    render: Callable[[Iterable[bytes]], bytes] = b"".join,
) -> bytes:
    """What `render` makes of the fewest of `pieces`, in order, that departs; `whole` if all are needed."""
    if len(pieces) > _MOST_PIECES:
        return whole
    kept = fewest(pieces, lambda kept: departs(render(kept)), tries=_ATTEMPTS)
    return render(kept) if len(kept) < len(pieces) else whole


def _part(document: bytes, departs: Callable[[bytes], bool]) -> bytes:
    """The shortest value inside the document that departs by itself; the document if there is none."""
    spans = [(start, end) for start, end, _ in _containers(document) if end - start < len(document)]
    at = 0
    for token in TOKEN.findall(document):
        if token[:1] not in PUNCTUATION:
            spans.append((at, at + len(token)))
        at += len(token)
    parts = sorted({document[start:end] for start, end in spans}, key=lambda part: (len(part), part))
    return next(filter(departs, parts[:_ATTEMPTS]), document)


def _members(document: bytes, departs: Callable[[bytes], bool]) -> bytes:
    """The document with as few members and elements as will do, container by container, the longest first."""
    for nth in range(_MOST_CONTAINERS):
        containers = sorted(_containers(document), key=lambda found: (found[0] - found[1], found[0]))
        if nth >= len(containers):
            break
        start, end, members = containers[nth]
        head, tail = document[: start + 1], document[end - 1 :]
        document = _pass([document[a:b] for a, b in members], departs, document, partial(_joined, head=head, tail=tail))
    return document


def _joined(members: Iterable[bytes], *, head: bytes, tail: bytes) -> bytes:
    return head + b",".join(members) + tail


def _containers(document: bytes) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Start, end and members of each object and array, as far as brackets pair; strings are passed over."""
    found = []
    open_: list[tuple[int, list[int]]] = []
    at = 0
    for token in TOKEN.findall(document):
        if token in (b"[", b"{"):
            open_.append((at, [at + 1]))
        elif token == b"," and open_:
            open_[-1][1].append(at + 1)
        elif token in (b"]", b"}") and open_:
            start, cuts = open_.pop()
            members = [(a, b - 1) for a, b in pairwise([*cuts, at + 1])]
            found.append((start, at + 1, [(a, b) for a, b in members if document[a:b].strip()]))
        at += len(token)
    return found


def _single_tokens(document: bytes, departs: Callable[[bytes], bool]) -> bytes:
    return _pass(TOKEN.findall(document), departs, document)


def _single_bytes(document: bytes, departs: Callable[[bytes], bool]) -> bytes:
    return _pass([document[i : i + 1] for i in range(len(document))], departs, document)
