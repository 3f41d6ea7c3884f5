"""The normal form of a target and the two keys derived from a submission (source section 1; contract `keys`)."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from holdfast.reference_impl.rs4a_replay.settings import KeySpec
from holdfast.reference_impl.rs4a_replay.terms import DerivedKeys, Submission
from holdfast.specs.strictjson import canonical

# Scheme, authority and path, each as far as there is one, and what follows them (RFC 3986 section 3).
_PARTS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*:)?(//[^/?#]*)?([^?#]*)(.*)", re.DOTALL)
_PERCENT = re.compile(r"%([0-9A-Fa-f]{2})?")
_ENCODED = re.compile(r"(%[0-9A-F]{2})")
# RFC 3986 section 2.3: encoding these does not change the meaning, so a normal form decodes them.
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")


class TargetError(ValueError):
    """A target has no normal form."""


def normal_target(target: str) -> str:
    """The normal form of a target, so that two spellings of one thing give one key. Raises TargetError."""
    # Decode first: the result may be a dot segment, or combine with a combining character.
    text = unicodedata.normalize("NFC", _decode_unreserved(target))
    parts = _PARTS.fullmatch(text)
    assert parts is not None, "each of the parts may be empty"
    scheme, authority, path, tail = parts.groups("")
    normal = unicodedata.normalize(
        "NFC", scheme.lower() + _lower_case(authority) + _without_dot_segments(path).rstrip("/") + tail
    )
    if not normal:
        raise TargetError(f"nothing is left of the target {target!r} in its normal form")
    return normal


def normal_hash(text: str) -> str:
    """The normal form of a hash: lower case, so that its spelling does not make another key."""
    return text.lower()


def hash_fields(texts: Sequence[str]) -> str:
    """SHA-256 over the RFC 8785 form of an array of texts, tag first: fields cannot shift into one another."""
    return hashlib.sha256(canonical(texts)).hexdigest()


def derive(specs: Mapping[str, KeySpec], submission: Submission) -> DerivedKeys:
    """Both keys of a submission in its normal form, by the contract's tags and lists of fields."""
    logical, replay = specs["logical_request_key"], specs["replay_key"]
    # The hash that the platform attests enters keys, never what the client claims.
    values = {**asdict(submission), "trusted_attested.artifact_hash": submission.attested_artifact_hash}
    values["logical_request_key"] = hash_fields([logical.tag, *(values[field] for field in logical.fields)])
    replay_key = hash_fields([replay.tag, *(values[field] for field in replay.fields)])
    return DerivedKeys(values["logical_request_key"], replay_key)


def _decode_unreserved(text: str) -> str:
    def decoded(match: re.Match[str]) -> str:
        if match[1] is None:
            raise TargetError(f"the percent sign at character {match.start()} of the target has no two digits after it")
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    return _PERCENT.sub(decoded, text)


def _lower_case(authority: str) -> str:
    # The digits of encodings are in capitals. Otherwise the normal form would change when it is normalised again.
    parts = _ENCODED.split(authority)
    return "".join(part if _ENCODED.fullmatch(part) else part.lower() for part in parts)


def _without_dot_segments(path: str) -> str:
    """RFC 3986 section 5.2.4, on a whole path at once, but for a slash at the end."""
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            # The empty first segment of an absolute path is its root, and stays.
            if kept and kept != [""]:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    return "/".join(kept)
