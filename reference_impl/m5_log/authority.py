"""Who may do what: judges the credentials of a store by what is stored and what the files of trust say now."""

from __future__ import annotations

from holdfast.reference_impl.m5_log import credentials
from holdfast.reference_impl.m5_log.credentials import Trust, Verified, cred_hash_of
from holdfast.reference_impl.m5_log.database import Database
from holdfast.reference_impl.m5_log.terms import Family, Key
from holdfast.reference_impl.terms import RefusedError


class Authority:
    """The authority of one store at one moment. What is missing or does not verify is nobody's."""

    def __init__(self, database: Database, trust: Trust) -> None:
        self._database = database
        self._trust = trust
        self._judged: dict[bytes, Verified | None] = {}

    def judge(self, cred_hash: Key) -> Verified | None:
        """What a credential says, if it is stored and verifies now. Raises StoreError."""
        if cred_hash not in self._judged:
            self._judged[cred_hash] = self._found(cred_hash)
        return self._judged[cred_hash]

    def _found(self, cred_hash: Key) -> Verified | None:
        raw = self._database.get(Family.VC_RAW, cred_hash)
        if raw is None or cred_hash_of(raw) != cred_hash:
            return None
        try:
            return self.verified(raw, self._database.get(Family.VC_VERIFIED, cred_hash))
        except RefusedError:
            return None

    def verified(self, raw: bytes, row: bytes | None) -> Verified:
        """What a credential says, if its signature is right and a row of the cache agrees. Raises RefusedError.

        A row does not say with whose key the credential was verified, and the trust file may name another one now.
        """
        said = credentials.verify(raw, self._trust)
        if row is not None:
            credentials.check_row(said, row)
        return said

    def is_issuer(self, key: Key) -> bool:
        """Whether it is the key of a trusted issuer."""
        return key in self._trust.issuers.values()
