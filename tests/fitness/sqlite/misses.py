"""Schemas that differ from the fit one in one thing, each with what must come of it; and the retry ledger."""

from __future__ import annotations

from dataclasses import replace

from holdfast.conformance.fitness.policy import Policy
from tests.fitness.sqlite.schemas import (
    AUDIT,
    AUDIT_GUARDS,
    DECLARED,
    EFFECT_GUARDS,
    FIT,
    FIT_ONES,
    LEDGER,
    RELAXED,
    REMEMBERED,
    Schema,
    cases,
)

_EVERY_ROW = ", ".join(f"?{letter} PROBE_FAILED" for letter in "abcdefgh")
_LATER = {"synchronous": "full"}
KEYS = (
    *cases("""
# As a user would write it from the source alone.
key-is-a-bare-primary-key: a KEY_NULLABLE KEY_NOT_CANONICAL, c BINDING_MAY_BE_EMPTY
  not strict
  logical_request_key TEXT PRIMARY KEY
  decision_id TEXT NOT NULL
  UNIQUE (logical_request_key), =>
key-nullable: a KEY_NULLABLE
  logical_request_key TEXT $KEY
key-without-its-form: a KEY_NOT_CANONICAL
  logical_request_key TEXT NOT NULL
key-nocase: a KEY_COLLATION
  logical_request_key TEXT COLLATE NOCASE NOT NULL $KEY
key-has-a-default: a KEY_DEFAULT
  logical_request_key TEXT NOT NULL DEFAULT '0000000000000000000000000000000000000000000000000000000000000000' $KEY
key-may-be-bytes: a KEY_NOT_CANONICAL, c BINDING_MAY_BE_EMPTY
  not strict
  logical_request_key TEXT NOT NULL
    CHECK (length(logical_request_key) = 64 AND logical_request_key = lower(logical_request_key))
key-a-number: a KEY_TYPE, c BINDING_MAY_BE_EMPTY
  not strict
  logical_request_key NUMERIC NOT NULL $KEY
  says logical_request_key of main.effect is of the type NUMERIC, which makes numbers of texts
key-column-missing: a MISSING_COLUMNS REPLAY_ATTEMPT_NO_BYPASS, ?h PROBE_FAILED
  logical_request_key
  UNIQUE (logical_request_key) => UNIQUE (run_id, attempt_id)
key-of-prefixes: a KEY_EXPRESSION KEY_COLLISION, e ARBITER_UNUSABLE
  UNIQUE (logical_request_key), =>
  CREATE UNIQUE INDEX prefix ON effect (substr(logical_request_key, 1, 32))
key-partial: a KEY_PARTIAL DUPLICATE_ADMITTED, e ARBITER_UNUSABLE RACE_LOST
  UNIQUE (logical_request_key), =>
  CREATE UNIQUE INDEX some ON effect (logical_request_key) WHERE attempt_id = '1'
key-with-attempt: a KEY_COMPOSITE REPLAY_ATTEMPT_NO_BYPASS, e ARBITER_UNUSABLE RACE_LOST
  UNIQUE (logical_request_key) => UNIQUE (logical_request_key, attempt_id)
key-not-unique: a KEY_NOT_UNIQUE DUPLICATE_ADMITTED, e ARBITER_UNUSABLE RACE_LOST
  UNIQUE (logical_request_key), =>
# The guard on DELETE fires, because the connection asks for it: so what is refused is refused loudly.
key-unique-with-replace: a CHANGE_ADMITTED
  UNIQUE (logical_request_key) => UNIQUE (logical_request_key) ON CONFLICT REPLACE
key-unique-with-ignore: a SILENTLY_IGNORED, e SILENTLY_IGNORED
  UNIQUE (logical_request_key) => UNIQUE (logical_request_key) ON CONFLICT IGNORE
key-ignored-by-trigger: a SILENTLY_IGNORED TRIGGER_UNREVIEWED, e SILENTLY_IGNORED, ?f SILENTLY_IGNORED
  CREATE TRIGGER known BEFORE INSERT ON effect WHEN EXISTS (SELECT 1 FROM effect
    WHERE logical_request_key = NEW.logical_request_key) BEGIN SELECT RAISE(IGNORE); END
key-older-row-deleted-by-trigger: a DUPLICATE_ADMITTED TRIGGER_UNREVIEWED, e RACE_LOST ARBITER_UNUSABLE,
    f GUARD_MISSING CHANGE_ADMITTED, i HOUSEKEEPING
  $GUARDS =>
  CREATE TRIGGER newest BEFORE INSERT ON effect BEGIN
    DELETE FROM effect WHERE logical_request_key = NEW.logical_request_key; END
key-trigger-unreviewed: ?a TRIGGER_UNREVIEWED
  CREATE TRIGGER effect_said AFTER INSERT ON effect BEGIN SELECT 1; END
attempt-unique-by-an-expression: a ATTEMPT_KEYING
  CREATE UNIQUE INDEX one_try ON effect (lower(attempt_id))
attempt-unique-for-some-rows: a ATTEMPT_KEYING
  CREATE UNIQUE INDEX one_try ON effect (attempt_id) WHERE operation = 'register_dot'
attempt-in-a-condition: a ATTEMPT_KEYING
  CREATE UNIQUE INDEX first_try ON effect (run_id) WHERE attempt_id = '1'
key-of-few-octets: ?a KEY_NARROW
  length(logical_request_key) = 64 AND => instr(logical_request_key, char(0)) = 0 AND
  length(CAST(logical_request_key AS BLOB)) = 64 => length(CAST(logical_request_key AS BLOB)) = 8
  value logical_request_key {hex:8}
  says bits: keys may meet
# What many a surface has, the reference's own among them: length() and GLOB end at a NUL.
key-goes-on-behind-a-nul: a KEY_NOT_CANONICAL
  AND length(CAST(logical_request_key AS BLOB)) = 64 =>
key-form-that-no-probe-exhausts: ?a KEY_NOT_CANONICAL
  logical_request_key TEXT NOT NULL CHECK (length =>
    logical_request_key TEXT NOT NULL CHECK (logical_request_key GLOB 'urn:*' OR length
  says has one spelling: CHECK (logical_request_key glob 'urn:*' OR length ( logical_request_key ) = 64
    AND length ( cast ( logical_request_key as blob ) ) = 64
    AND logical_request_key not glob '*[^0-9a-f]*'); write one as
key-of-another-form-in-some-rows: ?a KEY_NOT_CANONICAL
  logical_request_key TEXT NOT NULL CHECK (length =>
    logical_request_key TEXT NOT NULL CHECK (attempt_id = 'legacy' OR length
"""),
    *cases(
        f"""
key-beside-a-unique-column-of-one-byte: {_EVERY_ROW}
  + x BLOB NOT NULL UNIQUE CHECK (length(x) = 1)
  says effect.x does not differ from row to row
"""
    ),
    *cases(
        """
key-unique-with-replace-and-no-recursion: a CHANGE_ADMITTED, e RACE_LOST, f CHANGE_ADMITTED, g CHANGE_ADMITTED
  UNIQUE (logical_request_key) => UNIQUE (logical_request_key) ON CONFLICT REPLACE
""",
        connection=_LATER,
    ),
    *cases(
        """
key-behind-a-view: a NOT_A_TABLE KEY_NOT_UNIQUE, ?b PROBE_FAILED, c NOT_A_TABLE, d NOT_A_TABLE, e NOT_A_TABLE,
    f NOT_A_TABLE, ?g PROBE_FAILED, h NOT_A_TABLE, i NOT_A_TABLE
  CREATE VIEW registrations AS SELECT * FROM effect
  CREATE TRIGGER registrations_in INSTEAD OF INSERT ON registrations BEGIN
    INSERT OR IGNORE INTO effect (decision_id, logical_request_key, replay_key, operation, canonical_target,
    run_id, deployed_artifact_hash, owner_or_approval_binding, attempt_id)
    SELECT NEW.decision_id, NEW.logical_request_key, NEW.replay_key, NEW.operation, NEW.canonical_target,
    NEW.run_id, NEW.deployed_artifact_hash, NEW.owner_or_approval_binding, NEW.attempt_id; END
""",
        effect="registrations",
    ),
    *cases(
        """
key-of-few-digits: ?a KEY_NARROW
  value logical_request_key {hex:31}
  value replay_key {hex:31}
  value deployed_artifact_hash {hex:31}
""",
        of=FIT.replace("= 64", "= 31"),
    ),
)

