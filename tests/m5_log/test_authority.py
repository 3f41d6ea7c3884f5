"""Who may do what: credentials in their one spelling, and decisions that no restart and no cache changes."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.reference_impl.m5_log.opening import number
from holdfast.reference_impl.m5_log.terms import Family, Reason, RefusedError
from holdfast.vectors.m5_log import derive
from tests.m5_log.logs import Box, Draft, draft

SAYS: dict[str, Any] = {"issuer": "iss", "subject": "bob", "role": "editor", "scope": ["t", "u"], "nbf": 10, "exp": 20}
HASH = derive.cred_hash(derive.credential(SAYS))
RAW = derive.decoded(derive.credential(SAYS))


def grant(ms: int, *, by: str = "alice", **change: Any) -> Draft:
    return draft(
        ms, by=by, kind="grant", **{"subject": "bob", "role": "editor", "tag": "t", "credential": HASH, **change}
    )


def revoke(ms: int, by: str) -> Draft:
    return draft(ms, by=by, kind="revoke", subject="bob", role="editor", tag="t")


def add(ms: int, by: str = "bob", tag: str = "t") -> Draft:
    return draft(ms, by=by, kind="add", key="c", amount=1, tag=tag)


def reason_of(raw: bytes, box: Box) -> Reason:
    cred_hash, _ = box.parts.log.persist_vc(raw)
    with pytest.raises(RefusedError) as caught:
        box.parts.log.persist_verified_vc(cred_hash)
    assert box.rows(Family.VC_VERIFIED) == {}
    return caught.value.reason


def decisions(box: Box, subject: str = "bob", role: str = "editor", tag: str = "t") -> list[bool]:
    with box.opened() as opened:
        return [box.parts.log.decide(opened, derive.key_of(subject), role, tag, op_id) for op_id in opened.dag.order()]


@pytest.fixture
def history(box: Box) -> Box:
    """Before the credential's time, within it, revoked by who may not and by who may, granted again, beyond it."""
    box.trust("iss")
    box.parts.log.persist_vc(RAW)
    box.put_all(
        [
            grant(9_000),
            add(9_999),
            add(10_000),
            add(11_000, by="carol"),
            add(11_001, tag="u"),
            revoke(12_000, "bob"),
            add(12_001),
            revoke(13_000, "alice"),
            add(13_001),
            grant(14_000, by="carol"),
            add(14_001),
            revoke(15_000, "iss"),
            add(15_001),
            grant(16_000),
            add(19_999),
            add(20_000),
        ]
    )
    return box


# An operation that ends a grant, or begins one, is not allowed by it itself.
ALLOWED = [False, False, True, True, True, True, True, False, False, False, True, False, False, False, True, False]


def test_an_operation_with_a_tag_is_applied_where_its_author_is_allowed(history: Box) -> None:
    assert decisions(history) == ALLOWED
    # Four of bob's are allowed; carol has no grant, and nobody has one for the tag u.
    assert '"counters":{"c":"4"}' in history.full()
    assert '"denied":6' in history.full()


def test_decisions_are_the_same_after_a_restart_and_with_any_cache(history: Box) -> None:
    state = history.full()
    history.parts.log.persist_verified_vc(bytes.fromhex(HASH))
    for change in (None, b"", b"garbage"):
        again = history.again()
        again.alter(Family.POLICY_INDEX, b"anything", change)
        assert decisions(again) == ALLOWED
        assert again.full() == again.live() == again.latest()[0] == state
    history.alter(Family.VC_VERIFIED, bytes.fromhex(HASH), None)
    assert decisions(history.again()) == ALLOWED


def test_where_the_credential_is_gone_everything_is_denied(history: Box) -> None:
    history.parts.log.persist_verified_vc(bytes.fromhex(HASH))
    history.alter(Family.VC_RAW, bytes.fromhex(HASH), None)
    assert not any(decisions(history))
    assert [problem.family for problem in history.problems()] == ["vc_verified"]
    history.alter(Family.VC_VERIFIED, bytes.fromhex(HASH), None)
    assert not any(decisions(history.again()))


