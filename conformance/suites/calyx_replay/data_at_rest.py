"""What a mailbox leaves in its folder beside its records: of what was refused, of what was pruned, and for whom.

A mailbox may keep its mail as it likes, in its database or beside it. So what was delivered may be anywhere, if others
cannot read it (CALYX-LOC-4); what was refused is nowhere (CALYX-ALG-14); and a prune adds no copy of what it removes
(CALYX-PRN-12).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.cases.session import Answer
from holdfast.conformance.suites.calyx_replay.model import Letter, State

Tables = Mapping[str, Sequence[Mapping[str, Any]]]

_TABLE = "replay_state"
# What SQLite puts beside a database.
_BESIDE = ("", "-wal", "-shm", "-journal")
# How many of the texts are searched for, the last of each kind: each is looked for in several spellings.
_MOST = 64
# How many records are followed through a prune.
_FOLLOWED = 8


def is_given(path: str, given: Sequence[str]) -> bool:
    """Whether a file is one of these, or in one of the folders among them, which end with a slash."""
    return any(path.startswith(each) if each.endswith("/") else path == each for each in given)


class Remaining:
    """The inspections of one history. Files are read by the harness: what matters is what can be read, and by whom."""

    def __init__(self, bench: Bench, session: SuiteSession, *given: str) -> None:
        """`given` are the files that the harness puts there, and folders of such files, which end with a slash."""
        self._bench, self._session, self._given = bench, session, given
        self._database = str(bench.contract.parameters["database_path"].value)
        # What only the owner may read, of mode 0600 with what SQLite puts beside it.
        self._private = {f"{self._database}{suffix}" for suffix in _BESIDE}
        # Texts that only the owner may read, and those of which nothing may be kept, each with what it is.
        self._confided: dict[str, str] = {}
        self._refused: dict[str, str] = {}
        self._tables: Tables = {}
        self._open: set[str] = set()

    def made(self, letter: Letter) -> None:
        """A letter may come in without an answer that says so, at a race or a kill, or lies there for version 0."""
        self._open.add(letter.text)
        self._refused.pop(letter.text, None)

    def received(self, letter: Letter) -> None:
        """A letter came to the mailbox."""
        self._confided |= dict.fromkeys((letter.row["sender_fp"], letter.row["recipient_fp"]), "who wrote to whom")

    def answered(self, letter: Letter, answer: Answer, *, aborted: bool) -> None:
        """A receipt was answered."""
        self.received(letter)
        if answer.outcome != "refused" or answer.reason == "REPLAY_DUPLICATE" or aborted:
            self.made(letter)
        elif letter.text not in self._open:
            self._refused[letter.text] = "a letter"

    def pruning(self, state: State, prune: Callable[[], State]) -> None:
        """Do a prune, and see that it copies nothing to another file."""
        rows = [record.row for record in state.records.values()][:_FOLLOWED]
        groups = [(row["msg_id"], row["sender_fp"], row["recipient_fp"]) for row in rows]
        before = self._copies(groups)
        after = prune()
        gone = [at for at, row in enumerate(rows) if row["replay_key"] not in after.records]
        if gone:
            now = self._copies(groups)
            self._more("files", [(groups[at][0], before[at], now[at]) for at in gone])

    def keeps_its_log(self, mode: str | None) -> None:
        """See that the database is in the mode that it was made in (CALYX-HARD-2)."""
        if mode not in (None, "wal"):
            self._bench.fail("lost_durability", "the database has no log any more", expected="WAL mode", received=mode)

    def looked(self, tables: Tables) -> None:
        """See that what was pruned since the last look is in no other table more often than before."""
        now = {row.get("replay_key") for row in tables.get(_TABLE, ())}
        gone = [row for row in self._tables.get(_TABLE, ()) if row.get("replay_key") not in now][:_FOLLOWED]
        counts = [(row["replay_key"], _rows_of(row, self._tables), _rows_of(row, tables)) for row in gone]
        self._tables = tables
        self._more("tables", counts)

    def _more(self, where: str, counts: Collection[tuple[str, int, int]]) -> None:
        for what, before, after in counts:
            if after > before:
                self._bench.fail(
                    "state_leak",
                    f"a record that was pruned is in other {where}",
                    expected=f"{what} {before} times, as before",
                    received=f"{after} times",
                )

    def inspect(self) -> None:
        """Hold the folder against what is allowed, and see that git ignores the database. Raises NonConformance."""
        refused, confided = (list(each.items())[-_MOST:] for each in (self._refused, self._confided))
        # The last is nowhere: the modes count also where nothing is searched for.
        wanted = [*refused, *confided, (self._session.hex64("nowhere"), "")]
        for entry in self._session.remains(".", [text for text, _ in wanted]):
            path, which = entry["path"], entry["which"]
            if is_given(path, self._given):
                continue
            if path in self._private and entry["mode"] != "0600":
                self._bench.fail("state_leak", f"the mode of {path}", expected="0600", received=entry["mode"])
            if which and which[0] < len(refused):
                self._fail(f"{path} holds {wanted[which[0]][1]}, which was refused", "nothing of it is kept")
            if which and entry["open"]:
                what = f"{path} of mode {entry['mode']} holds {wanted[which[0]][1]}"
                self._fail(what, "it is for its owner alone, or lies in a folder that is")
        for suffix in ("", "-wal", "-shm"):
            if not self._session.file(f"{self._database}{suffix}")["ignored"]:
                self._bench.fail("state_leak", f"git does not ignore {self._database}{suffix}", expected="ignored")

    def _copies(self, groups: Sequence[Sequence[str]]) -> list[int]:
        """In how many files, beside the database and what was given, all texts of each group can be read."""
        wanted = sorted({text for group in groups for text in group})
        found = [
            {wanted[which] for which in entry["which"]}
            for entry in (self._session.remains(".", wanted) if wanted else [])
            if entry["path"] not in self._private and not is_given(entry["path"], self._given)
        ]
        return [sum(texts.issuperset(group) for texts in found) for group in groups]

    def _fail(self, found: str, expected: str) -> None:
        self._bench.fail("state_leak", "what the session left in its folder", expected=expected, received=found)


def _rows_of(row: Mapping[str, Any], tables: Tables) -> int:
    """How many rows of other tables say of a record who wrote to whom."""
    names, parties = {row["replay_key"], row["msg_id"]}, {row["sender_fp"], row["recipient_fp"]}
    found = [
        {cell for cell in other.values() if isinstance(cell, str)}
        for name, others in tables.items()
        if name != _TABLE
        for other in others
    ]
    return sum(not cells.isdisjoint(names) and not cells.isdisjoint(parties) for cells in found)
