"""The two keys of `rs4a-replay`, computed from a submission by the text of the contract (RS4A-07 section 1).

A key is the SHA-256 over the RFC 8785 form of an array of strings, the domain tag first. Which fields, in which order,
and which tag are read from the contract; the normal form of a target and the array text are written out here.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import Any

from holdfast.specs import load_terms
from holdfast.vectors.spelling import canonical, utc_instant

CONTRACT = "rs4a-replay"

_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})")
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
# RFC 3986 appendix B, which distinguishes an empty authority from an absent one.
_URI = re.compile(r"^(?:([A-Za-z][A-Za-z0-9+.-]*):)?(?://([^/?#]*))?([^?#]*)(\?[^#]*)?(#.*)?$", re.DOTALL)
# RFC 3986 section 2.3.
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ASCII_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_HASH_FIELDS = frozenset({"trusted_attested.artifact_hash", "deployed_artifact_hash"})


def logical_request_key(submission: Mapping[str, Any]) -> str:
    """The expected logical_request_key of `submission` ({request, trusted_attested}), 64 lower-case hex digits."""
    return key_of(logical_request_array(submission))


def replay_key(submission: Mapping[str, Any]) -> str:
    """The expected replay_key of `submission`, 64 lower-case hex digits."""
    return key_of(replay_array(submission))


def logical_request_array(submission: Mapping[str, Any]) -> str:
    """The array text that is hashed into logical_request_key."""
    return _array("logical_request_key", submission)


def replay_array(submission: Mapping[str, Any]) -> str:
    """The array text that is hashed into replay_key."""
    return _array("replay_key", submission)


def key_of(array_text: str) -> str:
    """SHA-256 of an array text as UTF-8, in lower-case hexadecimal."""
    return hashlib.sha256(array_text.encode("utf-8")).hexdigest()


def normal_target(target: str) -> str:
    """The normal form of a canonical_target.

    Percent-encoded unreserved characters are decoded and other percent-encodings get upper-case digits; the text is
    NFC; scheme and authority are lower case; dot segments are removed; no slash ends the path. Each step that can undo
    an earlier one comes before it, so that the normal form of a normal form is itself. Raises ValueError for a percent
    sign that two hexadecimal digits do not follow.
    """
    if _BARE_PERCENT.search(target):
        raise ValueError(f"target {target!r} has a percent sign without two hexadecimal digits, so no normal form")
    text = unicodedata.normalize("NFC", _PERCENT.sub(_percent, target))
    match = _URI.match(text)
    if match is None:
        raise ValueError(f"target {target!r} is no URI-like name")
    scheme, authority, path, query, fragment = match.groups()
    head = "" if scheme is None else scheme.translate(_ASCII_LOWER) + ":"
    if authority is not None:
        head += "//" + _lower_outside_percent(authority)
    normal = head + _without_dot_segments(path).rstrip("/") + (query or "") + (fragment or "")
    return unicodedata.normalize("NFC", normal)


def normal_hash(text: str) -> str:
    """The normal form of a hash, in lower case. Raises ValueError for any other text."""
    if re.fullmatch("[0-9a-fA-F]{64}", text) is None:
        raise ValueError(f"{text!r} is not 64 hexadecimal digits")
    return text.lower()


def _percent(match: re.Match[str]) -> str:
    character = chr(int(match.group(1), 16))
    return character if character in _UNRESERVED else match.group(0).upper()


def _lower_outside_percent(authority: str) -> str:
    # %2F in an authority keeps its upper-case digits: both rules hold at once only this way.
    parts = _PERCENT.split(authority)
    return "".join("%" + part if index % 2 else part.lower() for index, part in enumerate(parts))


def _without_dot_segments(path: str) -> str:
    """RFC 3986 section 5.2.4 for a path, segment by segment."""
    kept: list[str] = []
    rooted = path.startswith("/")
    segments = path.split("/")
    for position, segment in enumerate(segments):
        last = position == len(segments) - 1
        if segment == "..":
            floor = 1 if rooted else 0
            if len(kept) > floor:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
            continue
        if last:
            kept.append("")
    return "/".join(kept)


def _array(key: str, submission: Mapping[str, Any]) -> str:
    """The array text of a key. `tags` beside the request are in place of those of the contract."""
    contract = load_terms(CONTRACT)
    rule = contract.keys[key]
    tag = submission.get("tags", {}).get(rule.tag, contract.parameters[rule.tag].value)
    if not isinstance(tag, str):
        raise ValueError(f"contract {CONTRACT}: {rule.tag}, the tag of {key}, must be text, not {tag!r}")
    return canonical([tag, *(_field(name, submission) for name in rule.fields)])


def _field(name: str, submission: Mapping[str, Any]) -> str:
    if name == "logical_request_key":
        return logical_request_key(submission)
    place: Any = submission
    # A dotted name is a path from the submission, a plain one a member of the request.
    for part in name.split(".") if "." in name else ("request", name):
        if not isinstance(place, Mapping) or part not in place:
            raise ValueError(f"the submission has no {name}, so it has no key")
        place = place[part]
    if not isinstance(place, str):
        raise ValueError(f"{name} must be text, not {type(place).__name__}")
    if name == "canonical_target":
        return normal_target(place)
    return place.lower() if name in _HASH_FIELDS else place


DERIVATIONS: Mapping[str, Callable[[Any], Any]] = {
    "instant": utc_instant,
    "logical_request_key": logical_request_key,
    "normal_hash": normal_hash,
    "normal_target": normal_target,
    "replay_key": replay_key,
}
