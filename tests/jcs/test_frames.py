"""The reference as a runner of frames, and as a session of the adapter."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from holdfast.reference_impl.answers import Accepted, Effect, Fault, Refused
from holdfast.reference_impl.jcs import frames
from holdfast.reference_impl.jcs.entry import implementation
from holdfast.reference_impl.jcs.factory import Factory
from holdfast.reference_impl.jcs.service import spelt
from holdfast.reference_impl.jcs.terms import Profile
from holdfast.reference_impl.jcs.writer import Writer
from holdfast.reference_impl.session import OpenRequest, Session, StateWanted, SurfaceWanted

ROOT = Path(__file__).resolve().parents[2]


def framed(*documents: bytes) -> bytes:
    return b"".join(struct.pack(">I", len(document)) + document for document in documents)


def answers(stream: bytes) -> list[tuple[bytes, bytes]]:
    found = []
    while stream:
        (length,) = struct.unpack(">I", stream[:4])
        found.append((stream[4:5], stream[5 : 5 + length]))
        stream = stream[5 + length :]
    return found


def run(stdin: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-P", "-m", "holdfast.reference_impl", "frames", *words]
    return subprocess.run(command, input=stdin, capture_output=True, cwd=ROOT, check=False, timeout=60)


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


class Broken(Writer):
    def write(self, value: Any) -> bytes:
        raise RuntimeError("internal")


def test_an_internal_error_is_never_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames, "REFERENCE", Factory(writer=Broken))
    given = io.BytesIO()
    with pytest.raises(RuntimeError, match="internal"):
        frames.serve(Profile.CORE, io.BytesIO(framed(b"[01]", b"[]", b"[]")), given)
    assert answers(given.getvalue()) == [(b"R", b"SYNTAX at byte 2")]


# As a session


@pytest.fixture
def session(tmp_path: Path) -> Session:
    request = OpenRequest(StateWanted.FRESH, SurfaceWanted.READY, tmp_path, datetime(2026, 1, 1, tzinfo=UTC), {})
    return implementation().open(request)


def args(document: bytes, profile: str = "core") -> dict[str, str]:
    return {"document": spelt(document), "profile": profile}


def test_bytes_travel_as_base64url_in_both_directions(session: Session) -> None:
    answer = session.call("canonicalise", args(b' "\\u00ff\\u00fe>" '))
    assert answer == Accepted(Effect.NEW, {"canonical": "IsO_w74-Ig"})
    assert session.call("verify", {"document": "IsO_w74-Ig", "profile": "core"}) == Accepted(Effect.NEW, {})


def test_a_refusal_carries_its_offset(session: Session) -> None:
    expected = Refused("SYNTAX", {"offset": 2}, "SYNTAX at byte 2")
    assert session.call("canonicalise", args(b"[01]")) == expected
    assert session.call("verify", args(b"[01]")) == expected


@pytest.mark.parametrize(
    "malformed",
    [
        {},
        None,
        {"document": "W10"},
        {"document": "W10", "profile": "CORE"},
        {"document": "W10=", "profile": "core"},
        {"document": "W11", "profile": "core"},
        {"document": "W", "profile": "core"},
        {"document": "W10\n", "profile": "core"},
        {"document": "Iv++Ig", "profile": "core"},
        {"document": ["W10"], "profile": "core"},
        {"document": "W10", "profile": "core", "more": 1},
    ],
)
def test_arguments_that_do_not_fit_are_malformed(session: Session, malformed: Any) -> None:
    for method in ("canonicalise", "verify"):
        answer = session.call(method, malformed)
        assert isinstance(answer, Refused)
        assert answer.reason == "REQUEST_MALFORMED"


def test_an_unknown_method_is_a_fault(session: Session) -> None:
    assert isinstance(session.call("canonicalize", args(b"[]")), Fault)
