"""Judging one criterion of a surface: what it rests on, and every reason against it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum, unique
from typing import Any

from holdfast.conformance.fitness.codes import Code
from holdfast.conformance.fitness.criteria.spelling import mentions
from holdfast.conformance.fitness.model import (
    Criterion,
    CriterionResult,
    Dialect,
    Evidence,
    EvidenceClass,
    Part,
    Probe,
    ProbeAnswer,
    Reason,
    RelationName,
    Row,
    Standing,
)
from holdfast.conformance.fitness.policy import KEYS, NONCE, Policy
from holdfast.conformance.fitness.postgres.catalogue import Catalogue, UnreadError

# What the database says when a constraint, a type or a foreign key holds: class 23, text that is no value of the type,
# a number out of range, a text that is too long.
_CONSTRAINT_CLASSES = ("23",)
_TYPE_REFUSES = ("22P02", "22021", "22001", "22003")
NO_PRIVILEGE = "42501"
_CHECK = "23514"
# The error of a session above READ COMMITTED when another one was first: try again.
NOT_SERIALIZED = "40001"
# Under this name a race counts the rows of the key, where its loser had that error.
THERE = "there"
# Errors that say nothing about the rows: the statement was wrong, the session or the server failed, or it waited.
_SHOWS_NOTHING = ("08", "22", "25P", "26", "3D", "3F", "40", "42", "53", "55P", "57", "58", "XX")
# Refusals by a rule that speaks of something else than of changes: what it lets pass tomorrow is not known.
_BY_CHANCE = ("0A000", "23502", "23503", "23505", "23514")
# How probes on the live table are called: as those on the clone, with this before.
LIVE = "live-"


@unique
class NoRows(Enum):
    """What it means that a statement gave no error and no count of rows.

    A row may be neither refused nor added: a caller that does not count takes it for added. A change that changed
    nothing leaves open whether another one would. TRUNCATE counts no rows when it is done.
    """

    NO_REFUSAL = "no refusal"
    NOTHING_DONE = "nothing done"
    HARMLESS = "harmless"
    DONE = "done"


# Classes of evidence that consist of probes.
_TRIED = (EvidenceClass.CLONE, EvidenceClass.CONCURRENCY)


@dataclass(slots=True)
class Judging:
    """One criterion while it is judged. Reasons refute it, or leave it unproven; without any it is proven."""

    criterion: Criterion
    evidence: Evidence
    policy: Policy
    catalogue: Catalogue
    needs: tuple[EvidenceClass, ...]
    reasons: list[Reason] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)
    probes: list[str] = field(default_factory=list)
    _silent: dict[str, str] = field(default_factory=dict)
    # The probes that were refused by what does not show that others are, or that show nothing: by their answer.
    _unread: dict[tuple[Part | None, str], list[str]] = field(default_factory=dict)

    def refute(
        self, code: Code, text: str, part: Part | None = None, *, rows: Iterable[Row] = (), probes: Iterable[str] = ()
    ) -> None:
        """The forbidden result was shown."""
        self._reason(Standing.REFUTED, code, text, part, tuple(rows), tuple(probes))

    def refute_unless(
        self, by: str | None, code: Code, text: str, part: Part, rows: Iterable[Row] = (), *, doubt: Code | None = None
    ) -> None:
        """What a catalogue shows: refuted; unproven, as `doubt`, where all that was tried was refused `by` this."""
        if by:
            text = f"{text}; what was tried was refused ({by}), and that everything else is refused too is not shown"
            self.unproven(doubt or code, text, part, rows=rows)
        else:
            self.refute(code, text, part, rows=rows)

    def unproven(
        self, code: Code, text: str, part: Part | None = None, *, rows: Iterable[Row] = (), probes: Iterable[str] = ()
    ) -> None:
        """The required result was not shown."""
        self._reason(Standing.UNPROVEN, code, text, part, tuple(rows), tuple(probes))

    def _reason(
        self, how: Standing, code: Code, text: str, part: Part | None, rows: tuple[Row, ...], probes: tuple[str, ...]
    ) -> None:
        reason = Reason(self.criterion, how, code.value, text, part, rows, probes)
        if reason not in self.reasons:
            self.reasons.append(reason)
        self.rest_on(*rows)

    def rest_on(self, *rows: Row) -> None:
        """Note rows that the criterion rests on."""
        self.rows.extend(row for row in rows if row not in self.rows)

    def _miss(self, needs: Iterable[EvidenceClass]) -> None:
        """Mark as inconclusive each class that is needed and is not there, or of which nothing was tried."""
        for each in needs:
            why = self.evidence.lost.get(each)
            own = [probe for probe in self.evidence.probes if probe.evidence is each]
            if why is None and each in _TRIED and all(probe.answer is None for probe in own):
                # The error that stood in the way, if a probe names it; those of the class itself come first.
                failed = [probe.failed for probe in (*own, *self.evidence.probes) if probe.failed]
                why = f"nothing of it was tried{f': {failed[0]}' if failed else ''}"
            if why is not None:
                self.unproven(Code.EVIDENCE_MISSING, f"no evidence of the class {each.value}: {why}")

    def _standing(self) -> Standing:
        found = {reason.standing for reason in self.reasons}
        return next((each for each in (Standing.REFUTED, Standing.UNPROVEN) if each in found), Standing.PROVEN)

    @property
    def in_files(self) -> bool:
        """Whether the surface lies in SQLite files: there are no roles, and a connection sets what a server would."""
        return self.evidence.snapshot.dialect is Dialect.SQLITE

    def part(self, part: Part) -> RelationName | None:
        """The relation of a part, if the surface has one."""
        return self.evidence.surface.parts.get(part)

    @property
    def writer(self) -> str | None:
        """The role that writes to the surface, if one is known."""
        return self.evidence.surface.writer

    @property
    def actors(self) -> tuple[str, ...]:
        """Who tries to change what is there, by the names of probes."""
        return ("writer",) if self.in_files else ("writer", "owner") if self.writer is not None else ("owner",)

    @property
    def powers(self) -> frozenset[str]:
        """The roles whose privileges the writer can use; none without a writer."""
        roles = self.catalogue.roles
        return frozenset() if self.writer is None else roles.powers(self.writer)

    def spread(self, part: Part) -> tuple[RelationName, ...]:
        """The relation of a part, and its partitions and children; nothing if there is none."""
        name = self.part(part)
        return () if name is None else (name, *self.catalogue.below(name))

    def column(self, part: Part, word: str) -> Row | None:
        """The column that a word of the contract means in a part, if both are there."""
        return self.named_column(part, self.policy.column(word))

    def named_column(self, part: Part, column: str) -> Row | None:
        """A column of a part, if both are there."""
        name = self.part(part)
        return None if name is None else self.catalogue.column(name, column)

    def relation(self, part: Part) -> Row | None:
        """The relation of a part, if it is there."""
        name = self.part(part)
        return None if name is None else self.catalogue.relation(name)

    def reviewed(self, row: Row, of: object) -> bool:
        """Whether a person has reviewed what is named in a row, by its name or by that of what it is `of`."""
        return not {str(row["name"]), f"{of}.{row['name']}"}.isdisjoint(self.policy.reviewed)

    def check(self, inspect: Callable[..., object], *about: Any) -> None:
        """Let one check read; what it cannot read leaves the criterion unproven."""
        try:
            inspect(self, *about)
        except UnreadError as error:
            self.unproven(Code.CATALOGUE_UNREADABLE, f"the catalogue could not be read: {error}")

    def tried(self, name: str) -> tuple[tuple[Probe, ProbeAnswer], ...]:
        """A probe with the answer that counts, on the clone and, with the owner's consent, on the live table.

        A probe that is not there, or could not be tried, is remembered and leaves the criterion unproven.
        """
        found: list[tuple[Probe, ProbeAnswer]] = []
        for wanted in (name, LIVE + name):
            for probe in self.evidence.probes:
                if probe.name == wanted:
                    self.probes.append(wanted)
                    if (answer := probe.answer) is not None:
                        found.append((probe, answer))
                    elif wanted == name:
                        self._silent[name] = probe.failed or "it ended early"
        if name not in self._silent and not any(probe.name == name for probe, _ in found):
            self._silent[name] = "it was not tried"
        return tuple(found)

    def refusal(self, *names: str) -> str | None:
        """What refused all of these probes, in words; empty where one was not refused, None where one was not tried."""
        each = [self._answers(name) for name in names]
        if not all(each):
            return None
        answers = [answer for found in each for answer in found]
        return "; ".join(dict.fromkeys(map(_said, answers))) if all(map(is_refusal, answers)) else ""

    def unread(self, *names: str) -> bool:
        """Whether all of these were refused, one of them by what is not shown to refuse others: that is a reason."""
        states = {answer.sqlstate or "" for name in names for answer in self._answers(name)}
        return (
            not self.in_files
            and bool(self.refusal(*names))
            and any(state == _CHECK or not _of_constraints(state) for state in states)
        )

    def _answers(self, name: str) -> list[ProbeAnswer]:
        probes = (probe for probe in self.evidence.probes if probe.name in (name, LIVE + name))
        return [probe.answer for probe in probes if probe.answer is not None]

    def staged(self, name: str) -> tuple[tuple[Probe, ProbeAnswer], ...]:
        """A probe whose earlier statements all have to go through, because the last one builds on them."""
        found = self.tried(name)
        for probe, _ in found:
            if probe.name == name and (why := unprepared(probe)):
                self._silent[name] = why
        return tuple((probe, answer) for probe, answer in found if not unprepared(probe))

    def admitted(self, name: str, code: Code, text: str, *, part: Part | None = None) -> None:
        """A row that must go in: the twin of every refusal."""
        for probe, answer in self.staged(name):
            if answer.sqlstate is not None:
                other = code is not Code.AUDIT_UNWRITABLE and self.by_others(answer)
                if other or (probe.name == name and not refused(answer)):
                    self._silent[name] = _said(answer)
                else:
                    self.refute(code, f"{text}: {_said(answer)}", part=part, probes=[probe.name])
            elif answer.affected == 0 and probe.statements[-1].sql.startswith("INSERT"):
                self.refute(code, f"{text}: no row was added", part=part, probes=[probe.name])

    def by_others(self, answer: ProbeAnswer) -> bool:
        """Whether a unique index has refused that has no key, nonce or attempt: values of ours were equal there."""
        words = list(map(self.policy.column, (*KEYS, NONCE, "attempt")))
        refusing = [
            (relation, index)
            for part in self.evidence.surface.parts
            for relation in self.spread(part)
            for index in self.catalogue.unique(relation)
            if index["name"] == answer.constraint
        ]
        return (
            answer.sqlstate == "23505"
            and bool(refusing)
            and not any(
                index["expressions"] or name in words or (self.catalogue.column(relation, name) or {}).get("generated")
                for relation, index in refusing
                for name in index["columns"]
            )
        )

    def refused(
        self,
        name: str,
        code: Code,
        text: str,
        *,
        part: Part | None = None,
        by: Callable[[ProbeAnswer], bool] | None = None,
        no_rows: NoRows = NoRows.NO_REFUSAL,
        staged: bool = False,
    ) -> None:
        """What must not go through. Going through refutes with `code`; an answer that shows nothing is inconclusive."""
        for probe, answer in self.staged(name) if staged else self.tried(name):
            if answer.sqlstate is None and (answer.affected != 0 or no_rows is NoRows.DONE):
                # TRUNCATE counts no rows.
                rows = f", {answer.affected} {'row' if answer.affected == 1 else 'rows'}" if answer.affected else ""
                self.refute(code, f"{text}: no error{rows}", part=part, probes=[probe.name])
            elif answer.sqlstate is None and no_rows is NoRows.NO_REFUSAL:
                ignored = (
                    f"the row of the probe {probe.name} was neither refused nor added: no error, and no row; a "
                    "caller that does not count takes it for added"
                )
                self.refute(Code.SILENTLY_IGNORED, ignored, part=part, probes=[probe.name])
            elif answer.sqlstate is None and no_rows is NoRows.NOTHING_DONE:
                ignored = (
                    f"the change of the probe {probe.name} was not refused and changed nothing: no error, and no row; "
                    "whether another change would be refused is not shown; let the guard raise an exception"
                )
                self.unproven(Code.SILENTLY_IGNORED, ignored, part=part, probes=[probe.name])
            elif answer.sqlstate is not None and not (by or (is_refusal if self.in_files else refused))(answer):
                unread = "was refused by what is not shown to refuse every other row or change"
                of = unread if is_refusal(answer) else "shows nothing"
                self._unread.setdefault((part, f"{of}: {_said(answer)}"), []).append(probe.name)

    def finding(self) -> CriterionResult:
        """How the criterion stands."""
        for (part, said), names in self._unread.items():
            described = f"the probe {names[0]}" if len(names) == 1 else f"each of the probes {', '.join(names)}"
            self.unproven(Code.PROBE_FAILED, f"{described} {said}", part=part, probes=names)
        self._miss(self.needs)
        refuted = any(reason.standing is Standing.REFUTED for reason in self.reasons)
        # A refuted criterion has its reasons: what could not be tried besides is no news.
        if self._silent and not refuted and not any(each in self.evidence.lost for each in self.needs):
            described = "; ".join(f"{name}: {why}" for name, why in sorted(self._silent.items()))
            self.unproven(Code.PROBE_FAILED, f"not shown by any probe: {described}", probes=sorted(self._silent))
        # Reasons that refute come first.
        reasons = sorted(self.reasons, key=lambda reason: reason.standing is not Standing.REFUTED)
        probes = tuple(dict.fromkeys(sorted(self.probes)))
        return CriterionResult(self.criterion, self._standing(), tuple(reasons), tuple(self.rows), probes)


def refused(answer: ProbeAnswer) -> bool:
    """Whether a constraint or a type has refused."""
    return _of_constraints(answer.sqlstate or "")


def _of_constraints(state: str) -> bool:
    return state.startswith(_CONSTRAINT_CLASSES) or state in _TYPE_REFUSES


def is_refusal(answer: ProbeAnswer) -> bool:
    """Whether anything that belongs to the surface has refused, whatever that shows of other rows and changes."""
    return guarded(answer) or refused(answer) or answer.sqlstate in _BY_CHANCE


def duplicate(catalogue: Catalogue, relation: RelationName, column: str) -> Callable[[ProbeAnswer], bool]:
    """Whether a unique index has refused, or that of a partition, that is over this column and what is made of it."""
    names = {
        str(index["name"])
        for each in (relation, *catalogue.below(relation))
        for index in catalogue.unique(each)
        if index["columns"] == [column] or (index["predicate"] is None and _made_of(catalogue, each, index) == {column})
    }
    return lambda answer: answer.sqlstate == "23505" and answer.constraint in names


def _made_of(catalogue: Catalogue, relation: RelationName, index: Row) -> set[str]:
    """The columns that decide which rows are equal to an index."""
    rows = {str(row["name"]): row for row in catalogue.of("columns", relation)}
    texts = [str(rows[name]["default"]) for name in index["columns"] if name in rows and rows[name]["generated"]]
    plain = {name for name in index["columns"] if name is not None and not (name in rows and rows[name]["generated"])}
    return plain | {name for text in (*texts, str(index["expressions"] or "")) for name in rows if mentions(text, name)}


def unprepared(probe: Probe) -> str:
    """Why the rows on which a probe builds are not there; empty if they are."""
    for statement, answer in zip(probe.statements[:-1], probe.answers[:-1], strict=False):
        if answer.sqlstate is not None:
            return f"before it came to that: {_said(answer)}"
        if statement.sql.startswith("INSERT") and answer.affected != 1:
            return "before it came to that an INSERT added no row"
        if any(row.get("waits") is False for row in answer.rows):
            return "the second session did not wait for the first"
    return ""


def guarded(answer: ProbeAnswer) -> bool:
    """Whether a privilege or a guard has refused a change."""
    state = answer.sqlstate or ""
    return state == NO_PRIVILEGE or (bool(state) and not state.startswith((*_SHOWS_NOTHING, *_BY_CHANCE)))


def _said(answer: ProbeAnswer) -> str:
    return f"{answer.sqlstate or 'no error'} {answer.message}".strip()


def sound(judging: Judging, checks: Iterable[Row]) -> list[Row]:
    """Checks that hold for every row, old and new, and whose text says all that they do."""
    return [
        check
        for check in checks
        if check["validated"] and check["enforced"] and not check.get("volatile") and not foreign_calls(judging, check)
    ]


# The catalogue is read with nothing but pg_catalog on the search path: what is not PostgreSQL's own has its schema
# before it, a function as well as an operator or a type. Text in quotes is skipped, and so is the type of a constant.
_NAME = r'(?:"(?:[^"]|"")*"|(?!\d)[\w$]+)'
_WORDS = re.compile(
    rf"'(?:[^']|'')*'(?:::{_NAME}\.{_NAME})?|(?P<schema>{_NAME})(?:\.(?P<name>{_NAME}|[-+*/<>=~!@#%^&|`?]+))?"
)


def foreign_calls(judging: Judging, check: Row) -> list[str]:
    """What a check uses beyond pg_catalog without a review: the text of the check does not show what that answers."""
    found = [
        f"{_bare(each['schema'])}.{_bare(each['name'])}"
        for each in _WORDS.finditer(str(check["definition"]))
        if each["name"] is not None and _bare(each["schema"]) != "pg_catalog"
    ]
    # Which function a cast between two types of PostgreSQL is, only the catalogue says.
    return [name for name in dict.fromkeys((*found, *check["calls"])) if name not in judging.policy.reviewed]


def _bare(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
