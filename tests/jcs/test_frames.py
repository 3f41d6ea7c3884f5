"""The reference as a runner of frames, and as a session of the adapter."""

from __future__ import annotations

import io
import struct
import subprocess
from typing import Any

import pytest

from holdfast.reference_impl.jcs import frames
from holdfast.reference_impl.jcs.terms import Profile
from holdfast.reference_impl.jcs.writer import Writer
from tests import warm
from tests.pace import busy


def framed(*documents: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(document)) + document for document in documents)


def answers(stream: bytes) -> list[tuple[bytes, bytes]]:
    """The answers of a stream of frames: status and body."""
    found = []
    while stream:
        length, status = struct.unpack_from(">Ic", stream)
        found.append((status, stream[5 : 5 + length]))
        stream = stream[5 + length :]
    return found


def run(stdin: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    return warm.cold(warm.REFERENCE, "frames", *words, input=stdin, text=False, timeout=busy(60))


def test_documents_are_answered_in_order_until_the_end_of_file() -> None:
    done = run(framed(b'{"b":1,"a":2}', b"", b"[01]", b"\xff", b" 1e2 "))
    assert done.returncode == 0
    assert answers(done.stdout) == [
        (b"C", b'{"a":2,"b":1}'),
        (b"R", b"SYNTAX at byte 0"),
        (b"R", b"SYNTAX at byte 2"),
        (b"R", b"INVALID_UTF8 at byte 0"),
        (b"C", b"100"),
    ]


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        ("core", [(b"C", b"[9007199254740992]"), (b"C", b'["\xef\xbf\xbe"]')]),
        ("i-json-strict", [(b"C", b"[9007199254740992]"), (b"R", b"NONCHARACTER at byte 1")]),
        ("safe-int", [(b"R", b"UNSAFE_INTEGER at byte 1"), (b"C", b'["\xef\xbf\xbe"]')]),
    ],
)
def test_the_profile_is_that_of_the_command_line(profile: str, expected: list[tuple[bytes, bytes]]) -> None:
    done = run(framed(b"[9007199254740993]", b'["\\ufffe"]'), "--profile", profile)
    assert answers(done.stdout) == expected


@pytest.mark.parametrize("cut", [b"\0\0", framed(b"[1]")[:-1]])
def test_an_input_that_ends_inside_a_frame_is_an_error_and_no_answer(cut: bytes) -> None:
    done = run(framed(b"[]") + cut)
    assert answers(done.stdout) == [(b"C", b"[]")]
    assert done.returncode != 0
    assert b"the input ended" in done.stderr


def test_an_unknown_profile_is_a_usage_error() -> None:
    assert run(b"", "--profile", "strict").returncode == 64


def test_profiles_of_the_command_line_are_those_of_the_contract() -> None:
    from holdfast.reference_impl.__main__ import _PROFILES

    assert tuple(profile.value for profile in Profile) == _PROFILES


def test_an_internal_error_is_never_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_self: Writer, _value: Any) -> bytes:
        raise RuntimeError("internal")

    monkeypatch.setattr(Writer, "write", broken)
    given = io.BytesIO()
    with pytest.raises(RuntimeError, match="internal"):
        frames.serve(Profile.CORE, io.BytesIO(framed(b"[01]", b"[]", b"[]")), given)
    assert answers(given.getvalue()) == [(b"R", b"SYNTAX at byte 2")]
