"""Credentials: the one spelling of a compact JWT, the files that say who is trusted, and what verifies now."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from holdfast.reference_impl import base64url
from holdfast.reference_impl.ed25519 import KEY_BYTES, valid
from holdfast.reference_impl.m5_log.cbor import Value, encode
from holdfast.reference_impl.m5_log.database import Database
from holdfast.reference_impl.m5_log.terms import Family, Key, Reason
from holdfast.reference_impl.terms import RefusedError
from holdfast.specs.errors import StrictJsonError
from holdfast.specs.strictjson import loads

# RFC 8037 and RFC 9864: two names of one algorithm. No other is ever tried.
_ALGORITHMS = ("EdDSA", "Ed25519")
_CLAIMS = frozenset({"iss", "sub", "role", "scope", "nbf", "exp"})
_HEADER = frozenset({"alg", "typ"})
# methods.yaml, `$defs/credential`: 40,000 characters of base64url.
_MOST_BYTES = 30_000
# A hundred million years; beyond it no clock of an operation reaches, and every number is exact in JSON.
_MOST_SECONDS = 2**53 // 1000
_HASH = re.compile(r"[0-9a-f]{64}")


def cred_hash_of(raw: bytes) -> bytes:
    """The hash by which a credential is stored, granted and revoked."""
    return hashlib.sha256(raw).digest()


@dataclass(frozen=True, slots=True)
class Verified:
    """What a credential that verifies says. `subject` is its public key; times are whole seconds since 1970."""

    issuer: str
    subject: Key
    role: str
    scope: tuple[str, ...]
    nbf: int
    exp: int


@dataclass(frozen=True, slots=True)
class Compact:
    """The parts of a compact JWT, decoded. `signed` is what the signature covers."""

    raw: bytes
    header: bytes
    claims: bytes
    signed: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class Trust:
    """What the trust file and the status file say now. `revoked` is None where everything is."""

    issuers: Mapping[str, bytes]
    revoked: frozenset[bytes] | None


class TrustFiles:
    """Reads both files anew each time. A file of any other form trusts nobody, or revokes everything."""

    def __init__(self, trust: Path, status: Path) -> None:
        self._trust = trust
        self._status = status

    def read(self) -> Trust:
        """What they say now. Never raises."""
        return Trust(self.issuers(), self.revoked())

    def issuers(self) -> Mapping[str, bytes]:
        """The trusted issuers by name; none where the file is missing or malformed."""
        try:
            found = self.member("issuers", self._trust.read_bytes())
            return {name: key_of(text) for name, text in found.items()} if isinstance(found, dict) else {}
        except (OSError, ValueError):
            return {}

    def revoked(self) -> frozenset[bytes] | None:
        """The hashes of revoked credentials; None, which is all, where the file is malformed."""
        try:
            found = self.member("revoked", self._status.read_bytes())
            return frozenset(map(self.entry, found)) if isinstance(found, list) else None
        except FileNotFoundError:
            return frozenset()
        except (OSError, ValueError):
            return None

    def member(self, name: str, raw: bytes) -> Any:
        """The value of the one member that a file has. Raises ValueError."""
        value = loads(raw)
        if not isinstance(value, dict) or value.keys() != {name}:
            raise ValueError(f"expected an object with {name} and nothing else")
        return value[name]

    def entry(self, text: Any) -> bytes:
        """The hash in an entry of the status file. Raises ValueError."""
        if not isinstance(text, str) or _HASH.fullmatch(text) is None:
            raise ValueError("expected a hash in lower-case hexadecimal")
        return bytes.fromhex(text)


def key_of(text: Any) -> bytes:
    """A public key in base64url. Raises ValueError."""
    if not isinstance(text, str):
        raise ValueError("expected a key as base64url text")
    key = base64url.read(text)
    if len(key) != KEY_BYTES:
        raise ValueError(f"expected a key of {KEY_BYTES} bytes, got {len(key)}")
    return key


def compact(raw: bytes) -> Compact:
    """The parts of a credential in its one spelling. Raises RefusedError.

    Libraries read padded parts as well. Then one credential would have many hashes, and be revoked by one of them.
    """
    if len(raw) > _MOST_BYTES:
        raise _malformed(f"expected at most {_MOST_BYTES} bytes, got {len(raw)}")
    parts = raw.split(b".")
    if len(parts) != 3 or not all(parts):
        raise _malformed(f"expected three parts, each with text in it, got {len(parts)}")
    try:
        header, claims, signature = (base64url.read(part.decode("latin-1")) for part in parts)
    except ValueError as error:
        raise _malformed(str(error)) from error
    return Compact(raw, header, claims, b".".join(parts[:2]), signature)


def claims(compact: Compact) -> Verified:
    """What a credential says, whoever signed it. Raises RefusedError."""
    header, claims = _object("header", compact.header), _object("claims", compact.claims)
    if not {"alg"} <= header.keys() <= _HEADER or header["alg"] not in _ALGORITHMS:
        raise _invalid(f"expected a header with alg {' or '.join(_ALGORITHMS)} and perhaps typ")
    if claims.keys() != _CLAIMS:
        raise _invalid(f"expected the claims {', '.join(sorted(_CLAIMS))}")
    for name in ("iss", "role"):
        if not isinstance(claims[name], str) or not claims[name]:
            raise _invalid(f"expected text as {name}")
    scope = claims["scope"]
    if not isinstance(scope, list) or not all(isinstance(tag, str) for tag in scope):
        raise _invalid("expected an array of texts as scope")
    try:
        subject = key_of(claims["sub"])
    except ValueError as error:
        raise _invalid(f"sub: {error}") from error
    nbf, exp = (_seconds(name, claims[name]) for name in ("nbf", "exp"))
    if exp <= nbf:
        raise _invalid("expected exp after nbf")
    return Verified(claims["iss"], subject, claims["role"], tuple(scope), nbf, exp)


def _object(name: str, raw: bytes) -> dict[str, Any]:
    """A part that is a JSON object. Raises RefusedError."""
    try:
        value = loads(raw)
    except StrictJsonError as error:
        raise _invalid(f"{name}: {error}") from error
    if not isinstance(value, dict):
        raise _invalid(f"expected an object as {name}")
    return value


def _seconds(name: str, value: Any) -> int:
    """Whole seconds since 1970. Raises RefusedError."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_SECONDS:
        raise _invalid(f"expected whole seconds since 1970 as {name}")
    return value


