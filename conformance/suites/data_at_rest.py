"""What a session leaves in its folder, held against what its contract allows.

A suite says what may be where (`Allowed`), and notes while it plays what only the owner may read, and of what nothing
may be kept. Files are read by the harness. Any file may lie there: what matters is what can be read in it, and by whom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.conformance.suites.bench import Bench
from holdfast.conformance.suites.session import SuiteSession

# What SQLite puts beside a database.
_BESIDE = ("", "-wal", "-shm", "-journal")
# Searched for where nothing else is: the modes count all the same.
_NOWHERE = "holdfast: nothing is called like this"
# How many of the texts are searched for, the last of each kind: each is looked for in several spellings.
_MOST = 64


@dataclass(frozen=True, slots=True)
class Allowed:
    """`folder` is inspected. `databases` are for their owner alone, with what SQLite puts beside them: mode 0600.

    `given` are the files that the harness put there, and folders of such files, which end with a slash.
    """

    folder: str
    databases: tuple[str, ...] = ()
    given: tuple[str, ...] = ()

    def is_given(self, path: str) -> bool:
        """Whether the harness put this file there."""
        return any(path.startswith(each) if each.endswith("/") else path == each for each in self.given)


class Remains:
    """What one session has left."""

    def __init__(self, bench: Bench, session: SuiteSession, allowed: Allowed) -> None:
        self._bench, self._session, self._allowed = bench, session, allowed
        self._private = {f"{path}{suffix}" for path in allowed.databases for suffix in _BESIDE}
        self._confided: dict[str, str] = {}
        self._refused: dict[str, str] = {}

    def confide(self, what: str, *texts: str) -> None:
        """Note texts that only the owner may read; `what` says what they are."""
        self._confided |= dict.fromkeys(texts, what)

    def refuse(self, what: str, text: str) -> None:
        """Note a text that was refused, of which nothing is kept."""
        self._refused[text] = what

    def forgive(self, text: str) -> None:
        """Something that was refused came in after all, or may have."""
        self._refused.pop(text, None)

    def inspect(self) -> None:
        """Hold all files against what is allowed. Raises NonConformance."""
        refused, confided = (list(each.items())[-_MOST:] for each in (self._refused, self._confided))
        wanted = [*refused, *confided, (_NOWHERE, "")]
        for entry in self._session.remains(self._allowed.folder, [text for text, _ in wanted]):
            path, which = entry["path"], entry["which"]
            if self._allowed.is_given(path):
                continue
            if path in self._private and entry["mode"] != "0600":
                self._bench.fail("state_leak", f"the mode of {path}", expected="0600", received=entry["mode"])
            if which and which[0] < len(refused):
                self._fail(f"{path} holds {wanted[which[0]][1]}, which was refused", "nothing of it is kept")
            if which and entry["open"]:
                what = f"{path} of mode {entry['mode']} holds {wanted[which[0]][1]}"
                self._fail(what, "it is for its owner alone, or lies in a folder that is")

    def copies(self, *groups: Sequence[str]) -> list[int]:
        """In how many files, beside the databases and what was given, all texts of each group can be read."""
        wanted = sorted({text for group in groups for text in group})
        if not wanted:
            return []
        found = [
            {wanted[which] for which in entry["which"]}
            for entry in self._session.remains(self._allowed.folder, wanted)
            if entry["path"] not in self._private and not self._allowed.is_given(entry["path"])
        ]
        return [sum(texts.issuperset(group) for texts in found) for group in groups]

    def _fail(self, found: str, expected: str) -> None:
        self._bench.fail("state_leak", "what the session left in its folder", expected=expected, received=found)
