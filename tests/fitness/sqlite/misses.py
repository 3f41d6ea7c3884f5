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
    KEY_COLUMN,
    LEDGER,
    OPERATION_COLUMN,
    RELAXED,
    REMEMBERED,
    UNIQUE_KEY,
    Schema,
    changed,
)


def miss(name: str, sql: str, **criteria: str) -> Schema:
    """A near miss: each criterion named by its letter is refuted, with these codes."""
    return Schema(name, sql, refuted=criteria)


_UNGUARDED = {"f": "NO_TRIGGERS CHANGE_ADMITTED"}
# The parts that the retry ledger lacks, under each name.
_LEDGER = {
    "a": "MISSING_COLUMNS REPLAY_ATTEMPT_NO_BYPASS",
    "b": "MISSING_RELATION",
    "c": "MISSING_COLUMNS",
    "d": "WRONG_DOMAIN",
    "f": "NO_TRIGGERS CHANGE_ADMITTED",
    "h": "MISSING_COLUMNS",
}
_ledger = Schema(
    "iu_route_attempt",
    LEDGER,
    _LEDGER,
    {"e": "MISSING_RELATION", "g": "MISSING_RELATION"},
    "iu_route_attempt",
    nonce=None,
    audit=None,
    connection={},
    writer="undeclared",
)

