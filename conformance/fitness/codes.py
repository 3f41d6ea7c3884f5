"""Every word that a fitness proof can give as a reason."""

from __future__ import annotations

from enum import Enum, unique


@unique
class Code(Enum):
    """Why a criterion is not proven. Add one here, with what it means, before using it."""

    # Any criterion.
    MISSING_COLUMNS = "MISSING_COLUMNS"  # columns that the contract names are not there
    MISSING_RELATION = "MISSING_RELATION"  # a part of the surface is not named, or is not there
    NOT_A_TABLE = "NOT_A_TABLE"  # a view, a foreign table: what it does with a row lies elsewhere
    EVIDENCE_MISSING = "EVIDENCE_MISSING"  # a class of evidence, or a probe, is not there at all
    CATALOGUE_UNREADABLE = "CATALOGUE_UNREADABLE"  # the role may not read what has to be known
    PROBE_FAILED = "PROBE_FAILED"  # a probe could not be tried, or ended in an error that shows nothing
    SILENTLY_IGNORED = "SILENTLY_IGNORED"  # no error and no row: a caller that does not count rows takes it for done

    # a, and b where the key is the nonce.
    REPLAY_ATTEMPT_NO_BYPASS = "REPLAY_ATTEMPT_NO_BYPASS"  # the same key is taken again with another attempt
    KEY_NOT_UNIQUE = "KEY_NOT_UNIQUE"  # no unique index on exactly the key
    KEY_COMPOSITE = "KEY_COMPOSITE"  # unique together with something else only
    KEY_PARTIAL = "KEY_PARTIAL"  # unique for some rows only
    KEY_EXPRESSION = "KEY_EXPRESSION"  # what is unique is computed from the key
    KEY_DEFERRABLE = "KEY_DEFERRABLE"  # unique at the end of the transaction only
    KEY_INVALID = "KEY_INVALID"  # an index that was never finished
    KEY_TEMPORAL = "KEY_TEMPORAL"  # unique for a period, or by an exclusion constraint
    KEY_OPERATOR = "KEY_OPERATOR"  # equality by an operator that is not PostgreSQL's own
    KEY_COLLATION = "KEY_COLLATION"  # different texts are equal
    COLLATION_UNSTABLE = "COLLATION_UNSTABLE"  # the order of the index depends on a library that changes
    KEY_NULLABLE = "KEY_NULLABLE"  # NULLs are never equal
    KEY_TYPE = "KEY_TYPE"  # a type that cuts or changes what it is given
    KEY_GENERATED = "KEY_GENERATED"  # the database makes the key up
    KEY_DEFAULT = "KEY_DEFAULT"  # a forgotten key gets one
    KEY_NOT_CANONICAL = "KEY_NOT_CANONICAL"  # two spellings of one key are two keys
    KEY_NARROW = "KEY_NARROW"  # its form leaves room for too few keys
    KEY_COLLISION = "KEY_COLLISION"  # two different keys are taken for one
    KEY_NOT_DECLARABLE = "KEY_NOT_DECLARABLE"  # partitions forbid a unique index on this alone
    CHECK_NOT_VALID = "CHECK_NOT_VALID"  # a constraint that was never validated, or is not enforced
    CHECK_VOLATILE = "CHECK_VOLATILE"  # a constraint that may answer otherwise tomorrow
    CHECK_UNREVIEWED = "CHECK_UNREVIEWED"  # a constraint, an index or a default calls a user's function
    ATTEMPT_KEYING = "ATTEMPT_KEYING"  # an attempt may not recur
    DUPLICATE_ADMITTED = "DUPLICATE_ADMITTED"  # the second of two equal keys went in
    CHILD_TABLES = "CHILD_TABLES"  # rows of children are rows of the table, and no unique index covers them
    IS_PARTITION = "IS_PARTITION"  # the same key may lie in another partition
    TRIGGER_UNREVIEWED = "TRIGGER_UNREVIEWED"  # a trigger of INSERT may change rows; one of logins, settings
    RULE_UNREVIEWED = "RULE_UNREVIEWED"  # a rule rewrites the statement
    UNLOGGED = "UNLOGGED"  # a crash empties it
    TEMPORARY = "TEMPORARY"  # the end of the session drops it

    # b
    NONCE_NOT_SEPARATE = "NONCE_NOT_SEPARATE"  # the consume record is the effect row
    NONCE_REUSED = "NONCE_REUSED"  # one nonce was consumed for two keys

    # c
    BINDING_NULLABLE = "BINDING_NULLABLE"
    BINDING_GENERATED = "BINDING_GENERATED"
    BINDING_DEFAULT = "BINDING_DEFAULT"  # a placeholder stands in for what was not bound
    BINDING_MAY_BE_EMPTY = "BINDING_MAY_BE_EMPTY"
    BINDING_CONSTANT = "BINDING_CONSTANT"  # the same in every row

    # d
    WRONG_DOMAIN = "WRONG_DOMAIN"  # the constraints speak of another domain
    DOMAIN_UNRESTRICTED = "DOMAIN_UNRESTRICTED"  # any operation goes in
    DOMAIN_UNCLEAR = "DOMAIN_UNCLEAR"  # restricted, but not shown to which operations

    # e
    ARBITER_UNUSABLE = "ARBITER_UNUSABLE"  # ON CONFLICT does not work with the key
    NOT_ATOMIC = "NOT_ATOMIC"  # something of a rolled-back transaction stayed, or of a committed one was lost
    ACCESS_METHOD = "ACCESS_METHOD"  # an extension keeps the rows
    TABLESPACE = "TABLESPACE"  # a disk of its own holds it, of which nothing is known
    RACE_LOST = "RACE_LOST"  # of two sessions with one key not exactly one won
    NOT_DURABLE = "NOT_DURABLE"  # fsync or full_page_writes is off, or another setting may lose a commit
    ASYNC_COMMIT = "ASYNC_COMMIT"  # an acknowledged commit may be lost
    COMMIT_UNKNOWN = "COMMIT_UNKNOWN"  # what a session of the writer starts with could not be read
    PREPARED_TRANSACTIONS = "PREPARED_TRANSACTIONS"  # a forgotten one holds its locks for ever

    # f, and g for the audit
    NO_TRIGGERS = "NO_TRIGGERS"  # nothing guards the rows
    GUARD_MISSING = "GUARD_MISSING"  # one of UPDATE, DELETE, TRUNCATE is not guarded
    CHANGE_ADMITTED = "CHANGE_ADMITTED"  # a consumed record was changed, deleted or replaced
    WRITER_UNPROVEN = "WRITER_UNPROVEN"  # no role is shown to be the one that writes
    WRITER_OWNS = "WRITER_OWNS"  # the writer owns, or can become who owns
    WRITER_ATTRIBUTES = "WRITER_ATTRIBUTES"  # no privilege binds the writer, or it can give itself others
    WRITER_MEMBERSHIP = "WRITER_MEMBERSHIP"  # a predefined role lets it write everywhere
    WRITER_PRIVILEGES = "WRITER_PRIVILEGES"  # it may do more than read and append, or pass that on
    WRITER_SHARED = "WRITER_SHARED"  # another role can become the writer
    OTHERS_MAY_WRITE = "OTHERS_MAY_WRITE"
    STRANGER_ADMITTED = "STRANGER_ADMITTED"  # a role without privileges inserted a row
    SCHEMA_CREATE = "SCHEMA_CREATE"  # a role that is not the owner may put objects beside the surface
    PARAMETER_GRANTED = "PARAMETER_GRANTED"  # a setting of superusers was given away
    REPLICATION_ROLE = "REPLICATION_ROLE"  # sessions start with ordinary triggers switched off
    REPLICATED_INTO = "REPLICATED_INTO"  # a subscription writes here
    DEFINER_FUNCTION = "DEFINER_FUNCTION"  # others can run a function as a role that may write to the table
    GUARD_UNREVIEWED = "GUARD_UNREVIEWED"  # a guard that does more than raise may let pass what was not tried
    GUARD_REPLACEABLE = "GUARD_REPLACEABLE"  # a function that runs at every write belongs to another than the table
    OWNED_ELSEWHERE = "OWNED_ELSEWHERE"  # what the table is made of belongs to another, who can drop it with CASCADE
    INHERITED = "INHERITED"  # the privileges of a parent decide

    # g
    AUDIT_NOT_SEPARATE = "AUDIT_NOT_SEPARATE"
    AUDIT_LOST = "AUDIT_LOST"  # the record did not survive the rollback
    AUDIT_UNWRITABLE = "AUDIT_UNWRITABLE"  # the writer may not keep it

    # h
    DECISION_NULLABLE = "DECISION_NULLABLE"
    DECISION_HIDDEN = "DECISION_HIDDEN"  # the writer cannot read what it wrote
    ROW_SECURITY = "ROW_SECURITY"  # policies that are not shown to let everything through

    # i
    CASCADE = "CASCADE"  # a foreign key deletes or changes rows
    RETENTION_TTL = "RETENTION_TTL"  # rows are made with an end
    RETENTION_UNKNOWN = "RETENTION_UNKNOWN"
    PARTITION_DROPPABLE = "PARTITION_DROPPABLE"
    JOB = "JOB"  # a job touches the table

    # SQLite files
    CORRUPT = "CORRUPT"  # the file's pages, indexes or rows do not agree with its schema
    FILE_LINKED = "FILE_LINKED"  # a second name for the file, which would have a log of its own
    FILE_SYSTEM_UNPROVEN = "FILE_SYSTEM_UNPROVEN"  # locks and syncs of such a file system cannot be relied upon
    CONNECTION_UNDECLARED = "CONNECTION_UNDECLARED"  # it depends on settings of each connection, none declared
    HOUSEKEEPING = "HOUSEKEEPING"  # a trigger takes rows away
