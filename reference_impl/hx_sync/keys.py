"""The vault key (source section 5): 256 bits from a file, from the system's keyring, or from a passphrase.

Nothing that is shorter, longer or of another kind is made to fit.
"""

from __future__ import annotations

import re
import secrets
import stat
from pathlib import Path
from uuid import UUID

from nacl import pwhash

from holdfast import install_line
from holdfast.reference_impl.hx_sync.algorithms import KEY_BYTES

# Passes and bytes of memory for a passphrase; all devices of a vault have to use the same.
OPERATIONS, MEMORY = pwhash.argon2id.OPSLIMIT_MODERATE, pwhash.argon2id.MEMLIMIT_MODERATE
_HEX = re.compile(r"[0-9a-fA-F]{64}")
_SERVICE = "holdfast hx vault"
_NO_KEYRING = "the system's keyring needs the library keyring"


class KeyInvalidError(ValueError):
    """There is no vault key of 256 bits at the place; the text says what was expected, never what came."""


def read(text: str) -> bytes:
    """The key that 64 hexadecimal digits spell. Raises KeyInvalidError."""
    if _HEX.fullmatch(text) is None:
        raise KeyInvalidError(f"expected a vault key of 64 hexadecimal digits, got {len(text)} characters")
    return bytes.fromhex(text)


def draw() -> str:
    """A new key."""
    return secrets.token_hex(KEY_BYTES)


def from_file(path: Path) -> str:
    """The digits in a file that only its owner may read; one line end may follow. Raises KeyInvalidError."""
    try:
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise KeyInvalidError(f"expected a key file that only its owner may read: run chmod 600 {path}")
        text = path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise KeyInvalidError(f"expected a readable key file at {path}: {type(error).__name__}") from error
    return read(text.removesuffix("\n")).hex()


def from_keyring(vault_id: str) -> str:
    """The digits that the system's keyring has for this vault. Raises KeyInvalidError."""
    try:
        import keyring

        text = keyring.get_password(_SERVICE, vault_id)
    except ImportError as error:
        raise KeyInvalidError(f"{_NO_KEYRING}: `{install_line('hx')}`") from error
    except Exception as error:  # backends raise what they like
        raise KeyInvalidError(f"the keyring cannot be asked: {type(error).__name__}") from error
    if text is None:
        raise KeyInvalidError(f"expected a key of vault {vault_id} in the keyring, got none")
    return read(text).hex()


def into_keyring(vault_id: str, text: str) -> None:
    """Keep a key in the system's keyring. Raises KeyInvalidError; one that is there is never replaced."""
    digits = read(text).hex()
    try:
        import keyring

        found = keyring.get_password(_SERVICE, vault_id)
        if found is None:
            keyring.set_password(_SERVICE, vault_id, digits)
    except ImportError as error:
        raise KeyInvalidError(f"{_NO_KEYRING}: `{install_line('hx')}`") from error
    except Exception as error:  # backends raise what they like
        raise KeyInvalidError(f"the keyring cannot be written: {type(error).__name__}") from error
    if found not in (None, digits):
        raise KeyInvalidError(f"the keyring has another key of vault {vault_id}; remove it first")


def from_passphrase(passphrase: bytes, vault_id: str) -> str:
    """The key that Argon2id makes of a passphrase, the same on every device of the vault.

    Raises KeyInvalidError for an empty one.
    """
    if not passphrase:
        raise KeyInvalidError("expected a passphrase, got an empty one")
    # The id of a vault is random and known to all its devices, and it has the size of a salt.
    salt = UUID(vault_id).bytes
    return pwhash.argon2id.kdf(KEY_BYTES, passphrase, salt, opslimit=OPERATIONS, memlimit=MEMORY).hex()
