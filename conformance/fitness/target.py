"""Where a surface lies, said without secrets; and errors of the database in words that hold none.

A DSN may hold a password. It is never printed: not whole, not in an error of the driver, not in a proof.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from holdfast.conformance.fitness.errors import FitnessError
from holdfast.reports.evidence import Redactor

# Members of a DSN that hold a secret.
HIDDEN = ("password", "sslpassword", "oauth_client_secret", "scram_client_key", "scram_server_key")
_WITHHELD = "(its words are withheld, because they hold the password)"
_EXPECTED = "expected postgresql://USER@HOST/DATABASE, words such as `host=… dbname=…`, or the path of a SQLite file"


@dataclass(frozen=True, slots=True, repr=False)
class Target:
    """A database on a server. `repr` shows nothing, so that no traceback does."""

    dsn: str
    secrets: frozenset[str]

    def __repr__(self) -> str:
        return f"Target({self.described!r})"

    @property
    def described(self) -> str:
        """Which server and database, without user and secrets."""
        parts = conninfo_to_dict(self.dsn)
        place = str(parts.get("host") or parts.get("hostaddr") or parts.get("service") or "the default host")
        port = f", port {parts['port']}" if parts.get("port") else ""
        name = parts.get("dbname") or "the default database"
        return self.scrubbed(f"{name} at {place}{port}")

    def bound(self, *, host: str, hostaddr: str, port: int) -> Target:
        """The same database at one of the addresses that the DSN stands for."""
        return Target(make_conninfo(self.dsn, host=host, hostaddr=hostaddr, port=port), self.secrets)

    def scrubbed(self, text: str) -> str:
        """A text of the driver or the server without anything that resembles a secret."""
        text = Redactor(self.secrets).free(text)
        return _WITHHELD if any(secret in text for secret in self.secrets) else text

    def first_line(self, error: Exception) -> str:
        """What an error says, on one line and without secrets."""
        if isinstance(error, psycopg.Error) and error.diag.message_primary:
            return self.scrubbed(f"{error.diag.message_primary} (SQLSTATE {error.sqlstate})")
        return self.scrubbed(" ".join(str(error).split()) or type(error).__name__)


# A URL as it is, and in the form of a path, which some programs make of it.
_URL_WITH_PASSWORD = re.compile(r":/{1,2}[^\s/:@]*:[^\s@]+@")


def holds_secret(word: str) -> bool:
    """Whether a word resembles a DSN with a password, or a part of one, or any other secret: it must not be shown."""
    return _URL_WITH_PASSWORD.search(word) is not None or Redactor().free(word) != word


def scrubbed(text: str, dsn: str) -> str:
    """A text that may hold a DSN, or parts of one that could not be read, without anything that resembles a secret."""
    known = Redactor.knowing(command=[dsn]).secrets
    try:
        known |= frozenset(_secrets(conninfo_to_dict(dsn).items()))
    except (psycopg.Error, ValueError, UnicodeError):
        known |= {dsn}
    return Target(dsn, known).scrubbed(text)


def target_of(dsn: str) -> Target:
    """Read a DSN of PostgreSQL. Raises FitnessError, which never quotes it."""
    if "=" not in dsn and "://" not in dsn:
        # libpq's own message for this one is about a missing "=", which does not help after a typing error in a path.
        raise FitnessError(f"{_EXPECTED}; got neither, and no file of that name is there")
    try:
        parts = conninfo_to_dict(dsn)
    except (psycopg.Error, ValueError, UnicodeError):
        # libpq's message would quote the DSN, password and all.
        raise FitnessError(
            f"{_EXPECTED}; got something that libpq cannot read (it is not shown, because it may hold a password)"
        ) from None
    if astray := _astray(dsn, parts):
        raise FitnessError(
            f"{_EXPECTED}; the {astray} of this one holds signs that belong elsewhere, so it is not shown: is there an "
            "@, a / or a : in the password? Write it as %40, %2F or %3A, or better leave it to ~/.pgpass"
        )
    # Names and texts of the catalogue must come as text, under all settings of the database, the role or the machine.
    return Target(make_conninfo(dsn, client_encoding="UTF8"), frozenset(_secrets(parts.items())))


# Where the rest of a password ends up that holds a sign which ends it.
_PORTS = re.compile(r"[0-9]*(?:,[0-9]*)*")


def _astray(dsn: str, parts: Mapping[str, object]) -> str:
    """Which part of a DSN may be a piece of its password; empty if none is."""
    if not _PORTS.fullmatch(str(parts.get("port") or "")):
        return "port"
    places = ("host", "hostaddr", *(("dbname",) if "://" in dsn else ()))
    return next((name for name in places if "@" in str(parts.get(name) or "")), "")


def _secrets(parts: Iterable[tuple[str, object]]) -> Iterable[str]:
    for name, value in parts:
        if name in HIDDEN and value:
            yield str(value)