NONCES = (
    Schema("nonce-without-a-relation", "b MISSING_RELATION, ?e MISSING_RELATION", nonce=None),
    Schema(
        "nonce-missing",
        "b MISSING_RELATION, e MISSING_RELATION, f MISSING_RELATION, i MISSING_RELATION, ?g PROBE_FAILED",
        nonce="nowhere",
    ),
    *cases(
        """
nonce-in-the-effect: b NONCE_NOT_SEPARATE, ?e MISSING_RELATION
  + authorization_nonce TEXT NOT NULL UNIQUE
""",
        nonce="effect",
    ),
    *cases("""
nonce-with-key: b KEY_COMPOSITE NONCE_REUSED, e ARBITER_UNUSABLE
  UNIQUE (authorization_nonce) => UNIQUE (authorization_nonce, logical_request_key)
nonce-ignored: b SILENTLY_IGNORED, e SILENTLY_IGNORED
  UNIQUE (authorization_nonce) => UNIQUE (authorization_nonce) ON CONFLICT IGNORE
nonce-of-eight-bytes: ?b KEY_NARROW
  authorization_nonce ANY NOT NULL
    CHECK (typeof(authorization_nonce) = 'blob' AND length(authorization_nonce) = 8)
"""),
    *cases(
        "nonce-may-be-bytes: b NONCE_REUSED",
        of=FIT.replace("(authorization_nonce)\n) STRICT", "(authorization_nonce)\n)"),
    ),
    *(
        each
        for name, count, check in (
            ("six-signs", 6, "length({0}) = 6"),
            ("six-digits-or-fewer", 6, "length({0}) <= 6 AND {0} NOT GLOB '*[^0-9a-f]*' AND {0} <> ''"),
            ("six-signs-of-a-pattern", 6, f"{{0}} GLOB '{'?' * 6}'"),
        )
        for each in cases(f"""
nonce-of-{name}: ?b KEY_NARROW
  authorization_nonce TEXT NOT NULL CHECK ({check.format("authorization_nonce")})
  value authorization_nonce {{hex:{count}}}
  says bits: nonces may meet
""")
    ),
)

