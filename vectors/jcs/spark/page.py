"""The parity matrix as one HTML file: no network, no scripts; the pictures are inline SVG."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape

from holdfast.vectors.jcs.spark.parity import Parity, gravest, share
from holdfast.vectors.jcs.spark.results import Counterexample, Result
from holdfast.vectors.jcs.spark.tally import Meaning, Row
from holdfast.vectors.taxonomy import Category, Profile

# Pixels. A cell is wide enough for a percentage, a column's name stands slanted above it.
CELL_WIDTH = 52
CELL_HEIGHT = 22
LEFT = 330
TOP = 150

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


@dataclass(frozen=True, slots=True)
class Cell:
    """One square of the picture."""

    x: int
    y: int
    fill: str
    text: str
    tip: str


@dataclass(frozen=True, slots=True)
class Picture:
    """The heat map of one profile."""

    profile: Profile
    width: int
    height: int
    columns: tuple[tuple[int, str], ...]
    rows: tuple[tuple[int, str], ...]
    cells: tuple[Cell, ...]


def picture(parity: Parity, profile: Profile) -> Picture:
    """Where each SDK departs in `profile`: categories down, SDKs across."""
    results = parity.results
    cells = []
    for down, category in enumerate(Category):
        for across, result in enumerate(results):
            row = result.row(category, profile)
            cells.append(_cell(row, result, LEFT + across * CELL_WIDTH, TOP + down * CELL_HEIGHT))
    return Picture(
        profile,
        LEFT + len(results) * CELL_WIDTH + 120,
        TOP + len(Category) * CELL_HEIGHT + 10,
        tuple((LEFT + i * CELL_WIDTH + CELL_WIDTH // 2, result.target.name) for i, result in enumerate(results)),
        tuple((TOP + i * CELL_HEIGHT, f"{c.value}  {c.title}") for i, c in enumerate(Category)),
        tuple(cells),
    )


def _cell(row: Row, result: Result, x: int, y: int) -> Cell:
    worst = gravest(result, row)
    if worst is None:
        why = "; ".join(result.unaccounted) or "no rows of this category"
        return Cell(x, y, "#eee", "?", f"{result.target.name}, {row.category.value}: {why}: nothing is proven")
    counted = ", ".join(f"{rows} {found.words}" for found, rows in row.counts.items() if rows)
    return Cell(
        x,
        y,
        _fill(worst, share(row, worst)),
        _text(row, worst),
        f"{result.target.name}, {row.category.value}: {counted}",
    )


def _fill(finding: Meaning, part: float) -> str:
    # Agreement is all or nothing; of a departure even a single row must be visible, so the scale begins at a third.
    weight = 0.35 if finding is Meaning.AGREE else 0.35 + 0.65 * part
    mixed = [round(255 + (one - 255) * weight) for one in _COLOURS[finding]]
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def _text(row: Row, worst: Meaning) -> str:
    if worst is Meaning.AGREE:
        return ""
    departing = 1 - share(row, Meaning.AGREE)
    percent = "<1" if departing < 0.01 else f"{departing * 100:.0f}"
    return f"{LETTERS[worst]} {percent}%"


def legend() -> list[tuple[str, str, str]]:
    """Colour, letter and description of each finding, the worst first."""
    return [(_fill(finding, 1.0), LETTERS[finding], finding.words) for finding in Meaning]


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
        pictures=[picture(parity, profile) for profile in Profile],
        legend=legend(),
        findings=list(Meaning),
        describe=describe,
        cell_width=CELL_WIDTH,
        cell_height=CELL_HEIGHT,
        left=LEFT,
        top=TOP,
        agree=Meaning.AGREE,
    )
