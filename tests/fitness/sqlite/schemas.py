"""Surfaces in SQLite files that are fit, and how a schema of the corpus is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from holdfast.conformance.fitness.policy import Policy

# Another user than root in every test, because root may write everything.
DECLARED: Mapping[str, str] = {"synchronous": "full", "recursive_triggers": "on"}

_KEY = "CHECK (length({0}) = 64 AND length(CAST({0} AS BLOB)) = 64 AND {0} NOT GLOB '*[^0-9a-f]*')"
_KEYS = ("logical_request_key", "replay_key", "deployed_artifact_hash")
_TEXTS = ("canonical_target", "run_id", "owner_or_approval_binding")
_GUARDS = """
CREATE TRIGGER {0}_no_update BEFORE UPDATE ON {0} BEGIN SELECT RAISE(ABORT, '{0} is append-only'); END;
CREATE TRIGGER {0}_no_delete BEFORE DELETE ON {0} BEGIN SELECT RAISE(ABORT, '{0} is append-only'); END;
"""
EFFECT_GUARDS, NONCE_GUARDS, AUDIT_GUARDS = (_GUARDS.format(name) for name in ("effect", "consumed", "refusals"))
IS_KEY = _KEY.format("logical_request_key")
FIT = f"""
CREATE TABLE effect (
  decision_id TEXT NOT NULL PRIMARY KEY,
  logical_request_key TEXT NOT NULL {IS_KEY},
  replay_key TEXT NOT NULL {_KEY.format("replay_key")},
  operation TEXT NOT NULL CHECK (operation = 'register_dot'),
  canonical_target TEXT NOT NULL CHECK (canonical_target <> ''),
  run_id TEXT NOT NULL CHECK (run_id <> ''),
  deployed_artifact_hash TEXT NOT NULL {_KEY.format("deployed_artifact_hash")},
  owner_or_approval_binding TEXT NOT NULL CHECK (owner_or_approval_binding <> ''),
  attempt_id TEXT NOT NULL,
  committed_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  UNIQUE (logical_request_key),
  UNIQUE (replay_key)
) STRICT;
CREATE TABLE consumed (
  authorization_nonce TEXT NOT NULL CHECK (authorization_nonce <> ''),
  logical_request_key TEXT NOT NULL,
  UNIQUE (authorization_nonce)
) STRICT;
{EFFECT_GUARDS}{NONCE_GUARDS}"""
AUDIT = f"""
CREATE TABLE refusals (refusal_id INTEGER PRIMARY KEY, code TEXT NOT NULL, logical_request_key TEXT) STRICT;
{AUDIT_GUARDS}"""
# The retry ledger of the source, section 2.
LEDGER = """
CREATE TABLE iu_route_attempt (
  id INTEGER PRIMARY KEY,
  idempotency_key TEXT NOT NULL,
  attempt_no INTEGER NOT NULL,
  route_kind TEXT NOT NULL,
  status TEXT NOT NULL,
  CONSTRAINT iu_route_attempt_idem_uniq UNIQUE (idempotency_key, attempt_no),
  CONSTRAINT iu_route_attempt_no_chk CHECK (attempt_no >= 1),
  CONSTRAINT iu_route_attempt_kind_chk CHECK (route_kind IN ('inbound', 'outbound')),
  CONSTRAINT iu_route_attempt_status_chk
    CHECK (status IN ('pending', 'dry_run', 'sent', 'skipped', 'failed', 'disabled'))
);
"""


@dataclass(frozen=True, slots=True)
class Schema:
    """What lies in the files, and what must come of it.

    `comes` has all criteria that are refuted, or unproven behind a ?, by letter with codes that must be among their
    reasons: "a KEY_TYPE KEY_NULLABLE, ?c PROBE_FAILED". `policy` is without the writer's account and the connection's
    settings, which are declared unless said otherwise.
    """

    name: str
    comes: str = ""
    sql: str = FIT
    effect: str = "effect"
    nonce: str | None = "consumed"
    # None is for none at all, a table alone lies in the same file.
    audit: str | None = "FILE:refusals"
    audit_sql: str = AUDIT
    policy: Policy = field(default_factory=Policy)
    connection: Mapping[str, str] = field(default_factory=lambda: DECLARED)
    # "declared" is the owner of the files; or it is unset, another user, or root.
    writer: str = "declared"
    # Modes by what is meant: "file", "folder", "audit", "-wal".
    modes: Mapping[str, int] = field(default_factory=dict)
    journal: str = "wal"
    linked: bool = False
    # What must stand in the reasons, word for word.
    says: str = ""

    @property
    def refuted(self) -> Mapping[str, str]:
        """The codes of each criterion that is refuted."""
        return {each[0]: each[2:] for each in self.comes.split(", ") if each and each[0] != "?"}

    @property
    def unproven(self) -> Mapping[str, str]:
        """The codes of each criterion that is not proven."""
        return {each[1]: each[3:] for each in self.comes.split(", ") if each.startswith("?")}


_CONSTRAINTS = ("UNIQUE", "CHECK", "CONSTRAINT", "PRIMARY")
_LOOSE = ("UNIQUE (replay_key)\n) STRICT", "UNIQUE (replay_key)\n)")


def cases(table: str, *, of: str = FIT, **more: Any) -> tuple[Schema, ...]:
    """The schemas of a table. A row begins with name and what comes of it; each line behind it changes the fit schema:

    COLUMN DEFINITION    what is said of a column instead; without a definition it is not there
    + COLUMN DEFINITION  one column more
    OLD => NEW           other text in one place
    not strict           the table of the effect
    says TEXT, reviewed NAME, value COLUMN TEXT     (see `Schema` and `Policy`)

    A constraint comes to those of the effect, and another statement to the end. A line that is indented further goes on
    with the one before it. $KEY is the form of a key.
    """
    rows = re.split(r"\n(?=[^\s#])", re.sub(r"\n {4,}", " ", re.sub(r"\n *#.*", "", table)).strip())
    return tuple(_case(row.splitlines(), of, more) for row in rows)


def _case(row: list[str], sql: str, more: Mapping[str, Any]) -> Schema:
    name, _, comes = row[0].partition(":")
    given, policy = dict(more), dict[str, Any]()
    for line in map(str.strip, row[1:]):
        word, _, rest = line.partition(" ")
        if word == "says":
            given["says"] = rest
        elif word == "reviewed":
            policy["reviewed"] = (*policy.get("reviewed", ()), rest)
        elif word == "value":
            column, _, value = rest.partition(" ")
            policy["values"] = {**policy.get("values", {}), column: value}
        elif word in ("CREATE", "INSERT") and "=>" not in line:
            sql += f"{line};"
        else:
            sql = _changed(sql, line.replace("$KEY", IS_KEY))
    return Schema(name, comes.strip(), sql, **{"policy": Policy(**policy), **given})


def _changed(sql: str, line: str) -> str:
    word, _, rest = line.partition(" ")
    if "=>" in line:
        old, _, new = line.partition("=>")
        found = re.findall(r"\s+".join(map(re.escape, old.replace("$GUARDS", EFFECT_GUARDS).split())), sql)
        return changed((found[0], new.strip()), sql=sql)
    if line == "not strict":
        return changed(_LOOSE, sql=sql)
    if word == "+":
        return changed(("committed_at ", f"{rest},\n  committed_at "), sql=sql)
    if word in _CONSTRAINTS:
        return changed(("UNIQUE (replay_key)", f"UNIQUE (replay_key), {line}"), sql=sql)
    was = re.search(rf"^  {word} .*,\n", sql, re.MULTILINE)
    assert was is not None, line
    return sql.replace(was[0], f"  {line},\n" if rest else "", 1)


def changed(*pairs: tuple[str, str], sql: str = FIT) -> str:
    """A schema with other text in these places."""
    for old, new in pairs:
        assert sql.count(old) == 1, f"{old!r} is there {sql.count(old)} times"
        sql = sql.replace(old, new)
    return sql


# REPLACE deletes without firing a trigger unless each connection asks for that. This schema refuses it all the same: a
# row that was replaced is told by a second table, where its keys are. Without a rowid, which REPLACE could name.
_REMEMBERED = (
    changed(
        ("UNIQUE (replay_key)\n) STRICT", "UNIQUE (replay_key)\n) STRICT, WITHOUT ROWID"),
        ("UNIQUE (authorization_nonce)\n) STRICT", "PRIMARY KEY (authorization_nonce)\n) STRICT, WITHOUT ROWID"),
    )
    + """
