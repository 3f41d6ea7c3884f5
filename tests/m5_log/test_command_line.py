"""The operators' command line, as a process of its own."""

from __future__ import annotations

import json

import pytest

from holdfast.reference_impl.m5_log.terms import Family
from holdfast.vectors.m5_log import derive
from tests.m5_log.logs import Box, draft, id_of

DRAFTS = [draft(ms, key=f"é{ms}", value={"z": ms, "a": [None, "ü"]}) for ms in range(4)]


@pytest.fixture
def filled(box: Box) -> Box:
    box.put_all(DRAFTS)
    return box


def place(box: Box, raw: bytes) -> str:
    path = box.root / "ops.cbor"
    path.write_bytes(raw)
    return str(path)


def test_a_store_is_made_once(box: Box) -> None:
    done = box.command("init")
    assert (done.returncode, done.stdout) == (1, "")
    assert "STORE_UNAVAILABLE" in done.stderr
    assert box.problems() == []


def test_a_file_is_appended_whole(box: Box) -> None:
    done = box.command("op-append", place(box, derive.decoded(derive.batch([derive.op(each) for each in DRAFTS]))))
    assert done.returncode == 0
    assert [line.split() for line in done.stdout.splitlines()] == [
        [id_of(each), "appended", "applied"] for each in DRAFTS
    ]
    assert box.order() == [id_of(each) for each in DRAFTS]
    again = box.command("op-append", str(box.root / "ops.cbor"))
    assert again.returncode == 0
    assert "appended" not in again.stdout


def test_a_file_with_one_bad_operation_is_not_appended(box: Box) -> None:
    spelt = [derive.op(each) for each in DRAFTS]
    for raw, reason in (
        (derive.decoded(derive.batch([*spelt[:2], derive.malleated(spelt[2]), spelt[3]])), "SIGNATURE_INVALID"),
        (derive.decoded(derive.batch(spelt)) + b"\x00", "NON_CANONICAL"),
        (b"", "NON_CANONICAL"),
        (derive.decoded(spelt[0]), "OP_MALFORMED"),
    ):
        done = box.command("op-append", place(box, raw))
        assert (done.returncode, done.stdout) == (1, "")
        assert reason in done.stderr
        assert box.order() == []


def test_replays_print_the_state_from_wherever_they_begin(filled: Box) -> None:
    expected = filled.full() + "\n"
    assert filled.command("checkpoint-create").stdout == "1\n"
    assert filled.command("checkpoint-create").stdout == "2\n"
    assert filled.command("checkpoint-list").stdout == "1 4\n2 4\n"
    for words in (
        ("replay-from-store",),
        ("replay-from-store", "--from", "genesis"),
        ("replay-from-store", "--from", "latest"),
        ("checkpoint-load", "1"),
        ("dump-state-json",),
    ):
        done = filled.command(*words)
        assert (done.returncode, done.stdout) == (0, expected)


def test_an_unknown_checkpoint_prints_no_state(filled: Box) -> None:
    done = filled.command("checkpoint-load", "7")
    assert (done.returncode, done.stdout) == (1, "")
    assert "CHECKPOINT_UNKNOWN" in done.stderr


def test_the_status_of_a_verification_says_whether_the_store_is_whole(filled: Box) -> None:
    done = filled.command("verify-store")
    assert (done.returncode, done.stdout) == (0, "4 operations, 0 pending, 0 problems\n")
    filled.alter(Family.EDGES, bytes.fromhex(id_of(DRAFTS[2])), bytes(32))
    done = filled.command("verify-store")
    assert done.returncode == 1
    assert id_of(DRAFTS[2]) in done.stdout


def test_a_dump_is_the_same_in_every_environment(filled: Box) -> None:
    filled.trust("iss")
    dumps = {
        filled.command("dump-state-json", **environment).stdout
        for environment in (
            {"PYTHONHASHSEED": "1", "TZ": "Pacific/Kiritimati"},
            {"PYTHONHASHSEED": "2", "LC_ALL": "tr_TR.UTF-8", "TZ": "America/St_Johns"},
            {"PYTHONHASHSEED": "3", "LC_ALL": "C", "PYTHONUTF8": "0"},
        )
    }
    assert dumps == {filled.full() + "\n"}
    assert json.loads(dumps.pop())["applied"] == 4


def test_a_command_without_a_store_is_refused(box: Box) -> None:
    (box.root / "m5").rename(box.root / "away")
    for words in (("op-append", place(box, b"\x80")), ("dump-state-json",), ("verify-store",), ("checkpoint-create",)):
        assert box.command(*words).returncode == 1
    assert not (box.root / "m5").exists()


def test_a_wrong_command_line_is_a_status_of_its_own(box: Box) -> None:
    assert box.command("verify").returncode == 2
    assert box.command("op-append", str(box.root / "nothing")).returncode == 2