KEYS = (
    # As a user would write it from the source alone.
    miss(
        "key-is-a-bare-primary-key",
        changed(
            (KEY_COLUMN, "logical_request_key TEXT PRIMARY KEY,"),
            ("decision_id TEXT NOT NULL PRIMARY KEY", "decision_id TEXT NOT NULL"),
            (f"{UNIQUE_KEY},\n  ", ""),
            ("UNIQUE (replay_key)\n) STRICT", "UNIQUE (replay_key)\n)"),
        ),
        a="KEY_NULLABLE KEY_NOT_CANONICAL",
        c="BINDING_MAY_BE_EMPTY",
    ),
    miss("key-nullable", changed((KEY_COLUMN, KEY_COLUMN.replace("NOT NULL", ""))), a="KEY_NULLABLE"),
    miss("key-without-its-form", changed((KEY_COLUMN, "logical_request_key TEXT NOT NULL,")), a="KEY_NOT_CANONICAL"),
    miss(
        "key-may-be-bytes",
        changed(
            ("UNIQUE (replay_key)\n) STRICT", "UNIQUE (replay_key)\n)"),
            (
                KEY_COLUMN,
                "logical_request_key TEXT NOT NULL CHECK (length(logical_request_key) = 64"
                " AND logical_request_key = lower(logical_request_key)),",
            ),
        ),
        a="KEY_NOT_CANONICAL",
        c="BINDING_MAY_BE_EMPTY",
    ),
    miss(
        "key-nocase",
        changed(("logical_request_key TEXT NOT NULL CHECK", "logical_request_key TEXT COLLATE NOCASE NOT NULL CHECK")),
        a="KEY_COLLATION",
    ),
    miss(
        "key-of-prefixes",
        changed((f"{UNIQUE_KEY},\n  ", ""))
        + "CREATE UNIQUE INDEX prefix ON effect (substr(logical_request_key, 1, 32));",
        a="KEY_EXPRESSION KEY_COLLISION",
        e="ARBITER_UNUSABLE",
    ),
    miss(
        "key-partial",
        changed((f"{UNIQUE_KEY},\n  ", ""))
        + "CREATE UNIQUE INDEX some ON effect (logical_request_key) WHERE attempt_id = '1';",
        a="KEY_PARTIAL DUPLICATE_ADMITTED",
        e="ARBITER_UNUSABLE RACE_LOST",
    ),
    miss(
        "key-with-attempt",
        changed((UNIQUE_KEY, "UNIQUE (logical_request_key, attempt_id)")),
        a="KEY_COMPOSITE REPLAY_ATTEMPT_NO_BYPASS",
        e="ARBITER_UNUSABLE RACE_LOST",
    ),
    miss(
        "key-not-unique",
        changed((f"{UNIQUE_KEY},\n  ", "")),
        a="KEY_NOT_UNIQUE DUPLICATE_ADMITTED",
        e="ARBITER_UNUSABLE RACE_LOST",
    ),
    miss(
        "key-unique-with-replace",
        changed((UNIQUE_KEY, f"{UNIQUE_KEY} ON CONFLICT REPLACE")),
        # The guard on DELETE fires, because the connection asks for it: so what is refused is refused loudly.
        a="CHANGE_ADMITTED",
    ),
    Schema(
        "key-unique-with-replace-and-no-recursion",
        changed((UNIQUE_KEY, f"{UNIQUE_KEY} ON CONFLICT REPLACE")),
        refuted={
            "a": "CHANGE_ADMITTED",
            "e": "RACE_LOST",
            "f": "CHANGE_ADMITTED",
            "g": "CHANGE_ADMITTED",
        },
        connection={"synchronous": "full"},
    ),
    miss(
        "key-unique-with-ignore",
        changed((UNIQUE_KEY, f"{UNIQUE_KEY} ON CONFLICT IGNORE")),
        a="SILENTLY_IGNORED",
        e="SILENTLY_IGNORED",
    ),
    Schema(
        "key-ignored-by-trigger",
        FIT + "CREATE TRIGGER known BEFORE INSERT ON effect WHEN EXISTS (SELECT 1 FROM effect"
        " WHERE logical_request_key = NEW.logical_request_key) BEGIN SELECT RAISE(IGNORE); END;",
        {"a": "SILENTLY_IGNORED TRIGGER_UNREVIEWED", "e": "SILENTLY_IGNORED"},
        {"f": "SILENTLY_IGNORED"},
    ),
    miss(
        "key-older-row-deleted-by-trigger",
        changed((EFFECT_GUARDS, "")) + "CREATE TRIGGER newest BEFORE INSERT ON effect BEGIN"
        " DELETE FROM effect WHERE logical_request_key = NEW.logical_request_key; END;",
        a="DUPLICATE_ADMITTED TRIGGER_UNREVIEWED",
        e="RACE_LOST ARBITER_UNUSABLE",
        f="GUARD_MISSING CHANGE_ADMITTED",
        i="HOUSEKEEPING",
    ),
    Schema(
        "key-trigger-unreviewed",
        FIT + "CREATE TRIGGER effect_said AFTER INSERT ON effect BEGIN SELECT 1; END;",
        unproven={"a": "TRIGGER_UNREVIEWED"},
    ),
    Schema(
        "key-a-number",
        changed(
            ("UNIQUE (replay_key)\n) STRICT", "UNIQUE (replay_key)\n)"),
            (KEY_COLUMN, KEY_COLUMN.replace("TEXT", "NUMERIC")),
        ),
        {"a": "KEY_TYPE", "c": "BINDING_MAY_BE_EMPTY"},
        says="logical_request_key of main.effect is of the type NUMERIC, which makes numbers of texts",
    ),
    miss(
        "key-has-a-default",
        changed((KEY_COLUMN, KEY_COLUMN.replace("CHECK", f"DEFAULT '{'0' * 64}' CHECK"))),
        a="KEY_DEFAULT",
    ),
    Schema(
        "key-column-missing",
        changed((KEY_COLUMN, ""), (UNIQUE_KEY, "UNIQUE (run_id, attempt_id)")),
        {"a": "MISSING_COLUMNS REPLAY_ATTEMPT_NO_BYPASS"},
        {"h": "PROBE_FAILED"},
    ),
    Schema(
        "key-behind-a-view",
        FIT
        + """CREATE VIEW registrations AS SELECT * FROM effect;
        CREATE TRIGGER registrations_in INSTEAD OF INSERT ON registrations BEGIN
          INSERT OR IGNORE INTO effect (decision_id, logical_request_key, replay_key, operation, canonical_target,
            run_id, deployed_artifact_hash, owner_or_approval_binding, attempt_id)
            SELECT NEW.decision_id, NEW.logical_request_key, NEW.replay_key, NEW.operation, NEW.canonical_target,
            NEW.run_id, NEW.deployed_artifact_hash, NEW.owner_or_approval_binding, NEW.attempt_id; END;""",
        {
            "a": "NOT_A_TABLE KEY_NOT_UNIQUE",
            "c": "NOT_A_TABLE",
            "d": "NOT_A_TABLE",
            "e": "NOT_A_TABLE",
            "f": "NOT_A_TABLE",
            "h": "NOT_A_TABLE",
            "i": "NOT_A_TABLE",
        },
        {"b": "PROBE_FAILED", "g": "PROBE_FAILED"},
        "registrations",
    ),
    miss(
        "attempt-unique-by-an-expression",
        FIT + "CREATE UNIQUE INDEX one_try ON effect (lower(attempt_id));",
        a="ATTEMPT_KEYING",
    ),
    miss(
        "attempt-unique-for-some-rows",
        FIT + "CREATE UNIQUE INDEX one_try ON effect (attempt_id) WHERE operation = 'register_dot';",
        a="ATTEMPT_KEYING",
    ),
    miss(
        "attempt-in-a-condition",
        FIT + "CREATE UNIQUE INDEX first_try ON effect (run_id) WHERE attempt_id = '1';",
        a="ATTEMPT_KEYING",
    ),
    Schema(
        "key-of-few-digits",
        FIT.replace("= 64", "= 31"),
        policy=Policy(
            values=dict.fromkeys(("logical_request_key", "replay_key", "deployed_artifact_hash"), "{hex:31}")
        ),
        unproven={"a": "KEY_NARROW"},
    ),
    Schema(
        "key-of-few-octets",
        FIT.replace("length(logical_request_key) = 64 AND", "instr(logical_request_key, char(0)) = 0 AND").replace(
            "length(CAST(logical_request_key AS BLOB)) = 64", "length(CAST(logical_request_key AS BLOB)) = 8"
        ),
        policy=Policy(values={"logical_request_key": "{hex:8}"}),
        unproven={"a": "KEY_NARROW"},
        says="bits: keys may meet",
    ),
    # What many a surface has, the reference's own among them: length() and GLOB end at a NUL.
    miss(
        "key-goes-on-behind-a-nul",
        FIT.replace(" AND length(CAST(logical_request_key AS BLOB)) = 64", ""),
        a="KEY_NOT_CANONICAL",
    ),
    Schema(
        "key-form-that-no-probe-exhausts",
        changed((KEY_COLUMN, KEY_COLUMN.replace("CHECK (", "CHECK (logical_request_key GLOB 'urn:*' OR "))),
        unproven={"a": "KEY_NOT_CANONICAL"},
        says="has one spelling: CHECK (logical_request_key glob 'urn:*' OR length ( logical_request_key ) = 64"
        " AND length ( cast ( logical_request_key as blob ) ) = 64"
        " AND logical_request_key not glob '*[^0-9a-f]*'); write one as",
    ),
    Schema(
        "key-beside-a-unique-column-of-one-byte",
        changed(
            ("attempt_id TEXT NOT NULL,", "attempt_id TEXT NOT NULL, x BLOB NOT NULL UNIQUE CHECK (length(x) = 1),")
        ),
        unproven=dict.fromkeys("abcdefgh", "PROBE_FAILED"),
        says="effect.x does not differ from row to row",
    ),
    Schema(
        "key-of-another-form-in-some-rows",
        changed((KEY_COLUMN, KEY_COLUMN.replace("CHECK (", "CHECK (attempt_id = 'legacy' OR "))),
        unproven={"a": "KEY_NOT_CANONICAL"},
    ),
)

