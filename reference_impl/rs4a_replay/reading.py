"""Reading a submission: held to the method's schema, then brought to its normal form. No store, no clock."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from holdfast.reference_impl.instants import InstantError, parse_any_year
from holdfast.reference_impl.rs4a_replay.keys import Keys, TargetError
from holdfast.reference_impl.rs4a_replay.terms import Submission
from holdfast.specs.schema import Validator as SchemaValidator
from holdfast.specs.schema import explain


class MalformedError(ValueError):
    """Arguments do not fit the method's schema, or cannot be brought to their normal form."""


class Reader:
    """Turns arguments into a `Submission`. Every method that takes one has the same schema."""

    def __init__(self, schema: SchemaValidator, keys: Keys) -> None:
        self._schema = schema
        self._keys = keys

    def fits_schema(self, args: Any) -> bool:
        """Whether the arguments have the shape that the contract asks for; every identity is required there."""
        return self._schema.is_valid(args)

    def read(self, args: Any) -> Submission:
        """Read a submission. Raises MalformedError with the place and the rule that was broken."""
        if not self.fits_schema(args):
            raise MalformedError(explain(self._schema, args))
        request, keys = args["request"], self._keys
        claimed = request.get("artifact_hash")
        try:
            return Submission(
                protocol_version=request["protocol_version"],
                operation=request["operation"],
                canonical_target=keys.normal_target(request["canonical_target"]),
                owner_or_approval_binding=request["owner_or_approval_binding"],
                principal=request["principal"],
                run_id=request["run_id"],
                deployed_artifact_hash=keys.normal_hash(request["deployed_artifact_hash"]),
                claimed_artifact_hash=None if claimed is None else keys.normal_hash(claimed),
                attested_artifact_hash=keys.normal_hash(args["trusted_attested"]["artifact_hash"]),
                authorization_nonce=request["authorization_nonce"],
                attempt_id=request["attempt_id"],
                issued_at=self.instant(request["issued_at"]),
            )
        except (TargetError, InstantError) as error:
            raise MalformedError(str(error)) from error

    def instant(self, text: str) -> datetime:
        """When a request was issued, in any year of RFC 3339. Raises InstantError."""
        return parse_any_year(text)
