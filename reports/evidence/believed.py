"""What the gate believes of a run because nothing in the file can show otherwise: all that a forger can write there.

A forger who has the file can change any of this, compute chain and seal anew, and the gate decides as before.
Everything else is judged again, derived again or compared. docs/evidence.md has this list as its table; the tests alter
real runs in every field and find exactly this.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Believed:
    """One place (`type.member…`, all that stands below it too), what can be forged there, and what meets that.

    `option` is the option of the gate that holds another value there, if there is one. `single`: one change there is
    enough; other rows take several.
    """

    place: str
    forged: str
    today: str
    signed: str
    option: str | None = None
    single: bool = True

    def row(self) -> str:
        """As a row of the table in docs/evidence.md."""
        return f"| {self.place} | {self.forged} | {self.today} | {self.signed} |"


_NOTHING = "nothing; no decision rests on it"
_SIGNER = "who signs stands for it"

BELIEVED = (
    Believed(
        "every line",
        "a whole run as a conforming adapter would have had it: made up, or recorded of another program",
        "`--nonce`: it must be made after the nonce was known, with the requests that follow from it",
        "only who holds the key can do it",
        option="--nonce",
        single=False,
    ),
    Believed(
        "header.seed_origin",
        "a chosen seed that has the form of a random one is called `fresh`",
        "`--nonce`: then the seed must be the one that is derived from it",
        _SIGNER,
        option="--nonce",
        single=False,
    ),
    Believed(
        "header.started",
        "any instant within `--max-age` and after `--not-before`",
        "`--nonce`, if it is younger than the instant",
        "a time stamp of a third party bounds it from above",
    ),
    Believed(
        "footer.finished",
        "any instant after the start that leaves time for the exchanges, up to five minutes less",
        "`--nonce`, if it is younger than the instant",
        "a time stamp of a third party bounds it from above",
    ),
    Believed(
        "header.adapter.commit",
        "any revision",
        "`--commit` holds a mix-up, not a forger who knows which one is asked for",
        _SIGNER,
        option="--commit",
    ),
    Believed(
        "artefacts.files",
        "files and digests of another build, with the digest that follows from them",
        "`--adapter-digest` holds a mix-up, not a forger who knows which one is asked for",
        "who signs has seen these files; a build that is signed too is the same to its digest",
        option="--adapter-digest",
    ),
    Believed("artefacts.files.*.source", "how a file came to be counted", _NOTHING, _SIGNER),
    Believed("artefacts.not_hashed", "that more, or less, was not hashed", "nothing; read it", _SIGNER),
    Believed("header.adapter.command", "the words of the command line", _NOTHING, _SIGNER),
    Believed(
        "header.adapter.implementation",
        "what the adapter says of itself",
        _NOTHING,
        _SIGNER,
    ),
    Believed(
        "header.adapter.claims",
        "claims of contracts that are not required; capabilities called not claimed though cases used them",
        "`--baseline` compares them with an earlier run",
        _SIGNER,
    ),
    Believed("header.environment", "the machine and its tools", "whether faults could be tried is judged", _SIGNER),
    Believed("header.config", "the configuration of the adapter", "nothing; read it", _SIGNER),
    Believed("header.thorough", "a larger factor, where no suite plays histories", _NOTHING, _SIGNER),
    Believed("header.deadlines", "how long the adapter was waited for", "nothing; read it", _SIGNER),
    Believed(
        "exchange.answer",
        "values that the contract leaves to the adapter",
        "schema, refusal, effect and state are judged again",
        _SIGNER,
    ),
    Believed("exchange.sent_us", "the moment", "that calls of a race overlap is judged", _SIGNER),
    Believed("exchange.received_us", "the moment", "that calls of a race overlap is judged", _SIGNER),
    Believed(
        "drawn exchange",
        "requests and answers of a suite test whose questions Hypothesis generates",
        "a whole session with answers that fit the contract must be there",
        _SIGNER,
    ),
    Believed(
        "fault exchange",
        "sessions beside a fault, and how many points its report says were tried",
        "layer, seed and findings are judged again",
        _SIGNER,
    ),
    Believed("verdict.detail", "why a layer does not apply, where it does not", "that it does not is judged", _SIGNER),
    Believed(
        "attempt",
        "that a case was run twice, and which limit ended the first time",
        "the second time is judged again, as any result is",
        _SIGNER,
    ),
    Believed("verdict.seconds", "how long a case took", _NOTHING, _SIGNER),
    Believed(
        "surface",
        "which store the run used, and its schema",
        "with `--fitness` it must have the schema of the proof; without it nothing rests on it",
        _SIGNER,
    ),
    Believed(
        "log", "standard error of adapter processes that ended: its text, and whether there is any", _NOTHING, _SIGNER
    ),
    Believed("restart", "which worker was replaced and why, and whether any was", _NOTHING, _SIGNER),
)


def believed_at(place: str) -> Believed | None:
    """The row that speaks of a place, the closest one first; None where the gate believes nothing."""
    rows = [row for row in BELIEVED if place == row.place or place.startswith(f"{row.place}.")]
    return max(rows, key=lambda row: len(row.place), default=None)
