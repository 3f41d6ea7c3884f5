"""What the gate asks of a run's identity: which files ran, of which commit, for whom, when, and from which seed.

The caller of the gate identifies a run by what he knows of it. Without `--nonce`, `--commit` and `--adapter-digest` it
may be any run of that contract. docs/evidence.md says what a forger of the file can still do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from holdfast.conformance.gate.model import Expected, GateReason, ReasonCode, some_of
from holdfast.conformance.verdict import Exit
from holdfast.reports.evidence import Artefacts, Header, Run, SeedOrigin, seed_of_nonce
from holdfast.specs.typed import instant_text

# As `holdfast verify` generates one.
_FRESH = re.compile(r"[0-9a-f]{32}\Z")


def of_identity(run: Run, header: Header, expected: Expected) -> Iterator[GateReason]:
    """Why the run is not the required one, or does not identify itself."""
    yield from _files(run.artefacts, expected)
    if expected.commit is not None and header.adapter.commit != expected.commit:
        text = f"commit {expected.commit} was asked for, the run says {header.adapter.commit or 'nothing of a commit'}"
        yield _held(ReasonCode.OTHER_COMMIT, f"{text}; run that commit with --commit {expected.commit}")
    if expected.not_before is not None and header.started < expected.not_before:
        text = f"the run started at {instant_text(header.started)}, not before {instant_text(expected.not_before)}"
        yield _held(ReasonCode.TOO_EARLY, f"{text} was asked for; run again")
    yield from _seed(header, expected)


def _files(artefacts: Artefacts | None, expected: Expected) -> Iterator[GateReason]:
    if artefacts is None:
        text = "the run does not say which files ran (a line of type artefacts); run again"
        yield _held(ReasonCode.DAMAGED, f"the evidence is not complete: {text}")
        return
    if artefacts.changed:
        text = f"files of the adapter changed while the run went on ({some_of(artefacts.changed)})"
        advice = "run again while nothing is built; a file that the adapter writes does not belong on its command line"
        yield _held(ReasonCode.ADAPTER_CHANGED, f"{text}: it is unknown which of them was tested; {advice}")
    if expected.adapter_digest is not None and artefacts.digest != expected.adapter_digest:
        came = artefacts.digest or "none, for no file of it was hashed"
        text = f"the adapter with the digest {expected.adapter_digest} was asked for, the run has {came}"
        yield _held(ReasonCode.OTHER_ADAPTER, f"{text}; verify that build, in the same way (docs/evidence.md)")


def _seed(header: Header, expected: Expected) -> Iterator[GateReason]:
    origin, said = header.seed_origin, header.nonce
    derived = said is not None and header.seed == seed_of_nonce(said)
    if origin is SeedOrigin.CHOSEN and not expected.allow_seed:
        text = "the seed of the run was chosen (--seed), so the adapter could know beforehand what it would be asked"
        yield _held(ReasonCode.SEED_CHOSEN, f"{text}; run without --seed, or allow it with --allow-seed")
    if origin is SeedOrigin.FRESH and (said is not None or _FRESH.match(header.seed) is None):
        text = "its seed is said to be fresh, and is not one that holdfast draws"
        yield _held(ReasonCode.DAMAGED, f"the evidence contradicts itself: {text}; run again")
    if origin is SeedOrigin.NONCE and not derived:
        text = "its seed is said to be of its nonce, and is not"
        yield _held(ReasonCode.DAMAGED, f"the evidence contradicts itself: {text}; run again")
    if expected.nonce is None:
        return
    if said != expected.nonce:
        came = "has none" if said is None else "has another one"
        text = f"the nonce {expected.nonce} was asked for, the run {came}"
        yield _held(ReasonCode.OTHER_NONCE, f"{text}; run with --nonce {expected.nonce}")
    elif not derived and not expected.allow_seed:
        text = "the seed of the run does not follow from its nonce; run with --nonce and without --seed"
        yield _held(ReasonCode.OTHER_NONCE, text)


def _held(code: ReasonCode, text: str) -> GateReason:
    return GateReason(code, text, Exit.INCOMPLETE)
