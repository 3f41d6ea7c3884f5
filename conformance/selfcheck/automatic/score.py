"""What came of all mutants of a contract, as counts."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from holdfast.conformance.selfcheck.tasks import End, Outcome
from holdfast.specs.automatic import MOST_EQUIVALENT, Site

# This percentage of the mutants that are not listed as equivalent must be killed.
GOAL_PERCENT = 95


@dataclass(frozen=True, slots=True)
class Score:
    """One contract's mutants. `sites` is how many there are, `drawn` those that were tried, each with its outcome.

    `equivalent` are the arguments of those that are listed as equivalent, `problems` what is wrong with that list.
    """

    contract: str
    seed: str
    sites: int
    drawn: Sequence[Site]
    outcomes: Mapping[str, Outcome]
    equivalent: Mapping[str, str]
    problems: Sequence[str]

    @property
    def ends(self) -> Mapping[End, int]:
        """How many mutants ended in each way."""
        found = Counter(self.outcomes[site.id].end for site in self.drawn)
        return {end: found[end] for end in End if found[end]}

    @property
    def killed(self) -> int:
        """How many were killed, in any way."""
        return sum(self.outcomes[site.id].end.is_kill for site in self.drawn)

    @property
    def survivors(self) -> Sequence[Site]:
        """Those that no test found, and that are not listed as equivalent."""
        return [
            site for site in self.drawn if not self.outcomes[site.id].end.is_kill and site.id not in self.equivalent
        ]

    @property
    def listed(self) -> int:
        """How many survived and are listed as equivalent."""
        return len(self.drawn) - self.killed - len(self.survivors)

    @property
    def complaints(self) -> Sequence[str]:
        """What is wrong, in sentences."""
        said = list(self.problems)
        refuted = [site.id for site in self.drawn if site.id in self.equivalent and self.outcomes[site.id].end.is_kill]
        said += [f"{name} is listed as equivalent, and a test finds it; remove the entry" for name in refuted]
        if self.listed * MOST_EQUIVALENT > len(self.drawn):
            said.append(f"{self.listed} of {len(self.drawn)} are listed as equivalent; at most one in ten may be")
        if not self.drawn:
            said.append("no mutant was tried")
        if self.killed * 100 < GOAL_PERCENT * (len(self.drawn) - self.listed):
            said.append(f"fewer than {GOAL_PERCENT} of a hundred mutants that are not listed were killed")
        return said

    def sentence(self) -> str:
        """The score in one line."""
        times = ", ".join(f"{count} {end.value}" for end, count in self.ends.items() if end.is_kill)
        return (
            f"{self.contract}: killed {self.killed} of {len(self.drawn)} ({times or 'none'}), "
            f"{self.listed} listed as equivalent, {len(self.survivors)} survived; "
            f"{self.sites} sites, seed {self.seed}"
        )


def difference(site: Site, source: str) -> str:
    """The change as a unified diff without context."""
    data = source.encode()
    changed = (data[: site.start] + site.text.encode() + data[site.end :]).decode()
    lines = difflib.unified_diff(source.splitlines(), changed.splitlines(), site.file, site.file, n=0, lineterm="")
    return "\n".join(list(lines)[2:])