NONCES = (
    Schema(
        "nonce-without-a-relation", refuted={"b": "MISSING_RELATION"}, unproven={"e": "MISSING_RELATION"}, nonce=None
    ),
    Schema(
        "nonce-in-the-effect",
        changed(("attempt_id TEXT NOT NULL,", "attempt_id TEXT NOT NULL, authorization_nonce TEXT NOT NULL UNIQUE,")),
        {"b": "NONCE_NOT_SEPARATE"},
        {"e": "MISSING_RELATION"},
        nonce="effect",
    ),
    miss(
        "nonce-with-key",
        changed(("UNIQUE (authorization_nonce)", "UNIQUE (authorization_nonce, logical_request_key)")),
        b="KEY_COMPOSITE NONCE_REUSED",
        e="ARBITER_UNUSABLE",
    ),
    miss(
        "nonce-ignored",
        changed(("UNIQUE (authorization_nonce)", "UNIQUE (authorization_nonce) ON CONFLICT IGNORE")),
        b="SILENTLY_IGNORED",
        e="SILENTLY_IGNORED",
    ),
    miss(
        "nonce-may-be-bytes",
        changed(("UNIQUE (authorization_nonce)\n) STRICT", "UNIQUE (authorization_nonce)\n)")),
        b="NONCE_REUSED",
    ),
    *(
        Schema(
            f"nonce-of-{name}",
            changed(("CHECK (authorization_nonce <> '')", f"CHECK ({check.format('authorization_nonce')})")),
            policy=Policy(values={"authorization_nonce": f"{{hex:{count}}}"}),
            unproven={"b": "KEY_NARROW"},
            says="bits: nonces may meet",
        )
        for name, count, check in (
            ("six-signs", 6, "length({0}) = 6"),
            ("six-digits-or-fewer", 6, "length({0}) <= 6 AND {0} NOT GLOB '*[^0-9a-f]*' AND {0} <> ''"),
            ("less-than-seven-signs", 6, "length({0}) < 7"),
            ("six-signs-at-the-most", 6, "length({0}) BETWEEN 1 AND 6"),
            ("eight-digits-of-any-case", 8, f"{{0}} GLOB '{'[0-9A-Fa-f]' * 8}'"),
            ("six-signs-of-a-pattern", 6, f"{{0}} GLOB '{'?' * 6}'"),
        )
    ),
    Schema(
        "nonce-of-eight-bytes",
        changed(
            (
                "authorization_nonce TEXT NOT NULL CHECK (authorization_nonce <> '')",
                "authorization_nonce ANY NOT NULL CHECK (typeof(authorization_nonce) = 'blob'"
                " AND length(authorization_nonce) = 8)",
            )
        ),
        unproven={"b": "KEY_NARROW"},
    ),
    Schema(
        "nonce-missing",
        refuted={"b": "MISSING_RELATION", "e": "MISSING_RELATION", "f": "MISSING_RELATION", "i": "MISSING_RELATION"},
        unproven={"g": "PROBE_FAILED"},
        nonce="nowhere",
    ),
)

