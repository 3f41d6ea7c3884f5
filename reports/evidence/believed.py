"""What the gate believes of a run because nothing in the file can show otherwise: the list of what a forger can write.

Whoever has a run in hand can change any of this, compute chain and seal anew, and the gate decides as before. All else
is judged again, derived again or compared. docs/evidence.md has this list as its table; tests alter real runs in every
field and find exactly this.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Believed:
    """One place, as `type.member` with `*` for any name or number, what can be forged there, and what holds it."""

    place: str
    forged: str
    held_by: str
    signed: str


_SIGNER = "the signer stands for it"

BELIEVED: tuple[Believed, ...] = ()