ROWS = (
    *cases("""
binding-has-a-default: c BINDING_DEFAULT
  run_id TEXT NOT NULL DEFAULT 'unknown' CHECK (run_id <> '')
binding-null-becomes-its-default: a CHANGE_ADMITTED, c BINDING_DEFAULT BINDING_NULLABLE
  run_id TEXT NOT NULL ON CONFLICT REPLACE DEFAULT 'unknown' CHECK (run_id <> '')
  says deletes the stored row, or writes the default in the place of NULL, and says nothing
binding-generated: c BINDING_GENERATED
  run_id TEXT NOT NULL AS ('run-' || attempt_id)
binding-a-number-within-a-primary-key: c KEY_TYPE
  run_id INTEGER NOT NULL CHECK (run_id > 0)
  decision_id TEXT NOT NULL
  PRIMARY KEY (run_id, decision_id)
  says run_id of main.effect is of the type INTEGER, which makes numbers of texts
binding-empty-where-another-column-says-so: ?c PROBE_FAILED
  run_id TEXT NOT NULL CHECK (run_id <> 'q')
  CHECK (run_id <> '' OR attempt_id = 'skip')
binding-empty-by-a-check-of-the-same-name: ?c PROBE_FAILED
  run_id TEXT NOT NULL CONSTRAINT said CHECK (run_id <> 'q')
  CONSTRAINT said CHECK (run_id <> '' OR attempt_id = 'skip')
binding-empty-in-late-rows: ?c CHECK_VOLATILE
  run_id TEXT NOT NULL CHECK (run_id <> '' OR rowid > 1000)
binding-empty-by-chance: ?c CHECK_VOLATILE
  run_id TEXT NOT NULL CHECK (run_id <> '' OR abs(random() % 1000000) = 0)
binding-of-one-word: ?c BINDING_CONSTANT
  run_id TEXT NOT NULL CHECK (run_id IS 'prod')
  value run_id prod
binding-of-one-pattern: ?c BINDING_CONSTANT
  run_id TEXT NOT NULL CHECK (run_id GLOB 'prod')
  value run_id prod
binding-refused-by-a-trigger-that-takes-nothing-back: c BINDING_MAY_BE_EMPTY
  run_id TEXT NOT NULL
  CREATE TRIGGER said AFTER INSERT ON effect WHEN NEW.run_id = '' BEGIN SELECT RAISE(FAIL, 'no'); END
  reviewed said
binding-empty-in-some-rows: ?c BINDING_MAY_BE_EMPTY
  run_id TEXT NOT NULL CHECK (run_id <> '' OR attempt_id = 'legacy')
binding-there-by-a-check-alone: ?c BINDING_NULLABLE
  run_id TEXT CHECK (run_id IS NOT NULL AND run_id <> '')
operation-free: d DOMAIN_UNRESTRICTED
  operation TEXT NOT NULL CHECK (operation <> '')
operation-like: d DOMAIN_UNRESTRICTED
  operation TEXT NOT NULL CHECK (operation LIKE 'register_dot')
operation-by-trigger: ?c PROBE_FAILED, ?d DOMAIN_UNCLEAR
  operation TEXT NOT NULL CHECK (operation <> '')
  CREATE TRIGGER domain BEFORE INSERT ON effect WHEN NEW.operation <> 'register_dot'
    BEGIN SELECT RAISE(ABORT, 'no'); END
  reviewed domain
operation-free-in-some-rows: ?c BINDING_MAY_BE_EMPTY, ?d DOMAIN_UNCLEAR
  operation TEXT NOT NULL CHECK (operation = 'register_dot' OR attempt_id = 'legacy')
operation-one-of-many-that-nobody-guesses: d DOMAIN_UNRESTRICTED
  operation TEXT NOT NULL CHECK (operation IN ('register_dot', 'purge'))
decision-nullable: h DECISION_NULLABLE
  decision_id TEXT UNIQUE
"""),
    *cases(
        """
binding-that-may-be-an-empty-blob: c BINDING_MAY_BE_EMPTY
  run_id TEXT NOT NULL CHECK (run_id <> '')
binding-that-makes-numbers: c KEY_TYPE
  run_id NUMERIC NOT NULL CHECK (typeof(run_id) = 'text' AND run_id <> '')
binding-of-whole-numbers: c KEY_TYPE
  run_id INTEGER NOT NULL CHECK (1 AND run_id <> '')
binding-of-numbers: c KEY_TYPE
  run_id REAL NOT NULL CHECK (1 AND run_id <> '')
decision-that-becomes-a-number: h KEY_TYPE
  decision_id NUMERIC NOT NULL PRIMARY KEY
decision-nullable-in-falling-order: h DECISION_NULLABLE
  decision_id INTEGER PRIMARY KEY DESC
decision-nullable-within-a-key: h DECISION_NULLABLE
  decision_id INTEGER
  PRIMARY KEY (decision_id, run_id)
""",
        of=RELAXED,
    ),
    *cases(
        """
attempt-mapped-to-nothing: ?a MISSING_COLUMNS
  CREATE UNIQUE INDEX attempts ON effect (attempt_id)
""",
        policy=Policy(columns={"attempt": "ATTEMPT_ID"}),
    ),
    *cases(
        """
operation-looked-up: d DOMAIN_UNRESTRICTED
  CREATE TABLE operations (name TEXT NOT NULL PRIMARY KEY) STRICT
  INSERT INTO operations VALUES ('register_dot')
  operation TEXT NOT NULL REFERENCES operations CHECK (operation <> '')
""",
        connection={**DECLARED, "foreign_keys": "on"},
    ),
)