ROWS = (
    miss(
        "binding-that-may-be-an-empty-blob",
        changed(("typeof(run_id) = 'text' AND ", ""), sql=RELAXED),
        c="BINDING_MAY_BE_EMPTY",
    ),
    miss(
        "binding-that-makes-numbers",
        changed(("run_id TEXT NOT NULL", "run_id NUMERIC NOT NULL"), sql=RELAXED),
        c="KEY_TYPE",
    ),
    miss(
        "decision-that-becomes-a-number",
        changed(("decision_id TEXT NOT NULL", "decision_id NUMERIC NOT NULL"), sql=RELAXED),
        h="KEY_TYPE",
    ),
    Schema(
        "attempt-mapped-to-nothing",
        FIT + "CREATE UNIQUE INDEX attempts ON effect (attempt_id);",
        policy=Policy(columns={"attempt": "ATTEMPT_ID"}),
        unproven={"a": "MISSING_COLUMNS"},
    ),
    miss(
        "binding-has-a-default",
        changed(("run_id TEXT NOT NULL", "run_id TEXT NOT NULL DEFAULT 'unknown'")),
        c="BINDING_DEFAULT",
    ),
    Schema(
        "binding-null-becomes-its-default",
        changed(("run_id TEXT NOT NULL", "run_id TEXT NOT NULL ON CONFLICT REPLACE DEFAULT 'unknown'")),
        {"a": "CHANGE_ADMITTED", "c": "BINDING_DEFAULT BINDING_NULLABLE"},
        says="deletes the stored row, or writes the default in the place of NULL, and says nothing",
    ),
    miss(
        "binding-generated",
        changed(("run_id TEXT NOT NULL CHECK (run_id <> '')", "run_id TEXT NOT NULL AS ('run-' || attempt_id)")),
        c="BINDING_GENERATED",
    ),
    *(
        miss(
            f"binding-of-{name}",
            changed(("run_id TEXT NOT NULL", f"run_id {kind} NOT NULL"), sql=RELAXED).replace(
                "typeof(run_id) = 'text'", "1"
            ),
            c="KEY_TYPE",
        )
        for name, kind in (("whole-numbers", "INTEGER"), ("numbers", "REAL"))
    ),
    replace(
        miss(
            "binding-a-number-within-a-primary-key",
            changed(
                ("run_id TEXT NOT NULL CHECK (run_id <> '')", "run_id INTEGER NOT NULL CHECK (run_id > 0)"),
                ("decision_id TEXT NOT NULL PRIMARY KEY", "decision_id TEXT NOT NULL"),
                ("UNIQUE (replay_key)", "UNIQUE (replay_key), PRIMARY KEY (run_id, decision_id)"),
            ),
            c="KEY_TYPE",
        ),
        says="run_id of main.effect is of the type INTEGER, which makes numbers of texts",
    ),
    Schema(
        "binding-empty-where-another-column-says-so",
        changed(
            (" CHECK (run_id <> '')", " CHECK (run_id <> 'q')"),
            ("UNIQUE (replay_key)", "UNIQUE (replay_key), CHECK (run_id <> '' OR attempt_id = 'skip')"),
        ),
        unproven={"c": "PROBE_FAILED"},
    ),
    *(
        Schema(
            f"binding-empty-{name}",
            changed(("CHECK (run_id <> '')", f"CHECK (run_id <> '' OR {check})")),
            unproven={"c": "CHECK_VOLATILE"},
        )
        for name, check in (("in-late-rows", "rowid > 1000"), ("by-chance", "abs(random() % 1000000) = 0"))
    ),
    Schema(
        "binding-empty-by-a-check-of-the-same-name",
        changed(
            (" CHECK (run_id <> '')", " CONSTRAINT said CHECK (run_id <> 'q')"),
            ("UNIQUE (replay_key)", "UNIQUE (replay_key), CONSTRAINT said CHECK (run_id <> '' OR attempt_id = 'skip')"),
        ),
        unproven={"c": "PROBE_FAILED"},
    ),
    *(
        Schema(
            f"binding-of-one-{name}",
            changed(("CHECK (run_id <> '')", f"CHECK (run_id {check})")),
            unproven={"c": "BINDING_CONSTANT"},
            policy=Policy(values={"run_id": "prod"}),
        )
        for name, check in (("word", "IS 'prod'"), ("pattern", "GLOB 'prod'"))
    ),
    miss(
        "operation-free",
        changed((OPERATION_COLUMN, "operation TEXT NOT NULL CHECK (operation <> ''),")),
        d="DOMAIN_UNRESTRICTED",
    ),
    miss(
        "operation-like",
        changed(("operation = 'register_dot'", "operation LIKE 'register_dot'")),
        d="DOMAIN_UNRESTRICTED",
    ),
    Schema(
        "binding-refused-by-a-trigger-that-takes-nothing-back",
        changed((" CHECK (run_id <> '')", ""))
        + "CREATE TRIGGER said AFTER INSERT ON effect WHEN NEW.run_id = '' BEGIN SELECT RAISE(FAIL, 'no'); END;",
        refuted={"c": "BINDING_MAY_BE_EMPTY"},
        policy=Policy(reviewed=("said",)),
    ),
    Schema(
        "operation-by-trigger",
        changed((OPERATION_COLUMN, "operation TEXT NOT NULL CHECK (operation <> ''),"))
        + "CREATE TRIGGER domain BEFORE INSERT ON effect WHEN NEW.operation <> 'register_dot'"
        " BEGIN SELECT RAISE(ABORT, 'no'); END;",
        unproven={"c": "PROBE_FAILED", "d": "DOMAIN_UNCLEAR"},
        policy=Policy(reviewed=("domain",)),
    ),
    Schema(
        "operation-looked-up",
        "CREATE TABLE operations (name TEXT NOT NULL PRIMARY KEY) STRICT;"
        "INSERT INTO operations VALUES ('register_dot');"
        + changed((OPERATION_COLUMN, "operation TEXT NOT NULL REFERENCES operations CHECK (operation <> ''),")),
        {"d": "DOMAIN_UNRESTRICTED"},
        connection={**DECLARED, "foreign_keys": "on"},
    ),
    miss(
        "decision-nullable",
        changed(("decision_id TEXT NOT NULL PRIMARY KEY", "decision_id TEXT UNIQUE")),
        h="DECISION_NULLABLE",
    ),
    *(
        miss(
            f"decision-nullable-{name}",
            changed(("decision_id TEXT NOT NULL PRIMARY KEY", column), *more, sql=RELAXED),
            h="DECISION_NULLABLE",
        )
        for name, column, more in (
            ("in-falling-order", "decision_id INTEGER PRIMARY KEY DESC", ()),
            (
                "within-a-key",
                "decision_id INTEGER",
                (("UNIQUE (replay_key)", "UNIQUE (replay_key), PRIMARY KEY (decision_id, run_id)"),),
            ),
        )
    ),
    Schema(
        "binding-empty-in-some-rows",
        changed(("CHECK (run_id <> '')", "CHECK (run_id <> '' OR attempt_id = 'legacy')")),
        unproven={"c": "BINDING_MAY_BE_EMPTY"},
    ),
    Schema(
        "binding-there-by-a-check-alone",
        changed(
            ("run_id TEXT NOT NULL CHECK (run_id <> '')", "run_id TEXT CHECK (run_id IS NOT NULL AND run_id <> '')")
        ),
        unproven={"c": "BINDING_NULLABLE"},
    ),
    Schema(
        "operation-free-in-some-rows",
        changed(("CHECK (operation = 'register_dot')", "CHECK (operation = 'register_dot' OR attempt_id = 'legacy')")),
        unproven={"c": "BINDING_MAY_BE_EMPTY", "d": "DOMAIN_UNCLEAR"},
    ),
    miss(
        "operation-one-of-many-that-nobody-guesses",
        changed(("operation = 'register_dot'", "operation IN ('register_dot', 'purge')")),
        d="DOMAIN_UNRESTRICTED",
    ),
)

