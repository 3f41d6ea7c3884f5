"""`holdfast vectors parity`: every SDK that runs here over the same rows, in one matrix.

The matrix as one HTML file has no network and no scripts; the pictures are inline SVG.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape

from holdfast.vectors.jcs.spark.results import Counterexample, Result
from holdfast.vectors.jcs.spark.tally import Meaning, Row
from holdfast.vectors.taxonomy import Category, Profile

# The kit's own measure: if it departs from the construction, one of the two is wrong and no other column counts.
REFERENCE = "reference"


@dataclass(frozen=True, slots=True)
class NotFound:
    """An SDK that cannot run on this machine: not proven. `why` says what to install or build."""

    name: str
    language: str
    library: str
    why: str


@dataclass(frozen=True, slots=True)
class Parity:
    """All results over one batch of rows, the references first, and the SDKs that could not run."""

    results: tuple[Result, ...]
    not_found: tuple[NotFound, ...]

    def __post_init__(self) -> None:
        """Raises ValueError unless all results are of the same rows."""
        seen = {(result.stream, result.seed, result.count) for result in self.results}
        roots = {result.root for result in self.results if result.root is not None}
        if len(seen) > 1 or len(roots) > 1:
            raise ValueError(f"expected results over the same rows, got {sorted(seen)} with roots {sorted(roots)}")

    @property
    def without_rows(self) -> tuple[Category, ...]:
        """The categories without a generated row that was judged: nothing is proven about them."""
        lacking = [set(result.without_rows) for result in self.results]
        return tuple(category for category in Category if all(category in each for each in lacking))

    @property
    def unproven(self) -> tuple[Result, ...]:
        """The results of runners of which rows are missing, or processes failed on no document in particular."""
        return tuple(result for result in self.results if result.unaccounted)

    @property
    def references(self) -> tuple[Result, ...]:
        """The results of the reference, one for each profile."""
        return tuple(result for result in self.results if is_reference(result.target.name))

    @property
    def libraries(self) -> tuple[Result, ...]:
        """The results of everything else."""
        return tuple(result for result in self.results if not is_reference(result.target.name))

    @property
    def faults(self) -> tuple[str, ...]:
        """Where a reference is not right on every row: a fault of the kit."""
        return tuple(
            f"{result.target.name}: {result.total(Meaning.AGREE)} of {result.asked} rows agree"
            for result in self.references
            if result.total(Meaning.AGREE) != result.asked
        )

    @property
    def departing(self) -> tuple[Result, ...]:
        """The libraries that do not agree on every row."""
        return tuple(result for result in self.libraries if result.total(Meaning.AGREE) != result.asked)


def is_reference(name: str) -> bool:
    """Whether a runner is the kit's reference in some profile."""
    return name == REFERENCE or name.startswith(f"{REFERENCE}-")


def profile_of(name: str) -> Profile:
    """The profile that a runner is judged by: a reference by its own, every library by `core`."""
    return Profile(name.removeprefix(f"{REFERENCE}-")) if name.startswith(f"{REFERENCE}-") else Profile.CORE


def gravest(result: Result, row: Row) -> Meaning | None:
    """What a cell shows: the gravest finding of a category, `row` of the table. None where nothing is proven.

    That is where rows are missing, and where all agree but there are no generated ones, or processes of the runner
    failed on no document in particular: it is unknown what they would have done to these.
    """
    worst = row.worst
    unproven = result.restarts or row.category in result.without_rows
    return None if result.lost or (worst is Meaning.AGREE and unproven) else worst


def percent(row: Row) -> str:
    """How many per cent of a category's rows depart, `<1` for less than one; there are some."""
    departing = 100 * (row.rows - row.counts[Meaning.AGREE]) / row.rows
    return "<1" if departing < 1 else f"{departing:.0f}"


# Worst first: a cell shows the gravest finding with its share of the rows. The letter says it without colour.
_COLOURS = {
    Meaning.ACCEPTED: (178, 24, 43),
    Meaning.WRONG_BYTES: (214, 96, 77),
    Meaning.NO_VERDICT: (118, 42, 131),
    Meaning.OVER_REFUSAL: (224, 168, 38),
    Meaning.AGREE: (70, 150, 90),
}
LETTERS = {
    Meaning.ACCEPTED: "A",
    Meaning.WRONG_BYTES: "W",
    Meaning.NO_VERDICT: "-",
    Meaning.OVER_REFUSAL: "R",
    Meaning.AGREE: "",
}


def _cell(result: Result, category: Category, profile: Profile) -> tuple[str, str, str]:
    """The colour, the text and the explanation of one cell of the picture."""
    row = result.row(category, profile)
    name = f"{result.target.name}, {category.value}"
    worst = gravest(result, row)
    if worst is None:
        why = "; ".join(result.unaccounted) or "no rows of this category"
        return "#eee", "?", f"{name}: {why}: nothing is proven"
    counted = ", ".join(f"{rows} {found.words}" for found, rows in row.counts.items() if rows)
    text = "" if worst is Meaning.AGREE else f"{LETTERS[worst]} {percent(row)}%"
    return _fill(worst, row.counts[worst] / row.rows), text, f"{name}: {counted}"


def _fill(finding: Meaning, part: float) -> str:
    # Agreement is all or nothing; of a departure even a single row must be visible, so the scale begins at a third.
    weight = 0.35 if finding is Meaning.AGREE else 0.35 + 0.65 * part
    mixed = [round(255 + (one - 255) * weight) for one in _COLOURS[finding]]
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def page(parity: Parity, describe: Callable[[Result, Counterexample], dict[str, Any]]) -> str:
    """The whole page. `describe` gives document, expected, answered and the command of a counterexample, as text."""
    environment = Environment(
        loader=PackageLoader("holdfast.vectors.jcs.spark", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("parity.html.j2").render(
        parity=parity,
        first=parity.results[0],
        profiles=list(Profile),
        categories=list(Category),
        findings=list(Meaning),
        legend=[(_fill(finding, 1.0), LETTERS[finding], finding.words) for finding in Meaning],
        cell=_cell,
        describe=describe,
    )
