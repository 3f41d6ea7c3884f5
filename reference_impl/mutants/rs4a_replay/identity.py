"""Bugs in the identities: what the keys hold, how they are spelled, and what stands in for what."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from typing import Any

from reference_impl.mutants.rs4a_replay.planting import key_fields, mutant, part, unique
from reference_impl.rs4a_replay.keys import Keys
from reference_impl.rs4a_replay.reading import Reader
from reference_impl.rs4a_replay.terms import Submission
from reference_impl.rs4a_replay.validator import Validator


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
        needed = {"canonical_target", "attempt_id", "authorization_nonce", "issued_at", "operation"}
        return (
            needed <= set(args["request"])
            and all(isinstance(text, str) for text in texts)
            and super().fits_schema(
                {**args, "request": {**args["request"], "run_id": "run", "owner_or_approval_binding": "owner"}}
            )
        )


_HAND_VECTOR = {"ID-2": "wrong_reason", "ID-12": "wrong_reason"}

MUTANTS = (
    mutant(
        "key-includes-attempt",
        "The logical key hashes the attempt id: a retry with a new number is another request",
        key_fields("logical_request_key", lambda fields: (*fields, "attempt_id")),
        {"ID-2": "wrong_reason", "RP-01": "fail_open", "ID-5": "fail_open"},
    ),
    mutant(
        "key-includes-run",
        "The logical key hashes the run id: every run may have the effect again",
        key_fields("logical_request_key", lambda fields: (*fields, "run_id")),
        {"ID-2": "wrong_reason", "ID-13": "fail_open"},
    ),
    mutant(
        "key-includes-nonce",
        "The logical key hashes the nonce: a fresh nonce buys the effect again",
        key_fields("logical_request_key", lambda fields: (*fields, "authorization_nonce")),
        {"ID-2": "fail_open", "RP-02": "fail_open", "RP-07": "fail_open", "ID-5": "fail_open", "S3-3": "fail_open"},
    ),
    mutant(
        "key-is-the-replay-key",
        "The effect axis is guarded by the replay key, which changes with run and protocol version",
        key_fields("logical_request_key", lambda fields: ("protocol_version", *fields, "run_id")),
        {"ID-13": "fail_open", "ID-2": "wrong_reason"},
    ),
    mutant(
        "key-without-owner",
        "The logical key leaves the owner out: one owner's request answers for another's",
        key_fields("logical_request_key", lambda fields: fields[:-1]),
        {"ID-2": "wrong_reason"},
    ),
    mutant(
        "replay-key-with-attempt",
        "The replay key hashes the attempt id",
        key_fields("replay_key", lambda fields: (*fields, "attempt_id")),
        {"ID-12": "wrong_reason"},
    ),
    mutant(
        "replay-key-with-nonce",
        "The replay key hashes the nonce, as if that were consuming it",
        key_fields("replay_key", lambda fields: (*fields, "authorization_nonce")),
        {"ID-12": "wrong_reason"},
    ),
    mutant(
        "replay-key-without-run",
        "The replay key leaves the run id out",
        key_fields("replay_key", lambda fields: fields[:-1]),
        {"ID-12": "wrong_reason"},
    ),
    mutant(
        "fields-joined",
        "Fields are joined with a bar before hashing: a bar inside a field moves the border",
        part(keys=JoinedFields),
        {"ID-14": "wrong_reason", **_HAND_VECTOR},
    ),
    mutant(
        "fields-concatenated",
        "Fields are concatenated before hashing: letters move from one field to the next",
        part(keys=ConcatenatedFields),
        {"ID-14": "wrong_reason", **_HAND_VECTOR},
    ),
    mutant(
        "hash-untagged",
        "Keys are hashed without their domain tag",
        part(keys=UntaggedHash),
        _HAND_VECTOR,
    ),
    mutant(
        "target-as-sent",
        "Targets are not normalised: an alias is another request",
        part(keys=TargetAsSent),
        {"ID-3": "fail_open"},
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
    ),
    mutant(
        "artifact-unchecked",
        "A deployed or claimed hash that differs from the attested one is let through",
        part(validator=ArtifactUnchecked),
        {"ID-4": "fail_open", "LAYER-1": "fail_open"},
    ),
    mutant(
        "claim-ignored",
        "Only the deployed hash is compared with the attested one, not what the client claims",
        part(validator=ClaimIgnored),
        {"ID-4": "fail_open"},
    ),
    mutant(
        "client-hash-trusted",
        "The artifact hash of the keys is the client's own claim",
        part(reader=ClientHashTrusted),
        {"ID-4": "fail_open"},
    ),
    mutant(
        "attempt-made-up",
        "A missing attempt id is filled in",
        part(reader=AttemptMadeUp),
        {"ID-1": "fail_open"},
    ),
    mutant(
        "nonce-made-up",
        "A missing nonce is derived from the request",
        part(reader=NonceMadeUp),
        {"ID-1": "wrong_reason", "ID-8": "wrong_reason"},
    ),
    mutant(
        "identity-unchecked",
        "Run and owner are not held to the schema: they may be missing, or hold control characters",
        part(reader=ShapeUnchecked),
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
    ),
)
