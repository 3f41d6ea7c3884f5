"""Which mutants there are, which of them are drawn, and which a person says make no difference."""

from __future__ import annotations

import hashlib
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

import holdfast
from holdfast.conformance.run.settings import REFERENCE
from holdfast.conformance.selfcheck.tasks import Sites
from holdfast.specs.automatic import Equivalent, Site, load_automatic

_REFERENCES = Path(holdfast.__file__).parent / "reference_impl"


class ListingError(Exception):
    """The sites of a reference cannot be listed, or its source has changed since."""


def listed(contract: str) -> tuple[Sites, tuple[Site, ...]]:
    """Every site of a contract's reference, in the order of its source. Raises ListingError."""
    command = [*REFERENCE, "sites", "--contract", contract]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode != 0:
        raise ListingError(done.stderr.decode(errors="replace").strip() or f"exit {done.returncode}")
    first, *others = done.stdout.splitlines()
    return msgspec.json.decode(first, type=Sites), tuple(msgspec.json.decode(line, type=Site) for line in others)


def source_of(site: Site) -> str:
    """The source that the site is in. Raises ListingError if it has changed: no mutant can be made of it any more."""
    data = (_REFERENCES / site.file).read_bytes()
    if hashlib.sha256(data).hexdigest() != site.digest:
        raise ListingError(f"{site.file} has changed since its places were listed; run it again")
    return data.decode()


def drawn(sites: Sequence[Site], *, count: int, seed: str) -> tuple[Site, ...]:
    """`count` of the sites in their order, the same for the same seed and the same source; all if there are fewer.

    Each site has a rank of its own, so a change of the source draws anew only what it touches.
    """
    seen: Counter[tuple[str, ...]] = Counter()
    ranks: dict[str, bytes] = {}
    for site in sites:
        what = (site.contract, site.file, site.function, site.operator, site.code, site.was, site.text)
        seen[what] += 1
        ranks[site.id] = hashlib.sha256(repr((seed, what, seen[what])).encode()).digest()
    chosen = frozenset(sorted(ranks, key=ranks.__getitem__)[:count])
    return tuple(site for site in sites if site.id in chosen)


def equivalents(contract: str, sites: Sequence[Site]) -> tuple[Mapping[str, str], tuple[str, ...]]:
    """The sites that are listed as equivalent, with the argument; and what is wrong with the list, in sentences."""
    found: dict[str, str] = {}
    problems = []
    for entry in load_automatic(contract).equivalent:
        ids = [site.id for site in sites if _is_of(entry, site)]
        if not ids:
            where = f"{entry.operator} of {entry.was!r} in {entry.function or entry.file}"
            problems.append(f"automatic.yaml lists {where}, and there is none; remove the entry or write it anew")
        found.update(dict.fromkeys(ids, entry.why))
    return found, tuple(problems)


def _is_of(entry: Equivalent, site: Site) -> bool:
    return (
        entry.file == site.file
        and entry.function == site.function
        and entry.operator == site.operator
        and entry.code == site.code
        and entry.was == site.was
        and entry.text == site.text
    )