def check_standing(said: Verified, cred_hash: Key, trust: Trust) -> bytes:
    """The issuer's key, if it is trusted and the credential is not revoked. Raises RefusedError."""
    key = trust.issuers.get(said.issuer)
    if key is None:
        raise _invalid("the issuer is not trusted")
    if trust.revoked is None or cred_hash in trust.revoked:
        raise _invalid("it is revoked")
    return key


def check_signature(compact: Compact, key: Key) -> None:
    """The issuer signed it, by the library and by the pinned criteria. Raises RefusedError."""
    # Only now: it is half of all imports, and most commands meet no credential.
    from joserfc import jws
    from joserfc.errors import JoseError
    from joserfc.jwk import OKPKey

    public: dict[str, str | list[str]] = {
        "kty": "OKP",
        "crv": "Ed25519",
        "x": base64url.write(key),
    }
    try:
        with warnings.catch_warnings():
            # RFC 9864 calls EdDSA deprecated, because it names two curves; here the key names the one.
            warnings.simplefilter("ignore")
            jws.deserialize_compact(compact.raw, OKPKey.import_key(public), algorithms=list(_ALGORITHMS))
    except (JoseError, ValueError) as error:
        raise _invalid(f"the signature is not the issuer's: {error}") from error
    if not valid(key, compact.signed, compact.signature):
        raise _invalid("the signature is not the issuer's in its strict form")


def verify(raw: bytes, trust: Trust) -> Verified:
    """What a credential says, if all of it verifies. Raises RefusedError."""
    parts = compact(raw)
    said = claims(parts)
    check_signature(parts, check_standing(said, cred_hash_of(raw), trust))
    return said


def check_row(said: Verified, row: bytes) -> None:
    """A row of vc_verified says what the credential says. Raises RefusedError."""
    if row != row_of(said):
        raise _invalid("vc_verified says something else than the credential")


def row_of(said: Verified) -> bytes:
    """The value of a row of vc_verified."""
    fields: dict[str, Value] = {
        "issuer": said.issuer,
        "role": said.role,
        "scope": list(said.scope),
        "nbf": said.nbf,
        "exp": said.exp,
    }
    return encode(fields)


def _malformed(detail: str) -> RefusedError:
    return RefusedError(Reason.CREDENTIAL_MALFORMED, detail)


def _invalid(detail: str) -> RefusedError:
    return RefusedError(Reason.CREDENTIAL_INVALID, detail)


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
        said = verify(raw, self._trust)
        if row is not None:
            check_row(said, row)
        return said

    def is_issuer(self, key: Key) -> bool:
        """Whether it is the key of a trusted issuer."""
        return key in self._trust.issuers.values()
