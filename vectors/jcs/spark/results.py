"""What a run of `vectors verify` is asked for, and what it showed: the driver's data, without Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from holdfast.vectors.jcs.frames import Answered
from holdfast.vectors.jcs.measures import Measure
from holdfast.vectors.jcs.opening import Opening
from holdfast.vectors.jcs.spark.judge import Command
from holdfast.vectors.jcs.spark.manifest import Manifest
from holdfast.vectors.jcs.spark.storage import Store
from holdfast.vectors.jcs.spark.tally import CATEGORIES, Meaning, Row, summed
from holdfast.vectors.taxonomy import Category, Profile

# At most this number of characters of a process's last output is shown.
_SHOWN_WORDS = 500


@dataclass(frozen=True, slots=True)
class Generated:
    """Rows constructed while they are needed."""

    seed: int
    count: int


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows that `generate` wrote: a complete folder."""

    folder: Store
    manifest: Manifest

    @property
    def seed(self) -> int:
        """The seed they were generated from."""
        return self.manifest.seed

    @property
    def count(self) -> int:
        """How many rows there are."""
        return self.manifest.count


Source = Generated | Stored


@dataclass(frozen=True, slots=True)
class Target:
    """An SDK under test. What is not known of it is an empty text."""

    name: str
    language: str
    library: str
    version: str
    command: Command


@dataclass(frozen=True, slots=True)
class VerifyRequest:
    """What to verify, in which profile, how many mismatches of each cell to keep of a partition.

    Only rows of `categories` are asked. The rows of `opening` go first; None leaves them out, and the run then says
    nothing of sizes. `reference` is the command of the reference in that profile; it is asked what is expected of
    shrunk documents, for at most `shrink_s` seconds in all.
    """

    target: Target
    source: Source
    profile: Profile
    reference: Command
    kept: int = 1000
    shrink_s: float = 30.0
    partitions: int | None = None
    opening: Opening | None = None
    categories: tuple[Category, ...] = CATEGORIES


@dataclass(frozen=True, slots=True)
class Counterexample:
    """The shortest departing row of a cell, or what it was `shrunk` to: the document to inspect.

    `name` is that of a row of the opening, None of a generated one. `clause` is the clause of the contract.
    """

    category: Category
    finding: Meaning
    rows: int
    index: int
    name: str | None
    clause: str
    document: bytes
    expected: Answered
    answered: Answered
    shrunk: bool


@dataclass(frozen=True, slots=True)
class Opened:
    """The opening as it was judged: how many rows it has, their digest, and the table of all profiles."""

    count: int
    digest: str | None
    rows: tuple[Row, ...]
    missing: int
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Result:
    """What one run showed. `missing` rows were counted nowhere; `failure` says why the runner never started.

    `generated` is the table of the generated rows, `opened` that of the opening. `restarts` processes died, hung or
    talked nonsense although each of their documents was answered when it was asked again, so that no row shows it;
    `restarted` says how the first of them ended. `reached` has the greatest measures of rows that agree. `answers` has
    by category the SHA-256 of what was answered; it is empty if rows are missing. Of the generated rows `left_out` are
    of other categories than `categories`, so that they were not asked.
    """

    target: Target
    profile: Profile
    stream: str
    seed: int
    count: int
    root: str | None
    generated: tuple[Row, ...]
    missing: int
    counterexamples: tuple[Counterexample, ...]
    mismatches: str
    failure: str | None
    seconds: float
    restarts: int = 0
    restarted: str = ""
    opened: Opened | None = None
    reached: Mapping[Category, Mapping[Measure, int]] = field(default_factory=dict)
    answers: Mapping[Category, str] = field(default_factory=dict)
    categories: tuple[Category, ...] = CATEGORIES
    left_out: int = 0

    @property
    def rows(self) -> tuple[Row, ...]:
        """The table of all rows, those of the opening among them."""
        return self.generated if self.opened is None else summed(self.generated, self.opened.rows)

    @property
    def asked(self) -> int:
        """How many rows were to be judged, those of the opening among them."""
        opened = 0 if self.opened is None else self.opened.count - self.opened.left_out
        return self.count - self.left_out + opened

    def row(self, category: Category, profile: Profile | None = None) -> Row:
        """The line of the table for `category`, in the run's own profile unless another is given."""
        wanted = profile or self.profile
        return next(row for row in self.rows if row.category is category and row.profile is wanted)

    @property
    def lines(self) -> tuple[Row, ...]:
        """The table in the run's own profile, with a line for every category that was asked."""
        return tuple(row for row in self.rows if row.profile is self.profile and row.category in self.categories)

    def own(self) -> tuple[Row, ...]:
        """The lines that have rows."""
        return tuple(row for row in self.lines if row.rows)

    @property
    def without_rows(self) -> tuple[Category, ...]:
        """The categories of which no generated row was judged: nothing is proven about them.

        Those of the opening are few, and half of them are known beforehand.
        """
        own = [row for row in self.generated if row.profile is self.profile]
        return tuple(row.category for row in own if not row.rows and row.category in self.categories)

    @property
    def lost(self) -> int:
        """Rows that were counted nowhere, those of the opening among them."""
        return self.missing + (0 if self.opened is None else self.opened.missing)

    @property
    def unaccounted(self) -> tuple[str, ...]:
        """A description of what no row of the table shows: missing rows, processes that ended without a known cause.

        With any of it no category is proven, because it is unknown whose the rows were, or what the processes died of.
        """
        words = [f"{self.lost} rows missing"] if self.lost else []
        if self.restarts:
            words.append(
                f"{self.restarts} processes of the runner failed on no document in particular, the first: "
                f"{self.restarted[:_SHOWN_WORDS]}"
            )
        return tuple(words)

    def total(self, finding: Meaning) -> int:
        """Rows with `finding` in the run's own profile."""
        return sum(row.counts[finding] for row in self.own())

    @property
    def answered(self) -> int:
        """Rows for which the SDK itself gave an answer."""
        return sum(row.rows - row.counts[Meaning.NO_VERDICT] for row in self.own())