COMMITS = (
    Schema(
        "connection-undeclared",
        "?e CONNECTION_UNDECLARED, ?g CONNECTION_UNDECLARED",
        connection={"recursive_triggers": "on"},
    ),
    Schema("synchronous-normal", "e ASYNC_COMMIT, g ASYNC_COMMIT", connection={**DECLARED, "synchronous": "normal"}),
    Schema("journal-in-memory", "e NOT_DURABLE, g NOT_DURABLE", connection={**DECLARED, "journal_mode": "memory"}),
    Schema("journal-undeclared", "?e CONNECTION_UNDECLARED, ?g CONNECTION_UNDECLARED", journal="delete"),
    Schema("file-with-two-names", "e FILE_LINKED", linked=True),
)

_RAISES = "RAISE(ABORT, 'effect is append-only')"
_OLD = f"{_RAISES} WHERE OLD.committed_at > datetime('now', '-1 day')"
_REVIEWED = Policy(reviewed=("effect_no_update", "effect_no_delete"))
GUARDS = (
    # What stands in the place of the guards of the effect.
    *(
        Schema(name, comes, FIT.replace(EFFECT_GUARDS, guards))
        for name, comes, guards in (
            ("guards-missing", "f NO_TRIGGERS CHANGE_ADMITTED", ""),
            ("guard-that-only-looks", "f CHANGE_ADMITTED", EFFECT_GUARDS.replace(_RAISES, "'effect is append-only'")),
            ("guard-that-ignores", "?f SILENTLY_IGNORED", EFFECT_GUARDS.replace(_RAISES, "RAISE(IGNORE)")),
            ("guard-that-forgets-old-rows", "?f GUARD_UNREVIEWED", EFFECT_GUARDS.replace(_RAISES, _OLD)),
            ("guards-before-the-change-that-fail", "", EFFECT_GUARDS.replace("ABORT", "FAIL")),
            ("guards-behind-the-change", "", EFFECT_GUARDS.replace("BEFORE", "AFTER")),
            (
                "guards-behind-the-change-that-take-nothing-back",
                "f CHANGE_ADMITTED",
                EFFECT_GUARDS.replace("BEFORE", "AFTER").replace("ABORT", "FAIL"),
            ),
        )
    ),
    Schema(
        "guard-that-was-reviewed", "", FIT.replace(_RAISES, f"{_RAISES} WHERE OLD.run_id IS NOT NULL"), policy=_REVIEWED
    ),
    *cases("""
guard-of-update-missing: f GUARD_MISSING CHANGE_ADMITTED
  CREATE TRIGGER effect_no_update BEFORE UPDATE ON effect BEGIN SELECT RAISE(ABORT, 'effect is append-only'); END; =>
  says write SELECT RAISE(ABORT, text) and nothing else, without a condition, or name it
guard-with-a-condition: f GUARD_MISSING CHANGE_ADMITTED
  BEFORE DELETE ON effect BEGIN => BEFORE DELETE ON effect WHEN OLD.attempt_id = '1' BEGIN
guard-with-a-condition-that-was-met: ?f GUARD_UNREVIEWED
  BEFORE DELETE ON effect BEGIN => BEFORE DELETE ON effect WHEN OLD.attempt_id <> '' BEGIN
guard-of-some-columns: f GUARD_MISSING CHANGE_ADMITTED
  BEFORE UPDATE ON effect => BEFORE UPDATE OF logical_request_key, replay_key ON effect
"""),
    Schema("replace-fires-no-trigger", "f CHANGE_ADMITTED, g CHANGE_ADMITTED", connection=_LATER),
    *cases(
        """
replace-by-an-index-over-some-rows: f CHANGE_ADMITTED
  CREATE UNIQUE INDEX p ON effect (canonical_target, run_id) WHERE run_id <> 'zz'
replace-by-an-index-over-an-expression: f CHANGE_ADMITTED
  CREATE UNIQUE INDEX p ON effect (lower(run_id))
replace-by-another-name-of-the-rowid: f CHANGE_ADMITTED
  + rowid TEXT
  UNIQUE (replay_key) ) STRICT, WITHOUT ROWID => UNIQUE (replay_key) ) STRICT
# The row that took its place says the same but for a default.
replace-of-a-nonce-alone-by-its-like: f CHANGE_ADMITTED
  logical_request_key TEXT NOT NULL, PRIMARY =>
    used_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY
  (authorization_nonce) ) STRICT, WITHOUT ROWID => (authorization_nonce) ) STRICT
  consumed_once AFTER => consumed_once BEFORE
  taken WHERE what = 'n' || NEW.authorization_nonce => consumed WHERE rowid = NEW.rowid
  INSERT INTO taken VALUES ('n' || NEW.authorization_nonce); =>
# The guard takes back nothing of what it refuses.
replace-by-its-like-that-is-refused-too-late: f CHANGE_ADMITTED
  logical_request_key TEXT NOT NULL, PRIMARY =>
    used_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP, PRIMARY
  RAISE(ABORT, 'consumed is append-only') FROM => RAISE(FAIL, 'consumed is append-only') FROM
""",
        of=REMEMBERED.sql,
        audit_sql=REMEMBERED.audit_sql,
        policy=REMEMBERED.policy,
        connection=REMEMBERED.connection,
    ),
    replace(
        REMEMBERED,
        name="replace-of-an-audit-record-by-its-like",
        comes="g CHANGE_ADMITTED",
        audit_sql="CREATE TABLE refusals (refusal_id TEXT NOT NULL PRIMARY KEY, code TEXT NOT NULL CHECK (code IN "
        "('A', 'B')), at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT, WITHOUT ROWID;" + AUDIT_GUARDS,
    ),
    Schema("writer-undeclared", "?f WRITER_UNPROVEN, ?g WRITER_UNPROVEN", writer="undeclared"),
    Schema("writer-another", "f OTHERS_MAY_WRITE, g OTHERS_MAY_WRITE", writer="another"),
    Schema("writer-root", "f WRITER_ATTRIBUTES OTHERS_MAY_WRITE, g WRITER_ATTRIBUTES OTHERS_MAY_WRITE", writer="root"),
    Schema("file-of-everybody", "f OTHERS_MAY_WRITE", modes={"file": 0o666}),
    Schema("folder-of-everybody", "f OTHERS_MAY_WRITE, g OTHERS_MAY_WRITE", modes={"folder": 0o777}),
    Schema("folder-of-everybody-sticky", "f OTHERS_MAY_WRITE, g OTHERS_MAY_WRITE", modes={"folder": 0o1777}),
    Schema("log-of-everybody", "f OTHERS_MAY_WRITE", modes={"-wal": 0o666}),
)

