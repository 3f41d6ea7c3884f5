"""The two keys of `rs4a-replay`: submissions with the array that is hashed for each, spelt out by hand."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from holdfast.vectors.fingerprints.lint import lint_fingerprints
from holdfast.vectors.fingerprints.page import RequestPage
from holdfast.vectors.fingerprints.record import FILE, Fingerprint, read, write

__all__ = ["OTHERS", "files", "problems", "read", "records"]

# Keys that the tests of the derivations compare.
OTHERS = frozenset({"keys.json"})
_PAGE = RequestPage("rs4a-replay", "rs4a")
_HASH = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_OTHER_HASH = "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"
_LOGICAL, _REPLAY = "rs4a.logical_request_key", "rs4a.replay_key"
_LOGICAL_TAG, _REPLAY_TAG = "rs4a-07/logical-request-key/v1", "rs4a-07/replay-key/v1"
_PLAIN = f'["{_LOGICAL_TAG}","register_dot","dot://acme/lamp","{_HASH}","owner-1"]'


def records() -> Iterator[Fingerprint]:
    """Logical keys, then replay keys, then what has no key."""
    yield from _logical()
    yield from _replay()
    yield from _refused()


def files() -> Mapping[str, bytes]:
    """See `holdfast.vectors.committed.Source`."""
    return {FILE: write(records())}


def problems() -> Iterable[str]:
    """See `holdfast.vectors.committed.Source`."""
    return lint_fingerprints(list(records()))


def _logical() -> Iterator[Fingerprint]:
    changes, spelling, borders = "RS4A-ID-2", "RS4A-ID-3", "RS4A-ID-14"
    yield _key("logical-plain", _LOGICAL, changes, {}, _PLAIN, "the submission that the others are changed from")
    for name, change, array, note in (
        (
            "operation",
            {"operation": "revoke_dot"},
            f'["{_LOGICAL_TAG}","revoke_dot","dot://acme/lamp","{_HASH}","owner-1"]',
            "another operation",
        ),
        (
            "target",
            {"canonical_target": "dot://acme/lump"},
            f'["{_LOGICAL_TAG}","register_dot","dot://acme/lump","{_HASH}","owner-1"]',
            "another target, by one letter",
        ),
        (
            "owner",
            {"owner_or_approval_binding": "owner-2"},
            f'["{_LOGICAL_TAG}","register_dot","dot://acme/lamp","{_HASH}","owner-2"]',
            "another owner",
        ),
        (
            "attested-hash",
            {"artifact_hash": _OTHER_HASH},
            f'["{_LOGICAL_TAG}","register_dot","dot://acme/lamp","{_OTHER_HASH}","owner-1"]',
            "another attested artifact",
        ),
        (
            "path-case",
            {"canonical_target": "dot://acme/Lamp"},
            f'["{_LOGICAL_TAG}","register_dot","dot://acme/Lamp","{_HASH}","owner-1"]',
            "the case of a path is kept",
        ),
        (
            "reserved-percent",
            {"canonical_target": "dot://acme/a%2fb"},
            f'["{_LOGICAL_TAG}","register_dot","dot://acme/a%2Fb","{_HASH}","owner-1"]',
            "an encoded slash stays encoded, in upper case",
        ),
        (
            "composed",
            {"canonical_target": "dot://acme/caf\u00e9"},
            f'["{_LOGICAL_TAG}","register_dot","dot://acme/caf\u00e9","{_HASH}","owner-1"]',
            "a letter beyond ASCII, raw in the array",
        ),
        (
            "escapes",
            {"owner_or_approval_binding": 'a"b\\c\n\x1f'},
            f'["{_LOGICAL_TAG}","register_dot","dot://acme/lamp","{_HASH}","a\\"b\\\\c\\n\\u001f"]',
            "what RFC 8785 escapes",
        ),
        (
            "not-escaped",
            {"owner_or_approval_binding": "</\u2028\x7f\U0001f4a1"},
            f'["{_LOGICAL_TAG}","register_dot","dot://acme/lamp","{_HASH}","</\u2028\x7f\U0001f4a1"]',
            "what RFC 8785 does not escape",
        ),
    ):
        yield _key(f"logical-{name}", _LOGICAL, changes, change, array, note)
    for name, change, note in (
        ("attempt", {"attempt_id": "try-2"}, "another attempt is the same request"),
        ("nonce", {"authorization_nonce": "nonce-0000000002"}, "another nonce is the same request"),
        ("principal", {"principal": "agent-2"}, "another principal is the same request"),
        ("issued-at", {"issued_at": "2026-02-02T00:00:00Z"}, "another time is the same request"),
        ("run", {"run_id": "run-2"}, "another run is the same request"),
        ("protocol", {"protocol_version": "rs4a/0.3"}, "another protocol version is the same request"),
        ("deployed-hash", {"deployed_artifact_hash": _OTHER_HASH}, "the deployed hash is not in this key"),
    ):
        yield _key(f"logical-same-{name}", _LOGICAL, changes, change, _PLAIN, note, same_as="logical-plain")
    for name, change, note in (
        ("hash-case", {"artifact_hash": _HASH.upper()}, "hexadecimal digits in upper case"),
        ("target-case", {"canonical_target": "DOT://ACME/lamp"}, "scheme and authority in upper case"),
        ("percent", {"canonical_target": "dot://acme/%6camp"}, "a percent-encoded letter"),
        ("dots", {"canonical_target": "dot://acme/x/../lamp"}, "dot segments"),
        ("slash", {"canonical_target": "dot://acme/lamp/"}, "a slash at the end"),
    ):
        yield _key(f"logical-spelt-{name}", _LOGICAL, spelling, change, _PLAIN, note, same_as="logical-plain")
    yield _key(
        "logical-spelt-decomposed",
        _LOGICAL,
        spelling,
        {"canonical_target": "dot://acme/cafe\u0301"},
        f'["{_LOGICAL_TAG}","register_dot","dot://acme/caf\u00e9","{_HASH}","owner-1"]',
        "decomposed letters are composed",
        same_as="logical-composed",
    )
    yield _key(
        "logical-border-moved",
        _LOGICAL,
        borders,
        {"operation": "register_do", "canonical_target": "tdot://acme/lamp"},
        f'["{_LOGICAL_TAG}","register_do","tdot://acme/lamp","{_HASH}","owner-1"]',
        "a letter moved over the border of two fields",
    )
    yield _key(
        "logical-separator-inside",
        _LOGICAL,
        borders,
        {"operation": 'register_dot","dot://acme/lamp'},
        f'["{_LOGICAL_TAG}","register_dot\\",\\"dot://acme/lamp","dot://acme/lamp","{_HASH}","owner-1"]',
        "a separator inside a field is escaped",
    )


def _replay() -> Iterator[Fingerprint]:
    clause = "RS4A-ID-12"
    plain = _replay_array()
    yield _key("replay-plain", _REPLAY, clause, {}, plain, "the submission that the others are changed from")
    for name, change, array, note in (
        ("run", {"run_id": "run-2"}, _replay_array(run="run-2"), "another run"),
        ("protocol", {"protocol_version": "rs4a/0.3"}, _replay_array(protocol="rs4a/0.3"), "another protocol version"),
        (
            "deployed-hash",
            {"deployed_artifact_hash": _OTHER_HASH},
            _replay_array(deployed=_OTHER_HASH),
            "another build",
        ),
        (
            "border-moved",
            {"protocol_version": "rs4a/0.2", "run_id": "run-1\u0000"},
            _replay_array(run="run-1\\u0000"),
            "a NUL behind the last field",
        ),
    ):
        yield _key(f"replay-{name}", _REPLAY, clause, change, array, note)
    for name, change, note in (
        ("attempt", {"attempt_id": "try-2"}, "another attempt is the same replay"),
        ("nonce", {"authorization_nonce": "nonce-0000000002"}, "another nonce is the same replay"),
        ("spelt", {"canonical_target": "dot://ACME/lamp/"}, "another spelling of the target"),
    ):
        yield _key(f"replay-same-{name}", _REPLAY, clause, change, plain, note, same_as="replay-plain")


def _refused() -> Iterator[Fingerprint]:
    missing = "RS4A-ID-1"
    for member in ("operation", "canonical_target", "owner_or_approval_binding"):
        submission = _submission({})
        del submission["request"][member]
        name = member.replace("_", "-")
        note = f"{member} is missing"
        yield _PAGE.record(f"logical-without-{name}", _LOGICAL, missing, submission, None, note, twin="logical-plain")
    submission = _submission({})
    del submission["request"]["run_id"]
    yield _PAGE.record(
        "replay-without-run", _REPLAY, missing, submission, None, "run_id is missing", twin="replay-plain"
    )
    yield _PAGE.record(
        "logical-bare-percent",
        _LOGICAL,
        "RS4A-ID-3",
        _submission({"canonical_target": "dot://acme/l%amp"}),
        None,
        "a percent sign without two digits has no normal form",
        twin="logical-plain",
    )


def _replay_array(*, protocol: str = "rs4a/0.2", deployed: str = _HASH, run: str = "run-1") -> str:
    inner = hashlib.sha256(_PLAIN.encode()).hexdigest()
    middle = f'"register_dot","dot://acme/lamp","{deployed}","owner-1"'
    return f'["{_REPLAY_TAG}","{protocol}","{inner}",{middle},"{run}"]'


def _submission(change: dict[str, str]) -> dict[str, Any]:
    request = {
        "protocol_version": "rs4a/0.2",
        "operation": "register_dot",
        "canonical_target": "dot://acme/lamp",
        "owner_or_approval_binding": "owner-1",
        "principal": "agent-1",
        "run_id": "run-1",
        "deployed_artifact_hash": _HASH,
        "authorization_nonce": "nonce-0000000001",
        "attempt_id": "try-1",
        "issued_at": "2026-01-01T00:00:00Z",
    }
    attested = {"artifact_hash": change.get("artifact_hash", _HASH)}
    request |= {name: value for name, value in change.items() if name != "artifact_hash"}
    return {"request": request, "trusted_attested": attested}


def _key(
    name: str, key: str, clause: str, change: dict[str, str], array: str, note: str, *, same_as: str | None = None
) -> Fingerprint:
    return _PAGE.record(name, key, clause, _submission(change), array.encode("utf-8"), note, same_as=same_as)