@pytest.mark.parametrize("row", [b"", b"\xa0", "role", "exp"])
def test_a_cache_that_says_something_else_denies_and_is_reported(history: Box, row: Any) -> None:
    history.parts.log.persist_verified_vc(bytes.fromhex(HASH))
    right = history.rows(Family.VC_VERIFIED)[bytes.fromhex(HASH)]
    forged = {"role": right.replace(b"editor", b"owners"), "exp": right.replace(b"\x63exp\x14", b"\x63exp\x17")}
    wrong = forged[row] if isinstance(row, str) else row
    assert wrong != right
    history.alter(Family.VC_VERIFIED, bytes.fromhex(HASH), wrong)
    assert not any(decisions(history))
    assert [problem.family for problem in history.problems()] == ["vc_verified"]


def test_trust_and_status_are_read_anew(history: Box) -> None:
    history.parts.log.persist_verified_vc(bytes.fromhex(HASH))
    assert any(decisions(history))
    history.trust("other")
    assert not any(decisions(history))
    history.trust("iss")
    history.revoke(HASH)
    assert not any(decisions(history))
    history.revoke()
    assert decisions(history) == ALLOWED
    (history.root / "m5/status.json").write_bytes(b"{")
    assert not any(decisions(history))
    (history.root / "m5/status.json").unlink()
    (history.root / "m5/trust.json").write_bytes(b'{"issuers":{"iss":"AA"}}')
    assert not any(decisions(history))


def test_a_credential_in_the_cache_does_not_verify_with_another_key_of_its_issuer(history: Box) -> None:
    history.parts.log.persist_verified_vc(bytes.fromhex(HASH))
    key = derive.encoded(derive.key_of("other"))
    (history.root / "m5/trust.json").write_text(f'{{"issuers":{{"iss":"{key}"}}}}', encoding="ascii")
    assert not any(decisions(history))
    assert not any(decisions(history.again()))


@pytest.mark.parametrize("file", ["trust", "status"])
def test_a_file_with_a_further_member_trusts_nobody_and_revokes_everything(history: Box, file: str) -> None:
    path = history.root / f"m5/{file}.json"
    history.revoke()
    assert decisions(history) == ALLOWED
    right = path.read_bytes()
    path.write_bytes(right[:-1] + b',"more":1}')
    assert not any(decisions(history))
    path.write_bytes(right)
    assert decisions(history) == ALLOWED


