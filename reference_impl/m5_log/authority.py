"""Who may do what: judges the credentials of a store by what is stored and what the files of trust say now."""

from __future__ import annotations

from holdfast.reference_impl.m5_log.credentials import Trust, TrustFiles, Verifier, cred_hash_of
from holdfast.reference_impl.m5_log.database import Database
from holdfast.reference_impl.m5_log.state import Verified
from holdfast.reference_impl.m5_log.terms import Family, Key
from holdfast.reference_impl.terms import RefusedError


class StoredAuthority:
    """Implements `state.Authority` for one store at one moment. What is missing or does not verify is nobody's."""

    def __init__(self, database: Database, verifier: Verifier, trust: Trust) -> None:
        self._database = database
        self._verifier = verifier
        self._trust = trust
        self._judged: dict[bytes, Verified | None] = {}

    def judge(self, cred_hash: Key) -> Verified | None:
        """See `state.Authority`. Raises StoreError."""
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
        said = self._verifier.verify(raw, self._trust)
        if row is not None:
            self._verifier.check_row(said, row)
        return said

    def is_issuer(self, key: Key) -> bool:
        """See `state.Authority`."""
        return key in self._trust.issuers.values()


class Authorities:
    """Makes the authority of a store, with the files of trust as they are now."""

    def __init__(self, verifier: Verifier, files: TrustFiles) -> None:
        self._verifier = verifier
        self._files = files

    def of(self, database: Database) -> StoredAuthority:
        """The authority of this store now."""
        return StoredAuthority(database, self._verifier, self._files.read())