_KEYED = AUDIT.replace("INTEGER PRIMARY KEY", "INTEGER NOT NULL").replace("key TEXT)", "key TEXT PRIMARY KEY)")
_FEW = "key TEXT, mark TEXT NOT NULL DEFAULT (substr(hex(randomblob(16)), 1, 8)) UNIQUE)"
_QUIET = "CREATE TRIGGER quiet BEFORE INSERT ON refusals BEGIN SELECT RAISE(IGNORE); END;"
_MORE = """
of-the-first-refusal-of-a-request | g AUDIT_UNWRITABLE | UNIQUE INDEX once ON refusals (logical_request_key)
of-the-first-refusal-of-a-code | g AUDIT_UNWRITABLE | UNIQUE INDEX once ON refusals (lower(code)) WHERE code <> ''
of-some-codes-once | ?g AUDIT_UNWRITABLE | UNIQUE INDEX once ON refusals (logical_request_key) WHERE code = 'REPLAYED'
"""
AUDITS = (
    Schema("audit-missing", "?g MISSING_RELATION", audit=None),
    Schema("audit-in-the-same-file", "g AUDIT_NOT_SEPARATE", FIT + AUDIT, audit="refusals"),
    Schema("audit-nowhere", "g MISSING_RELATION", audit="FILE:nowhere"),
    Schema("audit-of-everybody", "g OTHERS_MAY_WRITE", modes={"audit": 0o646}),
    Schema("audit-unguarded", "g NO_TRIGGERS CHANGE_ADMITTED", audit_sql=AUDIT.replace(AUDIT_GUARDS, "")),
    Schema("audit-keyed-by-the-request", "g AUDIT_UNWRITABLE", audit_sql=_KEYED),
    Schema("audit-of-few-records", "?g AUDIT_UNWRITABLE", audit_sql=AUDIT.replace("key TEXT)", _FEW)),
    Schema(
        "audit-that-is-a-view",
        "g NOT_A_TABLE NO_TRIGGERS",
        audit="FILE:seen",
        audit_sql=f"{AUDIT}CREATE VIEW seen AS SELECT * FROM refusals;",
    ),
    Schema("audit-that-forgets", "g TRIGGER_UNREVIEWED AUDIT_UNWRITABLE", audit_sql=AUDIT + _QUIET),
    *(
        Schema(f"audit-{name}", comes, audit_sql=f"{AUDIT}CREATE {more};")
        for name, comes, more in (row.split(" | ") for row in _MORE.strip().splitlines())
    ),
)