@pytest.mark.parametrize(("size", "reason"), [(30_000, None), (30_003, Reason.CREDENTIAL_MALFORMED)])
def test_a_credential_may_be_as_long_as_the_schema_of_an_argument(box: Box, size: int, reason: Reason | None) -> None:
    box.trust("iss")
    tags = 2_000
    bare = len(derive.decoded(derive.credential({**SAYS, "scope": ["x" * 4] * tags})))
    long = ["x" * 4] * (tags - 1) + ["x" * (4 + (size - bare) * 3 // 4)]
    raw = derive.decoded(derive.credential({**SAYS, "scope": long}))
    assert abs(len(raw) - size) <= 2
    if reason is None:
        assert box.parts.log.persist_vc(raw)[1]
        return
    with pytest.raises(RefusedError) as caught:
        box.parts.log.persist_vc(raw)
    assert caught.value.reason is reason


def test_a_checkpoint_whose_credential_is_judged_otherwise_is_not_used(history: Box) -> None:
    history.parts.log.checkpoint_create()
    assert history.latest() == (history.full(), 1)
    history.revoke(HASH)
    assert history.latest() == (history.full(), None)
    assert history.live() == history.full()
    with pytest.raises(RefusedError) as caught:
        history.parts.log.checkpoint_load(1)
    assert caught.value.reason is Reason.CHECKPOINT_STALE
    history.revoke()
    history.trust()
    assert history.latest() == (history.full(), None)
    assert history.problems() == []


def test_a_credential_that_comes_late_allows_from_then_on(box: Box) -> None:
    box.trust("iss")
    box.put_all([grant(9_000), add(11_000)])
    assert decisions(box) == [False, False]
    assert '"denied":1' in box.live()
    box.put(draft(30_000, kind="credential", credential=derive.credential(SAYS)))
    assert decisions(box) == [False, True, False]
    assert box.live() == box.full()
    assert '"denied":0' in box.live()
    assert box.rows(Family.VC_RAW) == {bytes.fromhex(HASH): RAW}


@pytest.mark.parametrize(
    "change",
    [{"subject": "carol"}, {"role": "owner"}, {"tag": "v"}, {"credential": "0" * 64}],
    ids=lambda change: next(iter(change)),
)
def test_a_grant_that_its_credential_does_not_cover_allows_nothing(box: Box, change: Draft) -> None:
    box.trust("iss")
    box.parts.log.persist_vc(RAW)
    box.put_all([grant(9_000, **change), add(11_000)])
    target = {"subject": "bob", "role": "editor", "tag": "t", **change}
    assert not any(decisions(box, target["subject"], target["role"], target["tag"]))


@pytest.mark.parametrize("how", ["padded", "spare-bits", "blank", "newline", "four-parts", "two-parts"])
def test_a_credential_has_one_spelling(box: Box, how: str) -> None:
    spelt = derive.respelt({"credential": derive.credential(SAYS), "how": how})
    for call in (
        lambda: box.parts.log.persist_vc(derive.decoded(spelt)),
        lambda: box.put(draft(1, kind="credential", credential=spelt)),
    ):
        with pytest.raises(RefusedError) as caught:
            call()
        assert caught.value.reason is Reason.CREDENTIAL_MALFORMED
    assert box.rows(Family.VC_RAW) == {}
    assert box.order() == []


@pytest.mark.parametrize(
    "change",
    [
        {"issuer": "stranger"},
        {"signer": "mallory"},
        {"exp": 10},
        {"exp": 9},
        {"header": {"alg": "none"}},
        {"header": {"alg": "HS256"}},
        {"header": {"alg": "EdDSA", "kid": "x"}},
        {"header": {"alg": "EdDSA", "crit": ["x"]}},
        {"header": {}},
        {"claims": {"nbf": "10"}},
        {"claims": {"nbf": 10.5}},
        {"claims": {"nbf": True}},
        {"claims": {"scope": "t"}},
        {"claims": {"scope": [1]}},
        {"claims": {"sub": "AA"}},
        {"claims": {"role": ""}},
        {"claims": {"admin": True}},
        {"drop": ["exp"]},
        {"drop": ["nbf"]},
    ],
    ids=str,
)
def test_a_credential_that_does_not_verify_is_never_noted_as_verified(box: Box, change: Draft) -> None:
    box.trust("iss")
    raw = derive.decoded(derive.credential({**SAYS, **change}))
    assert reason_of(raw, box) is Reason.CREDENTIAL_INVALID


def test_a_revoked_credential_is_not_noted_as_verified(box: Box) -> None:
    box.trust("iss")
    box.revoke(HASH)
    assert reason_of(RAW, box) is Reason.CREDENTIAL_INVALID


def test_a_credential_that_is_not_stored_is_unknown(box: Box) -> None:
    with pytest.raises(RefusedError) as caught:
        box.parts.log.persist_verified_vc(bytes(32))
    assert caught.value.reason is Reason.CREDENTIAL_UNKNOWN


@pytest.mark.parametrize("alg", ["EdDSA", "Ed25519"])
def test_a_credential_that_verifies_is_noted_with_five_fields(box: Box, alg: str) -> None:
    box.trust("iss")
    raw = derive.decoded(derive.credential({**SAYS, "header": {"alg": alg, "typ": "JWT"}}))
    cred_hash, new = box.parts.log.persist_vc(raw)
    assert new
    assert box.rows(Family.VC_VERIFIED) == {}
    said, new = box.parts.log.persist_verified_vc(cred_hash)
    assert (said.issuer, said.role, said.scope, said.nbf, said.exp, new) == ("iss", "editor", ("t", "u"), 10, 20, True)
    assert box.rows(Family.VC_VERIFIED) == {
        cred_hash: bytes.fromhex("a5")
        + b"\x63exp\x14"
        + b"\x63nbf\x0a"
        + b"\x64role\x66editor"
        + b"\x65scope\x82\x61t\x61u"
        + b"\x66issuer\x63iss"
    }
    assert box.parts.log.persist_vc(raw) == (cred_hash, False)
    assert box.parts.log.persist_verified_vc(cred_hash)[1] is False
    again = box.again()
    assert again.rows(Family.VC_RAW) == {cred_hash: raw}
    assert again.problems() == []


def test_verification_finds_credentials_that_were_changed(history: Box) -> None:
    history.parts.log.persist_verified_vc(bytes.fromhex(HASH))
    history.alter(Family.VC_RAW, bytes.fromhex(HASH), RAW[:-1] + b"A")
    assert {problem.family for problem in history.problems()} == {"vc_raw", "vc_verified"}
    history.alter(Family.VC_RAW, bytes.fromhex(HASH), RAW)
    assert history.problems() == []
    history.alter(Family.VC_VERIFIED, bytes(32), number(0))
    assert [problem.key for problem in history.problems()] == [bytes(32)]
