"""Surfaces in SQLite files that are fit, and how a schema of the corpus is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
KEY_COLUMN = f"logical_request_key TEXT NOT NULL {_KEY.format('logical_request_key')},"
REPLAY_COLUMN = f"replay_key TEXT NOT NULL {_KEY.format('replay_key')},"
OPERATION_COLUMN = "operation TEXT NOT NULL CHECK (operation = 'register_dot'),"
UNIQUE_KEY = "UNIQUE (logical_request_key)"
FIT = f"""
CREATE TABLE effect (
  decision_id TEXT NOT NULL PRIMARY KEY,
  {KEY_COLUMN}
  {REPLAY_COLUMN}
  {OPERATION_COLUMN}
  canonical_target TEXT NOT NULL CHECK (canonical_target <> ''),
  run_id TEXT NOT NULL CHECK (run_id <> ''),
  deployed_artifact_hash TEXT NOT NULL {_KEY.format("deployed_artifact_hash")},
  owner_or_approval_binding TEXT NOT NULL CHECK (owner_or_approval_binding <> ''),
  attempt_id TEXT NOT NULL,
  committed_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
  {UNIQUE_KEY},
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

    `refuted` and `unproven` are all criteria that are, by letter, with codes that must be among their reasons.
    `policy` is without the writer's account and the connection's settings, which are declared unless said otherwise.
    """

    name: str
    sql: str = FIT
    refuted: Mapping[str, str] = field(default_factory=dict)
    unproven: Mapping[str, str] = field(default_factory=dict)
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


def changed(*pairs: tuple[str, str], sql: str = FIT) -> str:
    """The fit schema with other text in these places."""
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
    _REMEMBERED,
    audit_sql=_REMEMBERED_AUDIT,
    policy=Policy(reviewed=("effect_once", "consumed_once", "refusals_once")),
    connection={"synchronous": "extra"},
)

_TYPED = "{0} TEXT NOT NULL CHECK (typeof({0}) = 'text' AND "
RELAXED = changed(
    ("UNIQUE (replay_key)\n) STRICT", "UNIQUE (replay_key)\n)"),
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

FIT_ONES = (
    Schema("fit"),
    Schema(
        "fit-one-check-for-all-columns",
        changed(
            *((f" {_KEY.format(name)}", "") for name in _KEYS),
            *((f" CHECK ({name} <> '')", "") for name in _TEXTS),
            (" CHECK (operation = 'register_dot')", ""),
            ("UNIQUE (replay_key)\n)", f"UNIQUE (replay_key),\n  CONSTRAINT said CHECK (({_TOGETHER}))\n)"),
        ),
    ),
    Schema(
        "fit-key-is-the-primary-key",
        changed(
            ("decision_id TEXT NOT NULL PRIMARY KEY", "decision_id TEXT NOT NULL"),
            (UNIQUE_KEY, "PRIMARY KEY (logical_request_key)"),
        ),
    ),
    Schema(
        "fit-without-rowid", changed(("UNIQUE (replay_key)\n) STRICT", "UNIQUE (replay_key)\n) STRICT, WITHOUT ROWID"))
    ),
    Schema("fit-not-strict-but-typed-by-checks", RELAXED),
    Schema(
        "fit-nonce-of-one-column", changed(("  logical_request_key TEXT NOT NULL,\n  UNIQUE (auth", "  UNIQUE (auth"))
    ),
    Schema(
        "fit-audit-that-asks-for-types",
        audit_sql=AUDIT.replace(
            "refusal_id INTEGER PRIMARY KEY",
            "refusal_id TEXT NOT NULL PRIMARY KEY CHECK (typeof(refusal_id) = 'text' AND refusal_id <> '')",
        ),
    ),
    Schema(
        "fit-unique-by-an-index",
        changed((f"{UNIQUE_KEY},\n  ", ""))
        + "CREATE UNIQUE INDEX one_effect ON effect (logical_request_key DESC);"
        + "CREATE INDEX by_run ON effect (run_id);",
    ),
    Schema(
        "fit-quoted-and-commented",
        changed(
            (
                "logical_request_key TEXT NOT NULL CHECK",
                '"logical_request_key" /* ON CONFLICT REPLACE */ TEXT NOT NULL -- DEFAULT 1\n CHECK',
            )
        ),
    ),
    Schema(
        "fit-columns-of-other-names",
        FIT.replace("logical_request_key", "lrk")
        .replace("decision_id", "verdict")
        .replace("authorization_nonce", "grant_no"),
        policy=Policy(columns={"logical_request_key": "lrk", "decision": "verdict", "authorization_nonce": "grant_no"}),
    ),
    REMEMBERED,
    Schema(
        "fit-foreign-key",
        changed(
            (
                "logical_request_key TEXT NOT NULL,",
                "logical_request_key TEXT NOT NULL REFERENCES effect (logical_request_key),",
            )
        ),
        connection={**DECLARED, "foreign_keys": "on"},
    ),
    Schema(
        "fit-foreign-key-to-what-was-issued",
        changed(
            (
                "CREATE TABLE consumed",
                "CREATE TABLE issued (authorization_nonce TEXT PRIMARY KEY NOT NULL, bound_to TEXT NOT NULL) STRICT;\n"
                "CREATE TABLE consumed",
            ),
            (
                "authorization_nonce TEXT NOT NULL CHECK (",
                "authorization_nonce TEXT NOT NULL REFERENCES issued CHECK (",
            ),
        ),
        connection={**DECLARED, "foreign_keys": "on"},
    ),
    Schema(
        "fit-audit-unique-where-it-says-nothing",
        audit_sql=AUDIT.replace("INTEGER PRIMARY KEY", "TEXT PRIMARY KEY").replace(
            "logical_request_key TEXT)",
            "logical_request_key TEXT, mark TEXT NOT NULL DEFAULT (hex(randomblob(16))), UNIQUE (mark),"
            " UNIQUE (code, refusal_id))",
        ),
    ),
    Schema("fit-rollback-journal", journal="delete", connection={**DECLARED, "journal_mode": "delete"}),
    Schema(
        "fit-trigger-that-was-reviewed",
        FIT + "CREATE TRIGGER effect_said AFTER INSERT ON effect BEGIN SELECT 1; END;",
        policy=Policy(reviewed=("effect_said",)),
    ),
    Schema(
        "fit-decision-is-a-number",
        changed(("decision_id TEXT NOT NULL PRIMARY KEY", "decision_id INTEGER PRIMARY KEY")),
    ),
    Schema(
        "fit-decision-is-a-number-of-the-writer",
        changed(("decision_id TEXT NOT NULL PRIMARY KEY", "decision_id INTEGER NOT NULL"), sql=RELAXED),
    ),
    Schema(
        "fit-keys-and-nonces-of-bytes",
        changed(
            (KEY_COLUMN, "logical_request_key BLOB NOT NULL CHECK (length(logical_request_key) = 32),"),
            (REPLAY_COLUMN, "replay_key BLOB NOT NULL CHECK (length(replay_key) = 32),"),
            (
                "authorization_nonce TEXT NOT NULL CHECK (authorization_nonce <> '')",
                "authorization_nonce BLOB NOT NULL CHECK (length(authorization_nonce) = 32)",
            ),
        ),
    ),
    Schema(
        "fit-of-any-type-that-checks-ask-for",
        changed(
            (
                "logical_request_key TEXT NOT NULL CHECK (",
                "logical_request_key ANY NOT NULL CHECK (typeof(logical_request_key) = 'text' AND ",
            ),
            ("run_id TEXT NOT NULL CHECK (", "run_id ANY NOT NULL CHECK (typeof(run_id) = 'text' AND "),
        ),
    ),
    *(
        Schema(
            f"fit-nonce-of-{name}",
            changed(("CHECK (authorization_nonce <> '')", f"CHECK ({check})")),
            policy=Policy(values={"authorization_nonce": f"{{hex:{count}}}"}),
        )
        for name, count, check in (
            ("printable-signs", 30, "length(authorization_nonce) = 30 AND authorization_nonce NOT GLOB '*[^ -~]*'"),
            ("some-length", 32, "length(authorization_nonce) BETWEEN 22 AND 64"),
        )
    ),
    Schema(
        "fit-kept-for-ever",
        changed(
            (
                "attempt_id TEXT NOT NULL,",
                "attempt_id TEXT NOT NULL, retain_until TEXT NOT NULL DEFAULT '9999-12-31T23:59:59Z',",
            )
        ),
    ),
    Schema(
        "fit-moments-and-what-is-no-time",
        changed(
            (
                "attempt_id TEXT NOT NULL,",
                """attempt_id TEXT NOT NULL, made TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,
          made_ms INTEGER NOT NULL DEFAULT (CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)),
          made_at TEXT NOT NULL DEFAULT (strftime('%Y-%m-%dT%H:%M:%fZ', 'now')),
          trace TEXT NOT NULL DEFAULT (lower(hex(randomblob(16)))), inert INTEGER NOT NULL DEFAULT 1,
          starts TEXT GENERATED ALWAYS AS (substr(logical_request_key, 1, 8)) STORED,""",
            )
        ),
    ),
    Schema(
        "fit-domain-is-declared",
        changed((OPERATION_COLUMN, "operation TEXT NOT NULL CHECK (operation <> ''),")),
        policy=Policy(domain_evidence="Only the registrar writes here, and it registers dots: N.N., 2026-06-21"),
    ),
    Schema(
        "fit-attempt-beside-a-key",
        changed(("UNIQUE (replay_key)", "UNIQUE (replay_key), UNIQUE (attempt_id, decision_id)"))
        + "CREATE INDEX tries ON effect (lower(attempt_id)) WHERE attempt_id <> '';",
    ),
    Schema(
        "fit-keys-differ",
        changed(
            (
                "UNIQUE (replay_key)",
                "UNIQUE (replay_key), CHECK (logical_request_key <> replay_key), CHECK (attempt_id <> run_id)",
            )
        ),
    ),
    Schema(
        "fit-key-form-reviewed",
        changed(
            (
                "logical_request_key TEXT NOT NULL CHECK (",
                "logical_request_key TEXT NOT NULL CONSTRAINT form CHECK (logical_request_key GLOB 'urn:*' OR ",
            )
        ),
        policy=Policy(reviewed=("form",)),
    ),
    Schema("fit-without-attempts", changed(("  attempt_id TEXT NOT NULL,\n", ""))),
    Schema(
        "fit-one-run-for-a-target",
        changed(("UNIQUE (replay_key)", "UNIQUE (replay_key), UNIQUE (canonical_target, run_id)")),
    ),
    Schema(
        "fit-conflict-clause-that-says-so",
        changed(
            ("UNIQUE (replay_key)", "UNIQUE (replay_key) ON CONFLICT ABORT"),
            (UNIQUE_KEY, f"{UNIQUE_KEY} ON CONFLICT FAIL"),
        ),
    ),
    Schema(
        "fit-columns-whose-checks-are-read-or-that-a-policy-gives",
        changed(
            (
                "attempt_id TEXT NOT NULL,",
                """attempt_id TEXT NOT NULL,
          size INTEGER NOT NULL CHECK (size BETWEEN 3 AND 9),
          phase TEXT NOT NULL CONSTRAINT known_phase CHECK (phase IN ('inert')),
          receipt BLOB NOT NULL, ratio REAL NOT NULL, inert INTEGER NOT NULL CHECK (inert IN (True)),
          level INTEGER NOT NULL CHECK (level IN (3, 5)), share REAL NOT NULL CHECK (share >= -1 AND share < 1),
          made TEXT NOT NULL CHECK (made GLOB '[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]T[0-9][0-9]*Z'),
          seal TEXT NOT NULL CHECK (seal = 'a' || hex(zeroblob(2))),""",
            )
        ),
        policy=Policy(values={"effect.seal": "a0000"}),
    ),
)