COMMITS = (
    Schema(
        "connection-undeclared",
        connection={"recursive_triggers": "on"},
        unproven={"e": "CONNECTION_UNDECLARED", "g": "CONNECTION_UNDECLARED"},
    ),
    Schema(
        "synchronous-normal",
        connection={**DECLARED, "synchronous": "normal"},
        refuted={"e": "ASYNC_COMMIT", "g": "ASYNC_COMMIT"},
    ),
    Schema(
        "journal-in-memory",
        connection={**DECLARED, "journal_mode": "memory"},
        refuted={"e": "NOT_DURABLE", "g": "NOT_DURABLE"},
    ),
    Schema(
        "journal-undeclared", journal="delete", unproven={"e": "CONNECTION_UNDECLARED", "g": "CONNECTION_UNDECLARED"}
    ),
    Schema("file-with-two-names", linked=True, refuted={"e": "FILE_LINKED"}),
)

GUARDS = (
    miss("guards-missing", changed((EFFECT_GUARDS, "")), **_UNGUARDED),
    Schema(
        "guard-of-update-missing",
        changed((EFFECT_GUARDS, EFFECT_GUARDS.split("\n")[2])),
        {"f": "GUARD_MISSING CHANGE_ADMITTED"},
        says="write SELECT RAISE(ABORT, text) and nothing else, without a condition, or name it",
    ),
    miss(
        "guard-with-a-condition",
        changed(("BEFORE DELETE ON effect BEGIN", "BEFORE DELETE ON effect WHEN OLD.attempt_id = '1' BEGIN")),
        f="GUARD_MISSING CHANGE_ADMITTED",
    ),
    Schema(
        "guard-with-a-condition-that-was-met",
        changed(("BEFORE DELETE ON effect BEGIN", "BEFORE DELETE ON effect WHEN OLD.attempt_id <> '' BEGIN")),
        unproven={"f": "GUARD_UNREVIEWED"},
    ),
    miss(
        "guard-of-some-columns",
        changed(("BEFORE UPDATE ON effect", "BEFORE UPDATE OF logical_request_key, replay_key ON effect")),
        f="GUARD_MISSING CHANGE_ADMITTED",
    ),
    miss(
        "guard-that-only-looks",
        changed(
            (EFFECT_GUARDS, EFFECT_GUARDS.replace("RAISE(ABORT, 'effect is append-only')", "'effect is append-only'"))
        ),
        f="CHANGE_ADMITTED",
    ),
    Schema(
        "guard-that-ignores",
        changed((EFFECT_GUARDS, EFFECT_GUARDS.replace("RAISE(ABORT, 'effect is append-only')", "RAISE(IGNORE)"))),
        unproven={"f": "SILENTLY_IGNORED"},
    ),
    Schema(
        "guard-that-forgets-old-rows",
        changed(
            (
                EFFECT_GUARDS,
                EFFECT_GUARDS.replace("only')", "only') WHERE OLD.committed_at > datetime('now', '-1 day')"),
            )
        ),
        unproven={"f": "GUARD_UNREVIEWED"},
    ),
    Schema(
        "guard-that-was-reviewed",
        changed((EFFECT_GUARDS, EFFECT_GUARDS.replace("only')", "only') WHERE OLD.run_id IS NOT NULL"))),
        policy=Policy(reviewed=("effect_no_update", "effect_no_delete")),
    ),
    miss(
        "guards-behind-the-change-that-take-nothing-back",
        changed((EFFECT_GUARDS, EFFECT_GUARDS.replace("BEFORE", "AFTER").replace("ABORT", "FAIL"))),
        f="CHANGE_ADMITTED",
    ),
    Schema("guards-before-the-change-that-fail", changed((EFFECT_GUARDS, EFFECT_GUARDS.replace("ABORT", "FAIL")))),
    Schema("guards-behind-the-change", changed((EFFECT_GUARDS, EFFECT_GUARDS.replace("BEFORE", "AFTER")))),
    Schema(
        "replace-fires-no-trigger",
        connection={"synchronous": "full"},
        refuted={"f": "CHANGE_ADMITTED", "g": "CHANGE_ADMITTED"},
    ),
    *(
        Schema(
            f"replace-by-{name}",
            changed(*pairs, sql=REMEMBERED.sql) + more,
            refuted={"f": "CHANGE_ADMITTED"},
            audit_sql=REMEMBERED.audit_sql,
            policy=REMEMBERED.policy,
            connection=REMEMBERED.connection,
        )
        for name, more, pairs in (
            (
                "an-index-over-some-rows",
                "CREATE UNIQUE INDEX p ON effect (canonical_target, run_id) WHERE run_id <> 'zz';",
                (),
            ),
            ("an-index-over-an-expression", "CREATE UNIQUE INDEX p ON effect (lower(run_id));", ()),
            (
                "another-name-of-the-rowid",
                "",
                (
                    ("UNIQUE (replay_key)\n) STRICT, WITHOUT ROWID", "UNIQUE (replay_key)\n) STRICT"),
                    ("attempt_id TEXT NOT NULL,", "attempt_id TEXT NOT NULL, rowid TEXT,"),
                ),
            ),
        )
    ),
    # The row that took its place says the same but for a default.
    Schema(
        "replace-of-a-nonce-alone-by-its-like",
        changed(
            (
                "  logical_request_key TEXT NOT NULL,\n  PRIMARY",
                "  used_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,\n  PRIMARY",
            ),
            ("(authorization_nonce)\n) STRICT, WITHOUT ROWID", "(authorization_nonce)\n) STRICT"),
            ("consumed_once AFTER", "consumed_once BEFORE"),
            ("taken WHERE what = 'n' || NEW.authorization_nonce", "consumed WHERE rowid = NEW.rowid"),
            ("  INSERT INTO taken VALUES ('n' || NEW.authorization_nonce);\n", ""),
            sql=REMEMBERED.sql,
        ),
        refuted={"f": "CHANGE_ADMITTED"},
        audit_sql=REMEMBERED.audit_sql,
        policy=REMEMBERED.policy,
        connection=REMEMBERED.connection,
    ),
    # The guard takes back nothing of what it refuses.
    replace(
        REMEMBERED,
        name="replace-by-its-like-that-is-refused-too-late",
        sql=changed(
            (
                "  logical_request_key TEXT NOT NULL,\n  PRIMARY",
                "  used_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP,\n  PRIMARY",
            ),
            ("RAISE(ABORT, 'consumed is append-only') FROM", "RAISE(FAIL, 'consumed is append-only') FROM"),
            sql=REMEMBERED.sql,
        ),
        refuted={"f": "CHANGE_ADMITTED"},
    ),
    replace(
        REMEMBERED,
        name="replace-of-an-audit-record-by-its-like",
        refuted={"g": "CHANGE_ADMITTED"},
        audit_sql="CREATE TABLE refusals (refusal_id TEXT NOT NULL PRIMARY KEY, code TEXT NOT NULL CHECK (code IN "
        "('A', 'B')), at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT, WITHOUT ROWID;" + AUDIT_GUARDS,
    ),
    Schema("writer-undeclared", writer="undeclared", unproven={"f": "WRITER_UNPROVEN", "g": "WRITER_UNPROVEN"}),
    Schema("writer-another", writer="another", refuted={"f": "OTHERS_MAY_WRITE", "g": "OTHERS_MAY_WRITE"}),
    Schema(
        "writer-root",
        writer="root",
        refuted={"f": "WRITER_ATTRIBUTES OTHERS_MAY_WRITE", "g": "WRITER_ATTRIBUTES OTHERS_MAY_WRITE"},
    ),
    Schema("file-of-everybody", modes={"file": 0o666}, refuted={"f": "OTHERS_MAY_WRITE"}),
    Schema("folder-of-everybody", modes={"folder": 0o777}, refuted={"f": "OTHERS_MAY_WRITE", "g": "OTHERS_MAY_WRITE"}),
    Schema(
        "folder-of-everybody-sticky",
        modes={"folder": 0o1777},
        refuted={"f": "OTHERS_MAY_WRITE", "g": "OTHERS_MAY_WRITE"},
    ),
    Schema("log-of-everybody", modes={"-wal": 0o666}, refuted={"f": "OTHERS_MAY_WRITE"}),
)

