"""The generated histories: the reference and sound mailboxes of other styles agree with the model, bugs do not."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from holdfast.conformance.attacks import histories
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.suites.calyx_replay.generate import Step, leap
from holdfast.conformance.suites.calyx_replay.rivals import RivalRunner
from holdfast.conformance.suites.calyx_replay.runner import playing
from holdfast.conformance.verdict import Verdict
from holdfast.reference_impl.answers import Answer
from holdfast.reference_impl.calyx_replay.mailbox import Mailbox
from holdfast.reference_impl.calyx_replay.migration import Migration
from holdfast.reference_impl.calyx_replay.pruning import Pruning
from holdfast.reference_impl.calyx_replay.store import MailboxState, Store
from holdfast.reference_impl.calyx_replay.timing import written
from holdfast.reference_impl.failpoints import AbortedError
from holdfast.servers.serving import Launched
from tests.calyx_replay.playing import here, played
from tests.conftest import thinned

ANY = "test_any_history_agrees_with_the_model"
BACK = "test_in_no_history_a_clock_that_goes_back_opens_anything"
PRUNED = "test_what_was_pruned_is_refused_in_every_situation"
LOST = "test_no_operation_and_no_command_takes_another_store_for_its_own"


# Sound, and not as the reference is


def by_the_clock_of_the_machine(words: Sequence[str]) -> dict[str, Any]:
    """The operator's command line goes by the clock of the machine."""
    at = words.index("--clock") + 1
    return here([*words[:at], "2026-11-23T12:00:00Z", *words[at + 1 :]])


class PrunesFirst(Mailbox):
    """It prunes before it receives, and also what it then refuses."""

    def receive(self, raw: bytes, *, now: datetime) -> Answer:
        # What strikes the prune does not strike the receipt.
        with contextlib.suppress(AbortedError):
            self._pruning.automatic(now=now)
        return super().receive(raw, now=now)


class OnlyForwards(Pruning):
    """A clock that went back delays the next prune: by days in these histories. For weeks it may not (CALYX-PRN-6a)."""

    def due(self, state: MailboxState, *, now: datetime) -> bool:
        last = state.last_automatic
        return last is None or now - datetime.fromisoformat(last) >= self._settings.prune_interval


class OnlyWhatWasRemoved(Store):
    """It remembers when the last removed record was seen, and no cutoff: what never had a record is new."""

    _last = ""

    def delete_before(self, connection: Any, cutoff: int) -> int:
        seen = "SELECT max(instant(seen_at)) FROM replay_state WHERE instant(seen_at) < ?"
        (last,) = connection.execute(seen, (cutoff,)).fetchone()
        behind = timedelta(microseconds=(last or 0) + 1)
        self._last = "" if last is None else written(datetime(1970, 1, 1, tzinfo=UTC) + behind)
        return super().delete_before(connection, cutoff)

    def remember(self, connection: Any, state: MailboxState) -> None:
        before = self.state(connection).pruned_before
        last = max(before or "", self._last) or None
        super().remember(connection, replace(state, pruned_before=last))

    def unblock_before(self, connection: Any, cutoff: str) -> None:
        pass


class KeepsBlocks(Store):
    """A block is kept for ever, and a second migration makes it last longer."""

    def unblock_before(self, connection: Any, cutoff: str) -> None:
        pass

    def block(self, connection: Any, msg_id: str, until: str) -> bool:
        connection.execute('INSERT OR REPLACE INTO blocked_msg_id (msg_id, "until") VALUES (?, ?)', (msg_id, until))
        return True


class Forgetful(Mailbox):
    """It keeps no cutoff, which is a SHOULD of its own (CALYX-ALG-12)."""

    def guard_provable(self, connection: Any, timestamp: datetime) -> None:
        pass


class ListFirst(Migration):
    """It looks for the list of version 0 before it looks for its store."""

    def guard_store(self) -> None:
        self.read_list(self._store.location.seen_cache)
        super().guard_store()


# Each by the name of what it stands in place of.
SOUND: Mapping[str, Mapping[str, Any]] = {
    "machine clock": {"commanded": by_the_clock_of_the_machine},
    "prunes first": {"Mailbox": PrunesFirst},
    "only forwards": {"Pruning": OnlyForwards},
    "only what was removed": {"Store": OnlyWhatWasRemoved},
    "keeps blocks": {"Store": KeepsBlocks},
    "forgetful": {"Mailbox": Forgetful},
    "list first": {"Migration": ListFirst},
}


# A history with a prune or a step of the clock takes long: by default for those that prune in a style of their own.
@pytest.mark.parametrize(
    ("name", "test"),
    [
        *thinned([(name, ANY) for name in SOUND]), ("list first", LOST),
        ("prunes first", BACK), ("only what was removed", PRUNED),
        *(
            pytest.param(name, test, marks=pytest.mark.sweep)
            for name, test in (
                ("machine clock", BACK), ("only forwards", BACK), ("only what was removed", BACK),
                ("machine clock", PRUNED), ("prunes first", PRUNED), ("only forwards", PRUNED),
            )
        ),
    ],
)  # fmt: skip
def test_a_sound_mailbox_of_another_style_is_not_accused(name: str, test: str, template: Launched) -> None:
    judgement, _ = played(test, template, "style", **SOUND[name])
    assert judgement.verdict is Verdict.CONFORMS, judgement


def race(bench: Bench) -> None:
    """Two inspections by the command line at once."""
    with playing(bench, RivalRunner)() as player:
        for step in (leap(Random(0)), Step("race of inspect commands")):
            player.step(step)


def beside(bench: Bench) -> None:
    """A migration by the command line, with an id twice in its list, and receipts while it is under way."""
    with playing(bench, RivalRunner)() as player:
        for step in (leap(Random(0)), Step("leave", lists=(0, 1, 1)), Step("send"), Step("beside migrate")):
            player.step(step)


def test_of_the_orders_of_many_receipts_and_a_command_only_those_are_told_apart_that_leave_other_rows(
    template: Launched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(histories, "_WORLDS", 4)
    assert played(beside, template, "style")[0].verdict is Verdict.CONFORMS


def test_a_command_that_fails_beside_the_same_one_is_a_finding(template: Launched) -> None:
    before: list[Sequence[str]] = []

    def alone(words: Sequence[str]) -> dict[str, Any]:
        is_second, before[:] = before == [words], [words]
        return {"status": 1, "output": "another one runs\n"} if is_second else here(words)

    assert played(race, template, "style")[0].verdict is Verdict.CONFORMS
    assert played(race, template, "style", commanded=alone)[0].verdict is Verdict.WRONG_REASON
