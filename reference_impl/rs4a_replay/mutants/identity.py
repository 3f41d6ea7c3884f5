"""Bugs in the identities: the contents of keys, their spelling, and a wrong value in place of the right one."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.reference_impl.planting import Change, part
from holdfast.reference_impl.rs4a_replay.keys import Keys
from holdfast.reference_impl.rs4a_replay.mutants.values import key_fields, unique
from holdfast.reference_impl.rs4a_replay.reading import Reader
from holdfast.reference_impl.rs4a_replay.terms import Submission
from holdfast.reference_impl.rs4a_replay.validator import Validator


class JoinedFields(Keys):
    def hash_fields(self, texts: Sequence[str]) -> str:
        return hashlib.sha256("|".join(texts).encode()).hexdigest()


class ConcatenatedFields(Keys):
    def hash_fields(self, texts: Sequence[str]) -> str:
        return hashlib.sha256("".join(texts).encode()).hexdigest()


class UntaggedHash(Keys):
    def hash_fields(self, texts: Sequence[str]) -> str:
        return super().hash_fields(["", *texts[1:]])


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
        # Only the checks without which the code would crash.
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


class PrincipalUnheld(Reader):
    def fits_schema(self, args: Any) -> bool:
        request = args.get("request") if isinstance(args, dict) else None
        if not isinstance(request, dict) or not isinstance(request.get("principal"), str):
            return super().fits_schema(args)
        return super().fits_schema({**args, "request": {**request, "principal": "agent"}})


class LineBreakBehindLetThrough(Reader):
    def fits_schema(self, args: Any) -> bool:
        request = args.get("request") if isinstance(args, dict) else None
        if not isinstance(request, dict):
            return super().fits_schema(args)
        cut = {name: text.removesuffix("\n") if isinstance(text, str) else text for name, text in request.items()}
        return super().fits_schema({**args, "request": cut})


BUGS: Mapping[str, Change] = {
    "key-includes-attempt": key_fields("logical_request_key", lambda fields: (*fields, "attempt_id")),
    "key-includes-run": key_fields("logical_request_key", lambda fields: (*fields, "run_id")),
    "key-includes-nonce": key_fields("logical_request_key", lambda fields: (*fields, "authorization_nonce")),
    "key-is-the-replay-key": key_fields("logical_request_key", lambda fields: ("protocol_version", *fields, "run_id")),
    "key-without-owner": key_fields("logical_request_key", lambda fields: fields[:-1]),
    "replay-key-with-attempt": key_fields("replay_key", lambda fields: (*fields, "attempt_id")),
    "replay-key-with-nonce": key_fields("replay_key", lambda fields: (*fields, "authorization_nonce")),
    "replay-key-without-run": key_fields("replay_key", lambda fields: fields[:-1]),
    "fields-joined": part(keys=JoinedFields),
    "fields-concatenated": part(keys=ConcatenatedFields),
    "hash-untagged": part(keys=UntaggedHash),
    "target-as-sent": part(keys=TargetAsSent),
    "target-lower-cased": part(keys=LowerCasedTarget),
    "hash-as-sent": part(keys=HashAsSent),
    "artifact-unchecked": part(validator=ArtifactUnchecked),
    "claim-ignored": part(validator=ClaimIgnored),
    "client-hash-trusted": part(reader=ClientHashTrusted),
    "attempt-made-up": part(reader=AttemptMadeUp),
    "nonce-made-up": part(reader=NonceMadeUp),
    "identity-unchecked": part(reader=ShapeUnchecked),
    "principal-unheld": part(reader=PrincipalUnheld),
    "line-break-behind-let-through": part(reader=LineBreakBehindLetThrough),
    "attempt-unique": unique(
        "registration",
        {
            "logical_request_key_unique": ("logical_request_key",),
            "replay_key_unique": ("replay_key",),
            "attempt_id_unique": ("attempt_id",),
        },
    ),
}
