"""Any spelling of a target: the keys are those of its normal form."""

from __future__ import annotations

from itertools import product

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.conformance.attacks import clause
from holdfast.conformance.attacks.bench import Bench
from holdfast.conformance.attacks.histories import DRAWN
from holdfast.conformance.attacks.session import SuiteSession
from holdfast.conformance.suites.rs4a_replay.requests import request
from holdfast.vectors.derive import derive
from holdfast.vectors.rs4a_replay.derive import normal_target

_NAME = st.text(st.sampled_from("abcxyz0189-_~\u00e9\u00fc\u4e2d\U0001f4a1"), min_size=1, max_size=6)
# The whole authority is in lower case, what stands before the host as well.
_USER = st.sampled_from(("", "", "alice@", "alice:secret@", "a.b-c@"))
# The parts of which a target is made in any order. None of them breaks another's rule.
_SCHEMES = ("", "dot:", "DOT:", "x+Y.z-1:", "1a:")
_AUTHORITIES = ("", "/", "//", "//AcMe", "//AcMe/", "//a%2fB%c3%a9/", "//Al%40Ice@ACME:80/", "//acme?", "///")
_SEGMENTS = ("", ".", "..", "a", "%2e", "%2E.", "%7e", "b%2fC", ".x", "..x", "x.", "e\u0301", "%65\u0301", "a:b", "A@b")
_TAILS = ("", "", "/", "?", "?Q/../%7e", "#F/.", "?a#b/../%2f", "#?", "?%2e%2E/")
_IDENTITY = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=12)


def _percent(text: str, at: int) -> str:
    """One ASCII letter or digit of `text` in its percent-encoded form, if there is one at that place."""
    place = at % len(text)
    character = text[place]
    if not (character.isascii() and character.isalnum()):
        return text
    return f"{text[:place]}%{ord(character):02{'x' if at % 2 else 'X'}}{text[place + 1 :]}"


def _disguised(segments: list[str], ways: list[int], user: str) -> str:
    """Another spelling of `dot://<user>acme/<segments>`, by rewrites that the normal form undoes."""
    path = [_percent(segment, way) if way % 3 == 0 else segment for segment, way in zip(segments, ways, strict=True)]
    for place, way in enumerate(ways):
        if way % 5 == 0:
            path[place] = f"x{way}/../{path[place]}"
        elif way % 5 == 1:
            path[place] = f"./{path[place]}"
    head = f"DOT://{user.upper()}AcMe" if sum(ways) % 2 else f"dot://{user.title()}%61cme"
    return f"{head}/{'/'.join(path)}{'/' if sum(ways) % 3 else ''}".replace("\u00e9", "e\u0301")


@clause("RS4A-ID-3", "RS4A-ID-14", drawn=True)
def test_any_spelling_of_a_target_has_the_derived_keys(bench: Bench) -> None:
    """Keys are compared with those that holdfast derives itself, for targets, owners and runs of any characters."""
    with bench.session() as session:

        @settings(DRAWN, max_examples=60)
        @given(st.lists(st.tuples(_NAME, st.integers(0, 40)), min_size=1, max_size=4), _IDENTITY, _IDENTITY, _USER)
        def run(parts: list[tuple[str, int]], owner: str, run_id: str, user: str) -> None:
            plain = f"dot://{user}acme/{'/'.join(name for name, _ in parts)}"
            spelled = _disguised([name for name, _ in parts], [way for _, way in parts], user)
            for target in (plain, spelled):
                _must_have_its_keys(bench, session, target, owner, run_id)

        run()


@clause("RS4A-ID-3", "RS4A-ID-14", drawn=True)
def test_a_target_of_any_parts_has_the_derived_keys(bench: Bench) -> None:
    """With and without a scheme, an authority, a path, a query; each with capitals, encodings and dots."""
    with bench.session() as session:
        for scheme, authority, segment in product(_SCHEMES[:2], _AUTHORITIES[:4], _SEGMENTS):
            if normal_target(f"{scheme}{authority}{segment}"):
                _must_have_its_keys(bench, session, f"{scheme}{authority}{segment}", "owner", "run")

        @settings(DRAWN, max_examples=160)
        @given(
            st.sampled_from(_SCHEMES),
            st.sampled_from(_AUTHORITIES),
            st.lists(st.sampled_from(_SEGMENTS), max_size=5),
            st.sampled_from(_TAILS),
        )
        def run(scheme: str, authority: str, segments: list[str], tail: str) -> None:
            target = f"{scheme}{authority}{'/'.join(segments)}{tail}"
            assume(target and normal_target(target))
            _must_have_its_keys(bench, session, target, "owner", "run")

        run()


def _must_have_its_keys(bench: Bench, session: SuiteSession, target: str, owner: str, run_id: str) -> None:
    args = request(session, "", nonce="n" * 16, canonical_target=target, run_id=run_id)
    args["request"]["owner_or_approval_binding"] = owner
    due = {name: derive(f"rs4a.{name}", args) for name in ("logical_request_key", "replay_key")}
    got = session.observe("derive_keys", args)
    bench.same(got, due, "fail_open", f"target {target!r}, owner {owner!r}, run {run_id!r} have other keys than due")