AUDITS = (
    Schema("audit-missing", audit=None, unproven={"g": "MISSING_RELATION"}),
    Schema("audit-in-the-same-file", FIT + AUDIT, audit="refusals", refuted={"g": "AUDIT_NOT_SEPARATE"}),
    Schema("audit-nowhere", audit="FILE:nowhere", refuted={"g": "MISSING_RELATION"}),
    Schema("audit-unguarded", audit_sql=AUDIT.replace(AUDIT_GUARDS, ""), refuted={"g": "NO_TRIGGERS CHANGE_ADMITTED"}),
    Schema(
        "audit-that-forgets",
        audit_sql=AUDIT + "CREATE TRIGGER quiet BEFORE INSERT ON refusals BEGIN SELECT RAISE(IGNORE); END;",
        refuted={"g": "TRIGGER_UNREVIEWED AUDIT_UNWRITABLE"},
    ),
    *(
        Schema(f"audit-of-the-first-refusal-{name}", audit_sql=AUDIT + sql, refuted={"g": "AUDIT_UNWRITABLE"})
        for name, sql in (
            ("of-a-request", "CREATE UNIQUE INDEX once ON refusals (logical_request_key);"),
            ("of-a-code", "CREATE UNIQUE INDEX once ON refusals (lower(code)) WHERE code <> '';"),
        )
    ),
    Schema(
        "audit-of-some-codes-once",
        audit_sql=AUDIT + "CREATE UNIQUE INDEX once ON refusals (logical_request_key) WHERE code = 'REPLAYED';",
        unproven={"g": "AUDIT_UNWRITABLE"},
    ),
    Schema(
        "audit-keyed-by-the-request",
        audit_sql=AUDIT.replace("INTEGER PRIMARY KEY", "INTEGER NOT NULL").replace(
            "logical_request_key TEXT)", "logical_request_key TEXT PRIMARY KEY)"
        ),
        refuted={"g": "AUDIT_UNWRITABLE"},
    ),
    Schema(
        "audit-of-few-records",
        audit_sql=AUDIT.replace(
            "logical_request_key TEXT)",
            "logical_request_key TEXT, mark TEXT NOT NULL DEFAULT (substr(hex(randomblob(16)), 1, 8)) UNIQUE)",
        ),
        unproven={"g": "AUDIT_UNWRITABLE"},
    ),
    Schema("audit-of-everybody", modes={"audit": 0o646}, refuted={"g": "OTHERS_MAY_WRITE"}),
    Schema(
        "audit-that-is-a-view",
        audit="FILE:seen",
        audit_sql=AUDIT + "CREATE VIEW seen AS SELECT * FROM refusals;",
        refuted={"g": "NOT_A_TABLE NO_TRIGGERS"},
    ),
)

