"""What version 0 left: taken over whole or not at all, and never changed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from holdfast.reference_impl.answers import Refused
from tests.calyx_replay.conftest import Box, Opener, content, envelope, key_of, later, outcome, sender, signed


def msg_id_of(raw: bytes) -> str:
    return str(json.loads(raw)["header"]["msg_id"])


def leave(box: Box, *, ids: list[object], envelopes: dict[str, bytes]) -> Path:
    """What version 0 leaves; its list of ids."""
    folder = box.workdir / "runtime/mailbox"
    (folder / "envelopes").mkdir(parents=True, exist_ok=True)
    for msg_id, raw in envelopes.items():
        (folder / "envelopes" / f"{msg_id}.json").write_bytes(raw)
    listed = folder / "seen_cache.json"
    listed.write_text(json.dumps(ids, indent=3))
    return listed


def named(*raws: bytes) -> dict[str, bytes]:
    return {msg_id_of(raw): raw for raw in raws}


def test_what_has_an_envelope_gets_its_key_and_the_rest_is_named(box: Box) -> None:
    raws, gone = [envelope(), envelope(at="2020-02-02T02:02:02Z")], [str(uuid.uuid4()), "an id of old"]
    envelopes = named(*raws)
    listed = leave(box, ids=[gone[0], *envelopes, gone[1]], envelopes=envelopes)
    before = listed.read_bytes()
    answer = box.call("migrate")
    assert outcome(answer) == "new"
    assert getattr(answer, "value", None) == {"listed": 4, "migrated": 2, "present": 0, "unmigrated": gone}
    assert box.keys() == set(map(key_of, raws))
    assert {row["seen_at"] for row in box.value("state")["replay_state"]} == {"2026-01-01T12:00:00.000000Z"}
    assert box.delivered() == []
    assert listed.read_bytes() == before
    assert {path.read_bytes() for path in (listed.parent / "envelopes").iterdir()} == set(raws)
    assert box.outcome(raws[0]) == "REPLAY_DUPLICATE"


def test_a_second_run_changes_nothing_and_first_seen_stays(box: Box) -> None:
    seen, other = envelope(), envelope()
    assert box.outcome(seen) == "new"
    leave(box, ids=[msg_id_of(seen), msg_id_of(other), "gone"], envelopes=named(seen, other))
    box.session.set_clock(later(seconds=10))
    assert box.value("migrate") == {"listed": 3, "migrated": 1, "present": 1, "unmigrated": ["gone"]}
    before = box.value("state")
    box.session.set_clock(later(hours=1))
    again = box.call("migrate")
    assert outcome(again) == "prior"
    assert getattr(again, "value", {}) == {"listed": 3, "migrated": 0, "present": 2, "unmigrated": ["gone"]}
    assert box.value("state") == before
    assert {row["replay_key"]: row["seen_at"][17:19] for row in before["replay_state"]} == {
        key_of(seen): "00",
        key_of(other): "10",
    }


def test_an_id_without_envelope_is_blocked_while_its_envelope_may_come_again(box: Box) -> None:
    msg_id = str(uuid.uuid4())
    leave(box, ids=[msg_id], envelopes={})
    box.value("migrate")
    answer = box.send(envelope(msg_id=msg_id))
    assert isinstance(answer, Refused)
    assert (answer.reason, answer.data) == ("MSG_ID_BLOCKED", {"msg_id": msg_id})
    assert box.outcome(envelope(msg_id=msg_id, at=later(seconds=300))) == "MSG_ID_BLOCKED"
    assert box.outcome(envelope()) == "new"
    box.session.set_clock(later(seconds=590))
    assert box.outcome(envelope(msg_id=msg_id, at=later(seconds=300))) == "MSG_ID_BLOCKED"
    box.session.set_clock(later(seconds=601))
    assert box.outcome(envelope(msg_id=msg_id, at=later(seconds=601))) == "new"
    # A block is forgotten with the records of its time, and what it blocked stays refused.
    box.session.set_clock(later(hours=25))
    box.value("prune")
    box.session.set_clock(later(seconds=300))
    assert box.outcome(envelope(msg_id=msg_id, at=later(seconds=300))) == "REPLAY_UNPROVABLE"


def test_an_envelope_from_ahead_is_refused_when_its_time_comes_and_blocks_no_other(box: Box) -> None:
    msg_id = str(uuid.uuid4())
    ahead = envelope(msg_id=msg_id, at=later(hours=30))
    leave(box, ids=[msg_id], envelopes={msg_id: ahead})
    box.value("migrate")
    assert box.outcome(envelope(msg_id=msg_id)) == "new"
    box.session.set_clock(later(hours=25))
    assert box.value("prune")["removed"] == 2
    box.session.set_clock(later(hours=30))
    assert box.outcome(ahead) == "REPLAY_DUPLICATE"
    assert box.outcome(envelope(at=later(hours=30))) == "new"
    # It is forgotten once its timestamp has passed a cutoff: from then on nothing of its time is admitted.
    box.session.set_clock(later(hours=55))
    box.value("prune")
    box.session.set_clock(later(hours=30))
    assert box.outcome(ahead) == "REPLAY_UNPROVABLE"


def test_no_file_is_nothing_to_migrate(box: Box) -> None:
    assert outcome(box.call("migrate")) == "NOTHING_TO_MIGRATE"
    assert outcome(box.call("migrate", x=1)) == "REQUEST_MALFORMED"
    leave(box, ids=[], envelopes={})
    assert outcome(box.call("migrate")) == "prior"


LISTS: dict[str, bytes] = {
    "nothing": b"",
    "broken": b'["a"',
    "an object": b'{"a": 1}',
    "a number in it": b'["a", 1]',
    "null in it": b'["a", null]',
    "an empty id": b'["a", ""]',
    "a long id": json.dumps(["a", "x" * 257]).encode(),
    "not UTF-8": b'["\xff"]',
    "a lone surrogate": b'["\\ud800"]',
    "two values": b'["a"]["b"]',
}


@pytest.mark.parametrize("what", LISTS)
def test_a_list_that_is_none_changes_nothing(box: Box, what: str) -> None:
    listed = leave(box, ids=[], envelopes={})
    listed.write_bytes(LISTS[what])
    assert outcome(box.call("migrate")) == "MIGRATION_MALFORMED"
    assert listed.read_bytes() == LISTS[what]
    assert box.outcome(envelope()) == "new"
    assert len(box.keys()) == 1


ENVELOPES: dict[str, Callable[[bytes], bytes]] = {
    "not canonical": lambda raw: raw + b"\n",
    "empty": lambda _: b"",
    "of another id": lambda _: envelope(),
    "with a wrong signature": lambda raw: raw.replace(b'"ciphertext":"', b'"ciphertext":"AAAA'),
    "with an unreadable timestamp": lambda raw: signed(
        content(sender(), msg_id=msg_id_of(raw), at="yesterday"), sender()
    ),
}


@pytest.mark.parametrize("what", ENVELOPES)
def test_one_bad_envelope_among_good_ones_changes_nothing(box: Box, what: str) -> None:
    good, bad = envelope(), envelope()
    envelopes = {**named(good), msg_id_of(bad): ENVELOPES[what](bad)}
    leave(box, ids=[*envelopes, "gone"], envelopes=envelopes)
    assert outcome(box.call("migrate")) == "MIGRATION_MALFORMED"
    assert box.keys() == set()
    # Mended, it goes on from where it was.
    leave(box, ids=[*envelopes, "gone"], envelopes=named(good, bad))
    assert box.value("migrate")["migrated"] == 2


def test_an_envelope_that_cannot_be_read_is_not_one_that_is_gone(box: Box) -> None:
    msg_id = str(uuid.uuid4())
    leave(box, ids=[msg_id], envelopes={})
    (box.workdir / f"runtime/mailbox/envelopes/{msg_id}.json").mkdir()
    assert outcome(box.call("migrate")) == "MIGRATION_MALFORMED"


def test_an_id_is_no_path(box: Box) -> None:
    raw = envelope()
    leave(box, ids=["../outside", "/etc/passwd", "..", "x" * 256, "\x00"], envelopes={})
    (box.workdir / "runtime/mailbox/outside.json").write_bytes(raw)
    assert box.value("migrate")["unmigrated"] == ["../outside", "/etc/passwd", "..", "x" * 256, "\x00"]
    assert box.keys() == set()


@pytest.mark.parametrize("point", ["before_insert", "after_insert", "before_commit", "after_commit"])
def test_a_migration_that_fails_leaves_all_or_nothing_and_is_run_again(opener: Opener, point: str) -> None:
    box, raws = opener(), [envelope(), envelope()]
    leave(box, ids=[*named(*raws), "gone"], envelopes=named(*raws))
    box.value("hold_at", point=point, fault="abort")
    committed = point == "after_commit"
    assert outcome(box.call("migrate")) == ("new" if committed else "STORE_UNAVAILABLE")
    assert len(box.keys()) == (2 if committed else 0)
    assert outcome(opener().call("migrate")) == ("prior" if committed else "new")
    assert box.keys() == set(map(key_of, raws))
