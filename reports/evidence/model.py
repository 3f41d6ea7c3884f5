"""The lines of evidence as types: schema, reading and writing at once (`holdfast.specs.typed`).

A line in memory has no `prev`, which is the writer's, and a footer no `seal`. Instants are aware, in UTC; `sent_us` and
`received_us` are microseconds since the run began. Verdicts and failure modes stay text here: their meaning is the
business of `conformance`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from msgspec import Meta

from holdfast.reports.evidence.identity import Artefacts, SeedOrigin
from holdfast.specs.typed import Count, Digest, Form, Instant, Text, about, matching, one_of, read

# Version of the line format.
SCHEMA: Final = 2

VERDICTS = (
    "kit_fault",
    "fail_open",
    "lost_durability",
    "state_leak",
    "no_verdict",
    "not_reached",
    "indeterminate",
    "unsupported",
    "wrong_reason",
    "over_refusal",
    "conforms",
)
_EXITS = (0, 10, 11, 12, 13, 14, 20, 64)
_FAULTS = "faults"

CaseId: TypeAlias = Annotated[str, Meta(min_length=1, max_length=512)]
ContractName: TypeAlias = Annotated[str, matching("^[a-z][a-z0-9]*(-[a-z0-9]+)*$")]
Version: TypeAlias = Annotated[str, matching(r"^[0-9]+\.[0-9]+\.[0-9]+")]
VerdictName: TypeAlias = Annotated[str, one_of(*VERDICTS)]
Side: TypeAlias = Annotated[str, one_of("main", "twin")]
Hex: TypeAlias = Annotated[str, matching("^([0-9a-f]{2})*$")]
Profile: TypeAlias = Annotated[str, one_of("core", "i-json-strict", "safe-int")]
Category: TypeAlias = Annotated[str, matching("^[PN][1-9][0-9]?$")]


# The header


class KitIdentity(Form, frozen=True):
    """Which holdfast ran; `digest` covers its own code, and packages that bring a contract of the run."""

    name: Text
    version: Text
    digest: Digest
    libraries: Annotated[Mapping[str, Text], about("The versions of the libraries that it ran with, by name.")] = {}


class ContractPin(Form, frozen=True):
    """A contract as it read when the run began."""

    contract: ContractName
    version: Version
    digest: Digest
    cases_digest: Digest
    distribution: Annotated[
        Text | None, about("The distribution that brings it, with its version; null for a contract of holdfast.")
    ] = None


class Implementation(Form, frozen=True):
    """What an adapter says it puts behind the protocol."""

    name: Text
    version: Text
    language: Text


class Claimed(Form, frozen=True):
    """One contract that the adapter says it keeps, and the capabilities it says it lacks."""

    contract: ContractName
    version: Version
    not_claimed: Mapping[str, Text]


class AdapterIdentity(Form, frozen=True):
    """The adapter: how it was started and what it said in its hello. Its files stand in the line `artefacts`."""

    command: Annotated[tuple[str, ...], about("The argument list, or --url and an address; redacted.")]
    commit: Annotated[
        Annotated[str, matching("^[!-~]([ -~]{0,62}[!-~])?$")] | None,
        about("The revision that the caller says the adapter was built from (--commit); null if nothing was said."),
    ]
    implementation: Annotated[Implementation | None, about("Null if the adapter did not come as far as hello.")]
    claims: tuple[Claimed, ...]


class Selection(Form, frozen=True):
    """What the user asked for."""

    contracts: tuple[ContractName, ...]
    expression: Annotated[str | None, about("What -k said; null if the run was not narrowed.")]


class Header(Form, frozen=True, tag_field="type", tag="header"):
    """The first line."""

    kit: KitIdentity
    contracts: tuple[ContractPin, ...]
    adapter: AdapterIdentity
    environment: Annotated[Mapping[str, str], about("Platform, interpreter and other facts that may matter; redacted.")]
    config: Annotated[Mapping[str, str], about("The user's configuration of the adapter; redacted.")]
    seed: Text
    seed_origin: Annotated[
        SeedOrigin, about("Drawn for this run, derived from the nonce, or given by who ran it (--seed).")
    ]
    nonce: Annotated[
        Annotated[str, matching("^[ -~]{1,128}$")] | None,
        about("What the caller gave to know the run again (--nonce); null if nothing."),
    ]
    deadlines: Annotated[
        Mapping[str, Annotated[float, Meta(ge=0)]],
        Meta(
            description="Seconds by name, each above 0; `slow` is the factor they were multiplied with. `faults` is "
            "beyond what is tried in any case; 0 is nothing beyond it.",
            extra_json_schema={
                "allOf": [{"properties": {_FAULTS: True}, "additionalProperties": {"exclusiveMinimum": 0}}]
            },
        ),
    ]
    started: Instant
    plan: Annotated[tuple[CaseId, ...], about("Every case id in order, also those that were not selected.")]
    selection: Selection
    thorough: Annotated[
        float, Meta(ge=1), about("The factor on the number of generated histories and on the floors of faults.")
    ] = 1.0
    schema: Literal[2] = SCHEMA

    def __post_init__(self) -> None:
        """Raises ValueError for a deadline of 0 seconds."""
        if any(seconds == 0 for name, seconds in self.deadlines.items() if name != _FAULTS):
            raise ValueError("expected deadlines above 0 seconds")


# What happened


class Event(Form, frozen=True):
    """How an answer failed to come, or how a local action went."""

    kind: Text
    detail: str


class Exchange(Form, frozen=True, tag_field="type", tag="exchange"):
    """One request and its answer, or one local action; `n` counts from 0 in its side of the case."""

    case: CaseId
    side: Side
    n: Count
    action: str
    worker: Count
    request: Annotated[Mapping[str, Any] | None, about("Without id.")]
    answer: Annotated[Mapping[str, Any] | None, about("Without id.")]
    event: Annotated[Event | None, about("How an answer failed to come, or how a local action went.")]
    sent_us: Annotated[int | None, about("Microseconds since the run began.")]
    received_us: Annotated[int | None, about("Microseconds since the run began.")]


class Log(Form, frozen=True, tag_field="type", tag="log"):
    """Standard error of an adapter, at most 64 KiB a worker."""

    worker: Count
    text: str


class Restart(Form, frozen=True, tag_field="type", tag="restart"):
    """A dead worker was replaced, for the `count`-th time in this run."""

    worker: Count
    cause: str
    count: Annotated[int, Meta(ge=1)]


class Attempt(Form, frozen=True, tag_field="type", tag="attempt"):
    """A case that a limit of holdfast ended. It was run again, alone; the verdict is that of the second time."""

    case: CaseId
    silence: Annotated[str, one_of("hang", "budget", "busy"), about("The failure mode of the first time.")]
    detail: str
    seconds: Annotated[float, Meta(ge=0)]


class VerdictLine(Form, frozen=True, tag_field="type", tag="verdict"):
    """What one case showed; `seconds` is how long it took."""

    case: CaseId
    clauses: tuple[Text, ...]
    verdict: VerdictName
    silence: Annotated[
        Annotated[str, one_of("crash", "hang", "garbage", "eof", "missing", "fault", "budget", "busy")] | None,
        about("The failure mode: why there is no verdict."),
    ]
    detail: str
    expected: str
    received: str
    advice: str
    excused: Annotated[Text | None, about("The issue of the expected failure that excuses it.")]
    seconds: Annotated[float, Meta(ge=0)]
    side: Annotated[Side | None, about("The side that the verdict is of; null where it is of none.")]
    n: Annotated[Count | None, about("The exchange of that side that was judged; null where none was.")]


# What an SDK made of generated documents


class SdkIdentity(Form, frozen=True):
    """What was run, as far as it is known; the command and its digest stand elsewhere."""

    name: str
    language: str
    library: str
    version: str


class TableRow(Form, frozen=True):
    """How many rows of one category came to what; each row of the data is counted in exactly one column."""

    category: Category
    profile: Profile
    rows: Count
    accepted_must_refuse: Count
    wrong_bytes: Count
    no_verdict: Count
    over_refusal: Count
    agree: Count

    @property
    def counted(self) -> int:
        """The sum of its columns."""
        return self.accepted_must_refuse + self.wrong_bytes + self.no_verdict + self.over_refusal + self.agree


class SdkAnswer(Form, frozen=True):
    """An answer to one document."""

    status: Annotated[str, one_of("canonical", "refused", "crashed", "hung", "garbled")]
    hex: Annotated[Hex | None, about("The canonical bytes; null unless status is canonical.")]
    detail: Annotated[str, about("The reason of a refusal, or what happened instead of an answer; redacted.")]


class Counterexample(Form, frozen=True):
    """One document that the SDK does not answer as expected."""

    category: Category
    finding: Annotated[str, one_of("accepted_must_refuse", "wrong_bytes", "no_verdict", "over_refusal")]
    rows: Count
    index: Annotated[Count, about("Of the row as it was generated: `holdfast vectors show SEED:INDEX`.")]
    document: Annotated[Hex, about("The document in hexadecimal, shrunk if `shrunk`.")]
    shrunk: bool
    expected: SdkAnswer
    answered: SdkAnswer
    reproduce: Annotated[Text, about("A command that shows it again.")]
    name: Annotated[
        Text | None, about("Of a row of the opening: a committed vector or a rung of the ladder. Null of others.")
    ] = None
    clause: Annotated[str, about("The clause of the contract that the document is about.")] = ""
    section: Annotated[str, about("The place in RFC 8785, and the RFCs under it, that the clause is from.")] = ""


class Opening(Form, frozen=True):
    """What went before the generated rows: the committed vectors and the ladder of sizes."""

    count: Count
    digest: Annotated[Digest | None, about("Merkle root over its slices; null if rows are missing.")]
    missing: Count
    table: tuple[TableRow, ...]
    left_out: Annotated[Count, about("Rows of categories that were not asked.")] = 0


class Answers(Form, frozen=True):
    """What was answered to all rows of one category, the opening first."""

    category: Category
    sha256: Annotated[
        str,
        matching("^[0-9a-f]{64}$"),
        about(
            "Over the digests of the opening's slices and of the blocks, each over the frames of canonical bytes, `R` "
            "for a refusal, `N` for what is no verdict. A refusal that depth permits counts as the expected bytes."
        ),
    ]


class Reached(Form, frozen=True):
    """The greatest document that was answered as expected, by one measure."""

    category: Category
    measure: Text
    most: Count


def _unbalanced(table: tuple[TableRow, ...], own: str, missing: int, count: int) -> Mapping[str, int]:
    # Of the run's own profile also when the table has no line of it.
    sums = {own: missing}
    for row in table:
        sums[row.profile] = sums.get(row.profile, missing) + row.counted
    return {profile: found for profile, found in sums.items() if found != count}


class Vectors(Form, frozen=True, tag_field="type", tag="vectors"):
    """What an SDK made of documents; the counts of a profile, `missing` and `left_out` add up to `count`."""

    stream: Annotated[Text, about("Version of the generated stream.")]
    seed: Count
    count: Count
    block_rows: Annotated[int, Meta(ge=1)]
    root: Annotated[Digest | None, about("Merkle root over the rows; null if some are missing.")]
    profile: Annotated[Profile, about("The profile that the verdicts are of.")]
    sdk: SdkIdentity
    missing: Count
    restarts: Annotated[
        Count, about("Processes of the runner that failed although each of their documents was answered in the end.")
    ]
    table: tuple[TableRow, ...]
    counterexamples: tuple[Counterexample, ...]

    opening: Opening | None = None
    reached: Annotated[
        tuple[Reached, ...], about("How large the documents were that were answered as expected; no upper limit.")
    ] = ()
    answers: Annotated[tuple[Answers, ...], about("None if rows are missing.")] = ()
    left_out: Annotated[Count, about("Generated rows of categories that were not asked.")] = 0

    def unbalanced(self) -> Mapping[str, int]:
        """The profiles whose generated rows do not add up to `count`, and what they add up to."""
        return _unbalanced(self.table, self.profile, self.missing + self.left_out, self.count)

    def unbalanced_opening(self) -> Mapping[str, int]:
        """The same for the rows of the opening."""
        if self.opening is None:
            return {}
        unseen = self.opening.missing + self.opening.left_out
        return _unbalanced(self.opening.table, self.profile, unseen, self.opening.count)


# What was used, and the end


class Relation(Form, frozen=True):
    """A relation of a store."""

    schema: Text
    name: Text

    def __str__(self) -> str:
        return f"{self.schema}.{self.name}"


class SurfaceLine(Form, frozen=True, tag_field="type", tag="surface"):
    """The store that the run really used, for a contract with clauses that only a fitness proof shows.

    The launcher or the adapter reported where it is; the harness read the rest there.
    """

    contract: ContractName
    source: Annotated[
        Annotated[str, one_of("launcher", "adapter")] | None,
        about("Who reported where the store is; null if it was not reported."),
    ]
    dialect: Annotated[str, one_of("postgresql", "sqlite")] | None
    server: Annotated[Text | None, about("Which server and database it was, without user and secrets.")]
    parts: Mapping[Annotated[str, one_of("effect", "nonce", "audit")], Relation]
    writer: str | None
    schema: Annotated[
        Mapping[str, Digest],
        about("Digests of what the catalogue said of the relations themselves, by the name of the query."),
    ]
    schema_digest: Digest | None
    used: Annotated[
        bool,
        about(
            "Whether the row of a request that the adapter accepted was seen to appear there, and none of one that it "
            "refused."
        ),
    ]
    problem: Annotated[str, about("Why it cannot be said what store the run used; empty if it can.")]


class Footer(Form, frozen=True, tag_field="type", tag="footer"):
    """The last line: the run's verdict and exit status, and verdict lines by verdict."""

    verdict: VerdictName
    exit: Annotated[int, Meta(extra_json_schema={"enum": list(_EXITS)})]
    counts: Mapping[VerdictName, Annotated[int, Meta(ge=1)]]
    finished: Instant
    lines: Annotated[int, Meta(ge=1, description="How many lines precede this one.")]

    def __post_init__(self) -> None:
        """Raises ValueError for an exit status that no command has."""
        if self.exit not in _EXITS:
            raise ValueError(f"expected one of the exit statuses {', '.join(map(str, _EXITS))}, got {self.exit}")


Line: TypeAlias = Header | Exchange | Log | Restart | Attempt | VerdictLine | Vectors | SurfaceLine | Artefacts | Footer
# By the member `type`, in the order of the published schema.
LINES: Mapping[str, type[Line]] = {form.__struct_config__.tag: form for form in get_args(Line)}


def line_of(data: Mapping[str, Any]) -> Line:
    """The line that JSON values without a place in the chain hold. Raises InvalidError for what is not of its type."""
    line: Line = read(data, LINES[data["type"]], instants=("started", "finished"))
    return line
