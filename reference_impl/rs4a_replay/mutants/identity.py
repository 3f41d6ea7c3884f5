"""Bugs in the identities: what the keys hold, how they are spelled, and what stands in for what."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any

from holdfast.reference_impl.mutants.planting import part
from holdfast.reference_impl.rs4a_replay.keys import Keys
from holdfast.reference_impl.rs4a_replay.mutants.planting import key_fields, mutant, unique
from holdfast.reference_impl.rs4a_replay.reading import Reader
from holdfast.reference_impl.rs4a_replay.terms import Submission
from holdfast.reference_impl.rs4a_replay.validator import Validator


class JoinedFields(Keys):
    def hash_fields(self, tag: str, values: Sequence[str]) -> str:
        return hashlib.sha256("|".join([tag, *values]).encode()).hexdigest()


class ConcatenatedFields(Keys):
    def hash_fields(self, tag: str, values: Sequence[str]) -> str:
        return hashlib.sha256("".join([tag, *values]).encode()).hexdigest()


class UntaggedHash(Keys):
    def hash_fields(self, tag: str, values: Sequence[str]) -> str:
        return super().hash_fields("", values)


class TargetAsSent(Keys):
    def normal_target(self, target: str) -> str:
        return target


class LowerCasedTarget(Keys):
    def normal_target(self, target: str) -> str:
        return super().normal_target(target).lower()


class HashAsSent(Keys):
    def normal_hash(self, text: str) -> str:
        return text


class ArtifactUnchecked(Validator):
    def artifacts_disagree(self, submission: Submission) -> bool:
        return False


class ClaimIgnored(Validator):
    def artifacts_disagree(self, submission: Submission) -> bool:
        return submission.deployed_artifact_hash != submission.attested_artifact_hash


class ClientHashTrusted(Reader):
    def read(self, args: Any) -> Submission:
        try:
            claimed = args["request"].get("artifact_hash") or args["request"]["deployed_artifact_hash"]
            request = {**args["request"], "artifact_hash": claimed, "deployed_artifact_hash": claimed}
            args = {"request": request, "trusted_attested": {"artifact_hash": claimed}}
        except (KeyError, TypeError, AttributeError):
            pass
        return super().read(args)


class AttemptMadeUp(Reader):
    def read(self, args: Any) -> Submission:
        if isinstance(args, dict) and isinstance(args.get("request"), dict):
            args = {**args, "request": {"attempt_id": uuid.uuid4().hex, **args["request"]}}
        return super().read(args)


class NonceMadeUp(Reader):
    def read(self, args: Any) -> Submission:
        if isinstance(args, dict) and isinstance(args.get("request"), dict):
            made_up = hashlib.sha256(repr(sorted(args["request"].items())).encode()).hexdigest()
            args = {**args, "request": {"authorization_nonce": made_up, **args["request"]}}
        return super().read(args)


class ShapeUnchecked(Reader):
    def fits_schema(self, args: Any) -> bool:
        # Only what the code needs in order not to fall over.
        try:
            texts = [*args["request"].values(), args["trusted_attested"]["artifact_hash"]]
        except (KeyError, TypeError, AttributeError):
            return False
        return (
            {"run_id", "owner_or_approval_binding"} <= set(args["request"])
            and all(isinstance(text, str) for text in texts)
            and super().fits_schema(
                {**args, "request": {**args["request"], "run_id": "run", "owner_or_approval_binding": "owner"}}
            )
        )


class LineBreakBehindLetThrough(Reader):
    def fits_schema(self, args: Any) -> bool:
        request = args.get("request") if isinstance(args, dict) else None
        if not isinstance(request, dict):
            return super().fits_schema(args)
        cut = {name: text.removesuffix("\n") if isinstance(text, str) else text for name, text in request.items()}
        return super().fits_schema({**args, "request": cut})


_HAND_VECTOR = {"ID-2": "wrong_reason", "ID-12": "wrong_reason"}

# A case often asks for the key that the contract derives: in resolve_status, in the audit, in the stored decision. A
# registrar that keys its rows otherwise does not know that key, whatever else it does rightly.
_UNKNOWN_KEY = "the key that the contract derives from the request is not the one under which this registrar keeps it"
_OTHER_KEY = {
    **dict.fromkeys(("AUD-1", "AUD-2", "GATE-2", "ID-4", "LAYER-1", "RP-03b", "RP-06", "RP-08", "RP-09"), _UNKNOWN_KEY),
    **dict.fromkeys(("S1-2", "S2-1", "S2-2", "S3-2", "S4-4"), _UNKNOWN_KEY),
}
_HASHED_INTO_REPLAY_KEY = "the logical key is hashed into the replay key, which is another one with it"
_OTHER_REPLAY_KEY = "its cases compare the replay key with the derived one, and that is another here"
_SECOND_EFFECT = "one logical request has as many keys as values of the extra field, and an effect for each"
_NOTHING_FAILED = "a compensation has a nonce of its own, hence a key of its own, and under that one nothing has failed"
_NO_MISMATCH = "one of the refusals that it expects on record is ARTIFACT_MISMATCH, which does not come"
_BINDING_AS_SENT = "the binding of a nonce is brought to the same form, and so holds only for one spelling"
_SHARED_ATTEMPT = "the requests of its cases share one attempt id, and only the first of them is admitted"

MUTANTS = (
    mutant(
        "key-includes-attempt",
        "The logical key hashes the attempt id: a retry with a new number is another request",
        key_fields("logical_request_key", lambda fields: (*fields, "attempt_id")),
        {"ID-2": "wrong_reason", "RP-01": "fail_open", "ID-5": "fail_open"},
        {
            **_OTHER_KEY,
            **dict.fromkeys(("ID-12", "ID-14"), _HASHED_INTO_REPLAY_KEY),
            **dict.fromkeys(("ID-13", "LAYER-2", "RP-07", "S3-3", "S4-1", "S4-3"), _SECOND_EFFECT),
        },
    ),
    mutant(
        "key-includes-run",
        "The logical key hashes the run id: every run may have the effect again",
        key_fields("logical_request_key", lambda fields: (*fields, "run_id")),
        {"ID-2": "wrong_reason", "ID-13": "fail_open"},
        {
            **_OTHER_KEY,
            **dict.fromkeys(("ID-12", "ID-14"), _HASHED_INTO_REPLAY_KEY),
            **dict.fromkeys(("ID-5", "LAYER-2", "RP-01", "RP-02", "RP-07", "S4-1", "S4-3"), _SECOND_EFFECT),
        },
    ),
    mutant(
        "key-includes-nonce",
        "The logical key hashes the nonce: a fresh nonce buys the effect again",
        key_fields("logical_request_key", lambda fields: (*fields, "authorization_nonce")),
        {"ID-2": "fail_open", "RP-02": "fail_open", "RP-07": "fail_open", "ID-5": "fail_open", "S3-3": "fail_open"},
        {
            **_OTHER_KEY,
            **dict.fromkeys(("ID-12", "ID-14"), _HASHED_INTO_REPLAY_KEY),
            "ID-15": _UNKNOWN_KEY,
            **dict.fromkeys(("ID-1", "RP-04", "TTL-1"), _NOTHING_FAILED),
            **dict.fromkeys(("ID-3", "ID-10", "ID-13", "LAYER-2", "RP-01", "S0-1", "S4-1", "S4-3"), _SECOND_EFFECT),
            **dict.fromkeys(("GATE-4", "TTL-2", "TTL-3", "TTL-4", "TTL-5"), _SECOND_EFFECT),
        },
    ),
    mutant(
        "key-is-the-replay-key",
        "The effect axis is guarded by the replay key, which changes with run and protocol version",
        key_fields("logical_request_key", lambda fields: ("protocol_version", *fields, "run_id")),
        {"ID-13": "fail_open", "ID-2": "wrong_reason"},
        {
            **_OTHER_KEY,
            **dict.fromkeys(("ID-12", "ID-14"), _HASHED_INTO_REPLAY_KEY),
            **dict.fromkeys(("ID-5", "LAYER-2", "RP-01", "RP-02", "RP-07", "S4-1", "S4-3"), _SECOND_EFFECT),
        },
    ),
    mutant(
        "key-without-owner",
        "The logical key leaves the owner out: one owner's request answers for another's",
        key_fields("logical_request_key", lambda fields: fields[:-1]),
        {"ID-2": "wrong_reason"},
        {
            **_OTHER_KEY,
            **dict.fromkeys(("ID-12", "ID-14"), _HASHED_INTO_REPLAY_KEY),
            **dict.fromkeys(("ID-7", "RP-04"), "its cases tell two requests apart by their owners alone"),
        },
    ),
    mutant(
        "replay-key-with-attempt",
        "The replay key hashes the attempt id",
        key_fields("replay_key", lambda fields: (*fields, "attempt_id")),
        {"ID-12": "wrong_reason"},
        {"ID-14": _OTHER_REPLAY_KEY},
    ),
    mutant(
        "replay-key-with-nonce",
        "The replay key hashes the nonce, as if that were consuming it",
        key_fields("replay_key", lambda fields: (*fields, "authorization_nonce")),
        {"ID-12": "wrong_reason"},
        {"ID-14": _OTHER_REPLAY_KEY},
    ),
    mutant(
        "replay-key-without-run",
        "The replay key leaves the run id out",
        key_fields("replay_key", lambda fields: fields[:-1]),
        {"ID-12": "wrong_reason"},
        {"ID-14": _OTHER_REPLAY_KEY},
    ),
    mutant(
        "fields-joined",
        "Fields are joined with a bar before hashing: a bar inside a field moves the border",
        part(keys=JoinedFields),
        {"ID-14": "wrong_reason", **_HAND_VECTOR},
        _OTHER_KEY,
    ),
    mutant(
        "fields-concatenated",
        "Fields are concatenated before hashing: letters move from one field to the next",
        part(keys=ConcatenatedFields),
        {"ID-14": "wrong_reason", **_HAND_VECTOR},
        _OTHER_KEY,
    ),
    mutant(
        "hash-untagged",
        "Keys are hashed without their domain tag",
        part(keys=UntaggedHash),
        _HAND_VECTOR,
        {**_OTHER_KEY, "ID-14": "its cases compare with keys that were derived with the tag"},
    ),
    mutant(
        "target-as-sent",
        "Targets are not normalised: an alias is another request",
        part(keys=TargetAsSent),
        {"ID-3": "fail_open"},
        {"RP-04": _BINDING_AS_SENT},
    ),
    mutant(
        "target-lower-cased",
        "The whole target is lower-cased: two requests become one",
        part(keys=LowerCasedTarget),
        {"ID-3": "wrong_reason"},
    ),
    mutant(
        "hash-as-sent",
        "Artifact hashes keep their case: the same hash in capitals is another request",
        part(keys=HashAsSent),
        {"ID-3": "wrong_reason"},
        {"RP-04": _BINDING_AS_SENT, "ID-4": "the attested hash, claimed in capitals, counts as another"},
    ),
    mutant(
        "artifact-unchecked",
        "A deployed or claimed hash that differs from the attested one is let through",
        part(validator=ArtifactUnchecked),
        {"ID-4": "fail_open", "LAYER-1": "fail_open"},
        {"AUD-1": _NO_MISMATCH},
    ),
    mutant(
        "claim-ignored",
        "Only the deployed hash is compared with the attested one, not what the client claims",
        part(validator=ClaimIgnored),
        {"ID-4": "fail_open"},
        {"AUD-1": _NO_MISMATCH, "LAYER-1": "the forged hash that its case shows to the validator is a claim"},
    ),
    mutant(
        "client-hash-trusted",
        "The artifact hash of the keys is the client's own claim",
        part(reader=ClientHashTrusted),
        {"ID-4": "fail_open"},
        {"AUD-1": _NO_MISMATCH, "ID-1": "an attested hash that is missing is filled in from the claim as well"},
    ),
    mutant(
        "attempt-made-up",
        "A missing attempt id is filled in",
        part(reader=AttemptMadeUp),
        {"ID-1": "fail_open"},
        dict.fromkeys(("AUD-1", "S0-2"), "their malformed request is the one without an attempt id"),
    ),
    mutant(
        "nonce-made-up",
        "A missing nonce is derived from the request",
        part(reader=NonceMadeUp),
        {"ID-1": "wrong_reason", "ID-8": "wrong_reason"},
        {"LAYER-1": "its malformed request is the one without a nonce"},
    ),
    mutant(
        "identity-unchecked",
        "Run and owner are not held to the schema: they may be empty, or hold control characters",
        part(reader=ShapeUnchecked),
        {"ID-14": "fail_open"},
    ),
    mutant(
        "line-break-behind-let-through",
        "The end of a pattern is taken for the end of a line: an identity may have a line break behind it",
        part(reader=LineBreakBehindLetThrough),
        {"ID-14": "fail_open"},
    ),
    mutant(
        "attempt-unique",
        "The store has UNIQUE(attempt_id): an attempt id serves only once",
        unique(
            "registration",
            {
                "logical_request_key_unique": ("logical_request_key",),
                "replay_key_unique": ("replay_key",),
                "attempt_id_unique": ("attempt_id",),
            },
        ),
        {"ID-10": "over_refusal"},
        {
            **dict.fromkeys(
                ("AUD-1", "AUD-2", "GATE-2", "GATE-4", "LAYER-1", "LAYER-2", "S0-1", "S1-2"), _SHARED_ATTEMPT
            ),
            **dict.fromkeys(
                ("ID-2", "ID-3", "ID-6", "ID-7", "ID-8", "ID-11", "ID-13", "ID-14", "ID-15"), _SHARED_ATTEMPT
            ),
            **dict.fromkeys(("RP-02", "RP-03", "RP-03b", "RP-04", "RP-07", "RP-08", "RP-09"), _SHARED_ATTEMPT),
            **dict.fromkeys(("S2-1", "S2-2", "S2-3", "S3-1", "S3-3", "S4-3", "S4-4", "S4-5"), _SHARED_ATTEMPT),
            **dict.fromkeys(("TTL-2", "TTL-3", "TTL-4", "TTL-5"), _SHARED_ATTEMPT),
        },
    ),
)