RETENTION = (
    *cases("""
cascade-from-a-parent: i CASCADE
  CREATE TABLE runs (run_id TEXT PRIMARY KEY NOT NULL) STRICT
  run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE CHECK (run_id <> '')
housekeeping-elsewhere: i HOUSEKEEPING
  CREATE TABLE ticks (at TEXT) STRICT
  CREATE TRIGGER sweep AFTER INSERT ON ticks BEGIN
    DELETE FROM "effect" WHERE committed_at < datetime('now', '-1 day'); END
housekeeping-by-an-upsert: i HOUSEKEEPING
  CREATE TABLE ticks (at TEXT) STRICT
  CREATE TRIGGER sweep AFTER INSERT ON ticks BEGIN INSERT INTO consumed VALUES ('a', 'b')
    ON CONFLICT DO UPDATE SET logical_request_key = 'c'; END
housekeeping-by-replace: i HOUSEKEEPING
  CREATE TABLE ticks (at TEXT) STRICT
  CREATE TRIGGER sweep AFTER INSERT ON ticks BEGIN INSERT OR REPLACE INTO consumed VALUES ('a', 'b'); END
rows-that-end-in-milliseconds: i RETENTION_TTL
  + x INTEGER NOT NULL DEFAULT (strftime('%s', 'now') * 1000 + 86400000)
rows-that-end-by-the-julian-day: i RETENTION_TTL
  + x REAL NOT NULL DEFAULT (julianday('now') + 30)
rows-that-end-on-a-day: i RETENTION_TTL
  + x TEXT NOT NULL DEFAULT (date('now','+30 days'))
rows-that-end-by-a-generated-column: i RETENTION_TTL
  + made INTEGER NOT NULL DEFAULT (strftime('%s', 'now'))
  + x INTEGER GENERATED ALWAYS AS (made + 86400) STORED
rows-that-end-on-one-day: ?i RETENTION_UNKNOWN
  + x TEXT NOT NULL DEFAULT '2030-01-01'
rows-that-end-in-one-second: ?i RETENTION_UNKNOWN
  + x INTEGER NOT NULL DEFAULT 1893456000
rows-that-end-in-another-zone: ?i RETENTION_UNKNOWN
  + x TEXT NOT NULL DEFAULT (datetime('now', '+23:59'))
rows-kept-as-the-writer-likes: ?i RETENTION_UNKNOWN
  + retain_until TEXT NOT NULL
"""),
    *cases(
        """
rows-that-end-at-the-horizon:
  + x ANY NOT NULL DEFAULT (datetime('now','+365 days'))
rows-that-end-after-twelve-months:
  + x ANY NOT NULL DEFAULT (datetime('now','+12 months'))
rows-that-end-about-the-horizon: ?i RETENTION_UNKNOWN
  + x ANY NOT NULL DEFAULT (date('now','+365 days'))
rows-that-end-at-the-first-of-two: ?i RETENTION_UNKNOWN
  + x ANY NOT NULL DEFAULT (min(datetime('now','+400 days'), current_timestamp))
""",
        policy=Policy(horizon_seconds=365 * 86_400),
    ),
)