RETENTION = (
    miss(
        "cascade-from-a-parent",
        "CREATE TABLE runs (run_id TEXT PRIMARY KEY NOT NULL) STRICT;"
        + changed(("run_id TEXT NOT NULL CHECK", "run_id TEXT NOT NULL REFERENCES runs ON DELETE CASCADE CHECK")),
        i="CASCADE",
    ),
    miss(
        "housekeeping-elsewhere",
        FIT + "CREATE TABLE ticks (at TEXT) STRICT; CREATE TRIGGER sweep AFTER INSERT ON ticks BEGIN"
        " DELETE FROM \"effect\" WHERE committed_at < datetime('now', '-1 day'); END;",
        i="HOUSEKEEPING",
    ),
    miss(
        "housekeeping-by-replace",
        FIT + "CREATE TABLE ticks (at TEXT) STRICT; CREATE TRIGGER sweep AFTER INSERT ON ticks BEGIN"
        " INSERT OR REPLACE INTO consumed VALUES ('a', 'b'); END;",
        i="HOUSEKEEPING",
    ),
    *(
        miss(
            f"rows-that-end-{name}",
            changed(("attempt_id TEXT NOT NULL,", f"attempt_id TEXT NOT NULL, x {column},")),
            i="RETENTION_TTL",
        )
        for name, column in (
            ("in-milliseconds", "INTEGER NOT NULL DEFAULT (strftime('%s', 'now') * 1000 + 86400000)"),
            ("by-the-julian-day", "REAL NOT NULL DEFAULT (julianday('now') + 30)"),
            ("on-a-day", "TEXT NOT NULL DEFAULT (date('now','+30 days'))"),
        )
    ),
    miss(
        "rows-that-end-by-a-generated-column",
        changed(
            (
                "attempt_id TEXT NOT NULL,",
                "attempt_id TEXT NOT NULL, made INTEGER NOT NULL DEFAULT (strftime('%s', 'now')),"
                " x INTEGER GENERATED ALWAYS AS (made + 86400) STORED,",
            )
        ),
        i="RETENTION_TTL",
    ),
    *(
        Schema(
            f"rows-that-end-{name}",
            changed(("attempt_id TEXT NOT NULL,", f"attempt_id TEXT NOT NULL, x {column},")),
            unproven={"i": "RETENTION_UNKNOWN"},
        )
        for name, column in (
            ("on-one-day", "TEXT NOT NULL DEFAULT '2030-01-01'"),
            ("in-one-second", "INTEGER NOT NULL DEFAULT 1893456000"),
            ("in-another-zone", "TEXT NOT NULL DEFAULT (datetime('now', '+23:59'))"),
        )
    ),
    *(
        Schema(
            f"rows-that-end-{name}",
            changed(("attempt_id TEXT NOT NULL,", f"attempt_id TEXT NOT NULL, x ANY NOT NULL DEFAULT ({text}),")),
            policy=Policy(horizon_seconds=365 * 86_400),
            unproven=unproven,
        )
        for name, text, unproven in (
            ("at-the-horizon", "datetime('now','+365 days')", {}),
            ("after-twelve-months", "datetime('now','+12 months')", {}),
            ("about-the-horizon", "date('now','+365 days')", {"i": "RETENTION_UNKNOWN"}),
            ("at-the-first-of-two", "min(datetime('now','+400 days'), current_timestamp)", {"i": "RETENTION_UNKNOWN"}),
        )
    ),
    Schema(
        "rows-kept-as-the-writer-likes",
        changed(("attempt_id TEXT NOT NULL,", "attempt_id TEXT NOT NULL, retain_until TEXT NOT NULL,")),
        unproven={"i": "RETENTION_UNKNOWN"},
    ),
)

