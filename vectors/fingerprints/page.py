"""The notation of fingerprint records: literal requests, beside the bytes that are hashed for them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from holdfast.vectors.fingerprints.record import Fingerprint


@dataclass(frozen=True, slots=True)
class RequestPage:
    """A contract, and the prefix of the ids of its records; names are ids without the prefix."""

    contract: str
    prefix: str

    def record(
        self,
        name: str,
        key: str,
        clause: str,
        request: Mapping[str, Any],
        preimage: bytes | None,
        note: str,
        *,
        same_as: str | None = None,
        twin: str | None = None,
    ) -> Fingerprint:
        """A request and the bytes that are hashed for it; None if it must be refused, beside the name of its twin."""
        return Fingerprint(
            id=f"{self.prefix}-{name}",
            key=key,
            contract=self.contract,
            clause=clause,
            request=request,
            preimage=preimage,
            sha256=None if preimage is None else hashlib.sha256(preimage).hexdigest(),
            same_as=None if same_as is None else f"{self.prefix}-{same_as}",
            twin=None if twin is None else f"{self.prefix}-{twin}",
            note=note,
        )