# The parts that the retry ledger lacks, under each name.
_LACKS = "b MISSING_RELATION, c MISSING_COLUMNS, h MISSING_COLUMNS, ?g MISSING_RELATION"
_OPEN = f"{_LACKS}, f NO_TRIGGERS CHANGE_ADMITTED"
_LEDGER = Schema(
    "iu_route_attempt",
    f"a MISSING_COLUMNS REPLAY_ATTEMPT_NO_BYPASS, {_OPEN}, d WRONG_DOMAIN, ?e MISSING_RELATION",
    LEDGER,
    "iu_route_attempt",
    nonce=None,
    audit=None,
    connection={},
    writer="undeclared",
)
LEDGERS = (
    _LEDGER,
    replace(
        _LEDGER,
        name="ledger-with-a-unique-key",
        comes=f"a MISSING_COLUMNS, {_OPEN}, d WRONG_DOMAIN, ?e MISSING_RELATION",
        sql=LEDGER + "CREATE UNIQUE INDEX once ON iu_route_attempt (idempotency_key);",
    ),
    replace(
        _LEDGER,
        name="ledger-behind-a-view",
        comes=f"a MISSING_COLUMNS NOT_A_TABLE, {_LACKS}, d NOT_A_TABLE DOMAIN_UNRESTRICTED, e NOT_A_TABLE, "
        "f NOT_A_TABLE NO_TRIGGERS, i NOT_A_TABLE",
        sql=LEDGER + "CREATE VIEW ledger AS SELECT * FROM iu_route_attempt;",
        effect="ledger",
    ),
    replace(
        _LEDGER,
        name="ledger-with-the-contract's-words",
        comes=f"a MISSING_COLUMNS KEY_COMPOSITE, {_OPEN}, d WRONG_DOMAIN, e ARBITER_UNUSABLE",
        sql=LEDGER.replace("idempotency_key", "logical_request_key")
        .replace("attempt_no", "attempt_id")
        .replace("route_kind", "operation"),
    ),
    replace(
        _LEDGER,
        name="ledger-mapped-by-a-policy",
        comes="a MISSING_COLUMNS KEY_COMPOSITE REPLAY_ATTEMPT_NO_BYPASS, "
        f"{_OPEN}, d WRONG_DOMAIN, e ARBITER_UNUSABLE RACE_LOST",
        policy=Policy(columns={"logical_request_key": "idempotency_key", "attempt": "attempt_no"}),
    ),
)

SCHEMAS = (*FIT_ONES, *KEYS, *NONCES, *ROWS, *COMMITS, *GUARDS, *AUDITS, *RETENTION, *LEDGERS)