CREATE TABLE taken (what TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TRIGGER taken_no_update BEFORE UPDATE ON taken BEGIN SELECT RAISE(ABORT, 'taken'); END;
CREATE TRIGGER taken_no_delete BEFORE DELETE ON taken BEGIN SELECT RAISE(ABORT, 'taken'); END;
CREATE TRIGGER effect_once AFTER INSERT ON effect BEGIN
  SELECT RAISE(ABORT, 'effect is append-only') FROM taken
  WHERE what IN ('k' || NEW.logical_request_key, 'r' || NEW.replay_key, 'd' || NEW.decision_id);
  INSERT INTO taken VALUES ('k' || NEW.logical_request_key), ('r' || NEW.replay_key), ('d' || NEW.decision_id);
END;
CREATE TRIGGER consumed_once AFTER INSERT ON consumed BEGIN
  SELECT RAISE(ABORT, 'consumed is append-only') FROM taken WHERE what = 'n' || NEW.authorization_nonce;
  INSERT INTO taken VALUES ('n' || NEW.authorization_nonce);
END;
"""
)
_REMEMBERED_AUDIT = (
    """
CREATE TABLE refusals (refusal_id TEXT NOT NULL PRIMARY KEY, code TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE TABLE known (id TEXT NOT NULL PRIMARY KEY) STRICT, WITHOUT ROWID;
CREATE TRIGGER refusals_once AFTER INSERT ON refusals BEGIN
  SELECT RAISE(ABORT, 'refusals is append-only') FROM known WHERE id = NEW.refusal_id;
  INSERT INTO known VALUES (NEW.refusal_id);
END;
CREATE TRIGGER known_no_update BEFORE UPDATE ON known BEGIN SELECT RAISE(ABORT, 'known'); END;
CREATE TRIGGER known_no_delete BEFORE DELETE ON known BEGIN SELECT RAISE(ABORT, 'known'); END;
"""
    + AUDIT_GUARDS
)

REMEMBERED = Schema(
    "fit-replace-refused-by-the-schema",
    "",
    _REMEMBERED,
    audit_sql=_REMEMBERED_AUDIT,
    policy=Policy(reviewed=("effect_once", "consumed_once", "refusals_once")),
    connection={"synchronous": "extra"},
)

_TYPED = "{0} TEXT NOT NULL CHECK (typeof({0}) = 'text' AND "
RELAXED = changed(
    _LOOSE,
    ("UNIQUE (authorization_nonce)\n) STRICT", "UNIQUE (authorization_nonce)\n)"),
    ("logical_request_key TEXT NOT NULL CHECK (", _TYPED.format("logical_request_key")),
    ("replay_key TEXT NOT NULL CHECK (", _TYPED.format("replay_key")),
    ("authorization_nonce TEXT NOT NULL CHECK (", _TYPED.format("authorization_nonce")),
    *(
        (f"{name} TEXT NOT NULL CHECK (", _TYPED.format(name))
        for name in ("canonical_target", "run_id", "owner_or_approval_binding")
    ),
)

# As Django writes one CheckConstraint over all columns.
_TOGETHER = " AND ".join(
    (
        *(_KEY.format(name).removeprefix("CHECK ") for name in _KEYS),
        "\"operation\" = 'register_dot'",
        *(f"NOT (\"{name}\" = '')" for name in _TEXTS),
    )
)

_MADE_LATER = AUDIT.replace("INTEGER PRIMARY KEY", "TEXT PRIMARY KEY").replace(
    "logical_request_key TEXT)",
    "logical_request_key TEXT, mark TEXT NOT NULL DEFAULT (hex(randomblob(16))), UNIQUE (mark), "
    "UNIQUE (code, refusal_id))",
)
_TYPED_AUDIT = AUDIT.replace(
    "refusal_id INTEGER PRIMARY KEY",
    "refusal_id TEXT NOT NULL PRIMARY KEY CHECK (typeof(refusal_id) = 'text' AND refusal_id <> '')",
)
FIT_ONES = (
    Schema("fit"),
    Schema(
        "fit-one-check-for-all-columns",
        sql=changed(
            *((f" {_KEY.format(name)}", "") for name in _KEYS),
            *((f" CHECK ({name} <> '')", "") for name in _TEXTS),
            (" CHECK (operation = 'register_dot')", ""),
            ("UNIQUE (replay_key)\n)", f"UNIQUE (replay_key),\n  CONSTRAINT said CHECK (({_TOGETHER}))\n)"),
        ),
    ),
    Schema(
        "fit-without-rowid",
        sql=changed(("UNIQUE (replay_key)\n) STRICT", "UNIQUE (replay_key)\n) STRICT, WITHOUT ROWID")),
    ),
    Schema("fit-not-strict-but-typed-by-checks", sql=RELAXED),
    Schema(
        "fit-nonce-of-one-column",
        sql=changed(("  logical_request_key TEXT NOT NULL,\n  UNIQUE (auth", "  UNIQUE (auth")),
    ),
    Schema("fit-audit-that-asks-for-types", audit_sql=_TYPED_AUDIT),
    Schema(
        "fit-columns-of-other-names",
        sql=FIT.replace("logical_request_key", "lrk")
        .replace("decision_id", "verdict")
        .replace("authorization_nonce", "grant_no"),
        policy=Policy(columns={"logical_request_key": "lrk", "decision": "verdict", "authorization_nonce": "grant_no"}),
    ),
    REMEMBERED,
    *cases(
        """
fit-foreign-key:
  logical_request_key TEXT NOT NULL, => logical_request_key TEXT NOT NULL REFERENCES effect (logical_request_key),
fit-foreign-key-to-what-was-issued:
  CREATE TABLE issued (authorization_nonce TEXT PRIMARY KEY NOT NULL, bound_to TEXT NOT NULL) STRICT
  authorization_nonce TEXT NOT NULL REFERENCES issued CHECK (authorization_nonce <> '')
""",
        connection={**DECLARED, "foreign_keys": "on"},
    ),
    Schema("fit-audit-unique-where-it-says-nothing", audit_sql=_MADE_LATER),
    Schema("fit-rollback-journal", journal="delete", connection={**DECLARED, "journal_mode": "delete"}),
    *cases("fit-decision-is-a-number-of-the-writer:\n  decision_id INTEGER NOT NULL", of=RELAXED),
    *cases("""
fit-key-is-the-primary-key:
  decision_id TEXT NOT NULL
  UNIQUE (logical_request_key) => PRIMARY KEY (logical_request_key)
fit-unique-by-an-index:
  UNIQUE (logical_request_key), =>
  CREATE UNIQUE INDEX one_effect ON effect (logical_request_key DESC)
  CREATE INDEX by_run ON effect (run_id)
fit-trigger-that-was-reviewed:
  CREATE TRIGGER effect_said AFTER INSERT ON effect BEGIN SELECT 1; END
  reviewed effect_said
fit-decision-is-a-number:
  decision_id INTEGER PRIMARY KEY
fit-keys-and-nonces-of-bytes:
  logical_request_key BLOB NOT NULL CHECK (length(logical_request_key) = 32)
  replay_key BLOB NOT NULL CHECK (length(replay_key) = 32)
  authorization_nonce BLOB NOT NULL CHECK (length(authorization_nonce) = 32)
fit-of-any-type-that-checks-ask-for:
  logical_request_key TEXT NOT NULL CHECK (length =>
    logical_request_key ANY NOT NULL CHECK (typeof(logical_request_key) = 'text' AND length
  run_id ANY NOT NULL CHECK (typeof(run_id) = 'text' AND run_id <> '')
fit-nonce-of-printable-signs:
  authorization_nonce TEXT NOT NULL
    CHECK (length(authorization_nonce) = 30 AND authorization_nonce NOT GLOB '*[^ -~]*')
  value authorization_nonce {hex:30}
fit-nonce-of-some-length:
  authorization_nonce TEXT NOT NULL CHECK (length(authorization_nonce) BETWEEN 22 AND 64)
  value authorization_nonce {hex:32}
fit-kept-for-ever:
  + retain_until TEXT NOT NULL DEFAULT '9999-12-31T23:59:59Z'
fit-moments-and-what-is-no-time:
  + made TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP
  + made_ms INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
  + made_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now'))
  + trace TEXT NOT NULL DEFAULT (lower(hex(randomblob(16))))
  + inert INTEGER NOT NULL DEFAULT 1
  + starts TEXT GENERATED ALWAYS AS (substr(logical_request_key, 1, 8)) STORED
fit-attempt-beside-a-key:
  UNIQUE (attempt_id, decision_id)
  CREATE INDEX tries ON effect (lower(attempt_id)) WHERE attempt_id <> ''
fit-rows-that-another-trigger-makes:
  CREATE TABLE ticks (at TEXT PRIMARY KEY NOT NULL, n INTEGER NOT NULL) STRICT
  CREATE TRIGGER seen AFTER INSERT ON ticks BEGIN INSERT INTO consumed VALUES (NEW.at, 'b');
    INSERT INTO ticks VALUES ('last', 1) ON CONFLICT DO UPDATE SET n = n + 1; END
fit-key-with-a-digest-that-is-unique-too:
  UNIQUE (logical_request_key), =>
  + digest TEXT GENERATED ALWAYS AS (upper(logical_request_key)) STORED UNIQUE
  CREATE UNIQUE INDEX one_effect ON effect (logical_request_key)
fit-keys-differ:
  CHECK (logical_request_key <> replay_key)
  CHECK (attempt_id <> run_id)
fit-key-form-reviewed:
  logical_request_key TEXT NOT NULL CHECK (length =>
    logical_request_key TEXT NOT NULL CONSTRAINT form CHECK (logical_request_key GLOB 'urn:*' OR length
  reviewed form
fit-without-attempts:
  attempt_id
  run_id TEXT NOT NULL CHECK ('' <> run_id)
fit-one-run-for-a-target:
  UNIQUE (canonical_target, run_id)
fit-conflict-clause-that-says-so:
  UNIQUE (replay_key) => UNIQUE (replay_key) ON CONFLICT ABORT
  UNIQUE (logical_request_key) => UNIQUE (logical_request_key) ON CONFLICT FAIL
fit-columns-whose-checks-are-read-or-that-a-policy-gives:
  + size INTEGER NOT NULL CHECK (size BETWEEN 3 AND 9)
  + phase TEXT NOT NULL CONSTRAINT known_phase CHECK (phase IN ('inert'))
  + receipt BLOB NOT NULL
  + ratio REAL NOT NULL
  + inert INTEGER NOT NULL CHECK (inert IN (True))
  + level INTEGER NOT NULL CHECK (level IN (3, 5))
  + share REAL NOT NULL CHECK (share >= -1 AND share < 1)
  + made TEXT NOT NULL CHECK (made GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]*Z')
  + seal TEXT NOT NULL CHECK (seal = 'a' || hex(zeroblob(2)))
  value effect.seal a0000
"""),
    *cases(
        """
fit-domain-is-declared:
  operation TEXT NOT NULL CHECK (operation <> '')
""",
        policy=Policy(domain_evidence="Only the registrar writes here, and it registers dots: N.N., 2026-06-21"),
    ),
    Schema(
        "fit-quoted-and-commented",
        sql=changed(
            (
                "logical_request_key TEXT NOT NULL CHECK",
                '"logical_request_key" /* ON CONFLICT REPLACE */ TEXT NOT NULL -- DEFAULT 1\n CHECK',
            )
        ),
    ),
)
