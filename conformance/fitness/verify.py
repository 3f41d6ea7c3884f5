"""Why a proof does not show that the expected surface is fit. Pure.

The seal detects damage, not forgery. Against a forger who seals anew, the digest is computed again and the evidence is
judged again by the function that judged it; a registrar compares the digest with its live surface. A forger who makes
up whole evidence, answers of probes included, makes up a proof, as with a run.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.conformance.fitness.assessment import Assessment
from holdfast.conformance.fitness.judge import judge
from holdfast.conformance.fitness.model import Evidence, FitnessJudgement, Part, Standing, Status
from holdfast.conformance.fitness.proof import Proof, ProofDocument, bound_to, password_in, seal_of
from holdfast.reports.evidence import KitIdentity
from holdfast.specs import Contract
from holdfast.specs.typed import instant_text

# Clocks of machines in one installation differ by seconds; by more, a proof claims to be from the future.
_CLOCK_TOLERANCE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a caller of the gate expects a proof to be of.

    `surface` is the effect relation, schema.table; `server` the name of its server and database, None if the caller
    did not say; `challenge` is what was to be given to `holdfast fitness --challenge`, None if none is asked for.
    """

    surface: str
    server: str | None
    challenge: str | None = None


def verify(proof: Proof, *, contract: Contract, kit: KitIdentity, now: datetime, expected: Expected) -> tuple[str, ...]:
    """Why the proof does not show that the expected surface is fit; empty if it does. `now` is aware. Pure."""
    return tuple(_problems(proof, contract, kit, now, expected))


def _problems(proof: Proof, contract: Contract, kit: KitIdentity, now: datetime, expected: Expected) -> Iterator[str]:
    assessed = proof.assessment
    if seal_of(proof.raw) != proof.raw["seal"]:
        yield "the seal is broken, so something was changed after it was written; look again"
    yield from _of_identity(proof.document, contract, kit)
    age, made = now - proof.document.made, instant_text(proof.document.made)
    if age < -_CLOCK_TOLERANCE:
        yield f"it was made at {made}, which is in the future"
    if age > assessed.policy.max_age:
        yield f"it was made at {made} and its policy lets it stand for {assessed.policy.max_age}; look again"
    if assessed.surface is None or assessed.evidence is None:
        yield f"it says {assessed.judgement.status.value}: there was no surface to prove anything of"
        return
    effect = str(assessed.surface.parts.get(Part.EFFECT, ""))
    if effect != expected.surface:
        # The relation itself: a policy can give any table the name of another one.
        yield f"it speaks of the relation {effect!r}, and {expected.surface!r} was asked for"
    name = assessed.policy.name or effect
    if assessed.surface.name != name:
        yield f"its policy and its relations call the surface {name!r}, not {assessed.surface.name!r}"
    yield from _of_server(proof, expected.server)
    wanted, held = expected.challenge, proof.document.challenge
    if wanted not in (None, held):
        got = "none" if held is None else repr(held)
        yield f"expected the challenge {wanted!r} in it, got {got}; look again with --challenge {wanted!r}"
    names = [probe.name for probe in assessed.evidence.probes]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        yield f"it holds probes twice, so it is unknown which one counts: {', '.join(twice)}"
    if bound_to(assessed.evidence.snapshot.structure, assessed.policy.written()) != proof.document.digest:
        yield "its digest is not that of its catalogue and policy"
    if proof.document.departures != assessed.policy.departures():
        yield "what it says about departures from the contract is not what its policy does"
    if where := password_in(proof.raw):
        yield f"it holds a password in a URL at {where}; throw it away and change the password"
    yield from _of_judgement(assessed, assessed.evidence)


def _of_identity(proof: ProofDocument, contract: Contract, kit: KitIdentity) -> Iterator[str]:
    pin = proof.contract
    if (pin.name, pin.digest) != (contract.name, contract.digest):
        yield f"it was made for {pin.name} {pin.version} with another text than the installed {contract.version}"
    if (proof.kit.name, proof.kit.version) != (kit.name, kit.version):
        yield (
            f"it was made by {proof.kit.name} {proof.kit.version}, installed is {kit.name} {kit.version}; "
            "look again with the installed one"
        )
    elif proof.kit.digest != kit.digest:
        yield f"it was made by other code that calls itself {kit.version} too; look again with the installed one"


def _of_server(proof: Proof, expected: str | None) -> Iterator[str]:
    """A proof of staging, of a replica or of a restored copy opens nothing for the live server."""
    server, made = proof.assessment.server, proof.document.made
    if server != proof.document.server:
        yield "the server that it names is not the one of its evidence"
    if server is None:
        yield "it names no server, so its surface is unknown; assess it again as a role that may read the server's id"
        return
    if server.replica:
        yield f"it was made on a replica ({server.name}), and consumed keys are held by the primary; look at that one"
    if expected is None:
        yield (
            f"no expected server was given, and it is of {server.name}: without that a proof of staging would "
            "open production. Give --server with the name of the live one, as `holdfast fitness` prints it there"
        )
    elif expected != server.name:
        yield f"it was made on the server {server.name}, and {expected} was expected; look at that one"
    if server.clock_contradicts(made):
        clock = server.facts["clock"]
        yield (
            f"it says that it was made at {instant_text(made)}, and the clock of its server said {clock} then; "
            "one of the two was edited, or the clocks differ: set them right and look again"
        )


def _of_judgement(assessed: Assessment, evidence: Evidence) -> Iterator[str]:
    try:
        again = judge(evidence, assessed.policy)
    # Evidence that fits the schema and not the judge was not written by this kit.
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        yield f"its evidence cannot be judged again ({type(error).__name__}), so it is unknown what it shows"
        return
    if again != assessed.judgement:
        yield f"judged again its evidence amounts to {_in_words(again)}, and it says {_in_words(assessed.judgement)}"
    if again.status is not Status.FIT:
        yield f"it does not show a surface that is fit: {_in_words(again)}"


def _in_words(judgement: FitnessJudgement) -> str:
    missing = [each for each in judgement.findings if each.standing is not Standing.PROVEN]
    if not missing:
        return judgement.status.value
    described = ", ".join(f"({each.criterion.value}) {each.standing.value}" for each in missing)
    return f"{judgement.status.value} with {described}"