LEDGERS = (
    _ledger,
    replace(
        _ledger,
        name="ledger-with-a-unique-key",
        sql=LEDGER + "CREATE UNIQUE INDEX once ON iu_route_attempt (idempotency_key);",
        refuted={**_LEDGER, "a": "MISSING_COLUMNS"},
    ),
    replace(
        _ledger,
        name="ledger-behind-a-view",
        sql=LEDGER + "CREATE VIEW ledger AS SELECT * FROM iu_route_attempt;",
        effect="ledger",
        refuted={
            **_LEDGER,
            "a": "MISSING_COLUMNS NOT_A_TABLE",
            "d": "NOT_A_TABLE DOMAIN_UNRESTRICTED",
            "e": "NOT_A_TABLE",
            "i": "NOT_A_TABLE",
            "f": "NOT_A_TABLE NO_TRIGGERS",
        },
        unproven={"g": "MISSING_RELATION"},
    ),
    replace(
        _ledger,
        name="ledger-with-the-contract's-words",
        sql=LEDGER.replace("idempotency_key", "logical_request_key")
        .replace("attempt_no", "attempt_id")
        .replace("route_kind", "operation"),
        refuted={**_LEDGER, "a": "MISSING_COLUMNS KEY_COMPOSITE", "d": "WRONG_DOMAIN", "e": "ARBITER_UNUSABLE"},
        unproven={"g": "MISSING_RELATION"},
    ),
    replace(
        _ledger,
        name="ledger-mapped-by-a-policy",
        policy=Policy(columns={"logical_request_key": "idempotency_key", "attempt": "attempt_no"}),
        refuted={
            **_LEDGER,
            "a": "MISSING_COLUMNS KEY_COMPOSITE REPLAY_ATTEMPT_NO_BYPASS",
            "e": "ARBITER_UNUSABLE RACE_LOST",
        },
        unproven={"g": "MISSING_RELATION"},
    ),
)

SCHEMAS = (*FIT_ONES, *KEYS, *NONCES, *ROWS, *COMMITS, *GUARDS, *AUDITS, *RETENTION, *LEDGERS)
